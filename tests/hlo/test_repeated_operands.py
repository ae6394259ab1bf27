"""An operand that an op reads twice, such as one number as the start along two axes, is moved once."""

from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.traffic import traffic_of

LOWERED = """
func.func public @main(%x: tensor<100x10xf32>, %k: tensor<i32>) -> tensor<4x4xf32> {
  %part = stablehlo.dynamic_slice %x, %k, %k, sizes = [4, 4] :
    (tensor<100x10xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  return %part : tensor<4x4xf32>
}
"""
OPTIMISED = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[100,10], k: s32[]) -> f32[4,4] {
  %x = f32[100,10]{1,0} parameter(0)
  %k = s32[] parameter(1)
  ROOT %part = f32[4,4]{1,0} dynamic-slice(%x, %k, %k), dynamic_slice_sizes={4,4}
}
"""
PART_BYTES, INDEX_BYTES = 4 * 4 * 4, 4


def test_an_index_of_two_axes_is_read_once(program_of_text):
    assert program_cost(program_of_text(LOWERED)).bytes == 2 * PART_BYTES + INDEX_BYTES
    module = parse_optimized(OPTIMISED)
    traffic = traffic_of(module, module.entry, module.entry.by_name["part"])
    assert (traffic.operand_bytes, traffic.result_bytes) == (PART_BYTES + INDEX_BYTES, PART_BYTES)
