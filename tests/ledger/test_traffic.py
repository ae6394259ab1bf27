"""Bytes of one instruction: whole operands and results, except for parts and in-place updates."""

import pytest

from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.traffic import Traffic, traffic_of

TEXT = """HloModule m, is_scheduled=true

%take (p: f32[100,10], i: s32[], q: f32[4]) -> f32[4] {
  %p = f32[100,10]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %q = f32[4]{0} parameter(2)
  %view = f32[1000]{0} bitcast(%p)
  %part = f32[4]{0} dynamic-slice(%view, %i), dynamic_slice_sizes={4}
  ROOT %sum = f32[4]{0} add(%part, %q)
}

%both (p.1: f32[100,10]) -> (f32[1,10], f32[100,10]) {
  %p.1 = f32[100,10]{1,0} parameter(0)
  %row = f32[1,10]{1,0} slice(%p.1), slice={[0:1], [0:10]}
  %all = f32[100,10]{1,0} tanh(%p.1)
  ROOT %pair = (f32[1,10]{1,0}, f32[100,10]{1,0}) tuple(%row, %all)
}

%put (p.2: f32[100,10], u: f32[1,10], i.2: s32[]) -> f32[100,10] {
  %p.2 = f32[100,10]{1,0} parameter(0)
  %u = f32[1,10]{1,0} parameter(1)
  %i.2 = s32[] parameter(2)
  %zero = s32[] constant(0)
  ROOT %dus = f32[100,10]{1,0} dynamic-update-slice(%p.2, %u, %i.2, %zero)
}

%pass (p.3: f32[8]) -> f32[8] {
  ROOT %p.3 = f32[8]{0} parameter(0)
}

ENTRY %main (x: f32[100,10], k: s32[], y: f32[4]) -> f32[4] {
  %x = f32[100,10]{1,0} parameter(0)
  %k = s32[] parameter(1)
  %y = f32[4]{0} parameter(2)
  %eight = f32[8]{0} constant({...})
  %square = f32[100,10]{1,0} multiply(%x, %x)
  %row.1 = f32[1,10]{1,0} slice(%x), slice={[0:1], [0:10]}
  %fusion.take = f32[4]{0} fusion(%x, %k, %y), kind=kLoop, calls=%take
  %fusion.both = (f32[1,10]{1,0}, f32[100,10]{1,0}) fusion(%x), kind=kLoop, calls=%both
  %fusion.put = f32[100,10]{1,0} fusion(%x, %row.1, %k), kind=kLoop, calls=%put
  %fusion.pass = f32[8]{0} fusion(%eight), kind=kLoop, calls=%pass
  %product = (f32[100,100]{1,0}, s8[4194304]{0}) custom-call(%x, %x), custom_call_target="__cublas$lt$matmul"
  ROOT %z = f32[4]{0} negate(%fusion.take)
}
"""


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
    module = parse_optimized(TEXT)
    assert traffic_of(module, module.entry, module.entry.by_name[name]) == Traffic(operand_bytes, result_bytes)
