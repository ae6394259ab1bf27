"""The copies of a compiled program and their causes: what XLA copies on the device, and kernels that only turn axes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, Shape
from fusionlab.ledger.dataflow import VIEWS, behind_views, instructions, members, readers
from fusionlab.ledger.ledger import LaunchSite
from fusionlab.ledger.origins import Origins
from fusionlab.ledger.thunks import SOLVES_IN_PLACE
from fusionlab.ledger.traffic import updates_in_place

_TURNS = ("copy", "transpose")
_MOVES_NOTHING = frozenset(("parameter", "bitcast", "reshape", "tuple", "get-tuple-element", "fusion"))
_ALIASES = re.compile(r"input_output_alias=\{((?:[^{}]|\{[^{}]*\})*)\}")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")
_SLICES = ("slice", "dynamic-slice", "dynamic-update-slice")


@dataclass(frozen=True)
class BufferCopy:
    """One copy: ``name`` is its HLO instruction, ``bytes`` are of one run. ``cause`` is "" where it is not known.

    ``is_copy`` is False for a kernel that only turns axes; ``to_host`` is True for the condition of a loop.
    """

    name: str
    kind: str
    bytes: int
    runs: int
    loop: str
    cause: str
    scope: str
    op: str
    source: str
    is_copy: bool
    to_host: bool


def buffer_copies(compiled: Compiled, origins: Origins, launched: Iterable[LaunchSite]) -> tuple[BufferCopy, ...]:
    """Every copy of ``compiled``, the most bytes over all runs first; memsets are none.

    ``origins`` are its own, ``launched`` its launches and copies.
    """
    found = list(_copies(compiled.module, origins, launched))
    return tuple(sorted(found, key=lambda one: -one.bytes * one.runs))


def _copies(module: HloModule, origins: Origins, launched: Iterable[LaunchSite]) -> Iterator[BufferCopy]:
    callers = {name: (where, one) for where, one in instructions(module) for name in one.called}
    for site in launched:
        if (place := module.find(site.computation, site.hlo_name)) is None:
            continue
        computation, one = place
        if not (_is_copy(site) or _only_turns(module, one)):
            continue
        origin = origins.of(computation, one)
        size, cause = _of_the_op(module, one)
        yield BufferCopy(
            name=one.name,
            kind=site.kind,
            bytes=size,
            runs=site.dynamic,
            loop="/".join(site.path),
            cause=cause or _cause(module, computation, one, callers),
            scope=read_name(origin.op_name).scope,
            op=origin.op,
            source=origin.source,
            is_copy=_is_copy(site),
            to_host=one.opcode == "while",
        )


def _of_the_op(module: HloModule, one: Instruction) -> tuple[int, str]:
    """The bytes of a copy, and its cause where the op itself makes it: a solve, a sort, a loop's condition."""
    if one.opcode == "while":
        return 1, "the condition of the loop goes to the host"
    first = one.shape.elements[0] if one.shape.is_tuple else one.shape
    if one.custom_call_target == SOLVES_IN_PLACE:
        return first.byte_size, "it solves in place, in a copy of the right-hand sides"
    if any(member.opcode == "sort" for member in members(module, one)):
        return first.byte_size, "it sorts in place, in a copy of its operand"
    return one.shape.byte_size, ""


def _is_copy(site: LaunchSite) -> bool:
    return site.is_copy and "emset" not in site.kind and "emzero" not in site.kind


def _only_turns(module: HloModule, one: Instruction) -> bool:
    """True for a kernel of copies and transpositions alone."""
    inside = [member.opcode for member in members(module, one) if member.opcode not in _MOVES_NOTHING]
    return bool(inside) and all(opcode in _TURNS for opcode in inside)


