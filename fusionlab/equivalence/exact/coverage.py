"""What draws of integers do not cover: a white list of what a program may do with integers that are made of data.

    float --convert, bitcast, trips of a loop--> number --clip, modulo, shift, compare--> a branch on magnitude

A residue has no magnitude, and every branch on one is taken. An integer is drawn (``integers``), and a branch that only
other integers take is not seen. On the list, and seen whole, are predicates and what few of them decide, exchanges of
rows of a factorisation, and indices (of a sort, of a maximum) that only move elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.constants import folded_number
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.view import FunctionView, Node, Value, direction_of, reads


class Kind(IntEnum):
    """The kinds of values that depend on arguments, each with more outcomes than those before."""

    OTHER = 0
    """No integer."""
    BIT = 1
    """A predicate, or an integer that a few of them decide."""
    PIVOT = 2
    """Exchanges of rows of a factorisation, and what follows from them alone."""
    COUNT = 3
    """Sums and products of these, as the number of predicates that hold; few of them have a certain value."""
    INDEX = 4
    """The place of an element in an array, as of a sort or an argmax: each occurs."""
    NUMBER = 5
    """Any integer of its type."""


_RING = (ops.ADD, ops.DOT_GENERAL, ops.MULTIPLY, ops.NEGATE, ops.SUBTRACT)
_COMBINATIONS = (*_RING, ops.AND, ops.MAXIMUM, ops.MINIMUM, ops.OR, ops.XOR)
_INTEGRAL = (ops.CEIL, ops.FLOOR, ops.ROUND_NEAREST_AFZ, ops.ROUND_NEAREST_EVEN, ops.SIGN)
_CHOICES = (ops.COMPARE, ops.SELECT, ops.AND, ops.OR, ops.NOT, ops.XOR)
_MOVES = (ops.CONCATENATE, ops.OPTIMIZATION_BARRIER, ops.PAD, ops.REVERSE, ops.SELECT)
_READS = (ops.DYNAMIC_SLICE, ops.GATHER)
_WRITES = (ops.DYNAMIC_UPDATE_SLICE, ops.SCATTER)
_TOP_K, _MAP = ops.OPS["chlo.top_k"], ops.OPS["stablehlo.map"]


class DataIntegers:
    """The integers and predicates among ``nodes``, in loops and branches too, that depend on ``sources``.

    ``kinds`` has every value that depends on them. ``integral`` are floats that follow from integers, predicates,
    integral parts and numbers of trips alone, ``decided`` those of them that each take one predicate. ``returns`` are
    values that are read from outside."""

    def __init__(self, nodes: Sequence[Node], sources: Iterable[Value], returns: Iterable[Value] = ()) -> None:
        self._nodes, self._returns = nodes, tuple(returns)
        self._reads: dict[Node, list[Value]] = {}
        self.integral: set[Value] = set()
        self.decided: set[Value] = set()
        self.kinds: dict[Value, Kind] = {value: _of_type(value, Kind.NUMBER) for value in sources}
        every, before = list(self.walk()), -1
        repeats = any(node.op.control_flow for node in every)  # else what a node reads is spread before
        while before != (before := sum(self.kinds.values()) + len(self.kinds) + len(self.integral)):
            for node in every:
                self._spread(node)
            if not repeats:
                break

    @staticmethod
    def of(function: FunctionView) -> DataIntegers:
        """Those that depend on the arguments of ``function``."""
        return DataIntegers(function.nodes, function.arguments, function.returns)

    def walk(self) -> Iterator[Node]:
        """The nodes, with those of loops and branches; an op with another region is one whole."""
        yield from _with_bodies(self._nodes)

    def kind(self, value: Value) -> Kind:
        """OTHER too for a value that depends on no source."""
        return self.kinds.get(value, Kind.OTHER)

    def outside(self, node: Node) -> str | None:
        """The predicate of a sentence on ``node``, if it depends on integers in a way that is not on the white list."""
        if node.op is ops.WHILE:
            ends = self.kinds.get(node.regions[0].returns[0])
            by_data = ends not in (None, Kind.PIVOT) and analyse(node).trips is None
            return "ends a loop by what it computes" if by_data else None
        if node.op in (ops.CASE, ops.IF):
            return "branches on integers" if self.kind(node.operands[0]) >= Kind.COUNT else None
        if self._computes_inside(node):
            return "computes with integers in its region"
        if node.op is ops.COMPARE and (reason := self._equality(node)) is not None:
            return reason
        read = [value for value in self._read(node) if self.kind(value) >= Kind.COUNT]
        counts = all(self.kind(value) is Kind.COUNT for value in read) and _combination(node) in _RING
        if counts or not read or node.op.control_flow or node.op.strided or node.op in _MOVES:
            return None
        if node.op in (*_READS, *_WRITES):
            return self._access(node)
        if node.op is ops.CONVERT:
            return None if self._keeps(node) else "narrows integers"
        if node.op is ops.SORT:
            return None if _keys(node).isdisjoint(read) else "sorts integers"
        if node.op is ops.COMPARE:
            return None if _is_below_zero(node) else "compares integers"
        return None if _is_parity(node) or self._normalises(node) else "computes with integers"

    def _equality(self, node: Node) -> str | None:
        """The predicate of a sentence on a comparison for equality that few draws meet."""
        if direction_of(node) not in ("EQ", "NE"):
            return None
        varying = {value for value in node.operands if value in self.kinds}
        if varying and varying <= self.integral and not varying <= self.decided:
            return "compares integral values"
        pivots = any(self.kind(value) is Kind.PIVOT for value in varying)
        return "compares exchanges of rows" if pivots and any(map(folded_number, node.operands)) else None

    def _access(self, node: Node) -> str | None:
        """The predicate of a sentence on a slice, gather or scatter at numbers, or that combines them."""
        if any(self.kind(value) is Kind.NUMBER for value in indices_of(node)):
            return "reads an array at integers" if node.op in _READS else "writes to an array at integers"
        return "computes with integers" if self._combines(node) else None

    def _computes_inside(self, node: Node) -> bool:
        """True if a region, of no loop or branch, makes integers otherwise than by one combination or by choosing."""
        if node.op.control_flow or not any(value in self.kinds for value in self._read(node)):
            return False
        for region in node.regions:
            inner = list(region.walk())
            if node.op is _MAP or len(inner) > 1:
                made = (one for one in inner if one.op not in (*_CHOICES, ops.CONSTANT))
                if any(_is_discrete(value) for one in made for value in (*one.operands, *one.results)):
                    return True
        return False

    @cached_property
    def _readers(self) -> Mapping[Value, list[Node | None]]:
        found: dict[Value, list[Node | None]] = {value: [None] for value in self._returns}
        for node in self.walk():
            for value in self._read(node):
                found.setdefault(value, []).append(node)
            for region in node.regions:
                for value in region.returns:
                    found.setdefault(value, []).append(None)
        return found

    def _read(self, node: Node) -> list[Value]:
        if not node.regions:
            return list(node.operands)
        if node not in self._reads:
            self._reads[node] = reads(node)
        return self._reads[node]

    def _spread(self, node: Node) -> None:
        if node.op is ops.WHILE:
            self._spread_loop(node)
        elif node.op in (ops.CASE, ops.IF):
            for result, *returned in zip(node.results, *(region.returns for region in node.regions), strict=True):
                chosen = self.kinds.get(node.operands[0])
                self._join(result, returned, None if chosen is None else max(chosen, Kind.BIT))
        elif varying := [value for value in self._read(node) if value in self.kinds]:
            whole = node.op in _INTEGRAL or all(value in self.integral or _is_discrete(value) for value in varying)
            for result in node.results:
                self.kinds[result] = max(self.kind(result), self._kind_of(node, result, varying))
                if whole and result.dtype in ops.FLOATS:
                    self.integral.add(result)
                    if self._is_decided(node, varying):
                        self.decided.add(result)

    def _is_decided(self, node: Node, varying: Sequence[Value]) -> bool:
        """True where each element of the result depends on one predicate alone, of the only operand that varies."""
        if len(set(varying)) != 1 or node.regions or node.op.family not in ("elementwise", "layout"):
            return False
        return varying[0] in self.decided or varying[0].dtype == "i1"

    def _spread_loop(self, node: Node) -> None:
        condition, body = node.regions
        ends = self.kinds.get(condition.returns[0])
        outcomes = {None: None, Kind.PIVOT: Kind.PIVOT}.get(ends, Kind.NUMBER)
        parts = (node.operands, condition.arguments, body.arguments, body.returns, node.results)
        for given, asked, argument, returned, result in zip(*parts, strict=True):
            for inner in (asked, argument):
                self._join(inner, [given, returned])
            self._join(result, [given, returned], outcomes if returned is not argument else None)
            if outcomes is Kind.NUMBER and returned is not argument and result.dtype in ops.FLOATS:
                self.integral.add(result)

    def _join(self, value: Value, others: Iterable[Value], least: Kind | None = None) -> None:
        found = [self.kinds[other] for other in (value, *others) if other in self.kinds]
        found += [] if least is None else [_of_type(value, least)]
        if found:
            self.kinds[value] = max(found)

    def _kind_of(self, node: Node, result: Value, varying: Sequence[Value]) -> Kind:
        """The kind of a result of ``node``, which reads ``varying``; loops and branches are apart."""
        op, every = node.op, {self.kinds[value] for value in varying}
        if not _is_discrete(result):
            return Kind.OTHER
        if op is ops.CUSTOM_CALL:
            return {"factorisation": Kind.PIVOT, "sort": Kind.INDEX}.get(node.family, Kind.NUMBER)
        if every == {Kind.PIVOT}:
            return Kind.PIVOT
        if result.dtype == "i1":
            return Kind.BIT
        if op in (ops.SORT, ops.REDUCE) and len(node.results) > 1:
            return (
                Kind.NUMBER if self._computes_inside(node) else self.kinds.get(node.operands[result.index], Kind.INDEX)
            )
        if op is _TOP_K and result.index == 1:
            return Kind.INDEX
        if op is ops.CONVERT or op.strided or op in (*_MOVES, *_READS):
            return max((self.kinds[v] for v in varying if _is_discrete(v)), default=Kind.NUMBER)
        if _is_parity(node) or (every == {Kind.BIT} and _by_one(node, varying)):
            return Kind.BIT
        if max(every) <= Kind.COUNT and _combination(node) in (_COMBINATIONS if every == {Kind.BIT} else _RING):
            return Kind.COUNT
        return max(every) if self._normalises(node) else Kind.NUMBER

    def _normalises(self, node: Node) -> bool:
        """True for ``i + n`` that is selected in place of i, as indices from the end are, and for a clamped index."""
        if node.op is ops.CLAMP:
            return self._only_indexes(node.results[0])
        if node.op is not ops.ADD:
            return False
        varying = [value for value in node.operands if value in self.kinds]
        readers = self._readers.get(node.results[0], [])
        return len(varying) == 1 and all(
            reader is not None and reader.op is ops.SELECT and varying[0] in reader.operands for reader in readers
        )

    def _only_indexes(self, value: Value) -> bool:
        """True if ``value`` is moved and read as an index, and nothing else."""
        open_, seen = [value], {value}
        while open_:
            value = open_.pop()
            for reader in self._readers.get(value, []):
                if reader is None:
                    return False
                if reader.op.strided or reader.op in (*_MOVES, ops.CONVERT):
                    new = [result for result in reader.results if result not in seen]
                    seen.update(new)
                    open_ += new
                elif value not in indices_of(reader):
                    return False
        return True

    def _keeps(self, node: Node) -> bool:
        """True for a conversion to a float, or to an integer type that has all numbers of the operand's."""
        before, after = (value.dtype for value in (node.operands[0], node.results[0]))
        if after not in ops.INTEGERS:
            return after != "i1"
        widths = [int(dtype.lstrip("ui")) for dtype in (before, after)]
        signed = [not dtype.startswith("u") for dtype in (before, after)]
        return widths[0] <= widths[1] if signed[0] == signed[1] else signed[1] and widths[0] < widths[1]

    def _combines(self, node: Node) -> bool:
        """True for a scatter that combines integers otherwise than by putting them."""
        data = [value for value in node.operands if value not in indices_of(node)]
        numbers = any(self.kind(value) is Kind.NUMBER for value in data)
        return node.op is ops.SCATTER and numbers and combiner(node.regions[0]) != "second"


