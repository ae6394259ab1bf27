"""The time of a library's products: tiles, types, and the targets without rates."""

import json
from dataclasses import replace

import pytest

from fusionlab.codegen.targets import load_target
from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.hlo.optimised.products import MatrixProduct, product_of
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.ledger.time.constants import PRODUCTS, ProductConstants
from fusionlab.ledger.time.products import product_us, tiles_of
from tests.ledger.by_hand import compiled_of

LAYER = MatrixProduct(1, 327680, 256, 320, 32, False, True, False)
H100 = load_target("h100")
MOVED = 4 * 327680 * (256 + 320)
CONFIG = json.dumps(
    {
        "gemm_backend_config": {
            "dot_dimension_numbers": {
                "lhs_contracting_dimensions": ["2"],
                "rhs_contracting_dimensions": ["1"],
                "lhs_batch_dimensions": ["0"],
                "rhs_batch_dimensions": ["0"],
            },
            "precision_config": {"operand_precision": ["HIGHEST", "DEFAULT"]},
        }
    }
)
GEMM = f"""HloModule products, is_scheduled=true

ENTRY %main (a: f32[8,20,64], b: f32[8,64,30]) -> f32[8,20,30] {{
  %a = f32[8,20,64]{{2,1,0}} parameter(0)
  %b = f32[8,64,30]{{1,2,0}} parameter(1)
  ROOT %product = f32[8,20,30]{{2,1,0}} custom-call(%a, %b), custom_call_target="__cublas$gemm", backend_config={CONFIG}
}}
"""


def test_extents_are_read_from_the_call():
    module = parse_optimized(GEMM)
    entry = module.entry
    call = entry.by_name["product"]
    found = product_of(module, entry, call)
    assert found == MatrixProduct(8, 20, 30, 64, 32, tf32=False, lhs_contiguous=True, rhs_contiguous=True)
    assert found.flops == 2 * 8 * 20 * 30 * 64
    assert product_of(module, entry, entry.by_name["a"]) is None


@pytest.mark.parametrize(
    ("product", "tiles", "flops"),
    [
        (LAYER, 5120 * 4, 2 * 64 * 64 * 320),
        (replace(LAYER, columns=32, contracted=4), 2560, 2 * 128 * 32 * 16),
        (MatrixProduct(16384, 10, 300, 10, 32, False, True, False), 16384 * 5, 2 * 64 * 64 * 16),
    ],
    ids=["a layer", "a narrow one", "a batch of small ones"],
)
def test_tiles_are_padded(product, tiles, flops):
    assert tiles_of(product) == (tiles, flops)


def test_a_product_takes_bytes_launch_and_waves_of_tiles():
    constants = ProductConstants(launch_us=2.0, memory=1.0, simt=0.5, tf32=0.5, unaligned=0.5, tile_us=0.0)
    of_bytes = 1e6 * MOVED / H100.peaks.memory_bytes_per_s
    waves = -(-tiles_of(LAYER)[0] // 132)
    of_tiles = waves * 1e6 * 2 * 64 * 64 * 320 / (0.5 * H100.peaks.fp32_flops_per_s / 132)
    assert product_us(H100, LAYER, MOVED, constants) == pytest.approx(2.0 + of_bytes + of_tiles)


def test_tensor_cores_and_the_latency_of_tiles():
    fast = replace(LAYER, tf32=True)
    assert product_us(H100, fast, MOVED) < product_us(H100, LAYER, MOVED) / 2
    assert product_us(H100, fast, MOVED, tf32=False) == product_us(H100, LAYER, MOVED)
    small = MatrixProduct(131072, 10, 10, 10, 32, True, True, True)
    assert product_us(H100, small, 1) > 131072 / 132 * PRODUCTS.tile_us


@pytest.mark.parametrize(("contracted", "columns", "aligned"), [(64, 8, True), (10, 8, False), (64, 10, False)])
def test_rows_that_start_anywhere_feed_tensor_cores_slower(contracted, columns, aligned):
    product = MatrixProduct(1, 4096, columns, contracted, 32, True, lhs_contiguous=True, rhs_contiguous=False)
    assert product.is_aligned is aligned


def test_float64_has_its_own_rate():
    of_a5000 = [product_us(load_target("a5000"), replace(LAYER, bits=bits), MOVED) for bits in (32, 64)]
    assert of_a5000[1] > 20 * of_a5000[0]


def test_without_rates_there_is_no_time():
    assert product_us(load_target("cpu"), LAYER, MOVED) is None


def test_a_ledger_has_the_time_of_tiles_where_it_is_asked_for():
    compiled = compiled_of(GEMM, target="h100")
    (row,) = launch_rows(compiled, tiles=True)
    product = product_of(compiled.module, compiled.module.entry, compiled.module.entry.by_name["product"])
    assert (row.model_us, row.model_source) == (product_us(H100, product, row.bytes), "product")
    assert launch_rows(compiled)[0].model_source == "roofline"
