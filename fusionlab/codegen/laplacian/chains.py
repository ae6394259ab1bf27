"""Deferred jets: a chain of elementwise ops of one variable is differentiated as one function, by JAX.

So tanh has no rule here: its derivatives are JAX's, as those of every function of one value are.
Maxima and minima have their own derivatives. JAX's compare the operands with the result; XLA may recompute an operand
for the comparison with another rounding (a fused multiply-add), and then no operand is the largest and the slope is 0.
Here operands are compared with each other.
"""

from __future__ import annotations

import functools
from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.jet import Jet, row_products, select_broadcast, select_padded, sum_of, update_first
from fusionlab.codegen.laplacian.state import State
from fusionlab.hlo import ops
from fusionlab.hlo.ops import COMPLEX
from fusionlab.hlo.view import Node, Value, reads

_HOMOGENEOUS = (ops.NEGATE, ops.CONVERT, ops.MULTIPLY, ops.DIVIDE)
_STRAIGHT = ("linear", "piecewise", "product")
"""Classes of elementwise ops without a second derivative in one operand; they cost less than memory traffic."""
_ROOTS = {"stablehlo.sqrt": 1 / 2, "stablehlo.cbrt": 1 / 3, "stablehlo.rsqrt": -1 / 2}
"""Powers by their exponents. Chains end at them: a second derivative of what follows by what is under a root leaves the
range of float32 where that by the root does not (of 1/r by r^2, r^-5)."""


def defer(state: State, node: Node) -> bool:
    """Defer the jet of an elementwise ``node`` if it is a function of one value, so that chains grow.

    A function of a complex value is differentiated as one of a complex number, so it has to be holomorphic.
    """
    common = set.intersection(*(_roots(state, value) for value in state.varying(node)))
    if not is_holomorphic(node):
        common = {value for value in common if value.dtype not in COMPLEX}
    if common:
        state.deferred[node.results[0]] = max(common, key=lambda value: value.id)
        if node.name in _ROOTS:
            state.ends.add(node.results[0])
    return bool(common)


def is_holomorphic(node: Node) -> bool:
    """False for a real function of complex values: a part, the magnitude."""
    return node.results[0].dtype in COMPLEX or all(value.dtype not in COMPLEX for value in node.operands)


def _roots(state: State, value: Value) -> set[Value]:
    """Values with jets that ``value`` is an elementwise function of."""
    own = {value} if value in state.jets or value in state.postponed or value in state.ends else set()
    return own | {state.deferred[value]} if value in state.deferred else own


def jet_of(state: State, value: Value) -> Jet:
    """The jet of ``value``, computed now if it was deferred."""
    state.asked.add(value)
    if value not in state.jets and value in state.postponed:
        state.set(value, state.postponed.pop(value)())
    elif value not in state.jets:
        root = state.deferred[value]
        state.chains[value] = root, _chain(state, root, value)
        state.set(value, _jet_of_chain(state, value))
    return state.jets[value]


def jets_of(state: State, node: Node) -> list[Jet]:
    """The jets of the arguments of ``node``."""
    return [jet_of(state, value) for value in state.varying(node)]


class Environment(dict[Value, Any]):
    """Arrays by value; that of a deferred value is computed on demand."""

    def __init__(self, state: State, known: Mapping[Value, Any]) -> None:
        super().__init__(known)
        self._state = state

    def __missing__(self, value: Value) -> Any:
        inner: ChainMap[Value, Any] = ChainMap({}, self)
        for node in _chain(self._state, self._state.deferred[value], value):
            if node.results[0] not in self:
                inner[node.results[0]] = self._state.raising.node(node, inner)[0]
        self.update(inner.maps[0])
        return self[value]


def _chain(state: State, root: Value, value: Value) -> list[Node]:
    """The elementwise nodes from ``root`` to ``value``, in order."""
    found: set[Node] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        node = current.producer
        if current is root or node is None or node in found or not state.depends_on_x(current):
            continue
        found.add(node)
        pending += state.arguments(node)
    return sorted(found, key=lambda node: node.id)


def _jet_of_chain(state: State, value: Value) -> Jet:
    """y = s(u): y_k = s' u_k and lap y = s' lap u + s'' sum_k u_k^2."""
    root, chain = state.chains[value]
    jet, first = jet_of(state, root), chain[0]
    biased = first.op in (ops.ADD, ops.SUBTRACT) and first.operands[0] is root
    if len(chain) == 1 and biased and not state.depends_on_x(first.operands[1]):
        return jet.with_value(state.run(first))

    function = _function(state, root, chain)
    affine = _affine(state, chain, root)
    cheap = all(node.op.derivative in _STRAIGHT and node not in state.composites for node in chain)
    if jet.stack is not None and affine and len(chain) == 1 and first.op in _HOMOGENEOUS:
        return Jet.of_stack(jax.vmap(function)(jet.stack), jet.laplacian is not None, jet.owners)
    source: list[Any] = []
    rows: Any = None
    if affine:
        result, slope = _slope(function, jet.value)
    elif chain[-1].name in _ROOTS and _affine(state, chain[:-1], root):
        pushed, slope, bent = _of_power(state, root, chain, jet)
        result, rows, source = pushed.value, pushed.jacobian, [] if bent is None else [bent]
    else:
        result, slope, curvature = _curvature(function, jet.value)
        bent = _bent(state, root, chain, jet, curvature)
        source = [] if bent is None else [bent]
    if jet.dense:
        return _dense(state, jet, result, slope, source, cheap)
    terms = ([] if jet.laplacian is None else [slope * jet.laplacian]) + source
    rows = slope * jet.jacobian if rows is None else rows
    return Jet(result, sum_of(terms) if terms else None, rows, jet.owners)