def rare_comparisons(function: FunctionView) -> set[Node]:
    """The comparisons of ``function`` of which draws need not have both outcomes; without those that end a loop, and
    those of exchanges of rows, of which there are few."""
    integers = DataIntegers.of(function)
    ends = {node for one in integers.walk() if one.op is ops.WHILE for node in one.regions[0].walk()}
    compared = [node for node in integers.walk() if node.op is ops.COMPARE and node not in ends]
    compared = [node for node in compared if Kind.PIVOT not in map(integers.kind, node.operands)]
    return {node for node in compared if integers.outside(node) is not None}


def makes_integers(node: Node) -> bool:
    """True for a conversion of floats to integers, and for a view of their bits."""
    if node.op not in (ops.CONVERT, ops.BITCAST_CONVERT):
        return False
    return node.operands[0].dtype in ops.INEXACT and node.results[0].dtype in ops.INTEGERS


def indices_of(node: Node) -> Sequence[Value]:
    """The operands of a slice, gather or scatter that say where it reads or writes."""
    match node.op:
        case ops.GATHER:
            return node.operands[1:]
        case ops.DYNAMIC_SLICE:
            return node.operands[1:]
        case ops.DYNAMIC_UPDATE_SLICE:
            return node.operands[2:]
        case ops.SCATTER:
            return (node.operands[len(node.results)],)
    return ()


