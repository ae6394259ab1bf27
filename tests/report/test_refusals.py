"""Refused fusions as lines and tables of text."""

from fusionlab.ledger.refusals import FusionRefusal
from fusionlab.report.tables.refusals import cause_table, refusal_lines

REFUSED = {
    "producer": "add", "kernel": "loop_add_fusion", "consumers": ("gemm",), "cause": "library call", "stage": "",
    "role": "", "op_name": "jit(f)/add", "dynamic_launches": 2, "result_bytes": 1024, "read_bytes": 1024,
    "boundary_us": None, "us_unfused": None, "us_fused": None, "scope": "jit(f)", "op": "add", "transform": "primal",
}  # fmt: skip


def test_a_place_is_said_where_it_is_known():
    known, unknown = (refusal_lines(FusionRefusal(**REFUSED, source=at), {}, staged=False) for at in ("a.py:3", ""))
    assert known[1] == "      add at a.py:3, jit(f), primal: jit(f)/add"
    assert unknown[1] == "      add, jit(f), primal: jit(f)/add"


def test_boundaries_without_times_are_bytes():
    group = {"cause": "library call", "refusals": 1, "dynamic_launches": 2, "xla": {"us_lost": None}}
    for boundary, unit, shown in ((3 * 2**20, "MiB", "3.00"), (0, "KiB", "0")):
        table = cause_table([{**group, "boundary_us": None, "boundary_bytes": boundary}])
        assert (table.columns[-1], table.rows) == (f"boundary {unit}", [["library call", "1", "2", shown]])
