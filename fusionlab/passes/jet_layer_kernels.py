"""jet-layer-kernels: a dense layer of jets becomes one kernel: its contraction, the activation and its derivatives.

rewrite:
    %z = dot_general %u, %w                        rows,w,i,k and k,n to rows,w,i,n
    %v = add (slice %z [0:1]), %b
    %s = tanh %v;  %s1, %s2 = ... %s
    %q = reduce add %z[2:] * %z[2:] over rows -->  %y = call @jet_layer(%u, %w, %b)
    %l = s1 * (slice %z [1:2]) + s2 * %q           (one Pallas kernel for Triton: each program instance has all rows of
    %y = concatenate %s, %l, %s1 * %z[2:]          two walkers or electrons, and up to 256 features of the result)

A forward Laplacian carries a stack of rows: the value, the Laplacian, and a derivative in each direction. The row of
the Laplacian needs the squares of all others. XLA lowers the contraction to cuBLAS, and what follows to two kernels or
three that read and write all rows again; concatenated features are joined in memory before. The kernel reads each layer
once, and writes it once.

requires: a program for CUDA, on one device; float32 (in float64 the ops are outlined in the same way, and stay
    plain: Triton has no such product); rows contracted along their last axis with a matrix, and a sum over one of the
    rows' other axes; arrays of less than 2^31 elements. Must be after all passes but the other ones that write kernels:
    passes that raise the program again read the twins, and lose the kernels. Optimization barriers inside of a layer,
    and before what it reads, are removed.
exact: reassociates the sums over features and rows; the higher precision of both operands of the contraction is kept
    (HIGHEST is float32, HIGH and DEFAULT are TF32, as in the library). With ``precision=tf32x3`` wide contractions in
    float32 are rounded as three of TF32.
hopes: the bytes of all that is between the contraction and the layer's result, and the launches.

A layer grows from its contraction by its neighbours, as a chain of ``dot-chain-kernels`` does, as long as every value
is a vector of features, of all rows, of some or of none (``fusionlab.codegen.kernels.jet_layers``). It pays if it makes
``narrowest`` features or more of at most ``widest``, has at most ``most_rows`` rows, and writes about as much as its
contraction does. With ``precision=tf32x3`` wide contractions in float32 are three of TF32 each, on tensor cores. The
twin asks for them too, by the ``algorithm`` of its contraction, so that the check computes their rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fusionlab.codegen.kernels.dot_chains.axes import Stream
from fusionlab.codegen.kernels.dot_chains.chain import NoChainError
from fusionlab.codegen.kernels.jet_layers.kernel import is_in_float32, layer_kernel, pays_in_tf32x3
from fusionlab.codegen.kernels.jet_layers.layer import (
    JetLayer,
    is_layer,
    jet_layer,
    may_follow,
    streams_of,
    sum_over_rows,
)
from fusionlab.codegen.raising.rules.contraction import ask_for_tf32x3
from fusionlab.codegen.raising.splice import drop_dead
from fusionlab.errors import InputError
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, view_of
from fusionlab.passes.chain_growth import ChainGrowth, put_kernel
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.kernel_order import order_behind
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import Tally, blocks_to_rewrite, no_kernels

_EXACT, _TF32X3 = "exact", "tf32x3"
_KERNELS = "layers of jets became kernels"
_MOST_WRITTEN = 1.5
"""Elements that a layer may write, for each that its contraction does."""


@dataclass(frozen=True)
class JetLayerKernels(Pass):
    """Options: ``narrowest``, ``widest``, ``most_rows`` and ``precision``; see the module's docstring."""

    narrowest: int = 32
    widest: int = 1024
    most_rows: int = 128
    precision: str = _EXACT

    name: ClassVar[str] = "jet-layer-kernels"

    def __post_init__(self) -> None:
        for option in ("narrowest", "widest", "most_rows"):
            if getattr(self, option) < 1:
                raise InputError(f"{self.name}: {option} must be at least 1, not {getattr(self, option)}")

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every layer of jets, in any block."""
        if self.precision not in (_EXACT, _TF32X3):
            raise InputError(f"{self.name}: option precision: {self.precision!r} is neither {_EXACT} nor {_TF32X3}")
        module = program.parse()
        tally = Tally()
        if any(is_layer(node) for node in view_of(module).walk()):
            if (barrier := no_kernels(self.name, program, module, setting)) is not None:
                return Result(program, (barrier,))
            for look in blocks_to_rewrite(module):
                self._rewrite(look, tally)
        otherwise = "there is no contraction of rows with a matrix in the program"
        return tally.result(program, module, self, _KERNELS, otherwise, ops.DOT_GENERAL.mnemonic)

    def _rewrite(self, look: Callable[[], Block], tally: Tally) -> None:
        """Rewrite in the block that ``look`` returns, one layer at a time: each moves others."""
        drop_dead([result.handle for node in look().nodes for result in node.results])
        refused: list[tuple[Node, Refusal]] = []
        symbols: list[str] = []
        while (layer := self._next(look().data_flow(), refused)) is not None:
            in_tf32x3 = self.precision == _TF32X3 and pays_in_tf32x3(layer)
            kernel = layer_kernel(layer, in_tf32x3=in_tf32x3) if layer.fits_triton else None
            tally.rewrite(layer.node, what=self._made_of(layer, in_tf32x3))
            if kernel is not None and in_tf32x3:
                ask_for_tf32x3(layer.node.operation)
            symbols.append(put_kernel(layer, look, kernel, "jet_layer"))
        for symbol in symbols:
            order_behind(symbol, look)
        for each in refused:
            tally.refuse(*each)

    def _made_of(self, layer: JetLayer, in_tf32x3: bool) -> str:
        """What becomes of ``layer``, for the event."""
        if not layer.fits_triton:
            return "layers of jets were outlined (float64: no kernel)"
        if in_tf32x3:
            return f"{_KERNELS}, by three products of TF32"
        wished = self.precision == _TF32X3 and is_in_float32(layer)
        return f"{_KERNELS}, in float32: too narrow for three products" if wished else _KERNELS

    def _next(self, block: Block, refused: list[tuple[Node, Refusal]]) -> JetLayer | None:
        """The first layer that pays, of a contraction that is not ``refused``; those without join these."""
        for node in block.nodes:
            if node.op is not ops.DOT_GENERAL or any(node.operation == other.operation for other, _ in refused):
                continue
            try:
                return self.layer_of(node, block)
            except Refusal as refusal:
                refused.append((node, refusal))
        return None

    def layer_of(self, seed: Node, block: Block) -> JetLayer:
        """The layer with ``seed``, a dot_general of ``block``; Refusal if there is none, or if it does not pay.

        The block has neither barriers nor dead ops.
        """
        if not is_layer(seed):
            raise Refusal(Ground.NO_GAIN, "it contracts no rows with a matrix")
        if seed.results[0].type.shape[-1] < self.narrowest:
            raise Refusal(Ground.NO_GAIN, f"it makes less than {self.narrowest} features")
        if max(seed.operands[1].type.shape) > self.widest:
            raise Refusal(Ground.NO_GAIN, f"its weights have more than {self.widest} rows or columns")
        layer = _least(seed, block)
        if layer.rows > self.most_rows:
            raise Refusal(Ground.NO_GAIN, f"it has more than {self.most_rows} rows")
        if layer.written > _MOST_WRITTEN * layer.rows * layer.extents[layer.columns]:
            raise Refusal(Ground.NO_GAIN, "what it leaves is read in pieces, which are more than its rows")
        if not layer.is_addressable:
            raise Refusal(Ground.ELEMENTS, "its layer has an array of no elements, or of 2^31 and more")
        return layer


def _least(seed: Node, block: Block) -> JetLayer:
    """The layer of ``seed`` that reads and writes least; Refusal if along no axis it sums over rows."""
    layers: list[JetLayer] = []
    reason = "no sum over its rows follows: it is no layer of a jet"
    for stream in streams_of(seed):
        try:
            layers.append(_grown(seed, stream, block))
        except NoChainError as error:
            if sum_over_rows(seed, stream, block.users) is not None:
                reason = f"a sum over its rows follows, but not in one kernel: {error}"
    if not layers:
        raise Refusal(Ground.NO_GAIN, reason)
    return min(layers, key=lambda layer: layer.traffic)


def _grown(seed: Node, stream: Stream, block: Block) -> JetLayer:
    """The layer of ``seed`` with rows along ``stream``; NoChainError if it has no sum over them."""

    def make(members: Sequence[Node], outputs: Sequence[Value]) -> JetLayer:
        return jet_layer(members, outputs, node=seed, stream=stream)

    growth = ChainGrowth(block, seed, make, may_follow, lambda layer: layer.written)
    layer = growth.chain()
    if layer.is_jet:
        return layer
    end = sum_over_rows(seed, stream, block.users)
    between = block.convex_hull({seed, end}) if end is not None else set()
    reasons = [reason for node, reason in growth.refused.items() if node in between]
    raise NoChainError(reasons[-1] if reasons else "what it leaves is less without the sum")
