"""Raise the trips of a loop: one as a function of its number, all or some at once, or one in any direction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising import JaxRefusal, Raising, raise_nodes
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.loops import Counter, Invariant, Loop, Stacked, Sum, wrapped
from fusionlab.hlo.view import Node, Value, free_values, reads


@dataclass(frozen=True)
class Trips:
    """``outputs(trip, *invariants)`` returns what one trip contributes: the terms of every sum, then stacked updates.

    ``trip`` is an i32 scalar; ``invariants`` are the loop's invariant carried values in order, then ``captured``.
    """

    loop: Loop
    captured: tuple[Value, ...]
    raising: Raising
    outputs: Callable[..., tuple[Any, ...]]


def raise_trips(loop: Loop, captured: Sequence[Value], raising: Raising) -> Trips:
    """Raise the body of ``loop``, whose roles must all be known (no recurrent value); RaiseError if that fails."""
    body = loop.body
    invariants = [body.arguments[i] for i in loop.indices(Invariant)]
    counters = [body.arguments[i] for i in loop.indices(Counter)]
    terms = [value for _, value in _terms(loop)] + [role.update for role in loop.roles if isinstance(role, Stacked)]
    trip_body = raise_nodes(body.nodes, [*counters, *invariants, *captured], terms, raising)

    def outputs(trip: Any, *arrays: Any) -> tuple[Any, ...]:
        roles = [role for role in loop.roles if isinstance(role, Counter)]
        return trip_body(*(_count(role, trip) for role in roles), *arrays)

    return Trips(loop, tuple(captured), raising, outputs)


def batched_loop(trips: Trips, chunk: int) -> Callable[..., tuple[Any, ...]]:
    """The whole loop as a function of its initial carried values (then captured ones), ``chunk`` trips at a time."""
    loop = trips.loop
    count = loop.trips
    assert count is not None
    whole, rest = divmod(count, chunk)

    def run(*arrays: Any) -> tuple[Any, ...]:
        initial, captured = arrays[: len(loop.roles)], arrays[len(loop.roles) :]
        invariants = [*(initial[i] for i in loop.indices(Invariant)), *captured]

        def take(trip_numbers: Any, carried: tuple[Any, ...]) -> tuple[Any, ...]:
            batched = jax.vmap(trips.outputs, in_axes=(0, *(None for _ in invariants)))
            return _accumulate(loop, trip_numbers, batched(trip_numbers, *invariants), carried)

        carried = tuple(initial[i] for i in loop.indices(Sum, Stacked))
        with trips.raising.scope(loop.node):
            if whole == 1:
                carried = take(np.arange(chunk, dtype=np.int32), carried)
            elif whole:
                first = np.arange(chunk, dtype=np.int32)
                carried = lax.fori_loop(0, whole, lambda i, c: take(jnp.int32(i * chunk) + first, c), carried)
            if rest:
                carried = take(np.arange(whole * chunk, count, dtype=np.int32), carried)
        return _results(loop, count, initial, carried)

    return run


def at_once(loop: Loop, raising: Raising, environment: Mapping[Value, Any]) -> Sequence[Any] | None:
    """The results of ``loop`` with all its trips batched; None where JAX cannot batch them."""
    assert loop.trips is not None
    captured = _captured(loop)
    given = [*(jnp.asarray(environment[v]) for v in loop.node.operands), *(environment[v] for v in captured)]
    try:
        return batched_loop(raise_trips(loop, captured, raising), loop.trips)(*given)
    except (NotImplementedError, JaxRefusal):
        return None


def terms_of(loop: Loop, trips: Sequence[int], raising: Raising, environment: Mapping[Value, Any]) -> dict[Value, Any]:
    """[len(trips), ...] for each sum among the results of ``loop``: what these ``trips`` add to it. NotImplementedError
    or RaiseError where JAX cannot batch them."""
    captured, sums = _captured(loop), loop.indices(Sum)
    invariants = [environment[loop.node.operands[i]] for i in loop.indices(Invariant)]
    invariants += [environment[value] for value in captured]
    batched = jax.vmap(raise_trips(loop, captured, raising).outputs, in_axes=(0, *(None for _ in invariants)))
    terms = iter(batched(np.asarray(trips, np.int32), *invariants))
    signs = {
        loop.node.results[i]: [sign for sign, _ in role.terms] for i in sums if isinstance(role := loop.roles[i], Sum)
    }
    return {value: sum(sign * next(terms) for sign in each) for value, each in signs.items()}


def in_one_direction(loop: Loop, weights: Any, raising: Raising, environment: Mapping[Value, Any]) -> Sequence[Any]:
    """The results of ``loop``, which ``is_polynomial``, with one term instead of all: in the direction sum_k c_k d_k.

        for k: sum += h(d_k)[k]                 sum += sum_k c_k h(sum_j c_j d_j)[k]

    The directions d_k of the trips, floats that are made from the counter, and floats that are read at it are replaced
    by their sums with ``weights`` c [trips]. Where c is the unit vector k, the term is that of trip k.
    """
    body, trips, (integers, _) = loop.body, loop.trips, _dependent(loop)
    assert trips is not None
    captured, terms = _captured(loop), [value for _, value in _terms(loop)]
    known = {value: environment[value] for value in captured}
    known |= {inner: environment[outer] for inner, outer in loop.unchanged.items()}
    by_trip: dict[Value, Any] = {}  # [trips, ...]
    for argument, role in zip(body.arguments, loop.roles, strict=True):
        if isinstance(role, Counter):
            by_trip[argument] = jax.vmap(functools.partial(_count, role))(np.arange(trips, dtype=np.int32))
    for node in live_nodes(body.nodes, [*body.arguments, *captured], terms):
        if node.op is ops.OPTIMIZATION_BARRIER:
            for operand, result in zip(node.operands, node.results, strict=True):
                arrays = by_trip if operand in by_trip else known
                arrays[result] = arrays[operand]
            continue
        read = [value for value in dict.fromkeys(reads(node)) if value in integers]
        if not read:
            raising.run([node], known)
            continue
        found = _of_trips(node, {value: by_trip[value] for value in read}, raising, known)
        if integers.issuperset(found):
            by_trip |= found
        else:
            known |= {v: jnp.tensordot(weights.astype(array.dtype), array, 1) for v, array in found.items()}
    carried = tuple(environment[loop.node.operands[i]] for i in loop.indices(Sum))
    carried = _accumulate(loop, np.zeros(1, np.int32), [known[value][None] for value in terms], carried)
    return _results(loop, trips, [environment[value] for value in loop.node.operands], carried)


def is_polynomial(loop: Loop) -> bool:
    """True if ``loop`` is one of sums alone, whose terms are polynomials of the weights of ``in_one_direction``.

    What is computed from floats that depend on the trip is affine in each operand, and no predicate: a term that equals
    a polynomial at random weights equals it in every trip.
    """
    if loop.trips is None or loop.indices(Counter, Invariant, Sum) != list(range(len(loop.roles))):
        return False
    floats, terms = _dependent(loop)[1], [value for _, value in _terms(loop)]

    def is_affine(node: Node) -> bool:
        if node.op is ops.OPTIMIZATION_BARRIER:
            return True
        if not all(value.dtype in ops.INEXACT for value in node.results):
            return False
        return floats.isdisjoint(reads(node)) or _is_multilinear(node, floats)

    live = live_nodes(loop.body.nodes, [*loop.body.arguments, *_captured(loop)], terms)
    return floats.issuperset(terms) and all(is_affine(node) for node in live if not floats.isdisjoint(node.results))


def _dependent(loop: Loop) -> tuple[set[Value], set[Value]]:
    """The values of the body that may depend on the trip: the counters with the integers and predicates that are
    computed from them and from what does not depend on it, and all others."""
    integers = {loop.body.arguments[i] for i in loop.indices(Counter)}
    floats: set[Value] = set()
    for node in loop.body.nodes:
        if node.op is ops.OPTIMIZATION_BARRIER:
            for operand, result in zip(node.operands, node.results, strict=True):
                for values in (integers, floats):
                    values.update([result] if operand in values else [])
        elif not floats.isdisjoint(reads(node)):
            floats.update(node.results)
        elif not integers.isdisjoint(reads(node)):
            exact = all(value.dtype not in ops.INEXACT for value in node.results)
            (integers if exact else floats).update(node.results)
    return integers, floats


def _of_trips(
    node: Node, of_trips: Mapping[Value, Any], raising: Raising, known: Mapping[Value, Any]
) -> dict[Value, Any]:
    """The results [trips, ...] of ``node``, which reads the values ``of_trips`` [trips, ...]."""

    def one(*arrays: Any) -> tuple[Any, ...]:
        environment = {**known, **dict(zip(of_trips, arrays, strict=True))}
        raising.run([node], environment)
        return tuple(environment[value] for value in node.results)

    return dict(zip(node.results, jax.vmap(one)(*of_trips.values()), strict=True))


def _is_multilinear(node: Node, floats: Collection[Value]) -> bool:
    """True if the results of ``node`` are affine in each of its operands that are among ``floats``."""
    if node.op in (ops.SELECT, ops.TRIANGULAR_SOLVE):
        return node.operands[0] not in floats
    if node.op is ops.DIVIDE:
        return node.operands[1] not in floats
    if node.op in (ops.REDUCE, ops.SCATTER):
        return combiner(node.regions[0]) == "add"
    return node.op.derivative in ("linear", "product")


def accumulated(loop: Loop) -> list[Value]:
    """What every trip of ``loop`` adds to sums and writes into stacks."""
    return [value for _, value in _terms(loop)] + [r.update for r in loop.roles if isinstance(r, Stacked)]


def with_given(
    loop: Loop, nodes: Sequence[Node], raising: Raising, environment: Mapping[Value, Any], given: Mapping[Value, Any]
) -> Sequence[Any]:
    """The results of ``loop``, all trips batched, with the arrays ``given`` [trips, ...] for some values of its body.

    ``nodes`` of the body compute what is accumulated from these. None for results that it only carries.
    """
    assert loop.trips is not None
    body, terms = loop.body, accumulated(loop)
    used = {value for node in nodes for value in reads(node)} | set(terms)
    known = {value: environment[value] for value in free_values(body) if value in used and value not in given}
    known |= {inner: environment[outer] for inner, outer in loop.unchanged.items() if inner in used}
    counters = {body.arguments[i]: role for i, role in enumerate(loop.roles) if isinstance(role, Counter)}
    own = {value: array for value, array in given.items() if value in used}

    def one(trip: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
        inner = {**known, **dict(zip(own, arrays, strict=True))}
        inner |= {argument: _count(role, trip) for argument, role in counters.items()}
        raising.run(nodes, inner)
        return tuple(inner[value] for value in terms)

    outputs = jax.vmap(one)(np.arange(loop.trips, dtype=np.int32), list(own.values()))
    carried = tuple(environment[loop.node.operands[i]] for i in loop.indices(Sum, Stacked))
    carried = _accumulate(loop, np.arange(loop.trips, dtype=np.int32), outputs, carried)
    return _results(loop, loop.trips, [environment.get(value) for value in loop.node.operands], carried)


def per_trip(loop: Loop, value: Value, raising: Raising, environment: Mapping[Value, Any]) -> Any:
    """[trips, ...]: ``value`` of the body in every trip, from the counters and ``read_by_trips`` alone."""
    known = read_by_trips(loop, value)
    counters = {loop.body.arguments[i]: loop.roles[i] for i in loop.indices(Counter)}
    body = raise_nodes(loop.body.nodes, [*counters, *known], [value], raising)
    arrays = [environment[outer] for outer in known.values()]

    def one(trip: Any) -> Any:
        return body(*(_count(role, trip) for role in counters.values() if isinstance(role, Counter)), *arrays)[0]

    assert loop.trips is not None
    return jax.vmap(one)(np.arange(loop.trips, dtype=np.int32))


def read_by_trips(loop: Loop, value: Value) -> dict[Value, Value]:
    """The invariants of the body that ``value`` is computed from, by their names inside, and their values outside."""
    outside = {each: each for each in free_values(loop.body)}
    nodes = live_nodes(loop.body.nodes, [*loop.body.arguments, *outside], [value])
    read = {each for node in nodes for each in reads(node)}
    return {inner: outer for inner, outer in {**loop.unchanged, **outside}.items() if inner in read}


def _captured(loop: Loop) -> list[Value]:
    return list(dict.fromkeys(value for region in loop.node.regions for value in free_values(region)))


def _count(counter: Counter, trip: Any) -> Any:
    """The counter's value in ``trip`` (an i32 scalar), in the wrapping arithmetic of its type."""
    start, step = (jnp.asarray(wrapped(number, counter.dtype)[0]) for number in (counter.start, counter.step))
    return start + step * lax.convert_element_type(trip, counter.dtype)


