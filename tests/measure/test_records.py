"""Records: one file per run, nothing without a verdict, read back whole."""

import json
import re

import pytest

from fusionlab.errors import InputError
from fusionlab.measure.records import read_records, write_record
from tests.measure.made import record, variant


def test_a_run_is_a_new_file_that_says_what_and_where(tmp_path):
    made = record(variant(wall=[1.5, 2.25], what="a [b] of {c}, d"))
    first, second = (write_record(tmp_path / "new", made) for _ in range(2))
    assert first.name == "ferminet-LiH-local-energy-w4-amd-epyc-7763-64-core-20260102030405.json"
    assert first != second
    assert [{k: v for k, v in one.items() if k != "path"} for one in read_records([tmp_path])] == [made] * 2
    assert '"samples_us": [1.5, 2.25]' in first.read_text()


@pytest.mark.parametrize("verdict", ["different", "not-checked"])
def test_no_verdict_no_record(tmp_path, verdict):
    with pytest.raises(InputError, match="no record without a verdict"):
        write_record(tmp_path, record(variant(verdict=verdict)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [('{"rows": {}}', "not a record"), ("{", "not JSON"), (None, "cannot be read")],
)
def test_other_files_of_a_folder_are_passed_over_and_a_named_one_is_not(tmp_path, content, message):
    other = tmp_path / "other.json"
    if content is not None:
        other.write_text(content)
    with pytest.raises(InputError, match=message):
        read_records([other])
    with pytest.raises(InputError, match="no records"):
        read_records([tmp_path])
    write_record(tmp_path, record())
    assert len(read_records([tmp_path])) == 1


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
        ("variants[0].kernels", {"columns": variant()["kernels"]["columns"], "rows": [["a"]]}),
        ("variants[0].device_time", None),
        ("variants[0].verdict", "different"),
        ("variants[0].peak_bytes", "many"),
        ("variants[0].assigned_bytes", None),
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
