"""The origin of a launch: the name stack and the source line of the ops in it, from the metadata of HLO.

XLA leaves one op_name on a fusion, that of its root. Its members keep theirs, so a fusion is attributed to the origin
of most of its work: every computing member votes with the elements of its result, a reduction with those that it reads,
a scatter with its updates, a matrix product or convolution with its terms. Index arithmetic (integers and predicates)
has no vote beside a reduction, product, scatter, sort or FFT; members that only move data vote when none computes. In a
program with stages votes are for phase, stage and role, and members that have them come first; in any other program
they are for the scope.

A kernel without a member named by JAX (introduced by XLA: layout changes, zero fills, concatenated weights) gets the
origin of its readers; where these have none, that of its producers; and at last that of the loop around it. What an
origin means (scope, op, transformation, stage) is said by ``views``.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.kernel_cost import family_of_kernel, terms_of
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.hlo.stages import Attribution, attribute, has_stages
from fusionlab.ledger.dataflow import behind_views, instructions, members, readers

_NOT_A_VOTER = ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "iota")
_MOVES_DATA = ("layout", "constant", "control")
_DOES_THE_WORK = ("reduce", "reduce-window", "dot", "convolution", "scatter", "select-and-scatter", "sort", "fft")
_INDEX_TYPE = re.compile(r"[su]\d|pred")
_PASSED_ON = ("bitcast", "get-tuple-element", "copy")
_CONTROL = ("while", "conditional")
_NOT_A_READER = ("tuple", *_CONTROL)
_MOST_KERNELS_BETWEEN = 4
_CONVOLUTION = "__cudnn$conv"
_TAKEN_ALONG = ("transpose", "reshape", "broadcast_in_dim", "squeeze", "convert_element_type")

BY_MEMBERS, BY_READERS, BY_PRODUCERS, BY_LOOP = "members", "readers", "producers", "loop"
BY = {
    BY_MEMBERS: "most of the work in the kernel",
    BY_READERS: "XLA's own: the kernels that read it",
    BY_PRODUCERS: "XLA's own: the kernels that it reads",
    BY_LOOP: "XLA's own: the loop or branch around it",
}
"""How a launch is attributed, in words."""


@dataclass(frozen=True)
class Origin:
    """Where a launch comes from: ``op_name`` is a name stack, ``source`` ("file.py:12") the innermost line of the user.

    ``caller`` is the innermost line outside of installed packages ("" when it is not known). ``op`` is the primitive,
    or the HLO opcode where there is no name stack. Phase, stage and role are as in ``hlo.stages``, each "" when
    unknown. ``share`` is the part of the votes that agrees (1.0 when everything fused comes from one place). ``by`` is
    one of BY, or "" for an unknown origin. ``scopes`` and ``sources`` are those of everything in the kernel, the
    heaviest first; ``parts`` are its ops, as ``scope/op (source)``.
    """

    phase: str = ""
    stage: str = ""
    role: str = ""
    share: float = 0.0
    op_name: str = ""
    source: str = ""
    caller: str = ""
    op: str = ""
    by: str = ""
    scopes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def is_staged(self) -> bool:
        """True if phase or stage is known."""
        return bool(self.phase or self.stage)

    @property
    def is_known(self) -> bool:
        """True if a name stack or a source line is known."""
        return bool(self.op_name or self.source)


class Origins:
    """The origins of the launches of one module."""

    def __init__(self, module: HloModule) -> None:
        self._module = module

    def of(self, computation: Computation, instruction: Instruction) -> Origin:
        """The origin of the kernel launched for ``instruction`` of ``computation``; see the module's docstring."""
        own, by_readers = self.of_members(instruction), Origin()
        if not (own.is_staged if self._staged else own.is_known):
            by_readers = self.of_readers(computation, instruction)
            if self._staged and not by_readers.is_staged and own.is_known:
                by_readers = Origin()
        found = by_readers if by_readers.is_known else own
        if not found.is_known:
            found = self._of_others(computation, instruction)
        op = found.op if found.by == BY_MEMBERS and found.op else own.op
        scopes, sources = own.scopes or found.scopes, own.sources or found.sources
        return dataclasses.replace(found, op=op, scopes=scopes, sources=sources, parts=own.parts)

    def of_members(self, instruction: Instruction) -> Origin:
        """The origin of what ``instruction`` runs."""
        inside = list(members(self._module, instruction))
        named = [one for one in inside if self._is_named(one)]
        voters = [one for one in named if one.opcode not in _NOT_A_VOTER] or named
        computing = [one for one in voters if family_of_kernel(one.name, one.opcode) not in _MOVES_DATA]
        voting = _without_indices(computing) or voters
        working = [one for one in reversed(inside) if one.opcode not in _NOT_A_VOTER and not one.is_fusion]
        working = _without_indices(working)
        heaviest = max(working, key=self._weight, default=instruction)  # of equals, the root
        if not voting:
            return Origin(op=_opcode(heaviest))
        votes: Counter[Hashable] = Counter()
        for one in voting:
            votes[self._ballot(one)] += self._weight(one)
        known = {ballot: weight for ballot, weight in votes.items() if ballot} or votes
        winner = max(known, key=lambda ballot: known[ballot])
        agreeing = sorted((one for one in voting if self._ballot(one) == winner), key=self._weight, reverse=True)
        one = next((one for one in agreeing if self._module.source_of(one)), agreeing[0])
        if self._staged:
            one = agreeing[0]
        found = attribute(one.op_name) if one.op_name else Attribution("", "", "")
        placed = [one, *agreeing, *sorted(voting, key=self._weight, reverse=True)]
        return Origin(
            phase=found.phase,
            stage=found.stage,
            role=found.role if found.phase or found.stage else "",
            share=votes[winner] / votes.total(),
            op_name=one.op_name,
            source=next(filter(None, map(self._source, placed)), ""),
            caller=next(filter(None, map(self._caller, placed)), ""),
            op=_opcode(heaviest) if one.opcode in _NOT_A_VOTER and working else _op(one),
            by=BY_MEMBERS,
            scopes=self._distinct(named, lambda member: read_name(member.op_name).scope),
            sources=self._distinct(named, self._source),
            parts=self._distinct(named, self._part),
        )

    def of_readers(self, computation: Computation, instruction: Instruction) -> Origin:
        """The origin that most readers of ``instruction`` have, through kernels without an origin of their own."""
        reading = self._around(instruction, lambda one: readers(computation, one.name, _PASSED_ON))
        return self._majority(reading, BY_READERS)

    def _of_others(self, computation: Computation, instruction: Instruction) -> Origin:
        """The origin of producers, else of the loop or branch that runs ``computation``. Both say nothing of stages."""

        def producers(one: Instruction) -> list[Instruction]:
            names = dict.fromkeys(behind_views(computation, operand)[0] for operand in one.operands)
            return [computation.by_name[name] for name in names if name in computation.by_name]

        found = self._majority(self._around(instruction, producers), BY_PRODUCERS)
        if not found.is_known and (loop := self._loop_of(computation, instruction)) is not None:
            found = dataclasses.replace(self.of_members(loop), by=BY_LOOP)
        return dataclasses.replace(found, phase="", stage="", role="") if found.is_known else Origin()

    def _loop_of(self, computation: Computation, instruction: Instruction) -> Instruction | None:
        """The loop or conditional that ``instruction`` prepares an operand of, else the one that runs it."""
        reading = readers(computation, instruction.name, (*_PASSED_ON, "tuple"))
        into = (one for one in reading if one.opcode in _CONTROL)
        return next(into, self._callers.get(computation.name))

    def _around(
        self, instruction: Instruction, beside: Callable[[Instruction], Sequence[Instruction]]
    ) -> list[Instruction]:
        """The nearest instructions on one side of ``instruction`` that have an origin of their own."""
        seen, at = {instruction.name}, [instruction]
        for _ in range(_MOST_KERNELS_BETWEEN):
            near = {one.name: one for each in at for one in beside(each) if one.name not in seen}
            seen |= set(near)
            at = [one for one in near.values() if one.opcode not in (*_PASSED_ON, *_NOT_A_READER)]
            if known := [one for one in at if self.of_members(one).is_known]:
                return known
            at = [one for one in near.values() if one.opcode not in _CONTROL]
        return []

    def _majority(self, beside: Sequence[Instruction], by: str) -> Origin:
        found = [self.of_members(one) for one in beside]
        votes = Counter(self._key(one) for one in found if one.is_known)
        staged = Counter(self._key(one) for one in found if one.is_staged) if self._staged else votes
        if not votes:
            return Origin()
        winner, count = (staged or votes).most_common(1)[0]
        like = next(one for one in found if self._key(one) == winner)
        return dataclasses.replace(like, share=count / len(found), by=by)

    def _key(self, one: Origin) -> Hashable:
        return (one.phase, one.stage, one.role) if self._staged else read_name(one.op_name).scope

    def _ballot(self, one: Instruction) -> Hashable:
        """What a member votes for; false for a member that does not know."""
        if not self._staged:
            name = read_name(one.op_name)
            return (name.scope, name.transform) if one.op_name else ""
        found = attribute(one.op_name)
        return found if found.phase or found.stage else ""

    def _distinct(self, inside: Iterable[Instruction], label: Callable[[Instruction], str]) -> tuple[str, ...]:
        """The labels of ``inside``, each once, those of most work first."""
        weights: Counter[str] = Counter()
        for one in inside:
            if one.opcode not in _NOT_A_VOTER and (found := label(one)):
                weights[found] += self._weight(one)
        return tuple(found for found, _ in weights.most_common())

    def _weight(self, one: Instruction) -> int:
        return terms_of(self._homes[one], one)

    @cached_property
    def _homes(self) -> dict[Instruction, Computation]:
        """The computation of every instruction."""
        return {one: computation for computation, one in instructions(self._module)}

    @cached_property
    def _staged(self) -> bool:
        """True if scopes of the module are stages: then votes are for these."""
        return has_stages({one.op_name for _, one in instructions(self._module)})

    @cached_property
    def _arguments(self) -> frozenset[str]:
        """The names of arguments (``args[0]['weight']``): XLA gives them to what it makes of these."""
        return frozenset(one.op_name for one in self._module.entry.instructions if one.opcode == "parameter")

    @cached_property
    def _callers(self) -> dict[str, Instruction]:
        """By computation, the loop, conditional or call that runs it."""
        return {name: one for _, one in instructions(self._module) if not one.is_fusion for name in one.called}

    def _is_named(self, one: Instruction) -> bool:
        """True if a name is a name stack or comes with a source line; arguments are named after themselves."""
        name = one.op_name
        if name.startswith("jit(") or "/" in name.partition("[")[0]:
            return True
        return name not in self._arguments and self._module.source_of(one) is not None

    def _source(self, one: Instruction) -> str:
        place = self._module.source_of(one)
        return _short(*place) if place else ""

    def _part(self, one: Instruction) -> str:
        name = read_name(one.op_name)
        return part_of(name.scope, _op(one), self._source(one))

    def _caller(self, one: Instruction) -> str:
        return next((_short(*place) for place in self._module.callers_of(one) if not _is_installed(place[0])), "")


