"""The launch ledger: the launches of a compiled program, their counts, and the bytes that each launch moves.

XLA writes its list of thunks when it compiles, for an absent GPU too (``codegen.compile``, ``thunks``); that of the CPU
is in the executable (``cpu_thunks``).

The rule: every leaf thunk other than a copy or a memset is one launch; the body of a loop counts times its trips; the
condition of a loop whose trip count XLA knows never runs. A loop without a known count is taken as one trip (its
condition runs, and a GPU copies the predicate to the host) and is reported. Of a conditional's branches the one with
the most launches counts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import CompileError
from fusionlab.hlo.optimised.parser import HloModule
from fusionlab.ledger.copy_fusions import STATIC_SLICES_SINCE
from fusionlab.ledger.cpu_thunks import parse_cpu_thunks
from fusionlab.ledger.dataflow import instructions
from fusionlab.ledger.sort_copies import sort_copies
from fusionlab.ledger.thunks import (
    SLICED,
    Section,
    Thunk,
    branches_of,
    captured_control,
    parse_thunks,
    scheduled_thunks,
)
from fusionlab.ledger.traffic import Traffic, traffic_of

_log = logging.getLogger(__name__)

THUNK_SEQUENCE, SCHEDULED_HLO = "xla thunk sequence", "scheduled hlo"

_TO_HOST = "condition to host"
_COPY = re.compile(r"Copy|Memset|Memzero|copy")
_COLLECTIVE = re.compile(r"(?i)k?(ragged-?)?(all|collective|reduce)-?(reduce|gather|to-?all|permute|broadcast|scatter)")
_CONTAINERS = frozenset({"kSequential", "kWhile", "kConditional", "kCommandBuffer"})
# Bookkeeping between streams: nothing runs on the device.
_SILENT = re.compile(r"kWaitForStreams|k\w+Done$|kHostSend|kHostRecv|kEvent")


@dataclass(frozen=True)
class LaunchSite:
    """One place in the program that launches something.

    ``trip_count`` is the product of the trips of the loops around it, 0 where it never runs; ``static`` is 1, or 0
    without a thunk; ``dynamic`` is the number of its runs. ``path`` names the loops around it and the branches of
    conditionals (``cond.3:true_branch``), outermost first; ``computation`` is the HLO computation that holds the
    instruction ``hlo_name`` ("" when XLA reports no name). Bytes are of one run (model: fusionlab.ledger.traffic).
    ``thunk_id`` is XLA's number for it (-1: none).
    """

    hlo_name: str
    kind: str
    trip_count: int
    static: int
    dynamic: int
    is_copy: bool
    computation: str
    path: tuple[str, ...]
    operand_bytes: int
    result_bytes: int
    thunk_id: int = -1


@dataclass(frozen=True)
class ControlSite:
    """One loop or conditional, which runs ``runs`` times; names and ``path`` are as in ``LaunchSite``.

    ``trips`` is the trip count of a loop, None where XLA does not know it. ``branches`` of a conditional are label,
    computation ("" for unknown) and the launches of one run of each; ``counted`` is the label of the one that counts.
    ``in_cuda_graph`` is None where XLA does not report it.
    """

    hlo_name: str
    computation: str
    path: tuple[str, ...]
    runs: int
    is_loop: bool
    trips: int | None = None
    branches: tuple[tuple[str, str, int], ...] = ()
    counted: str = ""
    in_cuda_graph: bool | None = None


@dataclass(frozen=True)
class LaunchCounts:
    """Totals of a ledger. ``dynamic_collectives`` are those of the launches that wait for other devices;
    ``unknown_trip_loops`` were taken as one trip, ``conditionals`` as their longest branch;
    ``bytes_accessed`` are operand and result bytes of every launch, trips multiplied, without copies (model)."""

    static_launches: int
    dynamic_launches: int
    static_copies: int
    dynamic_copies: int
    unknown_trip_loops: int
    conditionals: int
    launch_source: str
    bytes_accessed: int
    dynamic_collectives: int


def launches(compiled: Compiled) -> tuple[LaunchSite, ...]:
    """Every launch and copy of the program, in XLA's order."""
    return Reading(compiled).launches


def count_launches(compiled: Compiled) -> LaunchCounts:
    """The totals of ``launches``."""
    return Reading(compiled).counts


def thunk_text(compiled: Compiled) -> str:
    """XLA's thunk list as text: as XLA prints it for a GPU; for the CPU, kind and HLO instruction of each thunk."""
    return compiled.thunk_sequence or "".join(f"{line}\n" for line in _lines(_thunks(compiled)[1], ""))


def _lines(thunks: tuple[Thunk, ...], indent: str) -> Iterator[str]:
    for thunk in thunks:
        yield f"{indent}{thunk.description or thunk.kind} {thunk.hlo_name}".rstrip()
        for section in thunk.sections:
            yield from [f"{indent}  {section.name}:"] if section.name else []
            yield from _lines(section.thunks, indent + "    ")


