"""Where directions become dense: the ops behind which every value has derivatives by all electrons, and their cost.

A run of the engine has the jet of every value (``State.jets``). An op *loses sparsity* where an operand has rows of few
electrons and its result one row per coordinate. The cost of that is counted by rows: of each value behind the op, the
rows beyond those of the operand, each with the FLOPs of one row and the bytes of one that is written once and read once
by each op. An op behind several losses is counted at the first. Nothing here is a figure of XLA's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, unique
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fusionlab.bytesize import size_words
from fusionlab.codegen.laplacian.rules import slogdet
from fusionlab.hlo import ops
from fusionlab.hlo.cost import Cost, array_bytes, node_cost
from fusionlab.hlo.view import Node, Value
from fusionlab.units import counted, flop_words, time_words

if TYPE_CHECKING:
    from fusionlab.codegen.laplacian.state import State

Time = Callable[[Cost], float | None]
"""The microseconds that a model gives to a cost; None where it has none."""
NOTABLE = 0.05
"""The share of all rows' FLOPs or bytes from which on a loss is worth a line."""
_REPEATS = (ops.BROADCAST_IN_DIM, ops.RESHAPE, ops.TRANSPOSE)
_ROW_FLOPS = 3
"""Of an element of a row that passes an elementwise op: times the slope, and its square added to the Laplacian."""


@unique
class Mixing(Enum):
    """Every way to lose sparsity: what the op does, and what the author could write instead."""

    CONTRACTION = (
        "contracts an axis along which electrons lie",
        "apply the weights per electron, x.reshape(electrons, -1) @ w, and mix electrons by a sum afterwards",
    )
    REDUCTION = (
        "reduces an axis along which electrons lie",
        "apply layers and activations per electron before the reduction, and keep what follows it narrow",
    )
    JOINED = (
        "combines values of few electrons with one of all",
        "do the work per electron before, and join the value of all electrons as late as possible",
    )
    MANY = (
        "combines values of so many electrons that blocks save nothing",
        "combine two electrons at a time, and sum over the rest before the next product",
    )
    INDEX = (
        "reads elements at indices that are data",
        "take indices that are known when the program is traced: constants, slices, jnp.triu_indices",
    )
    LOOP = (
        "is a loop, which carries all directions",
        "unroll it: a Python loop, or jax.lax.scan(..., unroll=True)",
    )
    DETERMINANT = (
        "is a determinant of all electrons",
        "nothing: it needs all of them; for fewer rows, take a block of the matrix per spin",
    )
    LIBRARY = (
        "is a call of a library, which takes all directions",
        "factorise a smaller matrix, a block per spin, and apply layers per electron before it",
    )
    WHOLE = (
        "is differentiated as a whole, along all directions",
        "write it with slices, concatenations, products and sums, whose electrons are followed",
    )

    @property
    def does(self) -> str:
        """The verb phrase of the op."""
        return self.value[0]

    @property
    def instead(self) -> str:
        """The advice."""
        return self.value[1]


@dataclass(frozen=True)
class LostAt:
    """An op, ``count`` times on one line, that turns ``before`` directions into ``after``; ``cost`` is that of the rows
    beyond ``before`` at the op and behind it, of which there are ``behind`` ops. ``source`` is ``file:line`` or ""."""

    op: str
    source: str
    scope: str
    mixing: Mixing
    before: int
    after: int
    cost: Cost
    behind: int
    count: int = 1

    @property
    def place(self) -> str:
        """The source line, or the scope where there is none."""
        return self.source or self.scope

    def words(self, time: Time) -> str:
        """The op, its cost by rows, and what the author could write instead, in one line."""
        us = time(self.cost)
        figures = [
            flop_words(self.cost.flops),
            size_words(self.cost.bytes),
            *([time_words(us)] if us is not None else []),
        ]
        more = " or more" if self.cost.unmodelled else ""
        return (
            f"{self.op} at {self.place}: {self.before} directions become {self.after}, it {self.mixing.does}; "
            f"by rows {', '.join(figures)}{more} in {counted(self.behind, 'op', 'ops')} from there on; "
            f"instead: {self.mixing.instead}"
        )

    def to_json(self) -> dict[str, Any]:
        """As data; ``Sparsity.from_json`` reads it."""
        return {
            "op": self.op,
            "source": self.source,
            "scope": self.scope,
            "mixing": self.mixing.name.lower(),
            "does": self.mixing.does,
            "instead": self.mixing.instead,
            "directions_before": self.before,
            "directions_after": self.after,
            "ops_behind": self.behind,
            "count": self.count,
            **_json_of(self.cost),
        }


