"""Step 4, tail: what follows the products T of a program is affine in them, and its weights are read off it.

    y = tail(T) = tail(0) + sum_k a_k H_kk          T_k = H d_k, d_k the unit vectors of the program

The tail of a random H whose diagonal is h must be that of its diagonal alone, and linear in it. Masses, factors, some
of the coordinates, sums per electron, the diagonal kept, real and imaginary parts: all of them are these weights a.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.trips import accumulated, with_given
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithGuards, PrimeField, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.loops import Stacked, Sum, accumulated_by
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads
from fusionlab.passes.fuse_jvp_replay.degrees import degrees, degrees_of
from fusionlab.passes.fuse_jvp_replay.no_laplacian import UncoveredMatch
from fusionlab.passes.fuse_jvp_replay.products import Cut, ProductTrial
from fusionlab.passes.fuse_jvp_replay.rationals import rational
from fusionlab.passes.refusals import Ground

_DRAWS = tuple(
    tuple((8 * at + i, share) for i, share in enumerate((1.0, 0.0, 0.75, 0.5, 1.0, 0.25, 0.9, 0.1))) for at in range(3)
)
"""For each of three primes, of which a fraction follows, the draws and how they are steered: a predicate of an argument
alone has one value in each."""


Row = tuple[Fraction, ...]
Rows = tuple[Row, ...]


@dataclass(frozen=True)
class Weights:
    """How the second derivatives of ``output`` enter a target: y_c += f sum_k a_ck d^2 F / d x_k^2.

    ``real`` and ``imaginary`` are a [C][K], exact; the latter empty for a real target. ``axis`` of the target counts C,
    or is None and C is 1. f is what the program has for coordinate ``unit``, of which a is 1, or 1 if there is none.
    ``of_program``: a are what the program has for each coordinate, the same for all walkers, as masses that are
    arguments; ``real`` has ones instead.
    """

    output: Value
    real: Rows
    imaginary: Rows = ()
    axis: int | None = None
    unit: int | None = None
    of_program: bool = False


@dataclass(frozen=True)
class WeightedTarget:
    """``value`` is the sum of ``terms`` and, by ``offset``, of nothing, its initial value, or the tail of zeros."""

    value: Value
    terms: tuple[Weights, ...]
    offset: str


class Tail:
    """What computes ``targets`` of ``flat`` from the ``cuts``, which are given, and from values without directions.

    RaiseError if a loop with cuts cannot be taken apart.
    """

    def __init__(self, flat: FunctionView, cuts: Sequence[Cut], targets: Sequence[Value]) -> None:
        self.flat, self.targets = flat, tuple(targets)
        self.loops = {cut.place.loop.node: cut.place.loop for cut in cuts if cut.place.loop is not None}
        given = {cut.value for cut in cuts}
        self.outer = {cut.value for cut in cuts if cut.place.loop is None}
        self.inside: dict[Node, list[Node]] = {}
        self.reads: dict[Node, set[Value]] = {}
        for node, loop in self.loops.items():
            body, terms = loop.body, accumulated(loop)
            captured = free_values(body)
            nodes = live_nodes(body.nodes, [*body.arguments, *captured, *given], terms)
            self.inside[node] = nodes
            used = {v for n in nodes for v in reads(n)} | set(terms)
            carried = {outer for inner, outer in loop.unchanged.items() if inner in used}
            self.reads[node] = {v for v in captured if v in used} | carried
            self.reads[node] |= {loop.node.operands[i] for i in loop.indices(Sum, Stacked)}
        self.nodes = self._live(self.targets)
        used = {v for node in self.nodes for v in self._read(node)} | set(self.targets)
        used |= {v for node in self.nodes if node in self.loops for n in self.inside[node] for v in reads(n)}
        used |= {v for node in self.nodes if node in self.loops for v in accumulated(self.loops[node])}
        self.cuts = [cut for cut in cuts if cut.value in used]

    def _read(self, node: Node) -> Iterable[Value]:
        return self.reads[node] if node in self.loops else reads(node)

    def _live(self, wanted: Iterable[Value], known: Collection[Value] = ()) -> list[Node]:
        needed, found = set(wanted) - self.outer - set(known), list[Node]()
        for node in reversed(self.flat.nodes):
            if not needed.isdisjoint(node.results):
                found.append(node)
                needed.difference_update(node.results)
                needed.update(v for v in self._read(node) if v not in self.outer and v not in known)
        return found[::-1]

    def every_node(self, known: Collection[Value]) -> list[Node]:
        """The nodes that the targets need where ``known`` values are given; of loops with cuts, those of a trip."""
        nodes = list[Node]()
        for node in self._live(self.targets, known):
            nodes += self.inside[node] if node in self.loops else [node]
        return nodes

    def before(self, known: Collection[Value]) -> list[Node]:
        """The nodes without directions that the targets need where ``known`` values are given."""
        after = set(self.outer)
        for node in self.nodes:
            if node in self.loops or not after.isdisjoint(self._read(node)):
                after.update(node.results)
        return [node for node in self._live(self.targets, known) if after.isdisjoint(node.results)]

    def arguments(self, x: Value) -> list[Value]:
        """Those of the function that the targets need beside ``x``."""
        nodes = self._live(self.targets, [x])
        read = {v for node in nodes for v in self._read(node)} | set(self.targets)
        return [a for a in self.flat.arguments if a in read and a is not x]

    @property
    def is_affine(self) -> bool:
        """True if the targets are affine in all products together, op by op."""
        found = dict.fromkeys((cut.value for cut in self.cuts if cut.order == 2), 1)
        for node in self.nodes:
            if node not in self.loops:
                if self.outer.isdisjoint(node.results):
                    found.update(degrees_of(node, found))
                continue
            loop = self.loops[node]
            found.update({inner: found[outer] for inner, outer in loop.unchanged.items() if outer in found})
            found.update(degrees(self.inside[node], found))
            for i, role in enumerate(loop.roles):
                of = [found[value] for value in (*accumulated_by(role), node.operands[i]) if value in found]
                if of:
                    found[node.results[i]] = max(of)
        return all(degree == 1 for degree in found.values())

    def run(
        self,
        raising: Raising,
        environment: Mapping[Value, Any],
        given: Mapping[Value, Any],
        known: Collection[Value] | None = None,
    ) -> dict[Value, Any]:
        """The targets, from the arrays [trips, *shape] of the cuts in loops, [*shape] of the others.

        ``known`` are the values that ``environment`` has, or computes when they are read; by default its keys.
        """
        found: Any = ChainMap({v: array for v, array in given.items() if v in self.outer}, environment)  # type: ignore[arg-type]
        for node in self._live(self.targets, environment if known is None else known):
            if node in self.loops:
                made = with_given(self.loops[node], self.inside[node], raising, found, given)
                found.update(zip(node.results, made, strict=True))
            else:
                raising.run([node], found)
        return {target: found[target] for target in self.targets}


def array_of(cut: Cut, raising: Raising, of: Any, off_diagonal: Any = None) -> Any:
    """The array of ``cut`` where the diagonal (or the slopes) [*F, K] is ``of``; [T, *shape], without T of no loop."""
    shape = raising.shape(cut.value)
    places = cut.seed.places.reshape(len(cut.seed.places), -1)  # [T, R]
    dtype = raising.dtype(cut.value.type)
    if cut.axes is None:
        rows = jnp.moveaxis(of[..., places], (-2, -1), (0, 1))
    else:
        at = np.eye(of.shape[-1])[places].reshape(*places.shape, *(1,) * (of.ndim - 1), of.shape[-1])
        rows = at.astype(dtype) * of
        if off_diagonal is not None:
            others = jnp.moveaxis(off_diagonal[..., places, :], (-3, -2), (0, 1))
            rows = rows + (1 - at).astype(dtype) * others
    placed = cut.placed((rows * np.asarray(cut.scale, dtype)).astype(dtype), shape)
    return placed if cut.place.loop is not None else placed[0]


def weighed(trial: ProductTrial, tail: Tail, starts: Mapping[Value, Value]) -> list[WeightedTarget] | None:
    """The targets of ``tail``, whose cuts ``trial`` has found; None where it is not the sum of a diagonal.

    ``starts`` are the initial values of targets that loops add to.
    """
    seconds = [cut for cut in tail.cuts if cut.order == 2]
    outputs = list(dict.fromkeys(cut.of for cut in seconds))
    slopes = list(dict.fromkeys(cut.of for cut in tail.cuts if cut.order == 1))
    count, raising = trial.coordinates.count, trial.raising
    whole = [cut for cut in seconds if cut.axes is not None]
    shapes = [(*raising.shape(output), count) for output in (*outputs, *slopes)]
    shapes += [(*raising.shape(cut.of), count, count) for cut in whole]
    inputs = [trial.x, *tail.arguments(trial.x)]

    def results(*arrays: Any) -> list[Any]:
        environment = dict(zip(inputs, arrays, strict=False))
        rest = list(arrays[len(inputs) :])
        diagonal = dict(zip(outputs, rest[: len(outputs)], strict=True))
        first = dict(zip(slopes, rest[len(outputs) : len(outputs) + len(slopes)], strict=True))
        off = dict(zip(whole, rest[len(outputs) + len(slopes) :], strict=True))
        raising.run(tail.before(list(environment)), environment)

        def ran(of: Mapping[Value, Any], beside: Mapping[Cut, Any] | None) -> list[Any]:
            arrays = {
                cut.value: array_of(cut, raising, of[cut.of], None if beside is None else beside.get(cut))
                if cut.order == 2
                else array_of(cut, raising, first[cut.of])
                for cut in tail.cuts
            }
            made = tail.run(raising, environment, arrays)
            return [made[target] for target in tail.targets]

        zero = {output: jnp.zeros_like(array) for output, array in diagonal.items()}
        none = ran(zero, None)
        units = []
        for output in outputs:
            each = jax.vmap(
                lambda row, output=output: ran({**zero, output: jnp.broadcast_to(row, zero[output].shape)}, None)
            )
            units += [[a - b for a, b in zip(each(jnp.eye(count, dtype=zero[output].dtype)), none, strict=True)]]
        begun = [
            environment[starts[t]] if t in starts else jnp.zeros((), none[i].dtype) for i, t in enumerate(tail.targets)
        ]
        random = ran(diagonal, off)
        return [
            *none,
            *random,
            *(array for each in units for array in each),
            *(jnp.broadcast_to(b, jnp.shape(n)) for n, b in zip(none, begun, strict=True)),
        ]

    lowered = trial.view_of(results, shapes, inputs)

    def sampled(arrays: Sequence[Array], arguments: Sequence[Drawn]) -> list[_Sample]:
        n = len(tail.targets)
        diagonals = [held.array for held in arguments[len(inputs) : len(inputs) + len(outputs)]]
        units = [arrays[(2 + at) * n : (3 + at) * n] for at in range(len(outputs))]
        return [_Sample(arrays[i], arrays[n + i], arrays[i - n], [of[i] for of in units], diagonals) for i in range(n)]

    samples: list[dict[int, list[_Sample]]] = [{} for _ in tail.targets]
    for p, draws in zip(primes(len(_DRAWS)), _DRAWS, strict=True):
        share = dict(draws)
        for part, arguments in trial.batches(lowered, FieldWithGuards(p, list(share))):
            shares = [share[seed] for seed in part.seeds]
            for [evaluator] in evaluators(part, shares, trial.prepared, 1):
                for own, sample in zip(
                    samples, sampled(trial.evaluated(lowered, evaluator, arguments), arguments), strict=True
                ):
                    own.setdefault(p, []).append(sample)
    targets = []
    for target, own in zip(tail.targets, samples, strict=True):
        weights = _weights(trial, target, outputs, own)
        if weights is None:
            return None
        begins = all(not (each.none != each.begun).any() for every in own.values() for each in every)
        offset = "tail" if not (begins and weights) else "" if target not in starts else "initial"
        targets.append(WeightedTarget(target, weights, offset))
    walkers = math.prod(trial.raising.shape(trial.x)[: trial.walkers])
    for part, arguments in trial.batches_at_equal_inputs(lowered, inputs, walkers):
        found = trial.evaluated(lowered, Evaluator(part, trial.prepared), arguments)
        for decided, sample in zip(targets, sampled(found, arguments), strict=True):
            expected = sample.expected(part, decided, outputs)
            if (~np.isnan(sample.random) & (expected != sample.random)).any():
                reason = "what is made of second derivatives is another function of them where two values are equal"
                raise UncoveredMatch(Ground.TIES, f"{reason} (coordinates or parameters of 0, say)")
    return targets


@dataclass(frozen=True)
class _Sample:
    """Of a target [draws, *Y]: of zeros, of a random H, its initial value, of each output the differences
    [draws, K, *Y] that the second derivatives by one coordinate make, and the diagonals [draws, *F, K] of the random
    H."""

    none: Array
    random: Array
    begun: Array
    units: Sequence[Array]
    diagonals: Sequence[Array]

    def is_diagonal(self, field: PrimeField, axis: int | None) -> bool:
        """True if the target is linear in the diagonals alone; ``axis`` counts no walkers."""
        total = self.none
        for unit, diagonal in zip(self.units, self.diagonals, strict=True):
            total = field.add(total, _along(field, unit, diagonal, axis))
        return not (total != self.random).any()

    def expected(self, field: PrimeField, target: WeightedTarget, outputs: Sequence[Value]) -> Array:
        """The target as it is decided."""
        total = self.none if target.offset == "tail" else self.begun
        for term in target.terms:
            at = outputs.index(term.output)
            unit = _numbers(field, term, self.units[at].ndim)
            if term.unit is not None:
                unit = field.multiply(unit, self.units[at][:, term.unit : term.unit + 1])
            if term.of_program:
                first = self.units[at].reshape(*self.units[at].shape[:2], -1)[..., 0]
                unit = first.reshape(*first.shape, *(1,) * (unit.ndim - 2))
            unit = np.broadcast_to(unit, self.units[at].shape)
            total = field.add(total, _along(field, unit, self.diagonals[at], term.axis))
        return total


def _numbers(field: PrimeField, term: Weights, rank: int) -> Array:
    """The residues of the weights of ``term`` as [1, K, ...] of ``rank`` axes, of which one may count channels."""
    parts = []
    for rows in (term.real, term.imaginary or tuple((Fraction(0),) * len(row) for row in term.real)):
        numbers = [[each.numerator * pow(each.denominator, -1, field.p) % field.p for each in row] for row in rows]
        found = np.array(numbers, np.float64).T  # [K, C]
        parts.append(np.where(found > field.half, found - field.p, found))
    array = parts[0] + 1j * parts[1] if term.imaginary else parts[0]
    shape = [1] * rank
    shape[1] = array.shape[0]
    if term.axis is not None:
        shape[2 + term.axis] = array.shape[1]
    return array.reshape(shape)


def _along(field: PrimeField, unit: Array, diagonal: Array, axis: int | None) -> Array:
    """sum_k of ``unit`` [draws, K, *Y] times the second derivatives [draws, *F, K]."""
    by = np.moveaxis(diagonal, -1, 1)  # [draws, K, *F]
    shape = unit.shape[2:] if axis is None else (*unit.shape[2 : 2 + axis], 1, *unit.shape[3 + axis :])
    return field.sum(field.multiply(unit, by.reshape(*by.shape[:2], *shape)), (1,))


def _weights(
    trial: ProductTrial, target: Value, outputs: Sequence[Value], samples: Mapping[int, Sequence[_Sample]]
) -> tuple[Weights, ...] | None:
    """The weights with which all samples of a target are equal; None if there are none."""
    shape = trial.raising.shape(target)
    of = [trial.raising.shape(output) for output in outputs]
    for axis in (None, *range(len(shape))):
        rest = shape if axis is None else (*shape[:axis], *shape[axis + 1 :])
        if any([n for n in rest if n > 1] != [n for n in each if n > 1] for each in of):
            continue
        if axis is not None and shape[axis] == 1:
            continue
        fields = {p: PrimeField(p, (0,)) for p in samples}
        if all(each.is_diagonal(fields[p], axis) for p, every in samples.items() for each in every):
            found = [_of_output(output, at, axis, samples) for at, output in enumerate(outputs)]
            if any(each is None for each in found):
                return None
            return tuple(each for each in found if each is not None and any(map(any, (*each.real, *each.imaginary))))
    return None


def _of_output(output: Value, at: int, axis: int | None, samples: Mapping[int, Sequence[_Sample]]) -> Weights | None:
    """The weights of one output: constants, or constants times a number of each walker; None for others."""
    by_prime: dict[int, Array] = {}
    for p, every in samples.items():
        units = np.concatenate([sample.units[at] for sample in every])  # [draws, K, *Y]
        if axis is not None:
            units = np.moveaxis(units, 2 + axis, 2)
        channels = units.shape[2] if axis is not None else 1
        by_prime[p] = units.reshape(len(units), units.shape[1], channels, -1)  # [draws, K, C, walkers]
    constant = _constants(by_prime)
    if constant is not None:
        return Weights(output, *constant, axis=axis)
    if axis is not None or any(np.iscomplexobj(each) for each in by_prime.values()):
        return None
    # One factor of each walker: weights relative to those of one coordinate.
    relative, unit = {}, None
    for p, each in by_prime.items():
        field = PrimeField(p, (0,))
        nonzero = [k for k in range(each.shape[1]) if each[:, k].all()]
        unit = (nonzero[0] if nonzero else None) if unit is None else unit
        if unit is None or not each[:, unit].all():
            break
        relative[p] = field.multiply(each, field.inverse(each[:, unit : unit + 1]))
    else:
        constant = _constants(relative)
        if constant is not None and unit is not None:
            return Weights(output, *constant, axis=axis, unit=unit)
    # A weight of 0 in some draw may be times what is undefined.
    if all((each == each[..., :1]).all() and each.all() for each in by_prime.values()):
        return Weights(output, ((Fraction(1),) * next(iter(by_prime.values())).shape[1],), of_program=True)
    return None


def _constants(by_prime: Mapping[int, Array]) -> tuple[Rows, Rows] | None:
    """(real, imaginary) [C][K], the latter without rows for real arrays; None if draws or walkers differ."""
    if any((each != each[:1, :, :, :1]).any() for each in by_prime.values()):
        return None
    is_complex = any(np.iscomplexobj(each) for each in by_prime.values())
    first = next(iter(by_prime.values()))
    parts = []
    for part in (np.real, np.imag) if is_complex else (np.real,):
        rows = []
        for c in range(first.shape[2]):
            row = [
                rational({p: int(part(each[0, k, c, 0])) % p for p, each in by_prime.items()})
                for k in range(first.shape[1])
            ]
            if any(weight is None for weight in row):
                return None
            rows.append(tuple(weight for weight in row if weight is not None))
        parts.append(tuple(rows))
    return (parts[0], parts[1] if is_complex else ())


def rows_of(term: Weights) -> Iterator[Row]:
    """The weights in ``term`` that are not all zero."""
    yield from (row for row in (*term.real, *term.imaginary) if any(row))


def common_weights(rows: Sequence[Row]) -> Row | None:
    """The weights, not negative at first, of which all ``rows`` are multiples; None if there are none."""
    first = rows[0]
    sign = 1 if next(number for number in first if number) > 0 else -1
    if len(set(filter(None, first))) == 1:
        common: Row = tuple(Fraction(bool(number)) for number in first)
    else:
        common = tuple(sign * number for number in first)
    for row in rows:
        at = next(k for k, number in enumerate(common) if number)
        if any(number != row[at] / common[at] * other for number, other in zip(row, common, strict=True)):
            return None
    return common
