"""What is behind a question has to come through to the sum at some point tried, or nothing is known of it.

Each of two comparisons may have gone both ways, and still no point was where both let something through:

    where(a > 1, where(b > 1, s, 0), 0)              s is zero in the sum unless both are true
    relu(a) * (1 + relu(b)) * s                      and so are products of maxima, of signs, of indicators

A *door* is a product, a quotient or a selection of what depends on a question. Seen from the sum, a door was open where
it had a value that is not zero and the sum depended on it there; of a selection both alternatives have to be, but for
zeros. One reverse pass gives that for all doors: the derivative of the sum by a factor (1 + e) at each of them. Inside
the loop e has a random weight in every trip, so that the trips of a door do not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising import RaiseError, live_nodes
from fusionlab.codegen.trips import batched_loop, raise_trips
from fusionlab.hlo.flat import Node, Value, free_values, reads
from fusionlab.hlo.replay import Replay
from fusionlab.passes.branch_questions import SIDES, Questions
from fusionlab.passes.branch_turns import Turning
from fusionlab.passes.sums_over_directions import is_float

_PRODUCTS = ("stablehlo.multiply", "stablehlo.dot_general", "stablehlo.divide")
_VANISHING = tuple(name for name in SIDES if name != "stablehlo.abs")


@dataclass(frozen=True)
class Door:
    """``node`` has to come through, in both alternatives if it selects, but for those that are zero."""

    node: Node
    alternatives: tuple[bool, bool] = (True, False)


def doors(
    nodes: Sequence[Node],
    replay: Replay | None,
    asked: Questions,
    own: Callable[[Node], bool],
    turned: Callable[[Value], bool],
) -> list[Door]:
    """The doors of ``nodes`` and of the replay's body that are the sum's ``own``, where two may be behind one another.

    What is ``turned`` around hides nothing: it was seen both ways beside everything else. Maxima and minima are turned,
    too, but are nearly always behind one another where there are any.
    """
    behind: set[Value] = set()
    found: list[Door] = []
    sources = {question.node for question in asked.found}

    def look(node: Node) -> None:
        if not node.results or not is_float(node.results[0]) or len(node.results) > 1:
            return
        if node.results[0] in asked.ties:
            return
        hidden = any(value in behind for value in reads(node))
        answer = node.results[0] in asked.answers
        selects = node.name == "stablehlo.select" and not answer and node.operands[0] in asked.moving
        asks = node in sources and (node.name in _VANISHING or (own(node) and not turned(node.results[0])))
        chooses = selects and not turned(node.operands[0])
        if hidden or chooses or asks or (answer and own(node) and not turned(node.results[0])):
            behind.update(node.results)
        if answer or not own(node):
            return
        if chooses or (selects and hidden):
            found.append(Door(node, tuple(not asked.is_zero(value) for value in node.operands[1:])))  # type: ignore[arg-type]
        elif hidden and node.name in _PRODUCTS and not any(map(asked.is_zero, node.operands)):
            found.append(Door(node))

    for node in nodes:
        if replay is None or node is not replay.loop.node:
            look(node)
            continue
        for argument, operand in zip(node.regions[1].arguments, node.operands, strict=True):
            if operand in behind and argument in asked.given:
                behind.add(argument)
        for inner in replay.loop.body.nodes:
            look(inner)
        behind.update(value for value in node.results if is_float(value))
    return _read_by_floats(found, nodes, replay, asked)


def _read_by_floats(
    found: Sequence[Door], nodes: Sequence[Node], replay: Replay | None, asked: Questions
) -> list[Door]:
    """Those of ``found`` that something reads beside questions: others are seen by their answers."""
    body = [] if replay is None else replay.loop.body.nodes
    read = {v for node in (*nodes, *body) if not asked.answers.issuperset(node.results) for v in reads(node)}
    if replay is not None:
        read.update(replay.loop.body.returns)
    return [door for door in found if door.node.results[0] in read]


@dataclass(frozen=True)
class _Nudged(Turning):
    """Every door times (1 + e), or its alternatives plus e; ``nudges`` are the e of a door, two of a selection.

    ``weight`` holds what e is multiplied by in the trip that is raised.
    """

    nudges: dict[Node, tuple[Any, ...]] = field(default_factory=dict)
    weight: list[Any] = field(default_factory=list)

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """As Turning's, nudged."""
        results = super().node(node, environment)
        if node not in self.nudges:
            return results
        nudges = tuple(math.prod(self.weight) * nudge for nudge in self.nudges[node])
        if len(nudges) == 1:
            return [results[0] * (1 + nudges[0])]
        predicate = environment[node.operands[0]]
        return [results[0] + jnp.where(predicate, *nudges)]