@dataclass(frozen=True)
class Sparsity:
    """The directions of a forward Laplacian: there are ``directions``, and the coordinates themselves carry ``first``.

    ``lost`` are the ops behind which all are carried, in program order; ``whole`` is the cost of all rows of all
    values.
    """

    directions: int
    first: int
    lost: tuple[LostAt, ...]
    whole: Cost

    def share(self, lost: LostAt) -> float:
        """The greater of the shares of FLOPs and of bytes of all rows that ``lost`` accounts for."""
        pairs = ((lost.cost.flops, self.whole.flops), (lost.cost.bytes, self.whole.bytes))
        return max(part / whole if whole else 0.0 for part, whole in pairs)

    @cached_property
    def notable(self) -> tuple[LostAt, ...]:
        """The losses that are worth a line, the most expensive first."""
        found = [each for each in self.lost if self.share(each) >= NOTABLE]
        return tuple(sorted(found, key=self.share, reverse=True))

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.first == self.directions:
            return f"all {self.directions} directions are carried from the coordinates on"
        if not self.notable:
            return f"nothing lost: values carry the directions of their electrons, not all {self.directions}"
        most = self.notable[0]
        others = f"; {counted(len(self.notable) - 1, 'op', 'ops')} more" if len(self.notable) > 1 else ""
        return (
            f"lost at {most.op} ({most.place}): {most.before} directions become {most.after}, "
            f"{self.share(most):.0%} of the work of directions (by rows){others}"
        )

    def lines(self, time: Time = lambda cost: None) -> list[str]:
        """The verdict, and a line for each notable loss with its cost by rows."""
        return [self.line, *(each.words(time) for each in self.notable)]

    def without_lines(self) -> Sparsity:
        """The same without source lines, which have moved since."""
        return replace(self, lost=tuple(replace(each, source="") for each in self.lost))

    def to_json(self, time: Time | None = None) -> dict[str, Any]:
        """As data; with ``time``, the ``model_us`` of each loss."""
        lost: list[dict[str, Any]] = [{**each.to_json(), "share": self.share(each)} for each in self.lost]
        if time is not None:
            lost = [{**one, "model_us": time(each.cost)} for one, each in zip(lost, self.lost, strict=True)]
        return {
            "directions": self.directions,
            "directions_first": self.first,
            "line": self.line,
            "lost": lost,
            **_json_of(self.whole),
        }

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Sparsity:
        """The inverse of ``to_json``."""
        lost = tuple(
            LostAt(
                each["op"], each["source"], each["scope"], Mixing[each["mixing"].upper()], each["directions_before"],
                each["directions_after"], _cost_of(each), each["ops_behind"], each["count"],
            )
            for each in record["lost"]
        )  # fmt: skip
        return Sparsity(record["directions"], record["directions_first"], lost, _cost_of(record))


def _json_of(cost: Cost) -> dict[str, Any]:
    return {
        "flops": cost.flops,
        "tf32_flops": cost.tf32_flops,
        "bytes": cost.bytes,
        "unmodelled": dict(cost.unmodelled),
    }


def _cost_of(record: Mapping[str, Any]) -> Cost:
    return Cost(record["flops"], 0, record["bytes"], record["unmodelled"], record["tf32_flops"])


def sparsity_of(state: State, outputs: Sequence[Value]) -> Sparsity:
    """The directions of a run that has pushed ``outputs`` forward."""
    sources = _sources_of_live(state, outputs)
    by_loss: dict[Value, list[Value]] = {}
    first: dict[Value, Value] = {}  # of each dense value behind a loss, that loss
    whole = Cost()
    for value in state.jets:
        if value not in sources:
            continue
        of = sources[value]
        whole += _row_cost(state, value, of).times(_rows(state, value))
        if not state.jets[value].dense:
            continue
        if any(not state.jets[each].dense for each in of):
            first[value] = value
        elif behind := [first[each] for each in of if each in first]:
            first[value] = min(behind, key=list(by_loss).index)
        if value in first:
            by_loss.setdefault(first[value], []).append(value)
    lost = tuple(_lost_at(state, value, sources, behind) for value, behind in by_loss.items())
    return Sparsity(state.coordinates.count, _rows(state, state.x), tuple(_joined(lost)), whole)


def _sources_of_live(state: State, outputs: Sequence[Value]) -> dict[Value, list[Value]]:
    """Of each value whose jet ``outputs`` need, the values whose jets it was made of."""
    found: dict[Value, list[Value]] = {}
    pending = [value for value in outputs if value in state.jets]
    while pending:
        value = pending.pop()
        if value not in found:
            found[value] = list(dict.fromkeys(_sources(state, value)))
            pending += found[value]
    return found