def _of_power(state: State, root: Value, chain: Sequence[Node], jet: Jet) -> tuple[Jet, Any, Any]:
    """y = b^p, b = a u + c, without its Laplacian: its value and rows, its slope, and the sum of second derivatives.

    y_k = y' u_k and y'' sum_k u_k^2 = (p - 1) / (p y) sum_k y_k^2, or (p - 1) a / b sum_k y_k u_k: y'' itself leaves
    the range of float32 where no term does.
    """
    power = _ROOTS[chain[-1].name]
    value, slope = _slope(_function(state, root, chain), jet.value)
    rows = Jet(value, None, slope * jet.jacobian, jet.owners)
    by_value = power > 0 and not state.options.powers_by_base  # the derivative is of y alone, as JAX's own
    products = row_products(rows, rows if by_value else jet, state.coordinates)
    if products is None:
        return rows, slope, None
    factor, bottom = (power - 1) / power, value
    if not by_value:
        factor, bottom = power - 1, state.environment[chain[-1].operands[0]]
        if len(chain) > 1:
            products = products * _slope(_function(state, root, chain[:-1]), jet.value)[1]
    return rows, slope, products * np.asarray(factor, products.dtype) / bottom


def _function(state: State, root: Value, chain: Sequence[Node]) -> Callable[[Any], Any]:
    """The last result of ``chain`` as a function of ``root``."""

    def function(array: Any) -> Any:
        inner = ChainMap({root: array}, state.environment)
        for node in chain:
            [inner[node.results[0]]] = differentiable(state, node, inner)
        return inner[chain[-1].results[0]]

    return function


def _slope(function: Callable[[Any], Any], array: Any) -> tuple[Any, Any]:
    """An elementwise function and its derivative."""
    value, slope = jax.jvp(function, (array,), (jnp.ones(np.shape(array), np.result_type(array)),))
    return value, slope


def _curvature(function: Callable[[Any], Any], array: Any) -> tuple[Any, Any, Any]:
    """An elementwise function and its first and second derivatives."""
    (value, slope), (_, curvature) = _slope(functools.partial(_slope, function), array)
    return value, slope, curvature


def _bent(state: State, root: Value, chain: Sequence[Node], jet: Jet, curvature: Any) -> Any:
    """s'' sum_k u_k^2, None where no block of the jet is of an electron.

        s = g(l(u)), l = log|a u + b|:    s'' sum_k u_k^2 = (g'' - g') sum_k (l' u_k)^2

    u may be a wave function, whose squares leave the range of float32 where log|u| is -41 or 43; so does s''. One that
    was divided by its largest term, whose logarithm is added again, does not: there squares cost one launch less.
    """
    logarithms = [at for at, node in enumerate(chain) if node.op is ops.LOG]
    before, after = ([], chain) if not logarithms else (chain[: logarithms[-1] + 1], chain[logarithms[-1] + 1 :])
    if not before or (_has_shift(state, after) and not _has_shift(state, before)):
        squares = row_products(jet, jet, state.coordinates)
        return None if squares is None else curvature * squares
    inner = {root, *(node.results[0] for node in before[:-1])}
    if not _affine(state, before[:-1], root) or any(value in inner for node in after for value in node.operands):
        return row_products(Jet(jet.value, None, curvature * jet.jacobian, jet.owners), jet, state.coordinates)
    logarithm, slope = _slope(_function(state, root, before), jet.value)
    derivatives = Jet(jet.value, None, slope * jet.jacobian, jet.owners)
    squares = row_products(derivatives, derivatives, state.coordinates)
    if squares is None or not after:
        return None if squares is None else -squares
    _, first, second = _curvature(_function(state, before[-1].results[0], after), logarithm)
    return (second - first) * squares


def _has_shift(state: State, nodes: Sequence[Node]) -> bool:
    """True if ``nodes`` read a maximum that drops out of the output, as the shift of a log-sum-exp, or what follows
    from it without ``x``."""
    pending, seen = [value for node in nodes for value in node.operands], set[Value]()
    while pending and state.stop_gradient:
        current = pending.pop()
        if current in state.stop_gradient:
            return True
        if current not in seen and current.producer is not None and not state.depends_on_x(current):
            pending += reads(current.producer)
        seen.add(current)
    return False