def _thunks(compiled: Compiled) -> tuple[str, tuple[Thunk, ...]]:
    """The source of the launches and its tree: XLA's thunk list, or its scheduled HLO if there is none to be read."""
    try:
        if compiled.thunk_sequence.strip():
            return THUNK_SEQUENCE, parse_thunks(compiled.thunk_sequence, compiled.thunk_metadata)
        if compiled.target.kind == "cpu" and compiled.executable is not None:
            return THUNK_SEQUENCE, parse_cpu_thunks(compiled.executable_bytes)
    except (ValueError, CompileError) as error:
        # As text: a record that is kept would keep the error's frames, and with them the compiled program.
        _log.warning("%s: counting launches from the scheduled HLO: %s", compiled.name, str(error))
    made_by = re.search(r"jaxlib (\d+)\.(\d+)\.(\d+)", compiled.versions)  # "" for text of others
    static_slices = made_by is None or tuple(map(int, made_by.groups())) >= STATIC_SLICES_SINCE
    on_gpu = compiled.target.kind == "cuda"
    copies = sort_copies(compiled.module, compiled.buffer_assignment) if on_gpu else {}
    return SCHEDULED_HLO, scheduled_thunks(compiled.module, on_gpu, static_slices, copies)


@dataclass(frozen=True)
class _Branch:
    """A branch of a conditional: its computation, its thunks, and the sites of one run."""

    computation: str
    thunks: tuple[Thunk, ...]
    sites: tuple[LaunchSite, ...]

    @property
    def launches(self) -> int:
        return sum(one.dynamic for one in self.sites if not one.is_copy)


