"""Inputs scaled by powers of ten: where the original keeps its digits, the rewritten program must not leave the range.

    d^2 sqrt(u) = -1/4 u^(-3/2)        is 0 in float32 at u = r^2 = 1e28, where the replay's 2/r is exact

Rounding is judged at usual inputs (``check``). Here only results are refused that are no number or grossly off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.oracle import Runner
from fusionlab.equivalence.samples import Sample
from fusionlab.hlo import ops
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.program import Program, program_view

_POWERS = (-14, 14)
"""Squares of the scaled numbers lie within float32's range, inverse cubes of these squares' roots do not."""
_DIGITS, _GROSS = 1e-3, 0.5
"""The relative error up to which the original is taken to keep its digits, and that from which a result is refused."""
_LEAST, _MOST = 1e-30, 1e30
"""Magnitudes of results that are judged: others may be lost to denormal numbers or overflow in any order."""


@dataclass(frozen=True)
class OutOfRange:
    """The element ``index`` of the output ``output`` at which a rewritten program leaves the range of its floats."""

    sample: Sample
    output: int
    index: tuple[int, ...]
    truth: float
    original: float
    rewritten: float

    @property
    def line(self) -> str:
        """The values in words."""
        return (
            f"{self.sample.label}, output {self.output}: {self.rewritten:.3g} where the original has "
            f"{self.original:.3g} (truth {self.truth:.3g})"
        )


def can_be_scaled(program: Program) -> bool:
    """False where a loop ends by what it computes: at other magnitudes it may not end."""
    return all(node.op is not ops.WHILE or analyse(node).trips is not None for node in program_view(program).walk())


def out_of_range(sample: Sample, truth: Runner, original: Runner, rewritten: Runner) -> OutOfRange | None:
    """The first element that is out of range at ``sample`` scaled; None for float64 alone, whose range is wider."""
    for scaled in _scaled(sample):
        columns = (run(scaled.arrays) for run in (truth, original, rewritten))
        for output, (exact, before, after) in enumerate(zip(*columns, strict=True)):
            if not _is_narrow(before.dtype) or before.dtype.kind == "c":
                continue
            exact, before, after = (np.asarray(values, np.float64) for values in (exact, before, after))
            size = np.abs(exact)
            with np.errstate(all="ignore"):
                judged = (size > _LEAST) & (size < _MOST) & (np.abs(before - exact) <= _DIGITS * size)
                lost = judged & ~(np.abs(after - exact) <= _GROSS * size)
            if lost.any():
                at = tuple(int(i) for i in np.argwhere(lost)[0])
                return OutOfRange(scaled, output, at, float(exact[at]), float(before[at]), float(after[at]))
    return None


def _scaled(sample: Sample) -> Iterator[Sample]:
    if not any(_is_narrow(array.dtype) for array in sample.arrays):
        return
    for power in _POWERS:
        arrays: Sequence[np.ndarray] = [_times(array, 10.0**power) for array in map(np.asarray, sample.arrays)]
        yield replace(sample, label=f"{sample.label} times 1e{power:+d}", arrays=tuple(arrays))


def _times(array: np.ndarray, factor: float) -> np.ndarray:
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        return array
    with np.errstate(all="ignore"):
        return np.asarray(array * array.dtype.type(factor)).astype(array.dtype)


def _is_narrow(dtype: np.dtype) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.inexact)) and dtype not in (np.float64, np.complex128)
