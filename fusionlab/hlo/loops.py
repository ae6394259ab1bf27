"""Counted loops: the trip count of a ``stablehlo.while``, and the role of each value that it carries.

A carried value is *invariant* (returned unchanged), a *counter* (incremented by a constant), a *sum* (terms
independent of the other carried values are added to it), *stacked* (each trip writes its own slot) or *recurrent*
(anything else: a true dependence from one trip to the next).

Loops of one scope (two sums in one function) have one name stack, and a pass reports by name stack;
``with_numbered_loops`` tells them apart. Names decide nothing: a program with numbered loops is rewritten like the
original.

A *loop-invariant computation* of the body depends on no value that changes between trips. That is decided here alone:
the inventory of replays reports these nodes, and ``licm`` moves them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo import ops
from fusionlab.hlo.constants import fold
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.ops import INEXACT, INTEGERS, NUMPY
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import (
    Node,
    Region,
    Value,
    callee_of,
    child_location,
    free_values,
    inner_operations,
    location_name,
    reads,
    walk,
)

_MOST_TRIPS = 10_000


@dataclass(frozen=True)
class Invariant:
    """Carried unchanged."""


@dataclass(frozen=True)
class Counter:
    """``start + step * trip`` in the arithmetic of ``dtype`` (a NumPy integer type), which wraps around."""

    start: int
    step: int
    dtype: str = "int32"

    def at(self, trips: int | np.ndarray) -> np.ndarray:
        """Its value in each of ``trips``, of ``dtype`` and the shape of ``trips``."""
        numbers = np.atleast_1d(np.asarray(trips, np.int64))
        values = wrapped(self.start, self.dtype) + wrapped(self.step, self.dtype) * numbers.astype(self.dtype)
        return np.asarray(values.reshape(np.shape(trips)))


@dataclass(frozen=True)
class Sum:
    """Each trip adds ``terms`` (with their signs) to it; no term depends on a sum, stack or recurrent value."""

    terms: tuple[tuple[int, Value], ...]


@dataclass(frozen=True)
class Stacked:
    """Each trip k writes ``update`` (of extent 1 on ``axis``, or ``without`` it) at ``slots[k]``; all are different."""

    update: Value
    axis: int
    slots: tuple[int, ...]
    without: bool = False

    @property
    def term_shape(self) -> tuple[int, ...]:
        """The shape of ``update`` without ``axis``."""
        shape = self.update.type.shape
        return shape if self.without else shape[: self.axis] + shape[self.axis + 1 :]


@dataclass(frozen=True)
class Recurrent:
    """A dependence from one trip to the next, described by ``reason``; ``node`` is the op responsible, if known."""

    reason: str
    node: Node | None = None


Role = Invariant | Counter | Sum | Stacked | Recurrent


@dataclass(frozen=True)
class Loop:
    """A ``stablehlo.while`` and its facts. ``roles[i]`` belongs to carried value i.

    ``trips`` is None when the count is not known at compile time, for the reason ``trips_reason``.
    """

    node: Node
    trips: int | None
    trips_reason: str
    roles: tuple[Role, ...]

    @property
    def body(self) -> Region:
        """The region that each trip runs."""
        return self.node.regions[1]

    @property
    def unchanged(self) -> dict[Value, Value]:
        """What the body calls the values that every trip carries unchanged, and these."""
        return {self.body.arguments[i]: self.node.operands[i] for i in self.indices(Invariant)}

    def recurrence(self, i: int) -> tuple[str, Node]:
        """Why carried value i links one trip to the next, and by which op: else that which makes its next value."""
        role = self.roles[i]
        assert isinstance(role, Recurrent)
        return role.reason, role.node or self.body.returns[i].producer or self.node

    def indices(self, *kinds: type) -> list[int]:
        """Positions of the carried values whose role is one of ``kinds``."""
        return [i for i, role in enumerate(self.roles) if isinstance(role, kinds)]


def accumulated_by(role: Role) -> list[Value]:
    """What every trip adds to a sum, or writes into a stack."""
    if isinstance(role, Sum):
        return [value for _, value in role.terms]
    return [role.update] if isinstance(role, Stacked) else []


def find_loops(region: Region) -> list[Loop]:
    """Every ``stablehlo.while`` below ``region``, outer ones first, with its facts."""
    return [analyse(node) for node in region.walk() if node.op is ops.WHILE]


def analyse(node: Node) -> Loop:
    """The facts of one ``stablehlo.while``."""
    body = node.regions[1]
    invariants = {i for i, (given, back) in enumerate(zip(body.arguments, body.returns, strict=True)) if given is back}
    constants = {i: array for i in invariants if (array := fold(node.operands[i])) is not None}
    in_body = {body.arguments[i]: array for i, array in constants.items()}
    found = ((i, _counter(node, i, in_body)) for i in range(len(body.arguments)) if i not in invariants)
    counters = {i: counter for i, counter in found if counter is not None}
    trips, reason = _trips(node, counters, constants)
    carried = {a for i, a in enumerate(body.arguments) if i not in counters and i not in invariants}
    dependent = reached(body, carried)
    roles: list[Role] = []
    for i in range(len(body.arguments)):
        if i in invariants:
            roles.append(Invariant())
        elif i in counters:
            roles.append(counters[i])
        else:
            roles.append(_role(node, i, dependent, _Counting(counters, in_body, trips)))
    return Loop(node, trips, reason, tuple(roles))


@dataclass(frozen=True)
class _Counting:
    """The integers of the body that are known: its counters, and arguments with a constant value."""

    counters: dict[int, Counter]
    constants: dict[Value, np.ndarray]
    trips: int | None


def wrapped(number: int, dtype: str) -> np.ndarray:
    """``number`` modulo the range of the integer type ``dtype``, as an array of one element."""
    bits = np.dtype(dtype).itemsize * 8
    return np.array([number % 2**bits], np.uint64).astype(dtype)


def _counter(node: Node, index: int, constants: dict[Value, np.ndarray]) -> Counter | None:
    body = node.regions[1]
    argument, back = body.arguments[index], body.returns[index]
    if (
        argument.dtype not in INTEGERS
        or argument.type.shape
        or back.producer is None
        or back.producer.op not in (ops.ADD, ops.SUBTRACT)
    ):
        return None
    left, right = back.producer.operands
    down = back.producer.op is ops.SUBTRACT
    step = fold(right if left is argument else left, constants)
    start = fold(node.operands[index])
    if argument not in ((left,) if down else (left, right)) or step is None or start is None:
        return None
    return Counter(int(start), -int(step) if down else int(step), NUMPY[argument.type.dtype].name)


def _trips(node: Node, counters: dict[int, Counter], constants: dict[int, np.ndarray]) -> tuple[int | None, str]:
    """Run the condition on the counters' values until it fails; exact for any condition on counters and constants."""
    condition = node.regions[0]
    fixed = {condition.arguments[i]: array for i, array in constants.items()}
    if not counters:
        return None, "no carried value is a counter with a constant start and step"
    for trip in range(_MOST_TRIPS):
        going = fold(
            condition.returns[0], {**fixed, **{condition.arguments[i]: c.at(trip) for i, c in counters.items()}}
        )
        if going is None:
            return None, "the condition reads more than counters and constants"
        if not going:
            return trip, ""
        if not any(counter.step for counter in counters.values()):
            return None, "the counters never change"
    return None, f"more than {_MOST_TRIPS} trips"