def open_doors(
    found: Sequence[Door],
    turning: Turning,
    nodes: Sequence[Node],
    inputs: Sequence[Value],
    target: Value,
    replay: Replay | None,
) -> Callable[..., list[tuple[Any, ...]]]:
    """``(turn, *arrays) -> of each door, the derivatives by its one e, or by those of its two alternatives``."""
    live = live_nodes(nodes, inputs, [target])
    raising = _Nudged(**{name: getattr(turning, name) for name in turning.__dataclass_fields__})

    def nothing(door: Door) -> tuple[Any, ...]:
        e = jnp.zeros(raising.shape(door.node.results[0]), np.float64)
        return (e, e) if door.node.name == "stablehlo.select" else (e,)

    def evaluate(turn: Any, *arrays: Any) -> list[tuple[Any, ...]]:
        raising.turn[:] = [turn]

        def total(nudges: Sequence[tuple[Any, ...]]) -> Any:
            raising.nudges.clear()
            raising.nudges.update((door.node, e) for door, e in zip(found, nudges, strict=True))
            environment = dict(zip(inputs, arrays, strict=True))
            for node in live:
                if replay is not None and node is replay.loop.node:
                    results = _loop(raising, replay, environment)
                    environment.update(zip(node.results, results, strict=True))
                else:
                    raising.run([node], environment)
            return environment[target]

        try:
            sums, back = jax.vjp(total, [nothing(door) for door in found])
        except ValueError as error:
            raise no_adjoint(error) from error
        (slopes,) = back(jnp.ones_like(sums))
        return list(slopes)

    return evaluate


def no_adjoint(error: ValueError) -> Exception:
    """What JAX says of a loop that it cannot transpose, as NotImplementedError; any other error as it is."""
    said = str(error).partition("\n")[0]
    return NotImplementedError(f"there is no adjoint: {said}") if "Reverse-mode" in said else error


def _loop(raising: _Nudged, replay: Replay, environment: Mapping[Value, Any]) -> Sequence[Any]:
    """The results of the loop, all trips at once."""
    loop = replay.loop
    assert replay.trips is not None
    captured = list(dict.fromkeys(value for region in loop.node.regions for value in free_values(region)))
    trips = raise_trips(loop, captured, raising)
    weights = jnp.asarray(np.random.default_rng(0).standard_normal(replay.trips))

    def outputs(trip: Any, *arrays: Any) -> tuple[Any, ...]:
        raising.weight[:] = [weights[trip]]
        try:
            return trips.outputs(trip, *arrays)
        finally:
            raising.weight.clear()

    run = batched_loop(replace(trips, outputs=outputs), replay.trips)
    try:
        return run(*(jnp.asarray(environment[v]) for v in loop.node.operands), *(environment[v] for v in captured))
    except NotImplementedError as error:
        raise RaiseError(f"{loop.node.name} has no adjoint: {str(error).splitlines()[0]}", loop.node) from error


def closed(found: Sequence[Door], draws: Iterable[Sequence[Sequence[Any]]]) -> Door | None:
    """The first door of which something came through in none of ``draws``, the results of ``open_doors``, taken one
    after another as long as there is one."""
    shut = [(at, side) for at, door in enumerate(found) for side, asked in enumerate(door.alternatives) if asked]
    for slopes in draws:
        shut = [(at, side) for at, side in shut if not _came(slopes[at][side])]
        if not shut:
            return None
    return found[shut[0][0]] if shut else None


def _came(slopes: Any) -> bool:
    slopes = np.asarray(slopes)
    return bool(np.any(np.isfinite(slopes) & (slopes != 0)))
