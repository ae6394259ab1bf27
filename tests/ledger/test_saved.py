"""Ledgers as files: what is saved is read back, and what is no ledger is said."""

import json

import pytest

from fusionlab.errors import InputError
from fusionlab.ledger.saved import SCHEMA, is_ledger, ledger_record, read_ledger
from tests.ledger.by_hand import compiled_of, text_of

RECORD = ledger_record(compiled_of(text_of("origins.hlo")))
SAVED = json.loads(json.dumps(RECORD.to_json(), allow_nan=False))


def test_what_is_saved_is_read_back():
    content = json.dumps({**SAVED, "groups": [], "a field of tomorrow": 1}).encode()
    assert is_ledger(content)
    assert read_ledger(content, "a.json") == RECORD
    assert (RECORD.dynamic_launches, RECORD.temp_bytes, RECORD.refusals) == (10, 3, None)


def test_copies_carry_their_origin():
    text = text_of("origins.hlo").replace("%after = f32[8]{0} negate(%kernel)", "%after = f32[8]{0} copy(%kernel)")
    (copy,) = ledger_record(compiled_of(text)).copies
    assert (copy.name, copy.kind, copy.dynamic_copies, copy.bytes) == ("after", "kCopy", 1, 64)
    assert (copy.scope, copy.source) == ("layer/dense", "linear.py:280")


def without(name):
    return {key: value for key, value in SAVED.items() if key != name}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "a.json: is not JSON"),
        ("[" * 100_000, "a.json: is not JSON"),
        ("[1, 2]", "a.json: this JSON is no ledger; save it again with `fusionlab launches PROGRAM --json > FILE`"),
        ('{"name": 1}', "this JSON is no ledger"),
        ('{"targets": [{}, {}]}', "holds the ledgers of 2 targets; save one, with --target NAME"),
        ('{"rows": []}', "has no schema: an older fusionlab wrote it"),
        ({**SAVED, "schema": "fusionlab-ledger-9"}, f"schema 'fusionlab-ledger-9'; this fusionlab reads {SCHEMA}"),
        ({**SAVED, "schema": 3}, "has the schema '3'"),
        (without("copies"), "no field copies: the file is not whole"),
        ({**SAVED, "rows": {}}, "field rows is not a list"),
        ({**SAVED, "rows": [3]}, "field rows.0 is not an object"),
        ({**SAVED, "rows": [{**SAVED["rows"][0], "bytes": "many"}]}, "field rows.0.bytes is not an integer"),
        ({**SAVED, "rows": [{**SAVED["rows"][0], "bytes": True}]}, "field rows.0.bytes is not an integer"),
        ({**SAVED, "rows": [{**SAVED["rows"][0], "scopes": [1]}]}, "field rows.0.scopes.0 is not text"),
        ({**SAVED, "temp_bytes": 1.5}, "field temp_bytes is not an integer"),
        ({**SAVED, "name": None}, "field name is not text"),
        ({**SAVED, "name": "a\x1b[2J"}, "field name is not printable text: the file is damaged"),
        ({**SAVED, "name": "a\ud800"}, "field name is not printable text"),
        ({**SAVED, "temp_bytes": -1}, "field temp_bytes is not a number from 0 to 2^63"),
        ({**SAVED, "temp_bytes": 2**63}, "field temp_bytes is not a number from 0 to 2^63"),
        (
            {**SAVED, "rows": [{**SAVED["rows"][0], "model_us": float("nan")}]},
            "field rows.0.model_us is not a number from",
        ),
        (
            {**SAVED, "rows": [{**SAVED["rows"][0], "model_us": float("inf")}]},
            "field rows.0.model_us is not a number from",
        ),
        ({**SAVED, "rows": [{**SAVED["rows"][0], "model_us": 10**400}]}, "field rows.0.model_us is not a number from"),
    ],
)
def test_what_is_no_ledger_is_said(content, message):
    text = content if isinstance(content, str) else json.dumps(content)
    with pytest.raises(InputError) as caught:
        read_ledger(text.encode(), "a.json")
    assert message in str(caught.value)


def test_programs_are_no_ledgers():
    assert not is_ledger(b"module @f {}")
    assert not is_ledger(b"HloModule m")
