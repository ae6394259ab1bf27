"""The walks that passes share: over loops, over ops of one kind, and over blocks.

- ``rewrite_loops``: decide per loop, replace one at a time, look again until nothing changes.
- ``rewrite_ops``: decide per op, replace each in place by a few others.
- ``inline_in_blocks``: look at a block, replace a few of its ops, look again.
- ``blocks_to_rewrite``: the blocks alone, for passes that put kernels into them.

``Tally`` collects what a walk did, and is the epilogue of all but the first: events by place, a module that verifies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.raising import RaiseError, Raising, unsupported_nodes
from fusionlab.codegen.raising.splice import drop_dead, drop_dead_functions, inline, splice
from fusionlab.hlo import loops, ops
from fusionlab.hlo.blocks import Block, blocks_to_change, run_in_loops
from fusionlab.hlo.loops import Loop, Recurrent, find_loops
from fusionlab.hlo.ops import OpDef
from fusionlab.hlo.program import Program, is_sharded, rewritten
from fusionlab.hlo.replay import inventory
from fusionlab.hlo.view import (
    FunctionView,
    Node,
    Value,
    free_values,
    public_function,
    public_functions,
    twins_of,
    view_of,
)
from fusionlab.passes.interface import Applied, Declined, Event, Pass, Result, Setting, platform_for, verify
from fusionlab.passes.refusals import Ground, Refusal, ground_of_recurrence, refused, unsupported

_SWEEPS_PER_LOOP = 10
"""Far more than any pass needs: what replaces a loop is rewritten again once or twice, or left alone."""


@dataclass(frozen=True)
class Rewrite:
    """The replacement of a loop: ``function(*initial carried values, *captured) -> results``, and its description.

    ``marks`` are frontend attributes for one of the function's own loops: the one at position ``marked_loop``.
    """

    function: Callable[..., Sequence[Any]]
    what: str
    resolved: str
    marks: tuple[tuple[str, str], ...] = ()
    marked_loop: int = 0


@dataclass(frozen=True)
class LoopSite:
    """A loop that may be rewritten, with the values its regions capture and the raising of its body.

    ``handles`` are the MLIR values of ``captured`` in the loop's own function: its arguments, or results of calls.
    """

    loop: Loop
    captured: tuple[Value, ...]
    handles: tuple[Any, ...]
    raising: Raising


Decision = Callable[[LoopSite], Rewrite]


def rewrite_loops(program: Program, pass_name: str, decide: Decision, setting: Setting) -> Result:
    """Apply ``decide`` to every loop, outer ones first; a Refusal, or an op that does not raise, leaves one alone.

    The refusals are told after what was applied, first those of the loops that resemble a replay most.
    What is spliced into a program of platform ``any`` is lowered for the setting's platform.
    """
    platform = platform_for(program, setting)
    applied: list[Event] = []
    made: set[str] = set()
    limit = 1 + _SWEEPS_PER_LOOP * len(find_loops(view_of(program.parse())))
    for _ in range(limit):
        module = program.parse()
        found, declined = _sweep(module, platform, pass_name, decide)
        if found is None:
            places = {event.location for event in applied}
            # A loop that this pass made and now leaves alone was reported when it was made.
            kept = [event for event, function in declined if not (function in made and event.location in places)]
            return Result(program, (*applied, *kept))
        event, symbol = found
        applied.append(event)
        made.add(symbol)
        verify(module, pass_name)
        drop_dead_functions(module)
        program = rewritten(program, module)
    raise AssertionError(f"pass {pass_name} did not converge after {limit} rewrites")


def _sweep(
    module: ir.Module, platform: str, pass_name: str, decide: Decision
) -> tuple[tuple[Applied, str] | None, list[tuple[Declined, str]]]:
    """Rewrite the first loop that qualifies, and return its replacement's symbol; else the refusals with their
    functions, by the likeness of their loops to a replay."""
    shared = functions_of_others(module)
    declined: dict[Any, tuple[Declined, str]] = {}
    occurrences: dict[Any, list[Loop]] = {}
    flat = view_of(module)
    for loop in find_loops(flat):
        occurrences.setdefault(loop.node.operation, []).append(loop)
    for operation, of_calls in occurrences.items():
        node = of_calls[0].node
        place = node.scope  # before it is erased
        try:
            site = _site(of_calls, shared)
            rewrite = decide(site)
            symbol = splice(
                operation,
                rewrite.function,
                name=pass_name.replace("-", "_"),
                origins=site.raising.marks,
                callers=node.callers,
                platform=platform,
                operands=[*operation.operands, *site.handles],
            )
        except (Refusal, RaiseError, NotImplementedError) as error:
            declined[operation] = refused(error).of(pass_name, place), node.function
        else:
            _mark(module, symbol, rewrite)
            return (Applied(pass_name, rewrite.what, place, rewrite.resolved), symbol), []
    likeness = {replay.loop.node.operation: replay.likeness for replay in inventory(flat)}
    return None, [declined[operation] for operation in sorted(declined, key=likeness.__getitem__, reverse=True)]


def functions_of_others(module: ir.Module) -> set[str]:
    """Functions that are not the entry's alone: callees of other public functions (those call sites are not in the
    entry's view), and kernels with their twins."""
    entry = public_function(module)
    others = [f for f in public_functions(module) if f != entry]
    reached = {node.function for other in others for node in view_of(module, other.name.value).walk()}
    return reached | {other.name.value for other in others} | twins_of(module)


