"""The execution tree of XLA: from its thunk list where it prints one (GPUs), else from the scheduled HLO.

A line of ``*.thunk_sequence.txt`` is ``007: kCustomKernel [prev=.. | next=..] wrapped_tanh grid: ..``. Nesting shows in
the indentation, with four oddities of the printer: ``condition:`` is never indented, the first thunk inside a
``kSequential`` stands on its parent's line, a ``kWhile`` carries neither its HLO name nor its trip count, and what
follows an empty section stands on its line, after ``No thunks.``, with its own indentation.
``thunk_metadata.txt`` has the names by thunk id. The launches in CUDA graphs follow from the thunk lists before and
after capture.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.ledger.copy_fusions import is_copy_fusion, sliced_call

_log = logging.getLogger(__name__)

SLICED = "kDynamicSliceFusion"

_ENTRY = re.compile(r"(\d+): (k\w+)\s*\[[^\]]*\](.*?)(?=\s\d+: k\w+\s*\[|$)")
_SECTION = re.compile(r"([a-z_]\w*):\s*$")
_EMPTY = "No thunks."
_BLOCK = re.compile(r"^thunk_metadata \{$", re.MULTILINE)

SOLVES_IN_PLACE = "__cublas$triangularSolve"
"""A library call that solves in place, in a copy of the right-hand sides."""

# Opcodes of scheduled HLO that run nothing.
_NOTHING = frozenset(
    ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all", "add-dependency", "opt-barrier",
     "optimization-barrier", "partition-id", "replica-id", "domain")
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """The thunks of one part of a container: ``condition`` and ``body`` of a loop, ``branch_0``, ... or
    ``false_branch`` and ``true_branch`` of a conditional, "" for a plain sequence."""

    name: str
    thunks: tuple[Thunk, ...]


@dataclass(frozen=True)
class Thunk:
    """One step of the program. ``hlo_name`` is the HLO instruction that it comes from ("" for plain sequences)."""

    id: int
    kind: str
    hlo_name: str
    description: str
    sections: tuple[Section, ...] = ()

    def walk(self) -> Iterator[Thunk]:
        """The thunk and all those inside it, in order."""
        yield self
        for section in self.sections:
            for thunk in section.thunks:
                yield from thunk.walk()


@dataclass
class _OpenThunk:
    """A thunk that is being read, with its indentation and its sections so far."""

    indent: int
    id: int = 0
    kind: str = ""
    description: str = ""
    section: str = ""
    children: list[tuple[str, _OpenThunk]] = field(default_factory=list)


def parse_thunks(sequence: str, metadata: str) -> tuple[Thunk, ...]:
    """The tree in the text of ``thunk_sequence.txt``, with names from ``thunk_metadata.txt``.

    ValueError names the first line that is not in XLA's format, or says that names are missing: in the lists of JAX 0.9
    kernels have theirs on their line, library calls and loops have none.
    """
    names = parse_names_by_id(metadata)
    if not names and "profile_annotation = " in sequence:
        raise ValueError("the thunk list has names of kernels alone, as before JAX 0.10")
    top = _OpenThunk(indent=-1)
    stack = [top]
    for number, printed in enumerate(sequence.splitlines(), 1):
        line = printed.lstrip().removeprefix(_EMPTY) if printed.lstrip().startswith(_EMPTY) else printed
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if section := _SECTION.fullmatch(line.strip()):
            while section[1] != "condition" and stack[-1].indent >= indent:
                stack.pop()
            stack[-1].section = section[1]
            continue
        entries = list(_ENTRY.finditer(line))
        if not entries or line[: entries[0].start()].strip():
            raise ValueError(f"thunk sequence, line {number}: expected 'NNN: kKind [..]', found {line.strip()[:60]!r}")
        while stack[-1].indent >= indent:
            stack.pop()
        for depth, entry in enumerate(entries):
            opened = _OpenThunk(indent + 2 * depth, int(entry[1]), entry[2], entry[3].strip())
            stack[-1].children.append((stack[-1].section, opened))
            stack.append(opened)
    return tuple(_close(child, names) for _, child in top.children)


def parse_names_by_id(metadata: str) -> Mapping[int, str]:
    """Thunk id to HLO instruction name, from the text of ``thunk_metadata.txt``."""
    names: dict[int, str] = {}
    for block in _BLOCK.split(metadata)[1:]:
        name = re.search(r'profile_annotation: "([^"]*)"', block)
        id_ = re.search(r"thunk_id: (\d+)", block)
        if name and id_:
            names[int(id_[1])] = name[1]
    return names


def _close(opened: _OpenThunk, names: Mapping[int, str]) -> Thunk:
    sections = tuple(
        Section(name, tuple(_close(child, names) for section, child in opened.children if section == name))
        for name in dict.fromkeys(section for section, _ in opened.children)
    )
    return Thunk(opened.id, opened.kind, names.get(opened.id, ""), opened.description, sections)


def scheduled_thunks(
    module: HloModule, on_gpu: bool, static_slices: bool = True, sort_copies: Mapping[str, int] | None = None
) -> tuple[Thunk, ...]:
    """The same tree from a scheduled module: one leaf per instruction of its sequences that runs something.

    ``on_gpu``: XLA compiled it for a GPU, where some fusions are copies, ``static_slices`` among them
    (``copy_fusions``). ``sort_copies`` are the copies before a sort by its name, which are not in the text.
    """
    return _Schedule(module, on_gpu, static_slices, sort_copies or {}).sequence(module.entry)


@dataclass(frozen=True)
class _Schedule:
    module: HloModule
    on_gpu: bool
    static_slices: bool
    sort_copies: Mapping[str, int]

    def sequence(self, computation: Computation) -> tuple[Thunk, ...]:
        """The thunks of a computation that runs step by step."""
        return tuple(self._of(one) for one in computation.instructions if not _runs_nothing(one))

    def _of(self, one: Instruction) -> Thunk:
        if one.opcode == "while":
            kind, parts = "kWhile", _named_parts(one, {"condition": "condition", "body": "body"})
        elif one.opcode == "conditional":
            kind, parts = "kConditional", branches_of(one)
        elif one.opcode in ("call", "async-start"):
            kind, parts = "kSequential", [("", name) for name in one.called]
        elif self.on_gpu and (inside := sliced_call(self.module, one)) is not None:
            named = one if inside.opcode == "copy" else inside
            return _around(SLICED, one, Thunk(0, _leaf_kind(inside), named.name, inside.opcode))
        elif self.on_gpu and is_copy_fusion(self.module, one, self.static_slices):
            return Thunk(0, "kCopy", one.name, one.opcode)
        elif one.custom_call_target == SOLVES_IN_PLACE:
            return _leaves_of(one, "kCopy", "solve")
        elif copies := self.sort_copies.get(one.name):
            return _leaves_of(one, *["kCopy"] * copies, one.opcode)
        else:
            return Thunk(0, _leaf_kind(one), one.name, one.opcode)
        sections = tuple(Section(label, self.sequence(self.module.computations[name])) for label, name in parts)
        return Thunk(0, kind, one.name, one.opcode, sections)


def _around(kind: str, one: Instruction, *leaves: Thunk) -> Thunk:
    return Thunk(0, kind, one.name, one.opcode, (Section("", leaves),))


def _leaves_of(one: Instruction, *kinds: str) -> Thunk:
    """A sequence of leaves for one instruction."""
    return _around("kSequential", one, *(Thunk(0, kind, one.name, one.opcode) for kind in kinds))


def _runs_nothing(one: Instruction) -> bool:
    return one.opcode in _NOTHING or one.opcode.endswith("-done")


def _leaf_kind(one: Instruction) -> str:
    return "kCopy" if one.opcode in ("copy", "copy-start") else one.opcode


def branches_of(conditional: Instruction) -> list[tuple[str, str]]:
    """The label and the computation of each branch: XLA prints those of a predicate by name, others as a list."""
    if "branch_computations" not in conditional.attributes:
        return _named_parts(conditional, {"false_branch": "false_computation", "true_branch": "true_computation"})
    return [(f"branch_{index}", name) for index, name in enumerate(conditional.called)]


def _named_parts(one: Instruction, attributes: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(label, one.attributes[key].strip().lstrip("%")) for label, key in attributes.items()]


def captured_thunks(compiled: Compiled) -> dict[int, bool]:
    """Thunk id (of ``compiled.thunk_sequence``) to True if it runs inside a command buffer.

    Capturing wraps runs of thunks and keeps their order, so the leaves of both lists are paired one by one. Empty when
    XLA wrote no second list (the CPU) or, with a warning that says where, when the two lists do not match.
    """
    if not compiled.captured_thunks.strip():
        return {}
    try:
        before = list(_leaves(parse_thunks(compiled.thunk_sequence, ""), False))
        after = list(_leaves(parse_thunks(compiled.captured_thunks, ""), False))
    except ValueError as error:
        return _unknown(compiled, str(error))
    pairs = zip(before, after, strict=False)
    if odd := next((pair for pair in pairs if _identity(pair[0][0]) != _identity(pair[1][0])), None):
        return _unknown(compiled, f"before capture {_words(odd[0][0])}, after it {_words(odd[1][0])}")
    if len(before) != len(after):
        return _unknown(compiled, f"{len(before)} thunks before capture, {len(after)} after it")
    return {thunk.id: inside for (thunk, _), (_, inside) in zip(before, after, strict=True)}


def captured_control(compiled: Compiled) -> tuple[bool, ...] | None:
    """For each loop and conditional in XLA's list, True if it is inside a command buffer.

    None where that is not known: XLA wrote no second list, or in another format.
    """
    if not compiled.captured_thunks.strip():
        return None
    try:
        return tuple(_control(parse_thunks(compiled.captured_thunks, ""), False))
    except ValueError:
        return None


def _control(thunks: Sequence[Thunk], inside: bool) -> Iterator[bool]:
    for thunk in thunks:
        if thunk.kind in ("kWhile", "kConditional"):
            yield inside
        for section in thunk.sections:
            yield from _control(section.thunks, inside or thunk.kind == "kCommandBuffer")


def _unknown(compiled: Compiled, why: str) -> dict[int, bool]:
    _log.warning("%s: XLA's two thunk lists differ, so what runs in CUDA graphs is not known: %s", compiled.name, why)
    return {}


def _words(thunk: Thunk) -> str:
    return f"{thunk.id:03d}: {' '.join(_identity(thunk))}"


def _leaves(thunks: Sequence[Thunk], inside: bool) -> Iterator[tuple[Thunk, bool]]:
    for thunk in thunks:
        if not thunk.sections:
            yield thunk, inside
        for section in thunk.sections:
            yield from _leaves(section.thunks, inside or thunk.kind == "kCommandBuffer")


def _identity(thunk: Thunk) -> tuple[str, str]:
    return thunk.kind, " ".join(thunk.description.split())
