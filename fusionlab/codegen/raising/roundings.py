"""A program whose results are rounded otherwise: how far it is from its truth without a wider type.

    %y = f(%x)       -->       y = f(x) (1 + h eps)     h = 1 or -1, by the bits of y and a seed

Functions, quotients, products of matrices and sums are rounded otherwise, as another library or order of terms would.
Equal values stay equal, zeros stay zeros, and integers computed of integers stay what they are: a tie, a guard and an
index are no matter of rounding (after CESTAC, Vignes 1974, which rounds at random what is not exact).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising.devices import RaisingOfAllDevices
from fusionlab.hlo.view import Node, Value, walk

_UNSIGNED = {"float64": jnp.uint64, "float32": jnp.uint32}
_MIX = {"float64": 0x9E3779B97F4A7C15, "float32": 0x9E3779B1}
"""Odd multipliers near 2^bits over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)."""


@dataclass(frozen=True)
class RaisingWithRoundings(RaisingOfAllDevices):
    """Raises as Raising does; results of float32 or wider are rounded otherwise, one way for each ``seed`` (uint32)."""

    seed: Any = 0

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """As Raising's, rounded otherwise."""
        results = super().node(node, environment)
        if not _is_rounded(node):
            return results
        operands = [environment[value] for value in node.operands]
        return [self._rounded(result, _are_integers(operands, result)) for result in results]

    def _rounded(self, result: Any, exact: Any) -> Any:
        if jnp.issubdtype(result.dtype, jnp.complexfloating):
            real, imaginary = jnp.real(result), jnp.imag(result)
            first, second = self._signed_eps(real), self._signed_eps(imaginary)
            if first is None or second is None:
                return result
            moved = real + first * real - second * imaginary, imaginary + first * imaginary + second * real
            parts = (jnp.where((of == 0) | exact, of, to) for of, to in zip((real, imaginary), moved, strict=True))
            return lax.complex(*parts)
        step = self._signed_eps(result)
        return result if step is None else jnp.where(exact, result, result + step * result)

    def _signed_eps(self, array: Any) -> Any:
        """The rounding of each element, with a sign by its bits; None for no float or a narrow one."""
        name = array.dtype.name
        if name not in _UNSIGNED:
            return None
        bits = lax.bitcast_convert_type(array, _UNSIGNED[name])
        odd = jnp.asarray(_MIX[name], bits.dtype)
        mixed = (bits + (jnp.asarray(self.seed, bits.dtype) + 1) * odd) * odd
        up = mixed >> (bits.dtype.itemsize * 8 - 1)
        eps = jnp.finfo(array.dtype).eps
        return jnp.where(up == 1, eps, -eps).astype(array.dtype)


def _is_rounded(node: Node) -> bool:
    """True for functions, quotients, products of matrices and reductions that compute."""
    if node.op.derivative == "smooth" or node.op.family == "gemm":
        return True
    inner = {each.op.mnemonic for each in walk([node])} if node.op.family == "reduction" else set()
    return bool(inner & {"add", "multiply"})


def _are_integers(operands: Sequence[Any], result: Any) -> Any:
    """Where ``result`` is an integer computed of integers: of the same elements, or else of all of them."""
    exact = jnp.asarray(True)
    for array in (*operands, result):
        if not jnp.issubdtype(array.dtype, jnp.inexact):
            continue
        whole = (jnp.round(array) == array) if not jnp.iscomplexobj(array) else jnp.asarray(False)
        exact = exact & (whole if whole.shape == result.shape else jnp.all(whole))
    return exact