def _without_indices(found: list[Instruction]) -> list[Instruction]:
    """All but index arithmetic, where another op does the work of the kernel."""
    if not any(one.opcode in _DOES_THE_WORK for one in found):
        return found
    return [one for one in found if one.opcode in _DOES_THE_WORK or not _INDEX_TYPE.match(one.shape.dtype)]


def part_of(scope: str, op: str, source: str) -> str:
    """One op as text: ``scope/op (source)``."""
    return "/".join(filter(None, (scope, op))) + (f" ({source})" if source else "")


def _op(one: Instruction) -> str:
    """The primitive that ``one`` is of, else the name that XLA has for it.

    XLA names a product after the transposition or conversion that it takes with it: that is not what the call does.
    """
    op, target = read_name(one.op_name).op, one.custom_call_target
    if op in _TAKEN_ALONG and target.startswith(_CONVOLUTION):
        return "conv_general_dilated"
    if op in _TAKEN_ALONG and target and family_of_kernel(one.name, one.opcode, target) == "gemm":
        return "dot_general"
    return op or _opcode(one)


def _opcode(one: Instruction) -> str:
    """The name of an op that JAX did not name: its HLO opcode, or the library function that it calls."""
    return one.custom_call_target or one.opcode.replace("-", "_")


def _short(file: str, line: int) -> str:
    return f"{file.rpartition('/')[2]}:{line}"


def _is_installed(file: str) -> bool:
    return any(part in file for part in ("site-packages", "dist-packages", "/lib/python", "<frozen"))