def _role(node: Node, index: int, dependent: set[Value], counting: _Counting) -> Role:
    body = node.regions[1]
    argument, back = body.arguments[index], body.returns[index]
    if back not in dependent:
        return Recurrent("its value is replaced in every trip (only the last trip's survives)")
    if not argument.is_array:
        return Recurrent("it is not a tensor")
    if argument.type.dtype in INEXACT:
        terms = _terms(argument, back, dependent)
        if terms is not None:
            return _sum_role(body, index, argument, terms)
    stacked = _stacked(node, index, dependent, counting)
    if stacked is not None:
        return stacked
    return Recurrent("its next value depends on carried values in another way than adding to it")


def _terms(argument: Value, back: Value, dependent: set[Value]) -> list[tuple[int, Value]] | None:
    """Peel additions off ``back`` until ``argument`` is left; None if that fails."""
    terms: list[tuple[int, Value]] = []
    while back is not argument:
        producer = back.producer
        if producer is not None and producer.op is ops.CONVERT and producer.operands[0].type == back.type:
            back = producer.operands[0]
            continue
        if producer is None or producer.op not in (ops.ADD, ops.SUBTRACT):
            return None
        left, right = producer.operands
        if right not in dependent:
            terms.append((1 if producer.op is ops.ADD else -1, right))
            back = left
        elif left not in dependent and producer.op is ops.ADD:
            terms.append((1, left))
            back = right
        else:
            return None
    return terms[::-1]


