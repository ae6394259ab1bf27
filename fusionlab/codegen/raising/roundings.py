"""How far the results of a program move where its intermediate ones are rounded otherwise, to first order.

    %y = f(%x)      -->      y = f(x) (1 + h eps t)      h = 1 or -1, by the bits of y and a seed; moved by d/dt at 0

Functions, quotients, products of matrices and sums are rounded otherwise, as another library or another order of terms
would. Comparisons, floors and branches are those of the program: their derivative is 0, so that no jump counts as a
rounding. (CESTAC, Vignes 1974, rounds at random and runs again; there a test of equality is decided otherwise.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising import RaiseError, raise_program
from fusionlab.codegen.raising.devices import RaisingOfAllDevices
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, walk

_MIX = 0x9E3779B97F4A7C15
"""An odd multiplier near 2^64 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4)."""


@dataclass(frozen=True)
class RaisingWithRoundings(RaisingOfAllDevices):
    """Raises as Raising does, in float64; results are ``step`` roundings up or down, one way for each ``seed``."""

    seed: Any = 0
    step: Any = 0.0

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """As Raising's, ``step`` roundings away."""
        results = super().node(node, environment)
        return [self._moved(result) for result in results] if _is_rounded(node) else results

    def _moved(self, result: Any) -> Any:
        if jnp.issubdtype(result.dtype, jnp.complexfloating):
            relative = lax.complex(self._roundings(jnp.real(result)), self._roundings(jnp.imag(result)))
        elif jnp.issubdtype(result.dtype, jnp.floating):
            relative = self._roundings(result)
        else:
            return result
        return result + relative * result

    def _roundings(self, array: Any) -> Any:
        """``step`` times the epsilon, with a sign by the bits of each element."""
        bits = lax.bitcast_convert_type(lax.stop_gradient(array), jnp.uint64)
        odd = jnp.asarray(_MIX, jnp.uint64)
        up = (bits + (jnp.asarray(self.seed, jnp.uint64) + 1) * odd) * odd >> 63
        eps = jnp.finfo(array.dtype).eps
        return self.step * jnp.where(up == 1, eps, -eps)


def roundings_of_program(program: Program) -> Callable[..., tuple[Any, ...]]:
    """A JAX callable from a seed and flat float64 arguments to the results, each moved to first order.

    RaiseError where the program cannot be raised or differentiated.
    """

    def call(seed: Any, *arrays: Any) -> tuple[Any, ...]:
        def results(step: Any) -> tuple[Any, ...]:
            return raise_program(program, RaisingWithRoundings(widen=True, seed=seed, step=step))(*arrays)

        try:
            plain, tangents = jax.jvp(results, (0.0,), (1.0,))
        except (NotImplementedError, TypeError, ValueError) as error:
            raise RaiseError(f"no derivative by roundings: {error}") from error
        pairs = zip(plain, tangents, strict=True)
        return tuple(of + by if jnp.issubdtype(of.dtype, jnp.inexact) else of for of, by in pairs)

    return call


def _is_rounded(node: Node) -> bool:
    """True for functions, quotients, products of matrices and reductions that compute."""
    if node.op.derivative == "smooth" or node.op.family == "gemm":
        return True
    inner = {each.op.mnemonic for each in walk([node])} if node.op.family == "reduction" else set()
    return bool(inner & {"add", "multiply"})
