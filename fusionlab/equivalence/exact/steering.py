"""Outcomes of comparisons under which conjunctions of many are true, found by tracking one evaluation.

    all(y > c), 72 comparisons:   under random outcomes true once in 2**72 points, under steered ones at every point

The order of the field is free: ``x > y`` may be any antisymmetric function of x - y. An evaluation tracks values that
follow from predicates alone, element by element: the difference that decides it, and the value for either outcome.
Where two of them combine (and, product, count), or one selects between something and zero, the outcome that makes it
non-zero is recorded, with a probability that differs between draws. Under these outcomes every conjunction, disjunction
and count of predicates takes both of its values.

Such a value carries three parts: ``difference`` > 0 decides an element, which is ``no`` where the difference is not
positive and ``yes`` where it is; for a difference of 0 nothing decides it, for MIXED several predicates do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.fusion import Unit
from fusionlab.equivalence.exact.machine import METHODS
from fusionlab.equivalence.exact.rules.regions import reduced_last
from fusionlab.equivalence.exact.values import (
    Array,
    Drawn,
    Environment,
    Held,
    Known,
    Step,
    aligned,
    carried,
    dtype_of,
    is_float,
    part,
)
from fusionlab.hlo import ops
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.view import Node, Value, direction_of

MIXED = np.inf
"""Instead of a difference: several predicates decide."""
_ALL, _NONE = 1 / 3, 2 / 3
"""A reduction's random number below the first: all true; below the second: all false; else as many as the number
that it is compared with, or a random share."""
_FEW = 2**16
"""The number of wishes from which on a table of all differences costs less than sorting them."""
_COUNTS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64")
_SAME = ("stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape")
ELEMENTWISE = frozenset(f"stablehlo.{name}" for name in (*METHODS, "clamp", "compare", "convert", "power", "select"))


class Tracker(Evaluator):
    """An evaluation that collects ``wishes`` for the first draws, as ``PrimeField.steered`` takes them.

    ``shares``, one per steered draw, are the probabilities with which a wish makes a value non-zero; NaN: 0 or 1 for
    each op, so that a term is evaluated that is guarded by one conjunction and not by another.
    """

    arithmetic: PrimeField

    def __init__(self, field: PrimeField, shares: Sequence[float], prepared: Prepared | None = None) -> None:
        super().__init__(field, prepared)
        self.shares = np.resize(shares, len(field.seeds))
        self._wishes: list[list[Array]] = [[] for _ in shares]
        self._random = np.random.default_rng([field.p, *field.seeds])
        self._compared: dict[Node, float] = {}
        self._noted: set[bytes] = set()
        self._goals: Array | None = None

    @property
    def wishes(self) -> list[Array]:
        return [first_wishes(recorded) for recorded in self._wishes]

    def run(self, units: Sequence[Unit], dying: Mapping[Unit, Sequence[Value]], environment: dict[Value, Held]) -> None:
        """The same, after recording the numbers with which the results of nodes are compared."""
        for node in units:
            if isinstance(node, Node) and node.name == "stablehlo.compare" and node not in self._steps:
                for value, other in (node.operands, node.operands[::-1]):
                    number, producer = number_of(other, _COUNTS), value.producer
                    while producer is not None and producer.name in _SAME:
                        producer = producer.operands[0].producer
                    if producer is not None and number is not None:
                        self._compared[producer] = number
        super().run(units, dying, environment)

    def _step(self, node: Node) -> Step:
        plain, look = super()._step(node), _LOOKS.get(node.name)
        reduces = node.name == "stablehlo.reduce" and len(node.operands) == 2
        combines = node.name in ELEMENTWISE
        compares = node.name == "stablehlo.compare" and is_float(dtype_of(node.operands[0]))
        direction = direction_of(node) if compares else ""
        ends = node.op is ops.WHILE and analyse(node).trips is None

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            if combines and "difference" in carried(operands):
                return [self._combined(plain, operands, environment)]
            if reduces and "difference" in carried(operands):
                return [self._reduced(node, plain, operands, environment)]
            if look is not None:
                look(self, node, operands)
            if ends:
                self._look_at_trips(node, operands, environment)
            found = plain(operands, environment)
            if direction in ("", "EQ", "NE") or isinstance(found[0], Known):
                return found
            x = self.arithmetic.subtract(*aligned(*(operand.array for operand in operands)))
            return [self._predicate(x, found[0].array, direction in ("GT", "GE"))]

        return step

    def _predicate(self, x: Array, result: Array, if_positive: bool) -> Held:
        """A comparison whose ``result`` is ``if_positive`` for x > 0, and the opposite for x < 0."""
        positive = (x > 0) == if_positive
        difference = np.where(np.abs(x) == self.arithmetic.infinity, 0.0, np.abs(x))
        no, yes = (np.where(difference == 0, result, side) for side in (~positive, positive))
        return Drawn(result, {"difference": difference, "no": no, "yes": yes})

    def _combined(self, plain: Step, operands: Sequence[Held], environment: Environment) -> Held:
        """The result of an elementwise op of predicates and constants, which stay known: rules read them."""
        array, no, yes = (
            plain([Drawn(part(o, name)) if o.parts else o for o in operands], environment)[0].array
            for name in ("array", "no", "yes")
        )
        differences = aligned(array, *(part(operand, "difference") for operand in operands))[1:]
        each = np.stack([np.broadcast_to(difference, array.shape) for difference in differences])
        difference = each.max(0)
        mixed = (difference == MIXED) | ((each != 0) & (each != difference)).any(0)
        if mixed.any():
            for operand in operands:
                self.wish(operand, mixed)
        difference = np.where(mixed, MIXED, np.where(no == yes, 0.0, difference))
        no, yes = np.where(mixed, array, no), np.where(mixed, array, yes)
        return Drawn(array, {"difference": difference, "no": no, "yes": yes})

    def _reduced(self, node: Node, plain: Step, operands: Sequence[Held], environment: Environment) -> Held:
        held, [found] = operands[0], plain(operands, environment)
        order, rank = reduced_last(node), found.array.ndim
        shape = tuple(1 if axis in order[rank:] else n for axis, n in enumerate(held.array.shape))
        random, chance, some = (np.asarray(self._random.random(each)) for each in (held.array.shape, shape, shape))
        # Each is all true in one of three steered draws, and none in another.
        chance = (chance[:1] + np.arange(len(chance)).reshape(-1, *(1,) * (chance.ndim - 1)) / 3) % 1
        if node in self._compared and random.size:  # as many are to be true as the number they are compared with
            ranked = np.sort(random.transpose(order).reshape(*(random.shape[axis] for axis in order[:rank]), -1))
            at = int(np.clip(self._compared[node], 0, ranked.shape[-1]))
            some = np.append(ranked, np.ones((*ranked.shape[:-1], 1)), -1)[..., at].reshape(shape)
        share = np.where(chance < _ALL, 1.0, np.where(chance < _NONE, 0.0, some))
        self.wish(held, hopes=random < share if self._goals is None else None)
        mixed = np.full(found.array.shape, MIXED)
        return Drawn(found.array, {"difference": mixed, "no": found.array, "yes": found.array})

    def wish(self, held: Held, where: Array | None = None, hopes: Array | None = None) -> None:
        """Record for the elements of ``held``, or those ``where``, the outcomes under which they are not zero."""
        if not _is_tracked(held):
            return
        where = np.ones(held.array.shape, bool) if where is None else where
        parts = aligned(where, *(held.parts[name] for name in ("difference", "no", "yes")))[1:]
        difference, no, yes = (np.broadcast_to(each, where.shape) for each in parts)
        chosen = where & (difference != 0) & (difference != MIXED) & ((no == 0) != (yes == 0))
        if not chosen.any():
            return
        noted = hashlib.sha256(difference.tobytes() + chosen.tobytes()).digest()
        if noted not in self._noted:  # a loop makes the same selection in every trip
            self._noted.add(noted)
            self.note(chosen, difference, (self._hopes(where.shape) if hopes is None else hopes) == (no == 0))

    def note(self, where: Array, difference: Array, positive: Array) -> None:
        """Wish that ``difference`` > 0 be ``positive`` at the elements ``where`` [draws or 1, ...]; the first holds."""
        for draw, recorded in enumerate(self._wishes):
            chosen, own, outcomes = (each[draw if len(each) > 1 else 0] for each in (where, difference, positive))
            if chosen.any():
                recorded.append(np.where(outcomes[chosen], own[chosen], -own[chosen]).astype(np.int32))

    def _hopes(self, shape: tuple[int, ...]) -> Array:
        """Random booleans [draws, ...], true with the probability of each draw, or all true or all false; in the
        condition of a loop the ``_goals`` of the draws."""
        if self._goals is not None:
            goals = self._goals.reshape(-1, *(1,) * (len(shape) - 1))
            return np.broadcast_to(goals, (len(goals), *shape[1:]))
        of_own = self._random.integers(0, 2, self.shares.shape)
        share = np.where(np.isnan(self.shares), of_own, self.shares).reshape(-1, *(1,) * (len(shape) - 1))
        return self._random.random((len(share), *shape[1:])) < share

    def _look_at_branches(self, node: Node, operands: Sequence[Held]) -> None:
        """Wish that a selection take the other branch where one is zero."""
        predicate, on_true, on_false = operands
        if _is_tracked(predicate) and _is_zero(on_true) != _is_zero(on_false):
            parts = dict(predicate.parts)
            if _is_zero(on_true):
                parts.update(no=~parts["no"], yes=~parts["yes"])
            self.wish(Drawn(predicate.array, parts))

    def _look_at_trips(self, node: Node, operands: Sequence[Held], environment: Environment) -> None:
        """Wish that a loop that ends by what it computes have as many trips as are drawn; its results are not kept."""
        [condition, body], carried = node.regions, list(operands)
        seeds = self.arithmetic.seeds
        trips = np.array([self.arithmetic.integers.trips(np.random.default_rng([self.arithmetic.p, s])) for s in seeds])
        for trip in range(trips.max(initial=0) + 1):
            self._goals = trip < trips
            [going] = self.region(condition, carried, environment)
            self.wish(going)
            self._goals = None
            if not _is_tracked(going):
                return
            carried = self.region(body, carried, environment)

    def _look_at_factors(self, node: Node, operands: Sequence[Held]) -> None:
        """Wish that an indicator times something, or a scattered update, be non-zero."""
        for operand in operands:
            self.wish(operand)

    def _look_at_signs(self, node: Node, operands: Sequence[Held]) -> None:
        """Wish that max(x, 0) and min(x, 0) be x, and for the sign of x in sign(x)."""
        drawn = [operand.array for operand in operands if not _is_zero(operand)]
        zeros = node.name != "stablehlo.sign"
        if len(drawn) == 1 and len(operands) == 1 + zeros and drawn[0].dtype.kind == "f":
            [x] = drawn
            hopes = self._hopes(x.shape) != (node.name == "stablehlo.minimum")
            self.note(x != 0, np.abs(x), hopes == (x > 0))

    def _look_at_extremes(self, node: Node, operands: Sequence[Held]) -> None:
        """Wish that a random element of an array, or the initial value, be the largest (smallest)."""
        name = combiner(node.regions[0]) if len(operands) == 2 else ""
        known = isinstance(operands[0], Known) or not operands[0].array.size
        if known or name not in ("maximum", "minimum") or operands[0].array.dtype.kind != "f":
            return
        field, rank = self.arithmetic, len(node.results[0].type.shape) + 1
        x = operands[0].array.transpose(reduced_last(node))
        x = x.reshape(*x.shape[:rank], -1)
        best = np.broadcast_to(aligned(x[..., 0], operands[1].array)[1], x.shape[:rank])
        winner = self._random.integers(-1, x.shape[-1], x.shape[:rank])
        for at in range(x.shape[-1]):
            now, before = winner == at, (winner >= 0) & (winner < at)
            ahead = field.subtract(x[..., at], best) if name == "maximum" else field.subtract(best, x[..., at])
            where = (now | before) & (ahead != 0) & (np.abs(best) != field.infinity)
            self.note(where, np.abs(ahead), now == (ahead > 0))
            combined = getattr(field, name)(x[..., at], best)
            best = np.where(now, x[..., at], np.where(before, best, combined))


def first_wishes(wishes: Sequence[Array]) -> Array:
    """The first of ``wishes``, in order, for each difference."""
    every = np.concatenate([np.zeros(0, np.int32), *wishes])
    differences = np.abs(every)
    if every.size < _FEW:
        return every[np.unique(differences, return_index=True)[1]]
    table = np.zeros(differences.max() + 1, every.dtype)
    table[differences[::-1]] = every[::-1]  # of equal indices the last one is assigned
    return np.asarray(table[table != 0])


def _is_tracked(held: Held) -> bool:
    return "difference" in held.parts


def _is_zero(held: Held) -> bool:
    return isinstance(held, Known) and not held.constant.any()


_LOOKS: dict[str, Callable[[Tracker, Node, Sequence[Held]], None]] = {
    "stablehlo.dot_general": Tracker._look_at_factors,
    "stablehlo.maximum": Tracker._look_at_signs,
    "stablehlo.minimum": Tracker._look_at_signs,
    "stablehlo.multiply": Tracker._look_at_factors,
    "stablehlo.reduce": Tracker._look_at_extremes,
    "stablehlo.scatter": Tracker._look_at_factors,
    "stablehlo.select": Tracker._look_at_branches,
    "stablehlo.sign": Tracker._look_at_signs,
}
