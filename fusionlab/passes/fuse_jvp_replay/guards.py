"""Properties of a program's text that no exact evaluation at a few walkers shows: reasons not to take the Laplacian of
one value for a sum over directions.

Each function returns a complaint, or None. ``own`` are nodes that compute the sum and have no counterpart among
those of the value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fusionlab.codegen.raising.rules.contraction import least_precise
from fusionlab.equivalence.exact.coverage import DataIntegers, indices_of, makes_integers
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import (
    Factor,
    FactorKind,
    Indices,
    Marks,
    factors_along,
    factors_of,
    keeps_apart,
    values_of,
    varies,
)
from fusionlab.hlo.constants import constant_behind, fold, number_of
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, direction_of, free_values, reads, walk
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NotALaplacian, UncoveredMatch
from fusionlab.passes.refusals import Ground

_WIDTH = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}
_INDEX_ARITHMETIC = (
    ops.ADD, ops.BROADCAST_IN_DIM, ops.COMPARE, ops.CONCATENATE, ops.CONVERT, ops.RESHAPE, ops.SELECT, ops.SLICE,
    ops.TRANSPOSE,
)  # fmt: skip

FEWEST_WALKERS = 2
"""The fewest walkers that are evaluated: no fewer are kept along any axis."""
_ALIKE = (FactorKind.PASSED, FactorKind.NEW)
"""What ops may do along walkers of which a few represent all."""
_OF_MATRICES = ("factorisation", "triangular-solve", "fft")
_READS = (ops.DYNAMIC_SLICE, ops.GATHER)
_PLACED = (ops.BROADCAST_IN_DIM, ops.CONVERT, ops.RESHAPE, ops.TRANSPOSE)
_MOST_INDICES = 2**22
"""Elements of the largest array of indices that is evaluated."""


class Complaint(NamedTuple):
    """What is wrong in words, which follow the subject, and the op that is responsible, if a single one is."""

    ground: Ground
    reason: str
    node: Node | None = None


def less_precise(cone: Collection[Node], own: Collection[Node]) -> Complaint | None:
    """The value is computed less precisely than the sum: its Laplacian would be, too."""
    widths, others = _widths(cone), _widths(own)
    if widths and others and (least := min(widths)) < min(others):
        reason = f"its value is computed in {least} bits, the sum in {min(others)}"
        return Complaint(Ground.LESS_PRECISE, reason, next(node for node in cone if least in _widths([node])))
    ours, theirs = least_precise(cone), least_precise(own)
    if ours is not None and theirs is not None and ours[0].value < theirs[0].value:
        reason = f"its value contracts at precision {ours[0].name}, the sum at {theirs[0].name}"
        return Complaint(Ground.LESS_PRECISE, reason, ours[1])
    return None


def _widths(nodes: Iterable[Node]) -> list[int]:
    return [_WIDTH[v.type.dtype] for node in nodes for v in node.results if v.type.dtype in _WIDTH]


def rounded(cone: Iterable[Node], own: Iterable[Node]) -> Complaint | None:
    """The sum alone converts floats to fewer bits than its value has: a residue has as many as it needs."""
    least = min(_widths(cone), default=0)
    for node in own:
        if node.op is ops.REDUCE_PRECISION:
            return Complaint(Ground.ROUNDS, "rounds what its value does not (reduce_precision)", node)
        if node.op is ops.CONVERT and node.operands[0].dtype in ops.WIDE_FLOATS:
            before, after = (_WIDTH.get(v.type.dtype, 64) for v in (node.operands[0], node.results[0]))
            if after < min(before, least):
                reason = f"rounds what its value does not (convert to {node.results[0].type.dtype})"
                return Complaint(Ground.ROUNDS, reason, node)
    return None


class DiscreteValues:
    """Complaints of a sum that depends on integers made of data in another way than its value ``cone`` does.

    Draws of integers are few: a cell beyond 1,600 or a count of 7 may occur in none. The sum has what is on the white
    list of ``equivalence.exact.coverage``, ends loops and branches as its value does, and reads and writes arrays of
    its value's shapes at its value's indices.
    """

    def __init__(self, flat: FunctionView, cone: Sequence[Node], x: Value, arguments: Sequence[Value]) -> None:
        self._arguments = arguments
        self._numbers = numbers = ValueNumbers(flat, equal_loops=True)
        self._values = {numbers.get(value): value for node in reversed(flat.nodes) for value in node.results}
        counters = [value for region in flat.regions() for value in region.arguments]
        self._moving = reached(flat, [x, *counters])
        self._of_value = {numbers.get(value) for node in walk(cone) for value in node.results}
        of_value = DataIntegers(cone, arguments)
        self._places = {self._place(of_value, node) for node in of_value.walk() if indices_of(node)}
        self._decisions = {self._decision(node) for node in of_value.walk() if node.op.control_flow}

    def complaint(self, computing: Sequence[Node]) -> Complaint | None:
        """Of the nodes ``computing`` a sum."""
        integers = DataIntegers(computing, self._arguments)
        for node in integers.walk():
            if self._is_own(node) and (reason := self._outside(integers, node)) is not None:
                return Complaint(Ground.INTEGERS, f"{reason} as its value does not", node)
        return None

    def _is_own(self, node: Node) -> bool:
        return bool(node.results) and self._numbers.get(node.results[0]) not in self._of_value

    def _outside(self, integers: DataIntegers, node: Node) -> str | None:
        if makes_integers(node) and node.operands[0] in integers.kinds:
            return "makes integers of floats"
        if (reason := integers.outside(node)) is None:
            return None
        if node.op.control_flow:
            return None if self._decision(node) in self._decisions else reason
        if not indices_of(node) or self._place(integers, node) not in self._places:
            return reason
        return f"{reason} of a table" if node.op in _READS and self._has_table(node.operands[0]) else None

    def _decision(self, node: Node) -> int | None:
        """The number of the predicate that ends a loop or chooses a branch."""
        return self._numbers.get(node.regions[0].returns[0] if node.op is ops.WHILE else node.operands[0])

    def _place(self, integers: DataIntegers, node: Node) -> tuple[frozenset[int | None], tuple[int, ...]]:
        """The integers at which ``node`` reads or writes, by their numbers, and the extents of the array."""
        found: set[int | None] = set()
        open_ = [value for value in indices_of(node) if value in integers.kinds]
        seen = set(open_)
        while open_:
            value = open_.pop()
            if value.producer is None:  # carried by a loop, unchanged
                value = self._values.get(self._numbers.get(value), value)
            made = value.producer
            if made is not None and (made.op.strided or made.op in (*_INDEX_ARITHMETIC, ops.CLAMP)):
                new = [v for v in made.operands if v in integers.kinds and v.dtype != "i1" and v not in seen]
                seen.update(new)
                open_ += new
            else:
                found.add(self._numbers.get(value))
        return frozenset(found), node.operands[0].type.shape

    def _has_table(self, value: Value) -> bool:
        """True if constants or parameters of several elements enter ``value`` elementwise, other than unit vectors."""
        open_, seen = [value], {value}
        while open_:
            value = open_.pop()
            made = value.producer
            if value not in self._moving:
                if math.prod(value.type.shape) > 1 and number_of(value) is None and not _has_unit_vectors(value):
                    return True
            elif made is not None and self._is_own(made) and (made.family == "elementwise" or made.op.strided):
                new = [operand for operand in made.operands if operand not in seen]
                seen.update(new)
                open_ += new
        return False


class TextGuards:
    """The guards of a value that is computed by ``cone``, with the nodes of its regions: see the module.

    ``inputs`` are x and the arguments, ``axes`` those of values that count walkers.
    """

    def __init__(
        self,
        flat: FunctionView,
        x: Value,
        inputs: Sequence[Value],
        cone: Sequence[Node],
        numbers: ValueNumbers,
        axes: Marks,
        discrete: DiscreteValues,
    ) -> None:
        self._flat, self._x, self._inputs, self._cone = flat, x, inputs, cone
        self._numbers, self._axes, self._discrete = numbers, axes, discrete
        self._shared = {numbers.get(value) for node in cone for value in node.results}

    def require(self, targets: Iterable[Value], subject: str) -> None:
        """UncoveredMatch or NotALaplacian, of the ``subject``, where one of ``targets`` does not pass."""
        for target in targets:
            own, found = self._complaint(target)
            if found := found or told_apart(self._cone, self._axes):
                raise UncoveredMatch(found.ground, f"{subject} {found.reason}", found.node)
            if (found := less_precise(self._cone, own)) is not None:
                reason = f"{subject} is not taken from its value: {found.reason}"
                raise NotALaplacian(found.ground, reason, found.node)

    def passes(self, gradient: Value) -> bool:
        """True if ``gradient`` does."""
        return self._complaint(gradient)[1] is None

    def _complaint(self, value: Value) -> tuple[dict[Node, None], Complaint | None]:
        """The nodes that compute ``value`` and have no counterpart in the cone, and what is wrong with them."""
        computing = live_nodes(self._flat.nodes, self._inputs, [value])
        nodes = list(_walk_read(computing))
        own = dict.fromkeys(n for n in nodes if n.results and self._numbers.get(n.results[0]) not in self._shared)
        found = own_predicates(self._flat, self._x, own, self._cone) or rounded(self._cone, own)
        return own, found or self._discrete.complaint(computing) or told_apart(nodes, self._axes)


def _walk_read(nodes: Iterable[Node]) -> Iterator[Node]:
    """As ``walk``, without nodes of regions whose results nothing in these reads, as the value of a sum over walkers
    that is differentiated."""
    for node in nodes:
        yield node
        for region in node.regions:
            given = [*region.arguments, *free_values(region)]
            yield from _walk_read(live_nodes(region.nodes, given, region.returns))


def _has_unit_vectors(value: Value) -> bool:
    """True for constants that are 1 at one place along some axis, and 0 elsewhere."""
    array = constant_behind(value, _PLACED)
    while value.producer is not None and value.producer.op in _PLACED:
        value = value.producer.operands[0]
    array = fold(value, most_elements=_MOST_INDICES) if array is None else array
    if array is None or not np.isin(array, (0, 1)).all():
        return False
    return any((array.sum(axis) == 1).all() for axis in range(array.ndim))


def own_predicates(flat: FunctionView, x: Value, own: Iterable[Node], cone: Iterable[Node]) -> Complaint | None:
    """The sum alone compares parameters for equality, or reads integer arguments.

    Equality of functions of the positions holds on a surface at most; of parameters it may hold everywhere.
    """
    read = {value for node in cone for value in reads(node)}
    arguments = set(flat.arguments) - {x}
    parameters = reached(flat, arguments) - reached(flat, [x])
    for node in own:
        if _is_equality_of_floats(node) and not parameters.isdisjoint(node.operands):
            return Complaint(Ground.PARAMETERS_COMPARED, "compares parameters as its value does not", node)
        for value in reads(node):
            if value in arguments and value.type.dtype.startswith(("i", "ui")) and value not in read:
                reason = f"reads the {value.type} argument %{value.id}, which its value does not"
                return Complaint(Ground.INTEGER_ARGUMENT, reason, node)
    return None


def _is_equality_of_floats(node: Node) -> bool:
    return node.op is ops.COMPARE and node.operands[0].dtype in ops.WIDE_FLOATS and direction_of(node) in ("EQ", "NE")


def told_apart(nodes: Iterable[Node], axes: Marks) -> Complaint | None:
    """An op of ``nodes`` tells walkers apart: a few of them do not represent all.

    ``nodes`` are those that are evaluated, with those of their regions; random numbers of a sampling before are none.
    Sums over walkers are none over a few of them. Constants that differ between walkers may be used as indices alone,
    as the number of the walker at which a gather or scatter reads or writes.
    """
    differing: dict[Value, Node] = {}
    returned = set[Value]()
    for node in nodes:
        if node.op.control_flow:
            returned.update(value for region in node.regions for value in region.returns)
        if not all(_is_alike(factor, node) for factor in factors_along(node, axes)):
            return _unlike(node)
        indices = Indices.of(node)
        if indices is not None and _differ_by_constants(indices, axes, differing):
            return _apart(node, node)
        for value in node.operands:
            if value not in differing or (indices is not None and value is indices.value):
                continue
            origin = differing[value]
            if node.op not in _INDEX_ARITHMETIC or any(value.dtype in ops.WIDE_FLOATS for value in node.results):
                return _apart(origin, node)
            differing.update(dict.fromkeys(node.results, origin))
        for value in node.results:
            if any(varies(node, axis) for axis in axes.get(value, ())):
                differing[value] = node
    for value in returned & differing.keys():
        return _apart(differing[value], value.producer)
    return None


def by_integers(nodes: Iterable[Node], integers: Iterable[Value]) -> Node | None:
    """The first op with floats as results that ``integers`` decide, otherwise than as the places where it reads.

    A branch on an integer may be rarer than any draw: what holds in all draws need not hold in it.
    """
    found = set(integers)
    for node in _with_bodies(nodes):
        own = found.intersection(node.operands)
        indices = indices_of(node)
        if not own or (indices is not None and node.operands[0] not in own):
            continue
        if any(value.dtype in ops.INEXACT for value in node.results):
            return node
        found.update(node.results)
    return None


def _is_alike(factor: Factor, node: Node) -> bool:
    """True if ``factor`` does the same at a few walkers. A sum over all that are evaluated is one over these alone."""
    if factor.kind is FactorKind.REDUCED:
        return all(values_of(node)[at].type.shape[axis] <= FEWEST_WALKERS for at, axis in factor.places)
    return factor.kind in _ALIKE


def along_matrices(nodes: Iterable[Node], axes: Marks) -> Complaint | None:
    """A factorisation, a solve or a Fourier transform of ``nodes`` mixes walkers: it needs all of them."""
    for node in nodes:
        if node.family in _OF_MATRICES and any(f.kind is not FactorKind.PASSED for f in factors_along(node, axes)):
            return _unlike(node)
    return None


def _apart(by: Node, node: Node | None) -> Complaint:
    return Complaint(Ground.WALKERS_TOLD_APART, f"a {by.op.mnemonic} tells walkers apart", node)


def _unlike(node: Node) -> Complaint:
    if node.family in _OF_MATRICES:
        return Complaint(Ground.WALKERS_UNKNOWN, f"a {node.op.mnemonic} has them along its matrices", node)
    return _apart(node, node)


def _differ_by_constants(indices: Indices, axes: Marks, differing: Collection[Value]) -> bool:
    """True if components of ``indices`` differ between walkers by constants, those that index walkers aside."""
    counting = axes.get(indices.value, set())
    if not counting:
        return False
    of_walkers = axes.get(indices.node.operands[0], set())
    indexed = {
        axis for f in factors_of(indices.node) if f.kind is FactorKind.INDEXED for at, axis in f.places if at == 0
    }
    for to, (source, array) in zip(indices.axes, indices.components(), strict=True):
        along = [indices.without_vector(axis) for axis in counting]
        if to in of_walkers & indexed:
            continue
        if source in differing if array is None else any((array != array.take([0], axis)).any() for axis in along):
            return True
    return False


def mixed(flat: FunctionView, cone: Iterable[Node], x: Value, every: Collection[Marks]) -> Complaint | None:
    """A value, also in the body of a loop, depends on other walkers too: it cannot be computed for some of them.

    Each of ``every`` has the axes of values that count walkers along one axis."""
    dependent = reached(flat, [x])
    for node in _with_bodies(cone):
        if dependent.isdisjoint(reads(node)):
            continue
        for axes in every:
            kept = all(axes.get(value) for value in node.results if value in dependent)
            if not kept or not keeps_apart(node, axes):
                return Complaint(Ground.NOT_IN_PARTS, f"a {node.op.mnemonic} mixes walkers", node)
    return None


def _with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    """``nodes``, and those of branches and of the bodies of loops among them; whether walkers go on is asked of all."""
    for node in nodes:
        yield node
        if node.op in (ops.WHILE, ops.CASE, ops.IF):
            for region in node.regions[-1:] if node.op is ops.WHILE else node.regions:
                yield from _with_bodies(region.nodes)