def _sum_role(body: Region, index: int, argument: Value, terms: list[tuple[int, Value]]) -> Role:
    uses = _uses(body, argument)
    if uses > 1:
        after = reached(body, [argument])
        users = [node for node in body.walk() if argument in node.operands]
        others = [node for node in users if node.op not in (ops.ADD, ops.SUBTRACT)]
        effects = [n for n in body.walk() if not n.regions and has_effect(n) and not after.isdisjoint(n.operands)]
        responsible = next(iter(effects or others or users), None)
        return Recurrent("the accumulator is also used elsewhere in the body", responsible)
    return Sum(tuple(terms)) if terms else Recurrent("nothing is added to it")


def _uses(body: Region, value: Value) -> int:
    by_ops = sum(node.operands.count(value) for node in body.walk())
    return by_ops + sum(region.returns.count(value) for region in body.regions())


def _stacked(node: Node, index: int, dependent: set[Value], counting: _Counting) -> Stacked | None:
    body = node.regions[1]
    argument, back = body.arguments[index], body.returns[index]
    producer = back.producer
    if producer is None or counting.trips is None or _uses(body, argument) > 1:
        return None
    if producer.op is ops.DYNAMIC_UPDATE_SLICE:
        target, update, *starts = producer.operands
        differing = [a for a, (n, m) in enumerate(zip(argument.type.shape, update.type.shape, strict=True)) if n != m]
        axes = tuple(differing or [a for a, n in enumerate(argument.type.shape) if n == 1][:1])
        if len(axes) != 1 or update.type.shape[axes[0]] != 1:
            return None
    elif producer.op is ops.SCATTER and len(producer.operands) == 3:
        target, start, update = producer.operands
        axes, starts = _scattered_axes(producer), [start]
        if len(axes) != 1:
            return None
    else:
        return None
    if target is not argument or update in dependent:
        return None
    slots, without = [], producer.op is ops.SCATTER
    for trip in range(counting.trips):
        known = {**counting.constants, **{body.arguments[i]: c.at(trip) for i, c in counting.counters.items()}}
        at = [fold(start, known) for start in starts]
        if any(position is None for position in at):
            return None
        positions = [int(np.ravel(position)[0]) for position in at if position is not None]
        if not without and any(position for a, position in enumerate(positions) if a != axes[0]):
            return None
        slots.append(positions[0] if without else int(np.clip(positions[axes[0]], 0, argument.type.shape[axes[0]] - 1)))
    inside = all(0 <= slot < argument.type.shape[axes[0]] for slot in slots)  # a scatter drops what lies outside
    return Stacked(update, axes[0], tuple(slots), without) if inside and len(set(slots)) == len(slots) else None


def _scattered_axes(node: Node) -> tuple[int, ...]:
    """The one axis at a position of which a scatter writes a whole slice, the updates; none of another scatter."""
    numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
    target, start, update = (value.type.shape for value in node.operands)
    axes = tuple(numbers.inserted_window_dims)
    whole = len(axes) == 1 and update == target[: axes[0]] + target[axes[0] + 1 :]
    region = node.regions[0]
    replaces = region.returns == (region.arguments[1],)
    plain = tuple(numbers.scattered_dims_to_operand_dims) == axes and not numbers.input_batching_dims
    return axes if whole and replaces and plain and math.prod(start) == 1 else ()