def _cause(
    module: HloModule,
    computation: Computation,
    one: Instruction,
    callers: dict[str, tuple[Computation, Instruction]],
) -> str:
    """Why there is a copy, as far as the text tells: its layout, a loop's state, a result, a slice, an update."""
    around = callers.get(computation.name)
    if around is not None and around[1].is_fusion:
        return _cause(module, *around, callers)
    reading = readers(computation, one.name, (*VIEWS, "tuple"))
    if turned := _turned(module, one):
        return turned + (f" for {reading[0].name}" if reading and not reading[0].is_root else "")
    if loop := next((reader.name for reader in reading if reader.opcode == "while"), ""):
        return f"state of {loop}, which overwrites it (from {_operand(computation, one)})"
    if any(member.opcode in _SLICES for member in members(module, one)):
        return f"a slice of {_operand(computation, one)}"
    if one.is_root or any(reader.is_root for reader in reading):
        return _as_result(module, computation, one, around[1] if around else None)
    update = next((each for each in reading if _updates(module, computation, each, one.name)), None)
    return f"{update.name} updates it in place (from {_operand(computation, one)})" if update else ""


def _updates(module: HloModule, computation: Computation, reader: Instruction, name: str) -> bool:
    """True if ``reader`` updates ``name`` in place, rather than only reading it."""
    updated = (operand for each in updates_in_place(module, computation, reader) for operand in each.operands)
    return any(behind_views(computation, operand)[0] == name for operand in updated)


def _as_result(module: HloModule, computation: Computation, one: Instruction, around: Instruction | None) -> str:
    """Why what a computation returns is a copy: ``around`` is the loop, the branch or the call that runs it."""
    if computation.name == module.entry.name:
        made = f"(from {_operand(computation, one)})"
        donated = _donated(module, computation, one)
        return f"into donated argument {donated} {made}" if donated else f"a result of the program {made}"
    if around is not None and around.opcode == "while":
        return f"state of {around.name} for its next trip"
    return f"the result of a branch of {around.name}" if around is not None and around.opcode == "conditional" else ""


def _donated(module: HloModule, computation: Computation, one: Instruction) -> str:
    """The donated argument in whose memory the result ``one`` of the program lies; "" for none."""
    root = next(each for each in computation.instructions if each.is_root)
    place = str(root.operands.index(one.name)) if root.opcode == "tuple" and one.name in root.operands else ""
    aliases = _ALIASES.search(module.header)
    numbers = [int(number) for result, number in _ALIAS.findall(aliases[1]) if result == place] if aliases else []
    found = computation.parameters[numbers[0]] if numbers and numbers[0] < len(computation.parameters) else None
    return (found.op_name or found.name) if found else ""


def _operand(computation: Computation, one: Instruction) -> str:
    """What is copied, in words."""
    if not one.operands:
        return "its operand"
    name = behind_views(computation, one.operands[0])[0]
    found = computation.by_name.get(name)
    if found is not None and found.opcode == "parameter" and found.shape.is_tuple:
        return "the loop's state"
    if found is not None and found.opcode == "parameter":
        return f"argument {found.op_name or name}" if found.op_name else name
    return f"constant {name}" if found is not None and found.opcode == "constant" else name


def _turned(module: HloModule, one: Instruction) -> str:
    """What a copy or a transposition does to the order in memory, in words; "" if nothing."""
    for member in members(module, one):
        home = next((each for each in _homes(module, one) if member.name in each.by_name), None)
        source = home.by_name.get(member.operands[0]) if home and member.operands else None
        if member.opcode == "transpose":
            return f"transposed {{{member.attributes.get('dimensions', '').strip('{}')}}}"
        if member.opcode == "copy" and source is not None and _order(source.shape) != _order(member.shape):
            return f"layout {{{_order(source.shape)}}} to {{{_order(member.shape)}}}"
    return ""


def _homes(module: HloModule, one: Instruction) -> Iterator[Computation]:
    """The computations that hold ``one`` and what it calls."""
    return (each for each in module.computations.values() if one.name in each.by_name or each.name in one.called)


def _order(shape: Shape) -> str:
    return shape.layout.partition(":")[0]