def _site(occurrences: Sequence[Loop], shared: set[str]) -> LoopSite:
    """A loop, once per call site, as one thing to rewrite; Refusal when these differ or captures cannot be named."""
    loop, function = occurrences[0], occurrences[0].node.function
    if function in shared:
        raise Refusal(Ground.SHARED_FUNCTION, f"@{function} also belongs to another public function of the module")
    captured = tuple(dict.fromkeys(v for region in loop.node.regions for v in free_values(region)))
    own = {} if len(occurrences) > 1 else _handles_of(captured, loop)  # other call sites may pass a value twice
    handles = tuple(own.get(value, value.handle) for value in captured)
    if any(_owner(handle) != function for handle in handles):
        raise Refusal(Ground.CAPTURES, f"the loop captures what a call made, or what is outside of @{function}")
    if other := [str(value.handle.type) for value in (*loop.node.operands, *captured) if not value.is_array]:
        reason = f"the loop reads a value that is not a static tensor: {other[0]}"
        raise Refusal(Ground.NOT_AN_ARRAY, reason, loop.node)
    if len({(other.trips, *map(_shape_of_role, other.roles)) for other in occurrences}) > 1:
        raise Refusal(Ground.CALLED_DIFFERENTLY, f"@{function} is called with different trip counts or constants")
    return LoopSite(loop, captured, handles, Raising(marks={}))


def _handles_of(captured: Sequence[Value], loop: Loop) -> dict[Value, Any]:
    """Those of ``captured`` that the regions of ``loop`` read as MLIR values defined before it in its function."""
    wanted = set(captured)
    inside = (node for region in loop.node.regions for node in region.walk() if node.callers == loop.node.callers)
    read = ((v, h) for node in inside for v, h in zip(node.operands, node.operation.operands, strict=True))
    return {v: h for v, h in read if v in wanted and loop.node.operation not in _around(h)}


def _around(handle: Any) -> list[Any]:
    """The operation that produces an MLIR value or has it as an argument, and its ancestors, the function last."""
    operation = handle.owner
    operation = getattr(operation, "owner", operation).operation  # of a block argument, the block
    around = [operation]
    while around[-1].name != "func.func":
        around.append(around[-1].parent.operation)
    return around


def _owner(handle: Any) -> str:
    """The name of the function in which an MLIR value is defined."""
    return str(ir.StringAttr(_around(handle)[-1].attributes["sym_name"]).value)


def _shape_of_role(role: Any) -> Any:
    return role if isinstance(role, loops.Counter) else type(role)


def require_reduction(loop: Loop) -> None:
    """Refusal unless ``loop`` runs a known number of trips, each of which only adds to or writes its own results."""
    if loop.trips is None:
        reason = f"the trip count is not known at compile time: {loop.trips_reason}"
        raise Refusal(Ground.TRIP_COUNT, reason, loop.node)
    for i in loop.indices(Recurrent):
        type_, (why, node) = loop.body.arguments[i].handle.type, loop.recurrence(i)
        reason = f"carried value {i} ({type_}) is neither a sum nor stacked: {why}"
        raise Refusal(ground_of_recurrence(node), reason, node)
    if opaque := unsupported_nodes(loop.body):
        raise unsupported(opaque[0], "body")