def invariant_nodes(loop: Loop) -> list[Node]:
    """Nodes of the body that compute something from invariant values only, and the views that these need.

    A loop or branch in the body is one node. Ops that only create or view data, or follow from constants alone, do
    not count: XLA folds them, or makes them inside a fusion. Nodes with an effect stay where they are.
    """
    body = loop.body
    varying = {a for i, a in enumerate(body.arguments) if not isinstance(loop.roles[i], Invariant)}
    invariant = []
    for node in body.nodes:
        if varying.isdisjoint(reads(node)) and not has_effect(node):
            invariant.append(node)
        else:
            varying.update(node.results)
    constants = constants_of(loop)
    wanted: set[Value] = set()
    found = []
    for node in reversed(invariant):
        if not only_makes_data(node, constants) or not wanted.isdisjoint(node.results):
            found.append(node)
            wanted.update(reads(node))
    return found[::-1]


def hoist_in_view(flat: Region, loop: Loop) -> None:
    """Let ``flat``, a view that nobody else has yet, compute the invariants of ``loop``, a node of it, before the loop.

    All of them move, also what no trip reads: a body that differentiates a function in every trip computes its value,
    which nothing else may have.
    """
    body = loop.body
    carried = loop.unchanged
    varying = {argument for argument in body.arguments if argument not in carried}
    hoisted: list[Node] = []
    for node in body.nodes:
        if varying.isdisjoint(reads(node)) and not has_effect(node):
            hoisted.append(node)
        else:
            varying.update(node.results)
    for node in walk(hoisted):
        node.operands = tuple(carried.get(value, value) for value in node.operands)
        for region in node.regions:
            region.returns = tuple(carried.get(value, value) for value in region.returns)
    moved = set(hoisted)
    body.nodes = [node for node in body.nodes if node not in moved]
    at = flat.nodes.index(loop.node)
    flat.nodes = [*flat.nodes[:at], *hoisted, *flat.nodes[at:]]


def separate_in_view(
    flat: Region, directed: Collection[Value], whole: Collection[Node] = (), extents: Collection[int] | None = None
) -> bool:
    """Split each loop, branch and barrier of ``flat``, a view that nobody else has yet, with results that depend on
    ``directed`` and others that do not.

        h, t = while(h0, t0)       -->       h = while(h0);  _, t = while(h0, t0)
        h, t = case(i, ...)        -->       h = case(i, ...);  _, t = case(i, ...)
        h, t = barrier(h0, t0)     -->       h = barrier(h0);  _, t = barrier(h0, t0)

    A scan over layers under ``jvp`` carries the layers' values and their tangents together, and so does the barrier of
    ``jax.checkpoint``. The loops ``whole`` stay as
    they are, and with ``extents`` those that carry no tangents, which have an axis of such an extent: a loop that moves
    walkers and sums over directions in each trip carries the sum. True if there was another.
    """
    reach, nodes = set(directed), list[Node]()
    for node in flat.nodes:
        if not reach.isdisjoint(reads(node)):
            fixed = [] if node in whole else _apart(node, reach)
            if fixed and extents is not None:
                shapes = [value.type.shape for value in _changing(node, fixed)]
                fixed = fixed if any(extent in shape for shape in shapes for extent in extents) else []
            if fixed:
                nodes.append(_taken_out(node, fixed))
            reach.update(value for i, value in enumerate(node.results) if i not in fixed)
        nodes.append(node)
    found = len(nodes) > len(flat.nodes)
    flat.nodes = nodes
    return found


def _apart(node: Node, directed: Collection[Value]) -> list[int]:
    """Positions of the results of a loop, branch or barrier that do not depend on ``directed``; none if all or none do,
    if the condition or the choice does, or if these are counters and invariants of a loop alone."""
    if node.op not in (ops.WHILE, ops.CASE, ops.IF, ops.OPTIMIZATION_BARRIER):
        return []
    after = reached(node, [value for value in reads(node) if value in directed])
    fixed = [i for i, value in enumerate(node.results) if value not in after]
    if len(fixed) == len(node.results):
        return []
    if node.op is not ops.WHILE or not fixed:
        return fixed
    roles = analyse(node).roles
    tested = not after.isdisjoint(node.regions[0].returns)
    carries = any(not isinstance(roles[i], Invariant | Counter) for i in fixed)
    return fixed if carries and not tested else []


def _changing(node: Node, fixed: Collection[int]) -> list[Value]:
    """The results of ``node`` besides those at ``fixed``; of a loop, those that a trip changes."""
    if node.op is not ops.WHILE:
        return [value for i, value in enumerate(node.results) if i not in fixed]
    body = node.regions[1]
    carried = [body.arguments[i] for i in range(len(node.results)) if i not in fixed]
    return [value for value in carried if value not in body.returns]


