"""Raise the trips of a loop: one trip as a function of its number, all of them at once, or some at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising import JaxRefusal, Raising, live_nodes, raise_nodes
from fusionlab.hlo.loops import Counter, Invariant, Loop, Stacked, Sum, wrapped
from fusionlab.hlo.view import Value, free_values, reads


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
    captured = list(dict.fromkeys(value for region in loop.node.regions for value in free_values(region)))
    given = [*(jnp.asarray(environment[v]) for v in loop.node.operands), *(environment[v] for v in captured)]
    try:
        return batched_loop(raise_trips(loop, captured, raising), loop.trips)(*given)
    except (NotImplementedError, JaxRefusal):
        return None


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
    carried = {loop.body.arguments[i]: loop.node.operands[i] for i in loop.indices(Invariant)}
    outside = {each: each for each in free_values(loop.body)}
    nodes = live_nodes(loop.body.nodes, [*loop.body.arguments, *outside], [value])
    read = {each for node in nodes for each in reads(node)}
    return {inner: outer for inner, outer in {**carried, **outside}.items() if inner in read}


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
