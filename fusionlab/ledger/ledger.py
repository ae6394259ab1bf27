"""The launch ledger: the launches of a compiled program, their counts, and the bytes that each launch moves.

XLA writes its list of thunks when it compiles, for an absent GPU too (``codegen.compile``, ``thunks``).

The rule: every leaf thunk other than a copy or a memset is one launch; the body of a loop counts times its trips; the
condition of a loop whose trip count XLA knows never runs. A loop without a known count is taken as one trip (its
condition runs, and the predicate is copied to the host) and is reported. Of a conditional's branches the one with the
most launches counts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.optimised.parser import HloModule
from fusionlab.ledger.copy_fusions import STATIC_SLICES_SINCE
from fusionlab.ledger.dataflow import instructions
from fusionlab.ledger.thunks import SLICED, Section, Thunk, parse_thunks, scheduled_thunks
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
    return tuple(_Ledger(compiled.module).sites(_thunks(compiled)[1], 1, ()))


def count_launches(compiled: Compiled) -> LaunchCounts:
    """The totals of ``launches``."""
    source, thunks = _thunks(compiled)
    sites = tuple(_Ledger(compiled.module).sites(thunks, 1, ()))
    launched, copied = ([site for site in sites if site.is_copy == is_copy] for is_copy in (False, True))
    return LaunchCounts(
        static_launches=sum(site.static for site in launched),
        dynamic_launches=sum(site.dynamic for site in launched),
        static_copies=sum(site.static for site in copied),
        dynamic_copies=sum(site.dynamic for site in copied),
        unknown_trip_loops=sum(site.kind == _TO_HOST for site in copied),
        conditionals=sum(one.kind == "kConditional" for top in thunks for one in top.walk()),
        launch_source=source,
        bytes_accessed=sum(site.dynamic * (site.operand_bytes + site.result_bytes) for site in launched),
        dynamic_collectives=sum(site.dynamic for site in launched if _COLLECTIVE.match(site.kind)),
    )


def _thunks(compiled: Compiled) -> tuple[str, tuple[Thunk, ...]]:
    """The source of the launches and its tree: XLA's thunk list, or its scheduled HLO if there is none to be read."""
    if compiled.thunk_sequence.strip():
        try:
            return THUNK_SEQUENCE, parse_thunks(compiled.thunk_sequence, compiled.thunk_metadata)
        except ValueError as error:
            _log.warning("%s: counting launches from the scheduled HLO: %s", compiled.name, error)
    made_by = re.search(r"jaxlib (\d+)\.(\d+)\.(\d+)", compiled.versions)  # "" for text of others
    static_slices = made_by is None or tuple(map(int, made_by.groups())) >= STATIC_SLICES_SINCE
    return SCHEDULED_HLO, scheduled_thunks(compiled.module, compiled.target.kind == "cuda", static_slices)


class _Ledger:
    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._places = {one.name: (computation, one) for computation, one in instructions(module)}

    def sites(self, thunks: tuple[Thunk, ...], runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        for thunk in thunks:
            if thunk.kind == "kWhile":
                yield from self._loop(thunk, runs, path)
            elif thunk.kind == "kConditional":
                yield from self._branches(thunk, runs, path)
            elif thunk.sections:
                inside = self._named(thunk) if thunk.kind == SLICED else thunk
                for section in inside.sections:
                    yield from self.sites(section.thunks, runs, path)
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
        place = self._places.get(loop.hlo_name)
        trips = place[1].known_trip_count if place and place[1].opcode == "while" else None
        inside = (*path, loop.hlo_name or f"thunk {loop.id}")
        for section in loop.sections:
            known = 0 if section.name == "condition" else trips
            yield from self.sites(section.thunks, runs * (1 if trips is None else known or 0), inside)
        if trips is None:
            computation = place[0].name if place else ""
            yield LaunchSite(loop.hlo_name, _TO_HOST, runs, 0, runs, True, computation, inside, 1, 1)

    def _branches(self, conditional: Thunk, runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        name = conditional.hlo_name or f"thunk {conditional.id}"
        branches = [tuple(self.sites(one.thunks, 1, (*path, f"{name}:{one.name}"))) for one in conditional.sections]
        longest = max(branches, key=lambda sites: sum(one.dynamic for one in sites if not one.is_copy), default=())
        for branch in branches:
            times = runs if branch is longest else 0
            for site in branch:
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