def _taken_out(node: Node, positions: Sequence[int]) -> Node:
    """A loop, branch or barrier of the results at ``positions`` alone; ``node`` gets others for them."""
    alone = replace(node, regions=(), results=())
    alone.results = tuple(node.results[i] for i in positions)
    if node.op in (ops.WHILE, ops.OPTIMIZATION_BARRIER):
        alone.operands = tuple(node.operands[i] for i in positions)
    if node.op is ops.WHILE:
        condition, body = node.regions
        alone.regions = (condition.part(positions, range(1)), body.part(positions, positions))
    else:
        alone.regions = tuple(region.part((), positions) for region in node.regions)
    results = list(node.results)
    for at, i in enumerate(positions):
        results[i] = replace(node.results[i])
        node.results[i].producer, node.results[i].index = alone, at
    node.results = tuple(results)
    return alone


def only_makes_data(node: Node, constants: set[Value]) -> bool:
    """True for views, and anything computed from ``constants`` alone (XLA folds it, or makes it inside a fusion)."""
    return _makes_data(node) or constants.issuperset(node.results)


def constants_of(loop: Loop) -> set[Value]:
    """Values of a trip that are computed from constants alone, carried or captured ones too."""
    body = loop.body
    carried = [(a, loop.node.operands[i]) for i, a in enumerate(body.arguments) if isinstance(loop.roles[i], Invariant)]
    given = {argument for argument, operand in carried if _views_constants(operand)}
    return constant_values(body.nodes, given | set(filter(_views_constants, free_values(body))))


def _views_constants(value: Value) -> bool:
    node = value.producer
    return node is not None and _makes_data(node) and all(map(_views_constants, node.operands))


def _makes_data(node: Node) -> bool:
    return node.op.source or node.op.strided or node.op is ops.CONVERT


def constant_values(nodes: list[Node], given: Collection[Value] = ()) -> set[Value]:
    """Values that are computed from constants and ``given`` ones alone, which are among them."""
    found = set(given)
    for node in nodes:
        read = reads(node)
        if node.op.source or (read and found.issuperset(read)):
            found.update(node.results)
    return found


def has_effect(node: Node) -> bool:
    """True if ``node`` does more than return its results."""
    if node.op.control_flow:
        return any(has_effect(inner) for region in node.regions for inner in region.walk())
    if node.op is ops.CUSTOM_CALL and "has_side_effect" in node.attributes:
        return bool(node.attributes["has_side_effect"].value)
    return node.op.effect


def has_effect_inside(operation: ir.Operation, functions: Mapping[str, ir.Operation]) -> bool:
    """``has_effect`` of an operation with all that it runs; ``functions`` are those that it may call, by name."""
    for one in (operation, *inner_operations(operation)):
        attributes = one.attributes
        if one.name == ops.CUSTOM_CALL.name and "has_side_effect" in attributes:
            if attributes["has_side_effect"].value:
                return True
        elif (called := callee_of(one)) is not None:
            if has_effect_inside(functions[called], functions):
                return True
        elif ops.op_of(one.name).effect:
            return True
    return False


_NUMBER = re.compile(r"#loop(\d+)(?=[/)]|$)")


def with_numbered_loops(program: Program) -> Program:
    """``program`` with ``#loop0``, ``#loop1``, ... at the end of the name of every ``stablehlo.while``."""
    module = program.parse()
    loops = [operation for operation in inner_operations(module.operation) if operation.name == ops.WHILE.name]
    with module.context:
        for number, operation in enumerate(loops):
            child = child_location(operation) or operation.location
            operation.location = ir.Location.name(f"{location_name(operation)}#loop{number}", childLoc=child)
    return Program.from_module(module, name=program.name, provenance=program.provenance, platform=program.platform)


def loop_number(scope: str) -> int | None:
    """The number of the innermost loop in a name stack; None when it names no numbered loop."""
    numbers = _NUMBER.findall(scope)
    return int(numbers[-1]) if numbers else None


def without_numbers(scope: str) -> str:
    """The name stack without the numbers of loops."""
    return _NUMBER.sub("", scope)