def _with_bodies(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if node.op.control_flow:
            for region in node.regions:
                yield from _with_bodies(region.nodes)


def _is_discrete(value: Value) -> bool:
    return value.dtype == "i1" or value.dtype in ops.INTEGERS


def _of_type(value: Value, integer: Kind) -> Kind:
    """``integer`` for an integer, at most BIT for a boolean, OTHER for a float."""
    if value.dtype in ops.INTEGERS:
        return integer
    return min(integer, Kind.BIT) if value.dtype == "i1" else Kind.OTHER


def _combination(node: Node) -> ops.OpDef:
    """The op by which ``node`` combines: its own, or that of a reduction."""
    if node.op is not ops.REDUCE:
        return node.op
    return ops.op_of(f"stablehlo.{combiner(node.regions[0])}")


def _by_one(node: Node, varying: Sequence[Value]) -> bool:
    """True for an elementwise op of one value that varies."""
    return len(varying) == 1 and node.op.family == "elementwise"


def _keys(node: Node) -> set[Value]:
    """The operands of a sort that its comparator reads."""
    [region] = node.regions
    read = {value for inner in region.walk() for value in inner.operands}
    return {node.operands[at // 2] for at, argument in enumerate(region.arguments) if argument in read}


def _is_below_zero(node: Node) -> bool:
    return direction_of(node) == "LT" and folded_number(node.operands[1]) == 0


def _is_parity(node: Node) -> bool:
    return node.op is ops.REMAINDER and folded_number(node.operands[1]) == 2
