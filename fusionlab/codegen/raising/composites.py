"""Functions with custom derivatives in JAX, recognised in their lowered form.

    select(x - y != x - y, x + y, max(x, y) + log1p(exp(-|x - y|)))      -->      logaddexp(x, y)

Differentiated op by op, the expression on the left has slopes that depend on each op's rule at a tie: half of max and
the sign of 0, whose curvature is 0. ``jnp.logaddexp`` (and with it softplus, log_sigmoid and mish) has continuous
slopes and curvatures at x = y. Its rule, and those of the other functions of ``_PATTERNS``, are JAX's own
(``jax/_src/lax/other.py``, ``jax/_src/numpy/ufuncs.py``); the quotient 1 / (1 + exp(-x)) is the logistic function,
whose derivative y (1 - y) is finite where exp(-x) is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.patterns import Op, match, number, op
from fusionlab.hlo.view import Node, Value, direction_of


@dataclass(frozen=True)
class Composite:
    """``steps`` as one op of ``arguments``: ``function`` of the arguments and ``numbers``."""

    op: str
    arguments: tuple[Value, ...]
    steps: tuple[Node, ...]
    function: Callable[..., Any] | None = None
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True)
class _Pattern:
    """``text``, with comparisons by ``direction``, is ``function`` of ``arguments``: values, then numbers."""

    text: Op
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    direction: str = ""


def _sinc(x: Any, pi: float) -> Any:
    """sin(pi x) / (pi x) with pi at the program's precision."""
    scale = np.asarray(pi / np.pi, np.result_type(x))
    return jnp.sinc(x if scale == 1 else x * scale)


def _logaddexp(rest: Op) -> Op:
    difference = op("subtract", "x", "y")
    larger = op("add", op("maximum", "x", "y"), rest)
    return op("select", op("compare", difference, difference), op("add", "x", "y"), larger)


def _in_base_two(dtype: type[np.floating[Any]]) -> Op:
    ln2, per_ln2 = float(dtype(np.log(2))), float(dtype(1 / np.log(2)))
    return op("multiply", per_ln2, op("log_plus_one", op("exponential", op("multiply", ln2, _DISTANCE))))


_DISTANCE = op("negate", op("abs", op("subtract", "x", "y")))
_SCALED = op("multiply", number("pi"), "x")
_IS_ZERO = op("compare", "x", 0.0)
_SAFE = op("select", _IS_ZERO, 1.0, _SCALED)
_LOGISTIC = op("divide", 1.0, op("add", 1.0, op("exponential", op("negate", "x"))))
_LOGADDEXP = _logaddexp(op("log_plus_one", op("exponential", _DISTANCE)))
_SINC = op("select", _IS_ZERO, op("add", op("multiply", _SCALED, 0.0), 1.0), op("divide", op("sine", _SAFE), _SAFE))

_PATTERNS = (
    _Pattern(_LOGISTIC, jax.lax.logistic, ("x",)),
    _Pattern(_LOGADDEXP, jnp.logaddexp, ("x", "y"), "NE"),
    _Pattern(_logaddexp(_in_base_two(np.float32)), jnp.logaddexp2, ("x", "y"), "NE"),
    _Pattern(_logaddexp(_in_base_two(np.float64)), jnp.logaddexp2, ("x", "y"), "NE"),
    _Pattern(_SINC, _sinc, ("x", "pi"), "EQ"),
)


def find_composite(node: Node) -> Composite | None:
    """The function of ``_PATTERNS`` of which ``node`` is the last op, or None."""
    for pattern in _PATTERNS:
        if node.op.mnemonic != pattern.text.name or (found := match(pattern.text, node.results[0])) is None:
            continue
        bound = [found[name] for name in pattern.arguments]
        values = tuple(one for one in bound if isinstance(one, Value))
        numbers = tuple(one for one in bound if not isinstance(one, Value))
        steps = _steps(node, values)
        if all(direction_of(step) == pattern.direction for step in steps if step.op is ops.COMPARE):
            return Composite("composite", values, steps, pattern.function, numbers)
    return None


def _steps(node: Node, arguments: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes between ``arguments`` and the result of ``node``, in order, without constants."""
    found: set[Node] = set()
    pending = [node]
    while pending:
        step = pending.pop()
        if step not in found and step.op not in (ops.CONSTANT, ops.BROADCAST_IN_DIM):
            found.add(step)
            pending += [v.producer for v in step.operands if v not in arguments and v.producer is not None]
    return tuple(sorted(found, key=lambda step: step.id))
