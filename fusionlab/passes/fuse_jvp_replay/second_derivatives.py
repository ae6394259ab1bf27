"""All second derivatives of each walker by one adjoint; where it is defined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.adjoint import weighted_sources
from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import densify
from fusionlab.codegen.laplacian.state import State
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks
from fusionlab.hlo.constants import constant_behind
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.ops import COMPLEX
from fusionlab.hlo.view import FunctionView, Node, Value, reads, walk
from fusionlab.passes.fuse_jvp_replay.identify.guards import mixed
from fusionlab.passes.fuse_jvp_replay.parts import shared_values


def second_derivatives(
    state: State,
    flat: FunctionView,
    cone: Sequence[Node],
    output: Value,
    environment: Mapping[Value, Any],
    marks: Mapping[int, Marks],
) -> tuple[Any, Any]:
    """The second and first derivatives [*walkers, K] of ``output`` by every coordinate.

        d^2 F / d x_k^2 = d/dw_k sum_v <dF/dv, q_v(w)>,    q_v(w) = sum_k w_k H_v[a_k, a_k]

    The weights w of the coordinates enter the sources q_v alone (``weighted_sources``), and one reverse pass has their
    coefficients: all second derivatives cost little more than their sum. ``state`` has the circumstances of a run,
    ``cone`` computes ``output``, ``environment`` has what it is computed from, ``marks`` the axes that count walkers
    along each leading axis of x. NotImplementedError or Refusal where walkers cannot be taken one by one, there
    is no adjoint, or it may be undefined where second derivatives are not.
    """
    x, axes = environment[state.x], state.walker_axes
    walkers, inner = np.shape(x)[:axes], np.shape(x)[axes:]
    unknown = any(extent > 1 and axis not in marks for axis, extent in enumerate(walkers))
    if unknown or mixed(flat, cone, state.x, marks.values()):
        raise NotImplementedError("the walkers cannot be taken one by one")
    if output.dtype in COMPLEX:
        raise NotImplementedError("the adjoint is that of a real value")
    one, varying = replace(state.raising, shapes=state.one.shapes), reached(flat, [state.x])
    shared = shared_values(flat, cone, state.x, environment, state.raising, one)

    def of_one(x: Any) -> tuple[Any, Any]:
        def total(weights: Any) -> tuple[Any, Any]:
            of = replace(state.coordinates, weights=weights)
            options = replace(state.options, adjoint=True)
            own = replace(state.inside({}), raising=one, coordinates=of, options=options)
            [jet] = forward_laplacian(own, cone, {**shared, state.x: x}, [output])
            if _is_guarded(own, cone, output, varying):
                raise NotImplementedError("an operand that is not selected may have no derivative")
            return weighted_sources(own, cone, output, {}).reshape(()), densify(jet, of).jacobian.reshape(-1)

        ones = jnp.ones(state.coordinates.count, jnp.result_type(x))
        _, pull, jacobian = jax.vjp(total, ones, has_aux=True)
        return pull(jnp.ones((), ones.dtype))[0], jacobian

    each = jax.vmap(of_one)(x.reshape(-1, *(1,) * axes, *inner))
    seconds, rows = (array.reshape(*walkers, -1) for array in each)
    return seconds, rows


def adjoint_is_defined(
    flat: FunctionView, x: Value, wanted: Sequence[Node], cone: Sequence[Node], numbers: Mapping[Value, int]
) -> bool:
    """True if second derivatives by the adjoint are defined wherever what ``wanted`` computes may be, guards aside.

        sqrt(u)[1:].sum()      forward: the slope of u[0] is dropped      reverse: it is multiplied by 0, and may be NaN

    Either no op of ``cone`` that depends on ``x`` drops elements, or ``wanted`` has a reverse pass, too: a contraction
    with an operand of one of ``cone``, over other axes of it.
    """

    def contracted(nodes: Sequence[Node]) -> set[tuple[int, tuple[int, ...]]]:
        found = set()
        for node in walk(nodes):
            if node.op is ops.DOT_GENERAL:
                sides = zip(node.operands, DotAxes.of(node).contracted, strict=True)
                found |= {(numbers[value], own) for value, own in sides if value in numbers}
        return found

    varying = reached(flat, [x])
    if all(_keeps_elements(node) for node in walk(cone) if not varying.isdisjoint(node.results)):
        return True
    forward, others = contracted(cone), contracted(wanted)
    shared = {number for number, _ in forward}
    return any(number in shared and (number, axes) not in forward for number, axes in others)


_KEEPING = (
    ops.DOT_GENERAL,
    ops.BROADCAST_IN_DIM,
    ops.RESHAPE,
    ops.TRANSPOSE,
    ops.CONCATENATE,
    ops.OPTIMIZATION_BARRIER,
)
"""Ops whose results depend on all elements of their operands, beside those that ``_keeps_elements`` tells by traits."""


def _keeps_elements(node: Node) -> bool:
    if node.op is ops.REDUCE:
        return combiner(node.regions[0]) == "add"
    smooth = node.op.family == "elementwise" and node.op.derivative in ("linear", "product", "smooth")
    return node.op in _KEEPING or (smooth and all(value.dtype not in COMPLEX for value in reads(node)))


_BOUNDED = ("cosine", "logistic", "sine", "tanh")
"""Smooth functions of bounded slope."""


def _is_guarded(state: State, cone: Sequence[Node], output: Value, varying: Set[Value]) -> bool:
    """True if ``output`` depends on some op without a derivative everywhere only through operands of selections whose
    predicates depend on the positions: where these are not selected, it may be undefined.

    A selection between a value and one that is not finite is none: ``output`` is not finite then, either.
    """
    makers = {value: node for node in cone for value in node.results}

    def differentiated(through_guards: bool) -> set[Node]:
        found, pending = set[Node](), [output]
        while pending:
            node = makers.get(pending.pop())
            if node is None or node in found or node.op.derivative == "zero" or varying.isdisjoint(node.results):
                continue
            found.add(node)
            if through_guards or node in state.composites or not _is_guard(node, varying):
                pending += state.arguments(node)
        return found

    return any(_has_poles(node, varying) for node in differentiated(True) - differentiated(False))


def _is_guard(node: Node, varying: Set[Value]) -> bool:
    if node.op.control_flow:
        return node.operands[0] in varying
    return node.op is ops.SELECT and node.operands[0] in varying and not any(map(_never_finite, node.operands[1:]))


def _never_finite(value: Value) -> bool:
    """True of a constant of NaN or infinity, which may be broadcast."""
    array = constant_behind(value, (ops.BROADCAST_IN_DIM, ops.RESHAPE, ops.CONVERT))
    return array is not None and not np.isfinite(array).any()


def _has_poles(node: Node, varying: Set[Value]) -> bool:
    if node.op is ops.DIVIDE:
        return node.operands[1] in varying
    return node.op.control_flow or (node.op.derivative in ("smooth", "call", "") and node.op.mnemonic not in _BOUNDED)