def loop_marks(loop: Loop) -> dict[str, str]:
    """The frontend attributes of ``loop`` by name."""
    operation = loop.node.operation
    if "mhlo.frontend_attributes" not in operation.attributes:
        return {}
    attributes = ir.DictAttr(operation.attributes["mhlo.frontend_attributes"])
    return {attribute.name: str(ir.StringAttr(attribute.attr).value) for attribute in attributes}


def _mark(module: ir.Module, symbol: str, rewrite: Rewrite) -> None:
    if not rewrite.marks:
        return
    with module.context:
        block = ir.SymbolTable(module.operation)[symbol].regions[0].blocks[0]
        attribute = ir.DictAttr.get({name: ir.StringAttr.get(value) for name, value in rewrite.marks})
        whiles = [op.operation for op in block.operations if op.operation.name == ops.WHILE.name]
        whiles[rewrite.marked_loop].attributes["mhlo.frontend_attributes"] = attribute


@dataclass(frozen=True)
class Tally:
    """What a walk over a module did: how many rewrites by place and kind, the nodes of each refusal, as events."""

    applied: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: dict[tuple[Ground, str], list[Declined]] = field(default_factory=dict)

    def rewrite(self, node: Node, count: int = 1, what: str = "") -> None:
        """Count rewrites at ``node``, before it is erased; ``what`` they are, if not the same for all of the pass."""
        self.applied[place_of(node.scope), what] += count

    def refuse(self, node: Node, refusal: Refusal) -> None:
        """Count ``node`` as left alone."""
        event = Refusal(refusal.ground, refusal.reason, refusal.op or node).of("", place_of(node.scope))
        self.refused.setdefault((refusal.ground, refusal.reason), []).append(event)

    def result(
        self, program: Program, module: ir.Module, pass_: Pass, what: str, otherwise: str, op: str = ""
    ) -> Result:
        """The events "3 ``what``" and "2 of 5 ``op``: reason", and the rewritten program, which verifies.

        ``otherwise`` is the reason if nothing was rewritten or refused.
        """
        total = self.applied.total() + sum(map(len, self.refused.values()))
        events: list[Event] = [
            Applied(pass_.name, f"{count} {own or what}", place, str(pass_))
            for (place, own), count in self.applied.items()
        ]
        events += [
            replace(first, pass_name=pass_.name, reason=f"{1 + len(others)} of {total} {op}: {first.reason}")
            for first, *others in self.refused.values()
        ]
        if not self.applied:
            return Result(program, tuple(events) or (Refusal(Ground.NOTHING_THERE, otherwise).of(pass_.name, ""),))
        verify(module, pass_.name)
        return Result(rewritten(program, module), tuple(events))


def place_of(scope: str) -> str:
    """The place that an event names, of an op whose JAX name stack is ``scope``: all but the op itself."""
    return scope.rpartition("/")[0]


@dataclass(frozen=True)
class OpRewrite:
    """The replacement of an operation: ``function`` of arrays for its operands number ``reads``.

    ``key`` identifies the function, but for its operands' types: an operation of a private function that is called
    twice is seen twice, and is rewritten only when both decisions have the same key.
    """

    function: Callable[..., Sequence[Any]]
    reads: tuple[int, ...]
    key: Hashable


Decide = Callable[[Node], OpRewrite]


