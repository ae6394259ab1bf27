"""Properties of a program's text that no exact evaluation at a few walkers shows: reasons not to take the Laplacian of
one value for a sum over directions.

Each function returns a refusal, whose reason follows the subject, or None. ``own`` are nodes that compute the sum and
have no counterpart among those of the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from fusionlab.codegen.raising.rules.contraction import least_precise
from fusionlab.equivalence.exact.coverage import indices_of
from fusionlab.equivalence.exact.discrete import INDEX_ARITHMETIC, DiscreteValues
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
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, direction_of, free_values, reads, walk
from fusionlab.passes.refusals import Ground, Refusal

_WIDTH = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}
FEWEST_WALKERS = 2
"""The fewest walkers that are evaluated: no fewer are kept along any axis."""
_ALIKE = (FactorKind.PASSED, FactorKind.NEW)
"""What ops may do along walkers of which a few represent all."""
_OF_MATRICES = ("factorisation", "triangular-solve", "fft")


def less_precise(cone: Collection[Node], own: Collection[Node]) -> Refusal | None:
    """The value is computed less precisely than the sum: its Laplacian would be, too."""
    widths, others = _widths(cone), _widths(own)
    if widths and others and (least := min(widths)) < min(others):
        reason = f"its value is computed in {least} bits, the sum in {min(others)}"
        return Refusal(Ground.LESS_PRECISE, reason, next(node for node in cone if least in _widths([node])))
    ours, theirs = least_precise(cone), least_precise(own)
    if ours is not None and theirs is not None and ours[0].value < theirs[0].value:
        reason = f"its value contracts at precision {ours[0].name}, the sum at {theirs[0].name}"
        return Refusal(Ground.LESS_PRECISE, reason, ours[1])
    return None


def _widths(nodes: Iterable[Node]) -> list[int]:
    return [_WIDTH[v.type.dtype] for node in nodes for v in node.results if v.type.dtype in _WIDTH]


def rounded(cone: Iterable[Node], own: Iterable[Node]) -> Refusal | None:
    """The sum alone converts floats to fewer bits than its value has: a residue has as many as it needs."""
    least = min(_widths(cone), default=0)
    for node in own:
        if node.op is ops.REDUCE_PRECISION:
            return Refusal(Ground.ROUNDS, "rounds what its value does not (reduce_precision)", node)
        if node.op is ops.CONVERT and node.operands[0].dtype in ops.WIDE_FLOATS:
            before, after = (_WIDTH.get(v.type.dtype, 64) for v in (node.operands[0], node.results[0]))
            if after < min(before, least):
                reason = f"rounds what its value does not (convert to {node.results[0].type.dtype})"
                return Refusal(Ground.ROUNDS, reason, node)
    return None


class TextGuards:
    """The guards of a value of ``x`` that is computed by ``cone``: see the module.

    ``axes`` are those of values that count walkers.
    """

    def __init__(self, flat: FunctionView, x: Value, cone: Sequence[Node], numbers: ValueNumbers, axes: Marks) -> None:
        self._flat, self._x, self._cone, self._numbers, self._axes = flat, x, cone, numbers, axes

    @cached_property
    def _inputs(self) -> list[Value]:
        return [self._x, *(a for a in self._flat.arguments if a is not self._x)]

    @cached_property
    def _discrete(self) -> DiscreteValues:
        return DiscreteValues(self._flat, self._cone, self._x, self._inputs)

    @cached_property
    def _whole(self) -> list[Node]:
        """The nodes of the cone, with those of their regions."""
        return list(walk(self._cone))

    @cached_property
    def _shared(self) -> set[int | None]:
        """The numbers of values that the cone has."""
        return {self._numbers.get(value) for node in self._whole for value in node.results}

    def require(self, targets: Iterable[Value], subject: str) -> None:
        """Refusal, of the ``subject``, where one of ``targets`` does not pass."""
        for target in targets:
            own, found = self._complaint(target)
            if found := found or told_apart(self._whole, self._axes):
                raise found.about(f"{subject} ", is_final=True)
            if (found := less_precise(self._whole, own)) is not None:
                raise found.about(f"{subject} is not taken from its value: ")

    def passes(self, gradient: Value) -> bool:
        """True if ``gradient`` does."""
        return self._complaint(gradient)[1] is None

    def _complaint(self, value: Value) -> tuple[dict[Node, None], Refusal | None]:
        """The nodes that compute ``value`` and have no counterpart in the cone, and what is wrong with them."""
        computing = live_nodes(self._flat.nodes, self._inputs, [value])
        nodes = list(_walk_read(computing))
        own = dict.fromkeys(n for n in nodes if n.results and self._numbers.get(n.results[0]) not in self._shared)
        found = own_predicates(self._flat, self._x, own, self._whole) or rounded(self._whole, own)
        if found is None and (outside := self._discrete.outside(computing)) is not None:
            found = Refusal(Ground.INTEGERS, *outside)
        return own, found or told_apart(nodes, self._axes)


def _walk_read(nodes: Iterable[Node]) -> Iterator[Node]:
    """As ``walk``, without nodes of regions whose results nothing in these reads, as the value of a sum over walkers
    that is differentiated."""
    for node in nodes:
        yield node
        for region in node.regions:
            given = [*region.arguments, *free_values(region)]
            yield from _walk_read(live_nodes(region.nodes, given, region.returns))


def own_predicates(flat: FunctionView, x: Value, own: Iterable[Node], cone: Iterable[Node]) -> Refusal | None:
    """The sum alone compares parameters for equality, or reads integer arguments.

    Equality of functions of the positions holds on a surface at most; of parameters it may hold everywhere.
    """
    read = {value for node in cone for value in reads(node)}
    arguments = set(flat.arguments) - {x}
    parameters = reached(flat, arguments) - reached(flat, [x])
    for node in own:
        if _is_equality_of_floats(node) and not parameters.isdisjoint(node.operands):
            return Refusal(Ground.PARAMETERS_COMPARED, "compares parameters as its value does not", node)
        for value in reads(node):
            if value in arguments and value.type.dtype.startswith(("i", "ui")) and value not in read:
                reason = f"reads the {value.type} argument %{value.id}, which its value does not"
                return Refusal(Ground.INTEGER_ARGUMENT, reason, node)
    return None


def _is_equality_of_floats(node: Node) -> bool:
    return node.op is ops.COMPARE and node.operands[0].dtype in ops.WIDE_FLOATS and direction_of(node) in ("EQ", "NE")


def told_apart(nodes: Iterable[Node], axes: Marks) -> Refusal | None:
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
        if (origin := _differs(node, axes, differing)) is not None:
            return _apart(origin, node)
    for value in returned & differing.keys():
        return _apart(differing[value], value.producer)
    return None


def _differs(node: Node, axes: Marks, differing: dict[Value, Node]) -> Node | None:
    """The op by which ``node`` depends on the batch position: it makes constants that differ along the batch, and
    ``node`` computes something else than indices of them. To ``differing``, such constants, those of ``node`` are
    added.
    """
    indices = Indices.of(node)
    if indices is not None and _differ_by_constants(indices, axes, differing):
        return node
    for value in node.operands:
        if value not in differing or (indices is not None and value is indices.value):
            continue
        if node.op not in INDEX_ARITHMETIC or any(value.dtype in ops.WIDE_FLOATS for value in node.results):
            return differing[value]
        differing.update(dict.fromkeys(node.results, differing[value]))
    differing.update({value: node for value in node.results if any(varies(node, axis) for axis in axes.get(value, ()))})
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


def along_matrices(nodes: Iterable[Node], axes: Marks) -> Refusal | None:
    """A factorisation, a solve or a Fourier transform of ``nodes`` mixes walkers: it needs all of them."""
    for node in nodes:
        if node.family in _OF_MATRICES and any(f.kind is not FactorKind.PASSED for f in factors_along(node, axes)):
            return _unlike(node)
    return None


def _apart(by: Node, node: Node | None) -> Refusal:
    return Refusal(Ground.WALKERS_TOLD_APART, f"a {by.op.mnemonic} tells walkers apart", node)


def _unlike(node: Node) -> Refusal:
    if node.family in _OF_MATRICES:
        return Refusal(Ground.WALKERS_UNKNOWN, f"a {node.op.mnemonic} has them along its matrices", node)
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


def mixed(flat: FunctionView, cone: Iterable[Node], x: Value, every: Collection[Marks]) -> Refusal | None:
    """A value, also in the body of a loop, depends on other walkers too: it cannot be computed for some of them.

    Each of ``every`` has the axes of values that count walkers along one axis."""
    dependent = reached(flat, [x])
    for node in _with_bodies(cone):
        if dependent.isdisjoint(reads(node)):
            continue
        for axes in every:
            kept = all(axes.get(value) for value in node.results if value in dependent)
            if not kept or not keeps_apart(node, axes):
                return Refusal(Ground.NOT_IN_PARTS, f"a {node.op.mnemonic} mixes walkers", node)
    return None


def _with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    """``nodes``, and those of branches and of the bodies of loops among them; whether walkers go on is asked of all."""
    for node in nodes:
        yield node
        if node.op in (ops.WHILE, ops.CASE, ops.IF):
            for region in node.regions[-1:] if node.op is ops.WHILE else node.regions:
                yield from _with_bodies(region.nodes)
