"""Nsight Compute's raw CSV, in the form that its documentation describes."""

import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.measure.ncu import METRICS, counters_of, read_counters

HEADER = ["ID", "Process ID", "Kernel Name", "gpu__time_duration.sum", *METRICS.values()]
UNITS = ["", "", "", "nsecond", "%", "%", "%", "%", "%"]
ROWS = [
    ["0", "42", "loop_add_fusion", "3,000", "50", "20", "60.5", "40", ""],
    ["1", "42", "gemm_128x64", "20,000", "25", "80", "30", "90", "70"],
    ["2", "42", "loop_add_fusion", "1,000", "90", "20", "60.5", "80", "n/a"],
]


def table(rows=ROWS, header=HEADER):
    lines = ["==PROF== Connected to process 42", "==PROF== Profiling 3 kernels"]
    return [*lines, *(",".join(f'"{cell}"' for cell in row) for row in (header, UNITS, *rows))]


def test_launches_of_one_kernel_are_one_row_weighted_by_time():
    gemm, add = read_counters(table())
    assert (gemm.name, gemm.launches, gemm.us, gemm.tensor_pipe) == ("gemm_128x64", 1, 20.0, 0.7)
    assert (add.launches, add.us) == (2, 4.0)
    assert add.achieved_occupancy == pytest.approx((0.5 * 3 + 0.9) / 4)
    assert add.l2_hit_rate == pytest.approx((0.4 * 3 + 0.8) / 4)
    assert add.tensor_pipe is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [(["==ERROR== nothing"], "no table"), (table(header=["ID", *HEADER[1:3], "x", *HEADER[4:]]), "no column")],
)
def test_what_is_no_table_says_so(lines, message):
    with pytest.raises(InputError, match=message):
        read_counters(lines)


@pytest.fixture
def counted(tmp_path, monkeypatch, lowered):
    """``counted(script, x, limit_s)``: the counters of ``x * 2`` of three numbers, with a shell script for ncu."""
    program = lowered(lambda x: x * 2, np.ones(3, np.float32))

    def of(script, x=np.ones(3, np.float32), limit_s=60.0):  # noqa: B008
        if script is not None:
            (tmp_path / "ncu").write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / "ncu").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if script is not None else "")
        return counters_of(program, [x], "cpu", limit_s)

    return of


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "not on the PATH"),
        ("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'", "may not read the GPU's counters"),
        ("echo broken >&2; exit 3", "ncu failed: broken"),
        ("echo '==PROF== connected'; echo '==ERROR== it failed'; exit 3", "ncu failed: ==ERROR== it failed"),
        ("sleep 5", "did not finish within 1 s"),
    ],
)
def test_what_ncu_cannot_do_is_said(counted, script, message):
    with pytest.raises(InputError, match=message):
        counted(script, limit_s=1.0)


@pytest.mark.slow
def test_the_program_that_is_counted_runs_in_a_process_of_its_own(tmp_path, counted):
    """A stand-in for ncu runs its command, as ncu does, and prints the table above."""
    (tmp_path / "table.csv").write_text("\n".join(table()))
    run = f'while [ "$1" != off ]; do shift; done\nshift\n"$@" || exit 1\ncat {tmp_path}/table.csv'
    assert [one.name for one in counted(run)] == ["gemm_128x64", "loop_add_fusion"]
    with pytest.raises(InputError, match="ncu failed"):
        counted(run, np.ones(4, np.float32))