def _terms(loop: Loop) -> list[tuple[int, Value]]:
    return [term for role in loop.roles if isinstance(role, Sum) for term in role.terms]


def _accumulate(loop: Loop, trip_numbers: Any, outputs: Sequence[Any], carried: tuple[Any, ...]) -> tuple[Any, ...]:
    remaining, updated = list(outputs), []
    stacks = remaining[len(_terms(loop)) :]
    for i, array in zip(loop.indices(Sum, Stacked), carried, strict=True):
        role = loop.roles[i]
        if isinstance(role, Sum):
            for sign, _ in role.terms:
                total = lax.reduce(remaining.pop(0), np.zeros((), array.dtype), lax.add, (0,))
                array = array + total if sign > 0 else array - total
        else:
            assert isinstance(role, Stacked)
            array = _place(role, trip_numbers, stacks.pop(0), array)
        updated.append(array)
    return tuple(updated)


def _place(role: Stacked, trip_numbers: Any, updates: Any, array: Any) -> Any:
    """Write ``updates`` (trips on the leading axis) into their slots of ``array``."""
    rows = jnp.moveaxis(updates if role.without else jnp.squeeze(updates, role.axis + 1), 0, role.axis)
    if rows.shape == array.shape and role.slots == tuple(range(array.shape[role.axis])):
        return rows
    numpy = np if isinstance(trip_numbers, np.ndarray) else jnp
    slots = numpy.asarray(role.slots, np.int32)[trip_numbers]
    return array.at[(*(slice(None),) * role.axis, slots)].set(rows, unique_indices=True)


def _results(loop: Loop, count: int, initial: Sequence[Any], carried: Sequence[Any]) -> tuple[Any, ...]:
    last = {i: jnp.asarray(role.at(count)) for i, role in enumerate(loop.roles) if isinstance(role, Counter)}
    last |= zip(loop.indices(Sum, Stacked), carried, strict=True)
    return tuple(last.get(i, array) for i, array in enumerate(initial))