def rewrite_ops(
    program: Program,
    pass_: Pass,
    op: OpDef,
    make_decide: Callable[[FunctionView], Decide],
    setting: Setting,
    *,
    what: str,
) -> Result:
    """Replace every ``op`` for which the decision is a rewrite and not a Refusal.

    ``what`` completes the event "3 ``what``". Operations of other public functions are left alone.
    """
    platform = platform_for(program, setting)
    module = program.parse()
    flat = view_of(module)
    decide = make_decide(flat)
    shared = functions_of_others(module)
    found: dict[Any, list[Node]] = {}
    for node in flat.walk():
        if node.op is op:
            found.setdefault(node.operation, []).append(node)
    tally = Tally()
    decided: list[tuple[Node, OpRewrite]] = []  # all before the first rewrite, which erases operands of others
    for nodes in found.values():
        try:
            decided.append((nodes[0], _agreed([decide(node) for node in nodes], nodes[0], shared)))
        except Refusal as refusal:
            tally.refuse(nodes[0], refusal)
    for node, rewrite in decided:
        tally.rewrite(node)
        operands = list(node.operation.operands)
        inline([node.operation], rewrite.function, [operands[at] for at in rewrite.reads], platform=platform)
        drop_dead(operands)
    return tally.result(program, module, pass_, what, f"there is no {op.mnemonic} in the program", op.mnemonic)


def no_kernels(pass_name: str, program: Program, module: ir.Module, setting: Setting) -> Declined | None:
    """The reason why ``program``, parsed as ``module``, can have no kernels for Triton, or None."""
    platform = platform_for(program, setting)
    if platform != "cuda":
        reason = f"the program is for {platform}, and the kernels are for CUDA"
        return Refusal(Ground.PLATFORM, reason).of(pass_name, "")
    if is_sharded(module):
        reason = "the program is sharded: a kernel would need all of its operands on every device"
        return Refusal(Ground.SHARDED, reason).of(pass_name, "")
    return None


def _agreed(rewrites: Sequence[OpRewrite], node: Node, shared: set[str]) -> OpRewrite:
    if node.function in shared:
        raise Refusal(Ground.SHARED_FUNCTION, f"@{node.function} also belongs to another public function of the module")
    if len({rewrite.key for rewrite in rewrites}) > 1:
        raise Refusal(Ground.CALLED_DIFFERENTLY, "its function is called with different constants")
    return rewrites[0]


def blocks_to_rewrite(module: ir.Module, *, in_loops: bool = False) -> Iterator[Callable[[], Block]]:
    """Callables that return the blocks of the entry's own functions as they are now; may be only those run in loops."""
    others = functions_of_others(module)
    functions = [f for f in module.body.operations if f.operation.name == "func.func" and f.name.value not in others]
    looped = run_in_loops(functions)
    for function in functions:
        for look in blocks_to_change(function, module):
            if not in_loops or function.name.value in looped or _is_in_loop(look()):
                yield look


def _is_in_loop(block: Block) -> bool:
    operation = block.nodes[0].operation.parent.operation if block.nodes else None  # the first may be a loop itself
    while operation is not None and operation.name not in ("func.func", ops.WHILE.name):
        operation = operation.parent.operation
    return operation is not None and operation.name == ops.WHILE.name


@dataclass(frozen=True)
class Change:
    """``function(*operands)`` returns the results of all ``nodes``, which are of one block, in order.

    The operands dominate the first of the nodes. ``count`` is the number that the event reports.
    """

    nodes: Sequence[Node]
    function: Callable[..., Sequence[Any]]
    operands: Sequence[Value]
    count: int = 1


def inline_in_blocks(
    program: Program,
    pass_: Pass,
    setting: Setting,
    change: Callable[[Block, Node], Change | None],
    *,
    what: str,
    otherwise: str,
    in_loops: bool = False,
) -> Result:
    """Apply every ``change(block, node)`` that is not None, until there is none; then erase dead operations.

    ``what`` completes the event "3 ``what``"; ``otherwise`` is the reason if there was none.
    """
    platform = platform_for(program, setting)
    module = program.parse()
    tally = Tally()
    for look in blocks_to_rewrite(module, in_loops=in_loops):
        while (found := _first(look(), change)) is not None:
            tally.rewrite(found.nodes[0], found.count)
            gone = set(found.nodes)
            read = [v.handle for node in found.nodes for v in node.operands if v.producer not in gone]
            operands = [value.handle for value in found.operands]
            inline([node.operation for node in found.nodes], found.function, operands, platform=platform)
            drop_dead([*dict.fromkeys(read)])
    return tally.result(program, module, pass_, what, otherwise)


def _first(block: Block, change: Callable[[Block, Node], Change | None]) -> Change | None:
    return next((found for node in block.nodes if (found := change(block, node)) is not None), None)