class Reading:
    """XLA's thunk list of a compiled program, read once for all that is made of it."""

    def __init__(self, compiled: Compiled) -> None:
        self.launch_source, self._thunks = _thunks(compiled)
        self._compiled = compiled
        self._module: HloModule = compiled.module
        self._on_gpu = compiled.target.kind == "cuda"
        self._places = {one.name: (computation, one) for computation, one in instructions(self._module)}

    @cached_property
    def launches(self) -> tuple[LaunchSite, ...]:
        """Every launch and copy of the program, in XLA's order."""
        return tuple(self._sites(self._thunks, 1, ()))

    @cached_property
    def control_sites(self) -> tuple[ControlSite, ...]:
        """Every loop and conditional of the program, in XLA's order, the outer before the inner ones."""
        found = tuple(self._control(self._thunks, 1, ()))
        captured = captured_control(self._compiled)
        if captured is None or len(captured) != len(found):
            return found
        return tuple(replace(site, in_cuda_graph=inside) for site, inside in zip(found, captured, strict=True))

    @cached_property
    def counts(self) -> LaunchCounts:
        """The totals of ``launches``."""
        launched, copied = ([site for site in self.launches if site.is_copy == copy] for copy in (False, True))
        every = [one for top in self._thunks for one in top.walk()]
        return LaunchCounts(
            static_launches=sum(site.static for site in launched),
            dynamic_launches=sum(site.dynamic for site in launched),
            static_copies=sum(site.static for site in copied),
            dynamic_copies=sum(site.dynamic for site in copied),
            unknown_trip_loops=sum(one.kind == "kWhile" and self._trips(one) is None for one in every),
            conditionals=sum(one.kind == "kConditional" for one in every),
            launch_source=self.launch_source,
            bytes_accessed=sum(site.dynamic * (site.operand_bytes + site.result_bytes) for site in launched),
            dynamic_collectives=sum(site.dynamic for site in launched if _COLLECTIVE.match(site.kind)),
        )

    def _trips(self, loop: Thunk) -> int | None:
        """The trip count of a loop where XLA knows it."""
        place = self._places.get(loop.hlo_name)
        return place[1].known_trip_count if place and place[1].opcode == "while" else None

    def _sites(self, thunks: tuple[Thunk, ...], runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        for thunk in thunks:
            if thunk.kind == "kWhile":
                yield from self._loop(thunk, runs, path)
            elif thunk.kind == "kConditional":
                yield from self._branches(thunk, runs, path)
            elif thunk.sections:
                inside = self._named(thunk) if thunk.kind == SLICED else thunk
                for section in inside.sections:
                    yield from self._sites(section.thunks, runs, path)
            elif thunk.kind not in _CONTAINERS and not _SILENT.match(thunk.kind):
                yield self._site(thunk, runs, path)

    def _named(self, fusion: Thunk) -> Thunk:
        """A library call fused with the slices it reads or writes, its thunk named after the call: XLA names only the
        fusion, and the profiler only the call."""
        place = self._places.get(fusion.hlo_name)
        inside = [self._module.computations[name] for name in place[1].called] if place else []
        calls = [one.name for each in inside for one in each.instructions if one.opcode == "custom-call"]
        leaves = [one for section in fusion.sections for one in section.thunks]
        if len(calls) != 1 or len(leaves) != 1 or leaves[0].sections or leaves[0].hlo_name:
            return fusion
        return replace(fusion, sections=(Section("", (replace(leaves[0], hlo_name=calls[0]),)),))

    def _loop(self, loop: Thunk, runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        place, trips = self._places.get(loop.hlo_name), self._trips(loop)
        inside = (*path, loop.hlo_name or f"thunk {loop.id}")
        for section in loop.sections:
            known = 0 if section.name == "condition" else trips
            yield from self._sites(section.thunks, runs * (1 if trips is None else known or 0), inside)
        if trips is None and self._on_gpu:
            computation = place[0].name if place else ""
            yield LaunchSite(loop.hlo_name, _TO_HOST, runs, 0, runs, True, computation, inside, 1, 1)

    def _longest(self, conditional: Thunk, path: tuple[str, ...]) -> tuple[str, dict[str, _Branch]]:
        """The label of the branch with most launches, and every branch by its label."""
        name = conditional.hlo_name or f"thunk {conditional.id}"
        branches = {
            label: _Branch(where, thunks, tuple(self._sites(thunks, 1, (*path, f"{name}:{label}"))))
            for label, where, thunks in self._parts(conditional)
        }
        return max(branches, key=lambda label: branches[label].launches, default=""), branches

    def _parts(self, conditional: Thunk) -> list[tuple[str, str, tuple[Thunk, ...]]]:
        """Label, computation ("" for unknown) and thunks of each branch.

        The labels are those of the HLO: XLA's list calls the first branch false, and in the HLO that is the true one.
        """
        place = self._places.get(conditional.hlo_name)
        labels = {where: label for label, where in branches_of(place[1])} if place else {}
        places = [self._home(section.thunks) for section in conditional.sections]
        left = [where for where in labels if where not in places]
        if len(left) == 1 == places.count(""):
            places[places.index("")] = left[0]
        if len(set(places)) < len(places) or not set(places) <= set(labels):
            return [(section.name, "", section.thunks) for section in conditional.sections]
        found = zip(places, conditional.sections, strict=True)
        return [(labels[where], where, section.thunks) for where, section in found]

    def _home(self, thunks: tuple[Thunk, ...]) -> str:
        """The computation that a sequence of thunks runs; "" where no thunk has a name."""
        named = (one.hlo_name for top in thunks for one in top.walk() if one.hlo_name in self._places)
        return next((self._places[name][0].name for name in named), "")

    def _control(self, thunks: tuple[Thunk, ...], runs: int, path: tuple[str, ...]) -> Iterator[ControlSite]:
        """The loops and conditionals among ``thunks``, which run ``runs`` times, and inside them."""
        for thunk in thunks:
            inside, times = path, {one.name: runs for one in thunk.sections}
            name = thunk.hlo_name or f"thunk {thunk.id}"
            where = self._places[thunk.hlo_name][0].name if thunk.hlo_name in self._places else ""
            if thunk.kind == "kWhile":
                trips = self._trips(thunk)
                yield ControlSite(name, where, path, runs, True, trips)
                inside = (*path, name)
                times = {"condition": runs if trips is None else 0, "body": runs * (1 if trips is None else trips)}
            elif thunk.kind == "kConditional":
                counted, branches = self._longest(thunk, path)
                sizes = tuple((label, branch.computation, branch.launches) for label, branch in branches.items())
                yield ControlSite(name, where, path, runs, False, None, sizes, counted)
                for label, branch in branches.items():
                    within = (*path, f"{name}:{label}")
                    yield from self._control(branch.thunks, runs if label == counted else 0, within)
                continue
            for section in thunk.sections:
                yield from self._control(section.thunks, times[section.name], inside)

    def _branches(self, conditional: Thunk, runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        counted, branches = self._longest(conditional, path)
        for label, branch in branches.items():
            times = runs if label == counted else 0
            for site in branch.sites:
                yield replace(site, trip_count=times * site.trip_count, dynamic=times * site.dynamic)

    def _site(self, thunk: Thunk, runs: int, path: tuple[str, ...]) -> LaunchSite:
        is_copy = _COPY.search(thunk.kind) is not None
        traffic, name = Traffic(0, 0), ""
        if thunk.hlo_name in self._places:
            computation, instruction = self._places[thunk.hlo_name]
            traffic, name = traffic_of(self._module, computation, instruction), computation.name
        return LaunchSite(
            thunk.hlo_name, thunk.kind, runs, 1, runs, is_copy, name, path, traffic.operand_bytes, traffic.result_bytes,
            thunk.id,
        )  # fmt: skip
