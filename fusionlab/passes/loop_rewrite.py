"""The walk that loop passes share: decide per loop, replace one loop at a time, look again until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.raising import RaiseError, Raising, unsupported_nodes
from fusionlab.codegen.raising.splice import drop_dead_functions, splice
from fusionlab.hlo.flat import Value, flatten, free_values, twins_of
from fusionlab.hlo.loops import Loop, Recurrent, find_loops
from fusionlab.hlo.program import Program, public_function, public_functions
from fusionlab.passes.contract import Applied, Declined, Event, Kind, Result, Setting, verify

_MOST_SWEEPS = 200


@dataclass(frozen=True)
class Rewrite:
    """What to put in a loop's place: ``function(*initial carried values, *captured) -> results``, and how to say it.

    ``marks`` are frontend attributes for one of the function's own loops: the one at position ``marked_loop``.
    """

    function: Callable[..., Sequence[Any]]
    what: str
    resolved: str
    marks: tuple[tuple[str, str], ...] = ()
    marked_loop: int = 0


class Refusal(Exception):
    """Raised by a decision to leave the loop alone."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, reason


@dataclass(frozen=True)
class Site:
    """A loop that may be rewritten, with the values its regions capture and how its body is to be raised.

    ``handles`` are the MLIR values of ``captured`` in the loop's own function: an argument of it, or what a call gave.
    """

    loop: Loop
    captured: tuple[Value, ...]
    handles: tuple[Any, ...]
    raising: Raising


Decision = Callable[[Site], Rewrite]


def rewrite_loops(program: Program, pass_name: str, decide: Decision, setting: Setting) -> Result:
    """Apply ``decide`` to every loop, outer ones first; a Refusal, or an op that does not raise, leaves one alone.

    What is spliced into a program of platform ``any`` is lowered for the setting's platform.
    """
    platform = setting.platform if program.platform == "any" else program.platform
    applied: list[Event] = []
    made: set[str] = set()
    for _ in range(_MOST_SWEEPS):
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
        known = None if program.platform == "any" else program.platform
        program = Program.from_module(module, name=program.name, provenance=program.provenance, platform=known)
    raise AssertionError(f"pass {pass_name} did not come to rest after {_MOST_SWEEPS} rewrites")


def _sweep(
    module: ir.Module, platform: str, pass_name: str, decide: Decision
) -> tuple[tuple[Applied, str] | None, list[tuple[Declined, str]]]:
    """Rewrite the first loop that allows it, and give the symbol put in its place; refusals with their functions."""
    flat = flatten(module)
    shared = functions_of_others(module)
    declined = []
    seen: dict[Any, Loop] = {}
    loops = find_loops(flat)
    for loop in loops:
        operation = loop.node.operation
        if operation in seen:
            continue
        seen[operation] = loop
        place = loop.node.scope
        try:
            site = _site(loop, [other for other in loops if other.node.operation == operation], shared)
            rewrite = decide(site)
            symbol = splice(
                operation,
                rewrite.function,
                name=pass_name.replace("-", "_"),
                origins=site.raising.marks,
                callers=loop.node.callers,
                platform=platform,
                operands=[*operation.operands, *site.handles],
            )
        except Refusal as refusal:
            declined.append((Declined(pass_name, refusal.kind, refusal.reason, place), loop.node.function))
            continue
        except (RaiseError, NotImplementedError) as error:
            declined.append((Declined(pass_name, "unsupported", str(error), place), loop.node.function))
            continue
        _mark(module, symbol, rewrite)
        return (Applied(pass_name, rewrite.what, place, rewrite.resolved), symbol), declined
    return None, declined


def functions_of_others(module: ir.Module) -> set[str]:
    """Functions that are not the entry's alone: what other public functions run (those call sites are not in the
    entry's view), and kernels with their twins."""
    entry = public_function(module)
    others = [f for f in public_functions(module) if f != entry]
    reached = {node.function for other in others for node in flatten(module, other.name.value).walk()}
    return reached | {other.name.value for other in others} | twins_of(module)


def _site(loop: Loop, occurrences: Sequence[Loop], shared: set[str]) -> Site:
    """The loop as one thing to rewrite; Refusal when its call sites differ or its captures cannot be named."""
    function = loop.node.function
    if function in shared:
        raise Refusal("unsupported", f"@{function} also belongs to another public function of the module")
    captured = tuple(dict.fromkeys(v for region in loop.node.regions for v in free_values(region)))
    own = {} if len(occurrences) > 1 else _handles_of(captured, loop)  # other call sites may give a value twice
    handles = tuple(own.get(value, value.handle) for value in captured)
    if any(_owner(handle) != function for handle in handles):
        raise Refusal("unsupported", f"the loop captures what a call made, or what is outside of @{function}")
    for value in (*loop.node.operands, *captured):
        try:
            _ = value.type
        except ValueError as error:
            raise Refusal("unsupported", f"the loop reads a value that is not a static tensor: {error}") from None
    shapes = {(other.trips, tuple(map(_shape_of_role, other.roles))) for other in occurrences}
    if len(shapes) > 1:
        raise Refusal("unsupported", f"@{loop.node.function} is called with different trip counts or constants")
    return Site(loop, captured, handles, Raising(marks={}))


def _handles_of(captured: Sequence[Value], loop: Loop) -> dict[Value, Any]:
    """Those of ``captured`` that the regions of ``loop`` read as MLIR values of their own function, there before it."""
    wanted = set(captured)
    inside = (node for region in loop.node.regions for node in region.walk() if node.callers == loop.node.callers)
    read = ((v, h) for node in inside for v, h in zip(node.operands, node.operation.operands, strict=True))
    return {v: h for v, h in read if v in wanted and loop.node.operation not in _around(h)}


def _around(handle: Any) -> list[Any]:
    """The operation that makes an MLIR value or has it as an argument, and those around it, the function last."""
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
    return role if type(role).__name__ == "Counter" else type(role).__name__


def require_reduction(loop: Loop) -> None:
    """Refusal unless ``loop`` runs a known number of trips, each of which only adds to or writes its own results."""
    if loop.trips is None:
        raise Refusal("unsafe", f"the trip count is not known at compile time: {loop.trips_reason}")
    for i in loop.indices(Recurrent):
        role = loop.roles[i]
        assert isinstance(role, Recurrent)
        type_ = loop.body.arguments[i].handle.type
        raise Refusal("unsafe", f"carried value {i} ({type_}) is neither a sum nor stacked: {role.reason}")
    opaque = unsupported_nodes(loop.body)
    if opaque:
        raise Refusal("unsupported", f"{describe(opaque[0])} in the body cannot be raised")


def describe(node: Any) -> str:
    """An op for a reason: ``custom call @target`` or its name."""
    if node.name == "stablehlo.custom_call":
        return f"custom call @{node.attributes['call_target_name'].value}"
    return str(node.name)


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
        loops = [op.operation for op in block.operations if op.operation.name == "stablehlo.while"]
        loops[rewrite.marked_loop].attributes["mhlo.frontend_attributes"] = attribute
