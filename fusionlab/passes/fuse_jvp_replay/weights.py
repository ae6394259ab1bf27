"""Step 3 (of the five in ``__init__``), the weights with which a tail adds up second derivatives.

    y = tail(T) = tail(0) + sum_k a_k H_kk          T_k = H d_k, d_k the unit vectors of the program

The tail of a random H whose diagonal is h must be that of its diagonal alone, and linear in it. Masses, factors, some
of the coordinates, sums per electron, the diagonal kept, real and imaginary parts: all of them are these weights a. A
tail without weights may be another function of each second derivative.

``weighed`` evaluates the tail at random points; ``_of_output`` solves for the weights of one output, and ``_constants``
finds their rational numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithGuards, PrimeField, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo.view import FunctionView, Value, reads
from fusionlab.passes.fuse_jvp_replay.identify.cuts import Cut
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial
from fusionlab.passes.fuse_jvp_replay.rationals import rational
from fusionlab.passes.fuse_jvp_replay.tail import Tail, array_of
from fusionlab.passes.refusals import Ground, Refusal

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
    """``value`` is the sum of ``terms`` and, by ``offset``, of nothing, its initial value, or the tail of zeros.

    ``of_diagonal``: it is the tail of all second derivatives instead, whatever this makes of them.
    """

    value: Value
    terms: tuple[Weights, ...]
    offset: str
    of_diagonal: bool = False


def weighed(trial: ProductTrial, tail: Tail) -> list[WeightedTarget] | None:
    """The targets of ``tail``, whose cuts are those of ``trial``; None where one depends on more than a diagonal."""
    outputs = list(dict.fromkeys(cut.of for cut in tail.cuts if cut.order == 2))
    inputs = [trial.x, *tail.arguments(trial.x)]
    lowered = _lowered(trial, tail, outputs, inputs)

    def sampled(evaluator: Evaluator, arguments: list[Drawn]) -> list[_Sample]:
        arrays, n = trial.evaluated(lowered, evaluator, arguments), len(tail.targets)
        diagonals = [held.array for held in arguments[len(inputs) : len(inputs) + len(outputs)]]
        units = [arrays[(2 + at) * n : (3 + at) * n] for at in range(len(outputs))]
        return [
            _Sample(arrays[i], arrays[n + i], arrays[i - 2 * n], [of[i] for of in units], diagonals, arrays[i - n])
            for i in range(n)
        ]

    def vanishing(number: int, array: Array) -> Array:
        return _vanishing(array) if number in range(len(inputs), len(inputs) + len(outputs)) else array

    samples: list[dict[int, list[_Sample]]] = [{} for _ in tail.targets]
    for p, draws in zip(primes(len(_DRAWS)), _DRAWS, strict=True):
        share = dict(draws)
        for part, arguments in trial.batches(lowered, FieldWithGuards(p, list(share)), vanishing):
            shares = [share[seed] for seed in part.seeds]
            for [evaluator] in evaluators(part, shares, trial.prepared, 1):
                for own, sample in zip(samples, sampled(evaluator, arguments), strict=True):
                    own.setdefault(p, []).append(sample)
    targets = _targets(trial, tail, outputs, samples)
    read = {value for node in lowered.nodes for value in reads(node)}.union(lowered.returns)
    has_ties = not read.isdisjoint(lowered.arguments[: len(inputs)])
    for part, arguments in trial.batches_at_equal_inputs(lowered, inputs) if targets and has_ties else ():
        for target, sample in zip(targets, sampled(Evaluator(part, trial.prepared), arguments), strict=True):
            expected = sample.expected(part, target, outputs)
            if (~np.isnan(sample.random) & (expected != sample.random)).any():
                reason = "what is made of second derivatives is another function of them where two values are equal"
                raise Refusal(Ground.TIES, f"{reason} (coordinates or parameters of 0, say)", is_final=True)
    return targets or None


def _targets(
    trial: ProductTrial, tail: Tail, outputs: Sequence[Value], samples: Sequence[Mapping[int, Sequence[_Sample]]]
) -> list[WeightedTarget]:
    """The targets of ``tail``, whose ``samples`` are those by prime; none where one is not the sum of a diagonal."""
    found = [_target(trial, tail, at, outputs, own) for at, own in enumerate(samples)]
    targets = [target for target in found if target is not None]
    if len(targets) < len(found) or not any(target.terms or target.of_diagonal for target in targets):
        return []
    if sum(len(target.terms) + target.of_diagonal for target in targets) > 1:  # one run has one set of weights
        targets = [_of_diagonal(t.value) if any(term.of_program for term in t.terms) else t for t in targets]
    return targets


def _vanishing(diagonals: Array) -> Array:
    """Random second derivatives [draws, *F, K]; in every fourth draw half of them vanish, in the next one all, as those
    of coordinates that enter linearly."""
    array = diagonals.copy()
    array[2::4, ..., ::2] = 0
    array[3::4] = 0
    return array


def _lowered(trial: ProductTrial, tail: Tail, outputs: Sequence[Value], inputs: Sequence[Value]) -> FunctionView:
    """The program of the targets for zeros, for random second derivatives, for those of each output and coordinate
    alone, their initial values, and the targets for the random diagonal alone; of ``inputs``, random diagonals and
    slopes [*F, K], and rows [*F, K, K]."""
    slopes = list(dict.fromkeys(cut.of for cut in tail.cuts if cut.order == 1))
    count, raising = trial.coordinates.count, trial.raising
    whole = [cut for cut in tail.cuts if cut.order == 2 and cut.axes is not None]
    longer = {tuple(n for n in raising.shape(value) if n > 1) for value in (*outputs, *tail.targets)}
    is_short = tail.has_transpose and len(longer) == 1 and len(tail.targets) < count
    shapes = [(*raising.shape(output), count) for output in (*outputs, *slopes)]
    shapes += [(*raising.shape(cut.of), count, count) for cut in whole]

    def results(*arrays: Any) -> list[Any]:
        environment = dict(zip(inputs, arrays, strict=False))
        rest = iter(arrays[len(inputs) :])
        diagonal = {output: next(rest) for output in outputs}
        first = {output: next(rest) for output in slopes}
        off = {cut: next(rest) for cut in whole}
        raising.run(tail.before(list(environment)), environment)

        def ran(of: Mapping[Value, Any], beside: Mapping[Cut, Any]) -> list[Any]:
            arrays = {
                cut.value: array_of(cut, raising, of[cut.of], beside.get(cut))
                if cut.order == 2
                else array_of(cut, raising, first[cut.of])
                for cut in tail.cuts
            }
            made = tail.run(raising, environment, arrays)
            return [made[target] for target in tail.targets]

        def alone(output: Value) -> list[Any]:
            each = jax.vmap(lambda row: ran({**zero, output: jnp.broadcast_to(row, zero[output].shape)}, {}))
            rows = each(jnp.eye(count, dtype=zero[output].dtype))
            return [a - b for a, b in zip(rows, none, strict=True)]

        def transposed() -> Iterator[list[Any]]:
            """The same of each output, where all shapes are those of the outputs."""
            made, pull = jax.vjp(lambda *of: ran(dict(zip(outputs, of, strict=True)), {}), *zero.values())
            every = [pull([jnp.full_like(y, i == at) for i, y in enumerate(made)]) for at in range(len(made))]
            for of in zip(*every, strict=True):
                yield [jnp.moveaxis(rows, -1, 0).reshape(count, *y.shape) for rows, y in zip(of, made, strict=True)]

        zero = {output: jnp.zeros_like(array) for output, array in diagonal.items()}
        none = ran(zero, {})
        starts = (environment[tail.starts[t]] if t in tail.starts else jnp.zeros((), n.dtype)
                  for t, n in zip(tail.targets, none, strict=True))  # fmt: skip
        begun = [jnp.broadcast_to(b, jnp.shape(n)) for n, b in zip(none, starts, strict=True)]
        units = [array for each in (transposed() if is_short else map(alone, outputs)) for array in each]
        return [*none, *ran(diagonal, off), *units, *begun, *ran(diagonal, {})]

    return trial.view_of(results, shapes, inputs)


def _target(
    trial: ProductTrial, tail: Tail, at: int, outputs: Sequence[Value], samples: Mapping[int, Sequence[_Sample]]
) -> WeightedTarget | None:
    """The target ``at`` of ``tail``, whose ``samples`` are those by prime."""
    target = tail.targets[at]
    terms = _weights(trial, target, outputs, samples)
    if terms is None:
        every = (each for of_prime in samples.values() for each in of_prime)
        return None if any((each.random != each.diagonal).any() for each in every) else _of_diagonal(target)
    if not tail.is_affine and any(term.of_program or term.unit is not None for term in terms):
        return _of_diagonal(target)  # what multiplies a second derivative may depend on it: 0 where it is 0, say
    begins = all(not (each.none != each.begun).any() for every in samples.values() for each in every)
    return WeightedTarget(target, terms, "tail" if not (begins and terms) else "initial" * (target in tail.starts))


def _of_diagonal(target: Value) -> WeightedTarget:
    return WeightedTarget(target, (), "", of_diagonal=True)


@dataclass(frozen=True)
class _Sample:
    """Of a target [draws, *Y]: of zeros, of a random H, its initial value, of each output the differences
    [draws, K, *Y] that the second derivatives by one coordinate make, the diagonals [draws, *F, K] of the random H,
    and of its diagonal alone."""

    none: Array
    random: Array
    begun: Array
    units: Sequence[Array]
    diagonals: Sequence[Array]
    diagonal: Array

    def is_diagonal(self, field: PrimeField, axis: int | None) -> bool:
        """True if the target is linear in the diagonals alone; ``axis`` counts no walkers."""
        total = self.none
        for unit, diagonal in zip(self.units, self.diagonals, strict=True):
            total = field.add(total, _along(field, unit, diagonal, axis))
        return not (total != self.random).any()

    def expected(self, field: PrimeField, target: WeightedTarget, outputs: Sequence[Value]) -> Array:
        """The target as it is decided."""
        if target.of_diagonal:
            return self.diagonal
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
    """The weights, not negative at first, of which all ``rows`` are multiples; None if there are none, or no rows."""
    if not rows:
        return None
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


def array_of_weights(weights: Sequence[Fraction], dtype: Any) -> Any:
    """Weights as an array, by a division where they are no binary fractions."""
    numerators = np.array([weight.numerator for weight in weights], dtype)
    denominators = np.array([weight.denominator for weight in weights], dtype)
    if all(weight.denominator & (weight.denominator - 1) == 0 for weight in weights):
        return numerators / denominators
    return jnp.asarray(numerators) / jnp.asarray(denominators)