def _dense(state: State, jet: Jet, value: Any, slope: Any, source: list[Any], cheap: bool) -> Jet:
    """The jet with ``value``, Laplacian ``slope lap + source`` and rows ``slope`` times those of a dense jet.

    The small arrays are computed first, by one kernel; ``cheap`` ones at their uses, but for the Laplacian.
    """
    stack = jet.stacked(has_laplacian=bool(source))
    terms = ([] if jet.laplacian is None else [slope * jet.laplacian]) + source
    if not terms:
        return Jet.of_stack(update_first((slope * stack).astype(value.dtype), value), False, None)
    laplacian = sum_of(terms).astype(value.dtype)
    if cheap:
        laplacian = lax.optimization_barrier(laplacian)
    else:
        value, slope, laplacian = lax.optimization_barrier((value, slope, laplacian))
    update = select_broadcast if cheap else select_padded
    if state.options.for_cpu:
        # XLA:CPU fuses the update with ``slope * stack`` into one loop, in which the sum over directions is vectorised.
        update = select_padded if state.options.low_memory else update_first
    return state.stack_with(slope * stack, value, laplacian, update)


def _affine(state: State, chain: Sequence[Node], root: Value) -> bool:
    """True if the chain has no second derivative."""
    varying = {root}
    for node in chain:
        if node in state.composites or not (node.op.derivative in _STRAIGHT or node.op is ops.DIVIDE):
            return False
        if node.op is ops.MULTIPLY and sum(operand in varying for operand in node.operands) > 1:
            return False
        if node.op is ops.DIVIDE and node.operands[1] in varying:
            return False
        varying.update(node.results)
    return True


def differentiable(state: State, node: Node, environment: MutableMapping[Value, Any]) -> Sequence[Any]:
    """The results of ``node``, with the derivatives that they have in the program and that survive fusion."""
    found = state.composites.get(node)
    if found is not None and found.function is not None:
        return [found.function(*(environment[value] for value in found.arguments), *found.numbers)]
    if node.name in EXTREMES:
        extreme = _EXTREMES_WITH_SLOPES[node.name, state.subgradients.get(node.results[0])]
        return [extreme(*(environment[value] for value in node.operands))]
    if node.op is ops.DIVIDE and state.depends_on_x(node.operands[1]):
        top, bottom = node.operands
        return [_quotient(environment[top], environment[bottom])]
    if state.options.powers_by_base and node.op in (ops.SQRT, ops.POWER):
        base, *exponent = node.operands
        if not any(map(state.depends_on_x, exponent)):
            return [_power(environment[base], *(environment[value] for value in exponent))]
    return state.raising.node(node, environment)


_quotient = jax.custom_jvp(lax.div)
"""A quotient with the derivative (top' - quotient bottom') / bottom: no square of ``bottom`` is formed."""


def _quotient_slope(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (top, bottom), (of_top, of_bottom) = primals, tangents
    value = _quotient(top, bottom)
    return value, _quotient(of_top - value * of_bottom, bottom)


_quotient.defjvp(_quotient_slope)


def _power(base: Any, exponent: Any = None) -> Any:
    """``base`` to a constant power, of the square root without one, with the derivative power * exponent / base."""
    if exponent is None:
        power, exponent = jax.custom_jvp(lax.sqrt), np.asarray(0.5, base.dtype)
    else:
        power = jax.custom_jvp(lambda x: lax.pow(x, exponent))
    power.defjvp(lambda primals, tangents: (power(*primals), tangents[0] * exponent * (power(*primals) / primals[0])))
    return power(base)


def _with_slopes(function: Callable[[Any, Any], Any], exceeds: Callable[[Any, Any], Any], tie: int | None) -> Any:
    """A maximum or minimum with the slope of operand ``tie`` where the operands are equal, by halves if it is None.

    ``jax.nn.relu(x)`` is the maximum of x and 0 with the slope of 0 at 0; ``jnp.maximum`` has halves.
    """
    extreme = jax.custom_jvp(function)

    def slopes(primals: Any, tangents: Any) -> Any:
        (a, b), (s, t) = primals, tangents
        equal = {None: (s + t) * np.asarray(0.5, s.dtype), 0: s, 1: t}[tie]
        return extreme(a, b), jnp.where(a == b, equal, jnp.where(exceeds(a, b), s, t))

    extreme.defjvp(slopes)
    return extreme


EXTREMES = {"stablehlo.maximum": (lax.max, lax.gt), "stablehlo.minimum": (lax.min, lax.lt)}
_EXTREMES_WITH_SLOPES = {
    (name, tie): _with_slopes(*functions, tie) for name, functions in EXTREMES.items() for tie in (None, 0, 1)
}
