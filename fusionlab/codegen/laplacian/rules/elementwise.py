"""Elementwise ops of several values; functions of one value are in ``laplacian.chains``, by JAX's own jvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of, jets_of
from fusionlab.codegen.laplacian.jet import (
    Jet,
    Scale,
    combine,
    densify,
    row_products,
    select_broadcast,
    select_padded,
    sum_of,
    sum_rows,
)
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.hlo import ops
from fusionlab.hlo.view import Node


def add(state: State, node: Node) -> list[Jet | None]:
    return _linear(state, node, lambda state, node: [lambda part: part, lambda part: part])


def subtract(state: State, node: Node) -> list[Jet | None]:
    return _linear(state, node, lambda state, node: [lambda part: part, lambda part: -part])


def select(state: State, node: Node) -> list[Jet | None]:
    return _linear(state, node, lambda state, node: _either(state.environment[node.operands[0]]))


def extreme(state: State, node: Node) -> list[Jet | None]:
    """The maximum or minimum of two jets."""
    return _linear(state, node, _of_extreme)


def multiply(state: State, node: Node) -> list[Jet | None]:
    left, right = jets_of(state, node)
    return [product(state, state.run(node), left, right)]


def divide(state: State, node: Node) -> list[Jet | None]:
    top, bottom = node.operands
    if not (state.options.adjoint or jet_of(state, top).dense) and (
        bottom in state.postponed or jet_of(state, bottom).dense
    ):  # the quotient is dense: a contraction divides afterwards
        state.postpone(node, lambda: _quotient(state, node))
        return [None]
    return [_quotient(state, node)]


def _quotient(state: State, node: Node) -> Jet:
    top, bottom = jets_of(state, node)
    return quotient(state, state.run(node), top, bottom)


def of_parts(state: State, node: Node) -> list[Jet | None]:
    """A complex value of a real and an imaginary part."""
    zero = np.zeros((), state.raising.dtype(node.operands[0].type))

    def as_real(part: Any) -> Any:
        return lax.complex(part, jnp.broadcast_to(zero, part.shape))

    def as_imaginary(part: Any) -> Any:
        return lax.complex(jnp.broadcast_to(zero, part.shape), part)

    return _linear(state, node, lambda state, node: [as_real, as_imaginary])


def part_of_complex(state: State, node: Node) -> list[Jet | None]:
    """The real or imaginary part: linear over real numbers."""
    [jet] = jets_of(state, node)
    return [jet.map_parts(lambda part: state.raising.node(node, {node.operands[0]: part})[0], jet.owners)]


def magnitude(state: State, node: Node) -> list[Jet | None]:
    """y = |z|: y_k = Re(z* z_k) / y and lap y = (Re(z* lap z) + sum_k |z_k|^2 - sum_k y_k^2) / y."""
    [jet] = jets_of(state, node)
    value, of = state.run(node), state.coordinates
    unit = jnp.conj(jet.value) / value
    found = jet.map_parts(lambda part: (unit * part).real, jet.owners)
    real, imaginary = (jet.map_parts(part, jet.owners) for part in (jnp.real, jnp.imag))
    squares = [row_products(each, each, of) for each in (real, imaginary, found)]
    terms = [] if found.laplacian is None else [found.laplacian]
    if all(each is not None for each in squares):
        terms.append((squares[0] + squares[1] - squares[2]) / value)
    return [Jet(value, sum_of(terms) if terms else None, found.jacobian, found.owners)]


def _linear(state: State, node: Node, scales: Callable[[State, Node], Sequence[Scale]]) -> list[Jet | None]:
    jets, value = jets_of(state, node), state.run(node)
    terms = list(zip(jets, scales(state, node), strict=True))
    return [combine(value, terms, state.coordinates, linear=True)]


def _of_extreme(state: State, node: Node) -> Sequence[Scale]:
    first, second = (state.environment[value] for value in node.operands)
    chosen = first > second if node.op is ops.MAXIMUM else first < second
    tie = state.subgradients.get(node.results[0])
    if tie is not None:
        return _either(chosen | (first == second) if tie == 0 else chosen)
    equal = first == second

    def by_halves(scale: Scale) -> Scale:
        return lambda part: jnp.where(equal, part * np.asarray(0.5, part.dtype), scale(part))

    return [by_halves(scale) for scale in _either(chosen)]


def _either(first: Any) -> Sequence[Scale]:
    """The scales of two jets of which one is selected, the first where ``first``."""
    return [
        lambda part: jnp.where(first, part, np.zeros((), part.dtype)),
        lambda part: jnp.where(first, np.zeros((), part.dtype), part),
    ]


def _times(factor: Any) -> Scale:
    return lambda part: part * factor


def product(state: State, value: Any, left: Jet, right: Jet) -> Jet:
    """lap (u v) = u lap v + v lap u + 2 sum_k u_k v_k."""
    coordinates = state.coordinates
    cross = row_products(left, right, coordinates)
    extra = None if cross is None else cross + cross
    if not (left.dense or right.dense):
        return combine(value, [(left, _times(right.value)), (right, _times(left.value))], coordinates, extra)
    # One expression for all rows but the front, which XLA keeps in one kernel: u V + U v in every row but the first,
    # which is u v; the cross terms belong to the Laplacian in row 1.
    broadcast = state.options.for_cpu or (left.dense and right.dense)
    left, right = densify(left, coordinates), densify(right, coordinates)
    moved = left.value * right.stacked(True) + left.stacked(True) * right.value
    return state.stack_with(moved, value, moved[1] + extra, select_broadcast if broadcast else select_padded)


def quotient(state: State, value: Any, top: Jet, bottom: Jet) -> Jet:
    """y = u / v: y_k = (u_k - y v_k) / v and lap y = (lap u - y lap v - 2 sum_k y_k v_k) / v."""
    coordinates = state.coordinates
    inverse = 1 / bottom.value
    ratio = value * inverse
    if top.dense or bottom.dense:  # as in ``product``
        top, bottom = densify(top, coordinates), densify(bottom, coordinates)
        u, v = top.stacked(True), bottom.stacked(True)
        moved = u * inverse - v * (value * inverse)
        cross = sum_rows(coordinates.weigh(moved[2:]) * v[2:])
        # Padded on a GPU: broadcast, the quotient of a softmax takes Psiformer three launches more.
        update = select_broadcast if state.options.for_cpu else select_padded
        return state.stack_with(moved, value, moved[1] - (cross + cross) * inverse, update)
    found = combine(value, [(top, _times(inverse)), (bottom, lambda part: -(part * ratio))], coordinates)
    cross = row_products(found, bottom, coordinates)
    if cross is None:
        return found
    extra = -(cross + cross) * inverse
    laplacian = extra if found.laplacian is None else found.laplacian + extra
    return Jet(value, laplacian, found.jacobian, found.owners)


def is_deferrable(node: Node) -> bool:
    """True for elementwise ops with derivatives; JAX has none of ``next_after``, which the generic rule refuses."""
    is_varying = node.op.derivative in ("linear", "piecewise", "product", "smooth")
    return node.op.family == "elementwise" and is_varying and node.name != "chlo.next_after"


RULES: dict[str, Rule] = {
    "stablehlo.abs": magnitude,
    "stablehlo.add": add,
    "stablehlo.complex": of_parts,
    "stablehlo.divide": divide,
    "stablehlo.imag": part_of_complex,
    "stablehlo.maximum": extreme,
    "stablehlo.minimum": extreme,
    "stablehlo.multiply": multiply,
    "stablehlo.real": part_of_complex,
    "stablehlo.select": select,
    "stablehlo.subtract": subtract,
}
