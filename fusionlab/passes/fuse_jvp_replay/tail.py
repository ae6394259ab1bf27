"""Step 4, tail: what follows the products T of a program is affine in them, and its weights are read off it.

    y = tail(T) = tail(0) + sum_k a_k H_kk          T_k = H d_k, d_k the unit vectors of the program

The tail of a random H whose diagonal is h must be that of its diagonal alone, and linear in it. Masses, factors, some
of the coordinates, sums per electron, the diagonal kept, real and imaginary parts: all of them are these weights a.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.trips import accumulated, with_given
from fusionlab.equivalence.exact.field import FieldWithGuards, PrimeField, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.values import Array
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.loops import Invariant, Stacked, Sum
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads
from fusionlab.passes.fuse_jvp_replay.combinations import _rational as rational
from fusionlab.passes.fuse_jvp_replay.products import Cut, ProductTrial, is_affine

_DRAWS = (((0, 1.0), (1, 0.0)), ((2, 0.75),), ((3, 0.5),))
"""As of products: for each of three primes, of which a fraction follows."""


Rows = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Weights:
    """How the second derivatives of ``output`` enter a target: y_c += f sum_k a_ck d^2 F / d x_k^2.

    ``real`` and ``imaginary`` are a [C][K], exact; the latter empty for a real target. ``axis`` of the target counts C,
    or is None and C is 1. ``at_run_time``: "factor", f is that of the program for coordinate ``unit``, for which a is
    1; "weights", all a are the program's, and those here are only non-zero; "" where f is 1.
    """

    output: Value
    real: Rows
    imaginary: Rows = ()
    axis: int | None = None
    at_run_time: str = ""
    unit: int = 0


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
            carried = {body.arguments[i]: loop.node.operands[i] for i in loop.indices(Invariant)}
            self.reads[node] = {v for v in captured if v in used} | {o for i, o in carried.items() if i in used}
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

    def before(self, known: Collection[Value]) -> list[Node]:
        """The nodes without directions that the targets need where ``known`` values are given."""
        after = set(self.outer)
        for node in self.nodes:
            if node in self.loops or not after.isdisjoint(self._read(node)):
                after.update(node.results)
        return [node for node in self._live(self.targets, known) if after.isdisjoint(node.results)]

    def entries(self) -> list[Value]:
        """The values without directions that the nodes with directions read."""
        before = {value for node in self.before([]) for value in node.results} | set(self.flat.arguments)
        after = [node for node in self.nodes if not before.issuperset(node.results)]
        return list(dict.fromkeys(value for node in after for value in self._read(node) if value in before))

    def arguments(self, x: Value) -> list[Value]:
        """Those of the function that the targets need beside ``x``."""
        nodes = self._live(self.targets, [x])
        read = {v for node in nodes for v in self._read(node)} | set(self.targets)
        return [a for a in self.flat.arguments if a in read and a is not x]

    @property
    def is_affine(self) -> bool:
        """True if the targets are affine in all products together, op by op."""
        directed = {cut.value for cut in self.cuts if cut.order == 2}
        for node in self.nodes:
            if node not in self.loops:
                if not _goes_on(node, directed, self.outer):
                    return False
                continue
            if not all(_goes_on(inner, directed, directed) for inner in self.inside[node]):
                return False
            loop = self.loops[node]
            for i, role in enumerate(loop.roles):
                terms = [v for _, v in role.terms] if isinstance(role, Sum) else []
                terms += [role.update] if isinstance(role, Stacked) else []
                if not directed.isdisjoint(terms) or node.operands[i] in directed:
                    directed.add(node.results[i])
        return True

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
                found.update(zip(node.results, self._accumulated(node, raising, found, given), strict=True))
            else:
                raising.run([node], found)
        return {target: found[target] for target in self.targets}

    def _accumulated(
        self, node: Node, raising: Raising, environment: Mapping[Value, Any], given: Mapping[Value, Any]
    ) -> Sequence[Any]:
        loop = self.loops[node]
        return with_given(loop, self.inside[node], raising, environment, given)


def _goes_on(node: Node, directed: set[Value], given: Collection[Value]) -> bool:
    """True if the results of ``node`` are affine in all ``directed`` operands together, to which they are added then;
    those ``given`` are what they are."""
    if directed.isdisjoint(reads(node)) or any(value in given for value in node.results):
        return True
    if node.op in (ops.CASE, ops.IF):
        if node.operands[0] in directed:
            return False
        inside = set(directed)
        if not all(_goes_on(inner, inside, ()) for region in node.regions for inner in region.nodes):
            return False
    elif node.op.control_flow or not (node.op is ops.OPTIMIZATION_BARRIER or is_affine(node, directed)):
        return False
    directed.update(node.results)
    return True


def array_of(cut: Cut, raising: Raising, of: Any, off_diagonal: Any = None) -> Any:
    """The array of ``cut`` where the diagonal (or the slopes) [*F, K] is ``of``; [T, *shape], without T of no loop."""
    shape, output = raising.shape(cut.value), raising.shape(cut.of)
    places = cut.seed.places.reshape(len(cut.seed.places), -1)  # [T, R]
    dtype = raising.dtype(cut.value.type)
    if cut.axes is None:
        rows = jnp.moveaxis(of[..., places], (-2, -1), (0, 1))
    else:
        at = np.eye(of.shape[-1])[places].reshape(*places.shape, *(1,) * (of.ndim - 1), of.shape[-1])
        rows = at.astype(dtype) * of
        if off_diagonal is not None:
            rows = rows + (1 - at).astype(dtype) * off_diagonal
    placed = cut.placed((rows * np.asarray(cut.scale, dtype)).astype(dtype), shape, output)
    return placed if cut.place.loop is not None else placed[0]


def weighed(trial: ProductTrial, tail: Tail, starts: Mapping[Value, Value]) -> list[WeightedTarget] | None:
    """The targets of ``tail``, whose cuts ``trial`` has found; None where it is not the sum of a diagonal.

    ``starts`` are the initial values of targets that loops add to.
    """
    seconds = [cut for cut in tail.cuts if cut.order == 2]
    outputs = list(dict.fromkeys(cut.of for cut in seconds))
    slopes = list(dict.fromkeys(cut.of for cut in tail.cuts if cut.order == 1))
    count, raising = trial.coordinates.count, trial.raising
    shapes = [(*raising.shape(output), count) for output in (*outputs, *outputs, *slopes)]
    inputs = [trial.x, *tail.arguments(trial.x)]

    def results(*arrays: Any) -> list[Any]:
        environment = dict(zip(inputs, arrays, strict=False))
        rest = list(arrays[len(inputs) :])
        diagonal = dict(zip(outputs, rest[: len(outputs)], strict=True))
        off = dict(zip(outputs, rest[len(outputs) : 2 * len(outputs)], strict=True))
        first = dict(zip(slopes, rest[2 * len(outputs) :], strict=True))
        raising.run(tail.before(list(environment)), environment)

        def ran(of: Mapping[Value, Any], beside: Mapping[Value, Any] | None) -> list[Any]:
            arrays = {
                cut.value: array_of(cut, raising, of[cut.of], None if beside is None else beside[cut.of])
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
            *(n - b for n, b in zip(none, begun, strict=True)),
        ]

    lowered = trial.view_of(results, shapes, inputs)
    n = len(tail.targets)
    samples: list[dict[int, list[tuple[Array, ...]]]] = [{} for _ in range(n)]
    offsets = [True] * n
    for p, draws in zip(primes(len(_DRAWS)), _DRAWS, strict=True):
        share = dict(draws)
        for part, arguments in trial.batches(lowered, FieldWithGuards(p, list(share))):
            shares = [share[seed] for seed in part.seeds]
            for [evaluator] in evaluators(part, shares, trial.prepared, 1, trial.rounds):
                found = trial.evaluated(lowered, evaluator, arguments)
                diagonals = [held.array for held in arguments[len(inputs) : len(inputs) + len(outputs)]]
                for i in range(n):
                    none, random, left = found[i], found[n + i], found[(2 + len(outputs)) * n + i]
                    units = [found[(2 + at) * n + i] for at in range(len(outputs))]
                    offsets[i] &= not left.any()
                    samples[i].setdefault(p, []).append((none, random, *units, *diagonals))
    targets = []
    for i, target in enumerate(tail.targets):
        weights = _weights(trial, target, outputs, samples[i])
        if weights is None:
            return None
        start = starts.get(target)
        offset = "tail" if not (offsets[i] and weights) else "" if start is None else "initial"
        targets.append(WeightedTarget(target, weights, offset))
    return targets


def _weights(
    trial: ProductTrial, target: Value, outputs: Sequence[Value], samples: Mapping[int, Sequence[tuple[Array, ...]]]
) -> tuple[Weights, ...] | None:
    """The weights with which all samples of a target are equal; None if there are none."""
    shape, count = trial.raising.shape(target), len(outputs)
    of = [trial.raising.shape(output) for output in outputs]
    for axis in (None, *range(len(shape))):
        rest = shape if axis is None else (*shape[:axis], *shape[axis + 1 :])
        if any([n for n in rest if n > 1] != [n for n in each if n > 1] for each in of):
            continue
        if axis is not None and shape[axis] == 1:
            continue
        if all(
            _is_diagonal(PrimeField(p, (0,)), sample, axis, count) for p, every in samples.items() for sample in every
        ):
            found = [_of_output(output, at, axis, samples) for at, output in enumerate(outputs)]
            if any(each is None for each in found):
                return None
            return tuple(each for each in found if each is not None and (any(map(any, each.real)) or each.imaginary))
    return None


def _is_diagonal(field: PrimeField, sample: tuple[Array, ...], axis: int | None, count: int) -> bool:
    none, random, *rest = sample
    units, diagonals = rest[:count], rest[count:]
    total = none
    for unit, diagonal in zip(units, diagonals, strict=True):
        by = np.moveaxis(diagonal, -1, 1)  # [draws, K, *F]
        shape = unit.shape[2:] if axis is None else (*unit.shape[2 : 2 + axis], 1, *unit.shape[3 + axis :])
        by = by.reshape(*by.shape[:2], *shape)
        total = field.add(total, field.sum(field.multiply(unit, by), (1,)))
    return not (total != random).any()


def _of_output(
    output: Value, at: int, axis: int | None, samples: Mapping[int, Sequence[tuple[Array, ...]]]
) -> Weights | None:
    """The weights of one output: constants, or constants times a number of each walker, or others of all walkers."""
    by_prime: dict[int, Array] = {}
    for p, every in samples.items():
        units = np.concatenate([sample[2 + at] for sample in every])  # [draws, K, *Y]
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
            return Weights(output, *constant, axis=axis, at_run_time="factor", unit=unit)
    if all((each == each[..., :1]).all() for each in by_prime.values()):
        first = next(iter(by_prime.values()))
        row = tuple(Fraction(int(first[:, k].any())) for k in range(first.shape[1]))
        return Weights(output, (row,), (), axis, "weights")
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
