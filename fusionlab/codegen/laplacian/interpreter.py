"""Walk over the nodes between coordinates and some values, and return the jets of these values.

Every rule of differentiation is JAX's own, applied to the raised ops; the rules here determine which parts of a jet
pass through an op together, so that one GEMM or reduction serves the value, its Laplacian and all directions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import Environment, defer, jet_of
from fusionlab.codegen.laplacian.jet import Jet, constant_jet, densify, identity_jet
from fusionlab.codegen.laplacian.rules import dot_general, elementwise, generic, moves, reductions, slogdet
from fusionlab.codegen.laplacian.sparsity import sparsity_of
from fusionlab.codegen.laplacian.state import Rule, State, read
from fusionlab.codegen.raising import RaiseError
from fusionlab.codegen.raising.composites import Composite, find_composite
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.ops import INEXACT
from fusionlab.hlo.view import Node, Value, free_values

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **moves.RULES,
    **reductions.RULES,
    **dot_general.RULES,
    **slogdet.RULES,
    **generic.RULES,
}


def forward_laplacian(
    state: State, nodes: Sequence[Node], environment: Mapping[Value, Any], outputs: Sequence[Value]
) -> list[Jet]:
    """The jets of ``outputs``, which ``nodes`` compute from ``environment``: of a constant without blocks."""
    state.jets[state.x] = _seeded(state, environment[state.x])
    jets = _pushed(state, nodes, environment, outputs)
    if state.seeds is None:
        state.sparsity = sparsity_of(state, outputs)
    return jets


def _pushed(
    state: State, nodes: Sequence[Node], environment: Mapping[Value, Any], outputs: Sequence[Value]
) -> list[Jet]:
    """The jets of ``outputs`` from those that ``state`` has."""
    nodes = list(_with_branches(nodes))
    state.environment = Environment(state, environment)
    fixed = _run_fixed(state, nodes)
    needed = _needed(state, nodes, outputs)
    for node in nodes:
        if node not in fixed:
            _step(state, node, needed)
    return [_jet(state, value) for value in outputs]


def _seeded(state: State, x: Any) -> Jet:
    """The jet of the coordinates."""
    if state.seeds is not None:
        inner = (1,) * state.walker_axes + tuple(np.shape(x))[state.walker_axes :]
        rows = jnp.asarray(state.seeds, np.result_type(x)).reshape(-1, *inner)
        return Jet(x, None, jnp.broadcast_to(rows, (len(rows), *np.shape(x))), None)
    jet = identity_jet(x, state.coordinates, state.walker_axes)
    return jet if state.options.sparse else densify(jet, state.coordinates)


def _with_branches(nodes: Iterable[Node]) -> Iterator[Node]:
    """``nodes``, with those of a branch that is known to be taken before the case that returns their results."""
    for node in nodes:
        if (region := taken_branch(node)) is not None:
            yield from _with_branches(region.nodes)
        yield node


def _run_fixed(state: State, nodes: Sequence[Node]) -> set[Node]:
    """Run the nodes that do not depend on the coordinates, so that indices and masks are known from here on."""
    varying, fixed = set(state.jets), set()
    for node in nodes:
        if varying.isdisjoint(read(node)):
            _run(state, node)
            fixed.add(node)
        else:
            varying.update(node.results)
    return fixed


def _needed(state: State, nodes: Sequence[Node], outputs: Sequence[Value]) -> set[Value]:
    """Values whose jets are needed: on a differentiable path from those that have jets to ``outputs``."""
    varying = set(state.jets)
    for node in nodes:
        if node.op.derivative != "zero" and not varying.isdisjoint(read(node)):
            real = (value for value in node.results if value.type.dtype in INEXACT)
            varying.update(value for value in real if value not in state.stop_gradient)
    wanted = set(outputs)
    for node in reversed(nodes):
        if wanted.isdisjoint(node.results):
            continue
        found = slogdet.find_determinant(node, state.environment, state.one) or find_composite(node)
        if found is not None and _is_whole(state, found, varying):
            state.composites[node] = found
        wanted.update(value for value in state.arguments(node) if value in varying)
    needed = wanted & varying
    return needed


def _is_whole(state: State, found: Composite, varying: Collection[Value]) -> bool:
    """True if the coordinates reach the result of ``found`` through its arguments alone."""
    within = {value for step in found.steps for values in (step.operands, step.results) for value in values}
    inner = within.difference(found.arguments)
    return not inner.intersection((state.x, *state.stop_gradient)) and any(v in varying for v in found.arguments)


def _step(state: State, node: Node, needed: Collection[Value]) -> None:
    if not any(value in needed for value in node.results) or not state.varying(node):
        _run(state, node)
        return
    if (region := taken_branch(node)) is not None:
        for value, inner in zip(node.results, region.returns, strict=True):
            state.set(value, _jet(state, inner))
        return
    with state.raising.scope(node):
        try:
            if elementwise.is_deferrable(node) and defer(state, node):
                return
            jets = {**RULES, "stablehlo.while": _while}.get(state.op(node), generic.second_order)(state, node)
        except NotImplementedError as error:  # JAX has no derivative of it
            raise RaiseError(f"{node.name} has no jet: {str(error).splitlines()[0]}", node) from error
        for value, jet in zip(node.results, jets, strict=True):
            if jet is not None:
                state.set(value, jet)


def _while(state: State, node: Node) -> Sequence[Jet | None]:
    """A loop that carries jets instead of values, each as one array [value, Laplacian, rows], and pushes them through
    its body in every trip. Layers in a scan cost what they cost side by side."""
    if state.options.adjoint:  # the sources inside the loop would be lost
        return generic.second_order(state, node)
    condition, body = node.regions
    changing, of = generic.varying_results(node, state.varying(node)), state.coordinates
    kept = {i for i, value in enumerate(node.results) if value in changing and value.dtype in INEXACT}
    captured = dict.fromkeys(value for region in node.regions for value in free_values(region))
    arrays = {value: state.environment[value] for value in captured}
    jets = {value: jet_of(state, value) for value in captured if state.depends_on_x(value)}

    def stacked(i: int, jet: Jet) -> Any:
        return densify(jet, of).stacked(True).astype(state.raising.dtype(node.results[i].type))

    def values(carried: Sequence[Any]) -> list[Any]:
        return [array[0] if i in kept else array for i, array in enumerate(carried)]

    def proceeds(carried: Sequence[Any]) -> Any:
        return state.raising.region(condition, arrays)(*values(carried))[0]

    def trip(carried: Sequence[Any]) -> list[Any]:
        inner = state.inside({**jets, **{body.arguments[i]: Jet.of_stack(carried[i], True, None) for i in kept}})
        given = {**arrays, **dict(zip(body.arguments, values(carried), strict=True))}
        found = dict(zip(kept, _pushed(inner, body.nodes, given, [body.returns[i] for i in kept]), strict=True))
        return [stacked(i, found[i]) if i in kept else inner.environment[value] for i, value in enumerate(body.returns)]

    start = [
        stacked(i, _jet(state, value)) if i in kept else jnp.asarray(state.environment[value])
        for i, value in enumerate(node.operands)
    ]
    last = lax.while_loop(proceeds, trip, start)
    state.environment.update(zip(node.results, values(last), strict=True))
    return [Jet.of_stack(array, True, None) if i in kept else None for i, array in enumerate(last)]


def _jet(state: State, value: Value) -> Jet:
    return jet_of(state, value) if state.depends_on_x(value) else constant_jet(state.environment[value])


def _run(state: State, node: Node) -> None:
    """Run a node without derivatives."""
    region = taken_branch(node)
    if region is not None:
        results: Sequence[Any] = [state.environment[value] for value in region.returns]
    elif all(value in state.known for value in node.results):
        results = [state.known[value] for value in node.results]
    else:
        results = state.raising.node(node, state.environment)
    state.environment.update(zip(node.results, results, strict=True))
