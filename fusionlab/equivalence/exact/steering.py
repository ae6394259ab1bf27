"""Outcomes of comparisons with which conjunctions of many come true, found by tracking one evaluation.

    all(y > c), 72 comparisons:   under random outcomes true once in 2**72 points, under those noted here at every point

The order of the field is free: ``x > y`` may be any antisymmetric function of x - y. An evaluation is tracked for
values that are made of predicates alone, element by element: the difference that decides it, and the value for either
outcome. Where two of them meet (and, product, count), or one decides between something and zero, the outcome that makes
it non-zero is noted, with a probability that differs between draws. Under these outcomes every conjunction, disjunction
and count of predicates is visited at both of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.codegen.raising_rules.rule import integers
from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.logarithms import MOVES
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step
from fusionlab.hlo.enumerations import direction_of
from fusionlab.hlo.flat import Node, Value

MIXED = np.inf
"""In place of a difference: several predicates decide."""
_ALL, _NONE = 1 / 3, 2 / 3
"""Of the reductions of a draw so many are to be all true, so many (the rest up to this) none; others by a share."""

ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs",
        "add",
        "and",
        "clamp",
        "compare",
        "convert",
        "divide",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "power",
        "select",
        "sign",
        "subtract",
        "xor",
    )
)


@dataclass(slots=True, eq=False)
class Tracked(Drawn):
    """A value of predicates alone. ``difference`` [draws, ...] > 0 decides an element: it is ``no`` where the
    difference is not positive and ``yes`` where it is; 0: nothing decides it, MIXED: several do."""

    difference: Array = None  # type: ignore[assignment]
    no: Array = None  # type: ignore[assignment]
    yes: Array = None  # type: ignore[assignment]


class Tracker(Evaluator):
    """An evaluation that collects ``wishes``: for each of the first draws, by difference, whether it is to be positive.

    ``shares``, one per steered draw, are the probabilities with which a wish makes a value non-zero.
    """

    arithmetic: PrimeField

    def __init__(
        self,
        field: PrimeField,
        rules: Mapping[str, Rule],
        shares: Sequence[float],
    ) -> None:
        super().__init__(field, rules)
        self.shares = np.resize(shares, len(field.seeds))
        self.wishes: list[dict[float, bool]] = [{} for _ in shares]
        self._random = np.random.default_rng([field.p, *field.seeds])

    def _step(self, node: Node) -> Step:
        plain = super()._step(node)
        make = _SPECIAL.get(node.name)
        otherwise = plain if make is None else make(self, node, plain)

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            if any(isinstance(operand, Tracked) for operand in operands):
                found = self._tracked(node, plain, operands, environment)
                if found is not None:
                    return found
            return otherwise(operands, environment)

        return step

    def _tracked(
        self, node: Node, plain: Step, operands: Sequence[Held], environment: Environment
    ) -> list[Held] | None:
        """The results of ``node`` where all that it combines is made of predicates; None where it is not."""
        pure = [isinstance(operand, Known | Tracked) for operand in operands]
        if node.name in MOVES:
            moved = _moved_operands(node)
            if not all(pure[:moved]) or not any(isinstance(operand, Tracked) for operand in operands[:moved]):
                return None
            parts = []
            for part in ("array", "difference", "no", "yes"):
                given = [*(self._part(o, v, part) for o, v in zip(operands[:moved], node.operands, strict=False))]
                parts.append(plain([*map(Drawn, given), *operands[moved:]], environment)[0].array)
            return [Tracked(parts[0], None, parts[1], parts[2], parts[3])]
        if node.name == "stablehlo.reduce" and len(operands) == 2 and all(pure):
            return [self._reduced(node, plain, operands, environment)]
        if node.name not in ELEMENTWISE or not all(pure):
            return None
        return [self._combined(node, plain, operands, environment)]

    def _part(self, held: Held, value: Value, part: str) -> Array:
        if isinstance(held, Tracked):
            return getattr(held, part)  # type: ignore[no-any-return]
        lifted = self.lifted(held, value)
        return np.zeros(lifted.shape) if part == "difference" else lifted

    def _combined(self, node: Node, plain: Step, operands: Sequence[Held], environment: Environment) -> Tracked:
        arrays = {}
        for part in ("array", "no", "yes"):  # constants stay known: rules read them
            given = [Drawn(getattr(o, part)) if isinstance(o, Tracked) else o for o in operands]
            arrays[part] = self.lifted(plain(given, environment)[0], node.results[0])
        shape = arrays["array"].shape
        difference = np.zeros(shape)
        differences = []
        for operand, value in zip(operands, node.operands, strict=True):
            own = self._part(operand, value, "difference")
            own = np.broadcast_to(own.reshape(*own.shape, *(1,) * (len(shape) - own.ndim)), shape)
            differences.append(own)
            met = (difference != 0) & (own != 0) & (difference != own)
            difference = np.where(met, MIXED, np.where(difference == 0, own, difference))
        mixed = difference == MIXED
        if mixed.any():
            for operand, own in zip(operands, differences, strict=True):
                if isinstance(operand, Tracked):
                    self.wish(operand, mixed, own)
        same = mixed | (arrays["no"] == arrays["yes"])
        return Tracked(
            arrays["array"],
            None,
            np.where(mixed, MIXED, np.where(same, 0.0, difference)),
            np.where(mixed, arrays["array"], arrays["no"]),
            np.where(mixed, arrays["array"], arrays["yes"]),
        )

    def _reduced(self, node: Node, plain: Step, operands: Sequence[Held], environment: Environment) -> Held:
        axes = tuple(axis + 1 for axis in integers(node.attributes["dimensions"]))
        operand = operands[0]
        [found] = plain(operands, environment)
        assert isinstance(found, Drawn)
        if isinstance(operand, Tracked):
            shape = tuple(1 if axis in axes else n for axis, n in enumerate(operand.array.shape))
            # Each is all true in one of three steered draws, and none in another: left to chance alone, one reduction
            # in fourteen would never be all true.
            chance = (self._random.random((1, *shape[1:])) + _of_rank(np.arange(shape[0]) / 3, len(shape))) % 1
            share = np.where(chance < _ALL, 1.0, np.where(chance < _NONE, 0.0, self._random.random(shape)))
            self.wish(operand, np.ones(operand.array.shape, bool), operand.difference, share)
        mixed = np.full(found.array.shape, MIXED)
        return Tracked(found.array, None, mixed, found.array, found.array)

    def wish(self, held: Tracked, where: Array, difference: Array, share: Array | None = None) -> None:
        """Note for the elements ``where`` of ``held`` the outcomes with which they are not zero."""
        shape = where.shape
        no, yes = (np.broadcast_to(_of_rank(part, len(shape)), shape) == 0 for part in (held.no, held.yes))
        chosen = where & (difference != 0) & (difference != MIXED) & (no != yes)
        if not chosen.any():
            return
        if share is None:
            share = self.shares.reshape(-1, *(1,) * (len(shape) - 1))
        hope = self._random.random(shape) < share
        self.note(chosen, difference, hope == no)

    def note(self, where: Array, difference: Array, positive: Array) -> None:
        """Wish that ``difference`` > 0 be ``positive`` at the elements ``where`` [draws or 1, ...]; the first holds."""
        for draw, wishes in enumerate(self.wishes):
            chosen, own, outcomes = (part[draw if len(part) > 1 else 0] for part in (where, difference, positive))
            for one, outcome in zip(own[chosen].tolist(), outcomes[chosen].tolist(), strict=True):
                wishes.setdefault(one, outcome)

    def predicate(self, x: Array, result: Array, if_positive: bool) -> Held:
        """A comparison whose ``result`` is ``if_positive`` for x > 0, and not for x < 0."""
        positive = np.broadcast_to((x > 0) == if_positive, result.shape)
        difference = np.where((x == 0) | (np.abs(x) == self.arithmetic.infinity), 0.0, np.abs(x))
        decided = np.broadcast_to(difference == 0, result.shape)
        no, yes = (np.where(decided, result, side) for side in (~positive, positive))
        return Tracked(result, None, np.broadcast_to(difference, result.shape), no, yes)


def _of_rank(array: Array, rank: int) -> Array:
    return array.reshape(*array.shape, *(1,) * (rank - array.ndim))


def _moved_operands(node: Node) -> int:
    """The number of operands that are moved; the others are indices."""
    name = node.name.removeprefix("stablehlo.")
    return {"dynamic_update_slice": 2, "dynamic_slice": 1, "gather": 1}.get(name, len(node.operands))


def _compare(tracker: Tracker, node: Node, plain: Step) -> Step:
    direction = direction_of(node)
    if direction in ("EQ", "NE") or not tracker.is_float(node.operands[0]):
        return plain

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [found] = plain(operands, environment)
        if isinstance(found, Known):
            return [found]
        x, y = (tracker.lifted(o, v) for o, v in zip(operands, node.operands, strict=True))
        return [tracker.predicate(tracker.arithmetic.subtract(x, y), found.array, direction in ("GT", "GE"))]

    return step


def _is_zero(held: Held) -> bool:
    return isinstance(held, Known) and not held.array.any()


def _select(tracker: Tracker, node: Node, plain: Step) -> Step:
    """A branch that is zero is to be the other one."""

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        predicate, on_true, on_false = operands
        if isinstance(predicate, Tracked) and _is_zero(on_true) != _is_zero(on_false):
            wanted = predicate
            if _is_zero(on_true):
                wanted = Tracked(~predicate.array, None, predicate.difference, ~predicate.no, ~predicate.yes)
            tracker.wish(wanted, np.ones(wanted.array.shape, bool), wanted.difference)
        return plain(operands, environment)

    return step


def _factor(tracker: Tracker, node: Node, plain: Step) -> Step:
    """An indicator times something is not to be zero; nor is an update that is scattered."""

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        for operand in operands:
            if isinstance(operand, Tracked):
                tracker.wish(operand, np.ones(operand.array.shape, bool), operand.difference)
        return plain(operands, environment)

    return step


def _extreme(tracker: Tracker, node: Node, plain: Step) -> Step:
    """Of max(x, 0), min(x, 0) and sign(x), x is to be what decides."""
    if not tracker.is_float(node.operands[0]):
        return plain
    least = node.name == "stablehlo.minimum"

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        others = [o for o in operands if not _is_zero(o)]
        if len(others) == 1 and isinstance(others[0], Drawn) and (len(operands) == 2 or node.name == "stablehlo.sign"):
            x = others[0].array
            share = tracker.shares.reshape(-1, *(1,) * (x.ndim - 1))
            hope = tracker._random.random((len(share), *x.shape[1:])) < share
            tracker.note(x != 0, np.abs(x), (hope != least) == (x > 0))
        return plain(operands, environment)

    return step


def _reduce_extreme(tracker: Tracker, node: Node, plain: Step) -> Step:
    """Of the largest (smallest) element of an array a random one is to be it, or the initial value."""
    name = combiner(node.regions[0]) if len(node.operands) == 2 else ""
    if name not in ("maximum", "minimum") or not tracker.is_float(node.operands[0]):
        return plain
    axes = tuple(axis + 1 for axis in integers(node.attributes["dimensions"]))
    kept = [axis for axis in range(len(node.operands[0].type.shape) + 1) if axis not in axes]
    field = tracker.arithmetic

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        if isinstance(operands[0], Drawn) and operands[0].array.size:
            x = operands[0].array.transpose(*kept, *axes).reshape(*(operands[0].array.shape[a] for a in kept), -1)
            initial = tracker.lifted(operands[1], node.operands[1])
            best = np.broadcast_to(_of_rank(initial, x.ndim - 1), x.shape[:-1])
            winner = tracker._random.integers(-1, x.shape[-1], x.shape[:-1])
            for at in range(x.shape[-1]):
                now, before = winner == at, (winner >= 0) & (winner < at)
                ahead = field.subtract(x[..., at], best) if name == "maximum" else field.subtract(best, x[..., at])
                where = (now | before) & (ahead != 0) & (np.abs(best) != field.infinity)
                tracker.note(where, np.abs(ahead), now == (ahead > 0))
                combined = field.maximum if name == "maximum" else field.minimum
                best = np.where(now, x[..., at], np.where(before, best, combined(x[..., at], best)))
        return plain(operands, environment)

    return step


_SPECIAL: dict[str, Callable[[Tracker, Node, Step], Step]] = {
    "stablehlo.compare": _compare,
    "stablehlo.dot_general": _factor,
    "stablehlo.maximum": _extreme,
    "stablehlo.minimum": _extreme,
    "stablehlo.multiply": _factor,
    "stablehlo.reduce": _reduce_extreme,
    "stablehlo.scatter": _factor,
    "stablehlo.select": _select,
    "stablehlo.sign": _extreme,
}
