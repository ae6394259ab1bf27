"""Records: one file per run, nothing without a verdict, read back whole."""

import json
import re

import pytest

from fusionlab.errors import InputError
from fusionlab.measure.device_time import kernel_table
from fusionlab.measure.records import FORMAT, read_records, write_record


def record(verdict="within-bound", **changes):
    variant = {
        "name": "fused",
        "verdict": verdict,
        "samples_us": [1.5, 2.25],
        "what": "a [b] of {c}, d",
        "device_time": {"sum_us": []},
        "kernels": kernel_table([]),
        **dict.fromkeys(("dynamic_launches", "peak_bytes", "assigned_bytes", "energy_j")),
    }
    return {
        "format": FORMAT,
        "started_utc": "2026-01-02T03:04:05+00:00",
        "workload": {"title": "ferminet-LiH-local-energy-w4", "name": "ferminet"},
        "device": {"name": "AMD EPYC 7763 64-Core Processor @ 2 GHz", "platform": "cpu"},
        "versions": {"jax": "jax 1"},
        "variants": [variant],
        "failures": [],
        **changes,
    }


def test_a_run_is_a_new_file_that_says_what_and_where(tmp_path):
    first, second = (write_record(tmp_path / "new", record()) for _ in range(2))
    assert first.name == "ferminet-LiH-local-energy-w4-amd-epyc-7763-64-core-20260102030405.json"
    assert first != second
    assert [{k: v for k, v in one.items() if k != "path"} for one in read_records([tmp_path])] == [record()] * 2
    assert '"samples_us": [1.5, 2.25]' in first.read_text()


@pytest.mark.parametrize("verdict", ["different", "not-checked"])
def test_no_verdict_no_record(tmp_path, verdict):
    with pytest.raises(InputError, match="no record without a verdict"):
        write_record(tmp_path, record(verdict))
    assert list(tmp_path.iterdir()) == []


def test_other_files_of_a_folder_are_passed_over_and_a_named_one_is_not(tmp_path):
    write_record(tmp_path, record())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"rows": {}}))
    assert len(read_records([tmp_path])) == 1
    with pytest.raises(InputError, match="not a record"):
        read_records([other])
    other.write_text("{")
    assert len(read_records([tmp_path])) == 1
    with pytest.raises(InputError, match="not JSON"):
        read_records([other])
    with pytest.raises(InputError, match="cannot be read"):
        read_records([tmp_path / "absent.json"])
    other.unlink()
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(InputError, match="no records"):
        read_records([tmp_path])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("variants", "none"),
        ("workload", {}),
        ("versions", None),
        ("failures", None),
        ("variants[0].samples_us", ["1.5"]),
        ("variants[0].samples_us", [float("nan")]),
        ("variants[0].kernels", {}),
        ("variants[0].kernels", {**kernel_table([]), "rows": [["a"]]}),
        ("variants[0].device_time", None),
        ("variants[0].verdict", "different"),
        ("variants[0].peak_bytes", "many"),
    ],
)
def test_a_damaged_record_is_named_with_its_field_also_in_a_folder(tmp_path, field, value):
    write_record(tmp_path, record())
    damaged = record()
    of, _, name = field.rpartition("[0].")
    (damaged[of][0] if of else damaged)[name] = value
    (tmp_path / "damaged.json").write_text(json.dumps(damaged))
    with pytest.raises(InputError, match=rf"damaged\.json: a damaged record: its field {re.escape(field)}"):
        read_records([tmp_path])
