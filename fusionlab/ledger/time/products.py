"""The time of a library's matrix products on a GPU, by shape and type.

A product is cut into tiles, which the SMs compute in turn:

    t = launch + a bytes / bandwidth + ceil(tiles / SMs) x max(FLOPs of a tile / (share x peak of an SM), least)

Tiles are padded: 64 x 64 for a batch of products; for a single one also 128 x 32 and 32 x 128, whichever takes least;
the contracted axis in steps of 16. The share of tensor cores is another one where rows of an operand do not start at
multiples of 16 bytes. ``least`` is the latency of a tile, which bounds batches of small products. The constants are
fitted (``time.constants``); which kernel the library chooses is not known.
"""

from __future__ import annotations

import math

from fusionlab.codegen.targets import Target
from fusionlab.hlo.optimised.products import MatrixProduct
from fusionlab.ledger.time.constants import PRODUCTS, ProductConstants

_TILES = ((64, 64), (128, 32), (32, 128))
_STEP = 16


def product_us(
    target: Target,
    product: MatrixProduct,
    moved_bytes: int,
    constants: ProductConstants = PRODUCTS,
    *,
    tf32: bool = True,
) -> float | None:
    """Microseconds of one call with its launch; None without rates of the target.

    ``moved_bytes`` are those of its operands and results, an added matrix among them. ``tf32``: the library may use it.
    """
    peaks, rates = target.peaks, target.unit_rates
    if peaks is None or rates is None:
        return None
    if product.bits == 64:
        peak, share = 2 * rates.double_per_s, constants.simt
    elif product.bits < 32:
        peak, share = 2 * peaks.tf32_flops_per_s, constants.tf32 if product.is_aligned else constants.unaligned
    elif product.tf32 and tf32:
        peak, share = peaks.tf32_flops_per_s, constants.tf32 if product.is_aligned else constants.unaligned
    else:
        peak, share = peaks.fp32_flops_per_s, constants.simt
    tiles, flops = tiles_of(product)
    one = max(constants.tile_us, 1e6 * flops / (share * peak / peaks.cores))
    memory = 1e6 * moved_bytes / peaks.memory_bytes_per_s
    return constants.launch_us + constants.memory * memory + math.ceil(tiles / peaks.cores) * one


def tiles_of(product: MatrixProduct) -> tuple[int, int]:
    """The number of tiles, and the FLOPs of each, padded."""

    def cut(rows: int, columns: int) -> tuple[int, int]:
        tiles = product.batch * math.ceil(product.rows / rows) * math.ceil(product.columns / columns)
        return tiles, 2 * rows * columns * math.ceil(product.contracted / _STEP) * _STEP

    shapes = _TILES[:1] if product.batch > 1 else _TILES
    return min((cut(*shape) for shape in shapes), key=lambda found: found[0] * found[1])
