"""Bytes of one instruction: whole operands and results, except for parts and in-place updates."""

import pytest

from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.traffic import Traffic, traffic_of
from tests.ledger.by_hand import text_of


@pytest.mark.parametrize(
    ("name", "operand_bytes", "result_bytes"),
    [
        ("square", 4000, 4000),  # one array, read once
        ("row.1", 40, 40),
        ("fusion.take", 16 + 4 + 16, 16),
        ("fusion.both", 4000, 4040),  # the slice does not help: the other user reads everything
        ("fusion.put", 40 + 4, 40),
        ("fusion.pass", 32, 32),
        ("product", 4000, 40000),
    ],
)
def test_bytes(name, operand_bytes, result_bytes):
    module = parse_optimized(text_of("traffic.hlo"))
    assert traffic_of(module, module.entry, module.entry.by_name[name]) == Traffic(operand_bytes, result_bytes)