def _sources(state: State, value: Value) -> Iterator[Value]:
    """The values whose jets made that of ``value``; instead of one whose jet no rule has read (a concatenation that is
    contracted part by part), those that it was made of."""
    pending, seen = [value], {state.x}
    while pending and value is not state.x:
        current = pending.pop()
        if current in state.chains:
            made_of: Sequence[Value] = [state.chains[current][0]]
        else:
            made_of = state.varying(current.producer) if current.producer is not None else ()
        for each in made_of:
            if each in state.jets and (each in state.asked or each is state.x):
                yield each
            elif each not in seen:
                seen.add(each)
                pending.append(each)


def _rows(state: State, value: Value) -> int:
    return int(state.jets[value].jacobian.shape[0])


def _row_cost(state: State, value: Value, sources: Sequence[Value]) -> Cost:
    """The cost of one row of ``value``: its FLOPs, and the bytes of it and of those that it is made of."""
    node = value.producer
    if node is None or value is state.x:
        return Cost()
    moved = array_bytes(value) + sum(array_bytes(_before_repeats(state, each)) for each in sources)
    if state.op(node) in slogdet.RULES:
        [matrix] = state.arguments(node)
        return Cost(2 * math.prod(matrix.type.shape) * matrix.type.shape[-1], 0, moved)
    if value in state.chains or node in state.composites or node.op.family == "elementwise":
        return Cost(_ROW_FLOPS * math.prod(value.type.shape), 0, moved)
    once, share = node_cost(node), 1.0
    if node.op is ops.DOT_GENERAL:
        share = _share_of_product(state, node, sources)
    flops, tf32 = (round(share * count) for count in (once.flops, once.tf32_flops))
    return replace(once, flops=flops, tf32_flops=tf32, bytes=moved, transcendentals=0)


def _share_of_product(state: State, node: Node, sources: Sequence[Value]) -> float:
    """The FLOPs of a row of a contraction over those of the value: three products of two jets (u_k . v, u . v_k and
    u_k . v_k); of a concatenation that is contracted part by part, the parts before they are repeated."""
    varying = state.varying(node)
    if len(varying) == 2:
        return 3.0
    [operand] = varying
    if operand in sources:
        return 1.0
    parts = sum(math.prod(_before_repeats(state, each).type.shape) for each in sources)
    return min(1.0, parts / max(1, math.prod(operand.type.shape)))


def _before_repeats(state: State, value: Value) -> Value:
    """What was moved to ``value``, and perhaps repeated: the smaller array, which a fused reader reads."""
    while (node := value.producer) is not None and node.op in _REPEATS and state.depends_on_x(node.operands[0]):
        value = node.operands[0]
    return value


def _lost_at(state: State, value: Value, sources: Mapping[Value, list[Value]], behind: Sequence[Value]) -> LostAt:
    node = value.producer
    assert node is not None
    before = max(_rows(state, each) for each in sources[value] if not state.jets[each].dense)
    after = _rows(state, value)
    cost = Cost()
    for each in behind:
        cost += _row_cost(state, each, sources[each]).times(after - before)
    mixing = _mixing(state, node, [state.jets[each].dense for each in sources[value]])
    source = f"{node.source[0].rpartition('/')[2]}:{node.source[1]}" if node.source else ""
    op = node.call_target or state.op(node).removeprefix("stablehlo.")
    return LostAt(op, source, node.scope, mixing, before, after, cost, len(behind))


_BY_OP = {
    ops.WHILE: Mixing.LOOP,
    ops.REDUCE: Mixing.REDUCTION,
    ops.GATHER: Mixing.INDEX,
    ops.DYNAMIC_SLICE: Mixing.INDEX,
    ops.CUSTOM_CALL: Mixing.LIBRARY,
}


def _mixing(state: State, node: Node, dense: Sequence[bool]) -> Mixing:
    if state.op(node) in slogdet.RULES or node.call_target in ops.LU_TARGETS:
        return Mixing.DETERMINANT
    if node.op in _BY_OP:
        return _BY_OP[node.op]
    if node.op is ops.DOT_GENERAL and not any(dense):
        return Mixing.CONTRACTION
    if node.op in (ops.DOT_GENERAL, ops.CONCATENATE) or node.op.family == "elementwise":
        return Mixing.JOINED if any(dense) else Mixing.MANY
    return Mixing.WHOLE


def _joined(lost: Sequence[LostAt]) -> list[LostAt]:
    """Losses of one op, line and number of directions as one."""
    found: dict[tuple[Any, ...], LostAt] = {}
    for each in lost:
        key = each.op, each.place, each.mixing, each.before, each.after
        if (other := found.get(key)) is not None:
            added = {name: getattr(other, name) + getattr(each, name) for name in ("cost", "behind", "count")}
            each = replace(other, **added)
        found[key] = each
    return list(found.values())
