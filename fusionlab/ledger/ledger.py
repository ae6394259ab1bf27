"""The launch ledger: the launches of a compiled program, their counts, and the bytes that each launch moves.

The rule: every leaf thunk other than a copy or a memset is one launch; the body of a loop counts times its trips; the
condition of a loop whose trip count XLA knows never runs. A loop without a known count is taken as one trip (its
condition runs, and the predicate is copied to the host) and is reported. Of a conditional's branches the one with the
most launches counts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.ledger.thunks import Section, Thunk, parse_thunks, scheduled_thunks
from fusionlab.ledger.traffic import Traffic, traffic_of

_log = logging.getLogger(__name__)

THUNK_SEQUENCE, SCHEDULED_HLO = "xla thunk sequence", "scheduled hlo"

_COPY = re.compile(r"Copy|Memset|Memzero|copy")
_CONTAINERS = frozenset({"kSequential", "kWhile", "kConditional", "kCommandBuffer"})
# Bookkeeping between streams: nothing runs on the device.
_SILENT = re.compile(r"kWaitForStreams|k\w+Done$|kHostSend|kHostRecv|kEvent")


@dataclass(frozen=True)
class LaunchSite:
    """One place in the program that launches something.

    ``trip_count`` is the product of the trips of the loops around it, 0 where it never runs; ``static`` is 1, or 0
    without a thunk; ``dynamic`` is the number of its runs. ``path`` names the loops and conditionals around it,
    outermost first; ``computation`` is the HLO computation that holds the instruction ``hlo_name`` ("" when XLA reports
    no name). Bytes are of one run (model: fusionlab.ledger.traffic). ``thunk_id`` is XLA's number for it (-1: none).
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
    """Totals of a ledger. ``unknown_trip_loops`` were taken as one trip, ``conditionals`` as their longest branch."""

    static_launches: int
    dynamic_launches: int
    static_copies: int
    dynamic_copies: int
    unknown_trip_loops: int
    conditionals: int
    launch_source: str


def launches(compiled: Compiled) -> tuple[LaunchSite, ...]:
    """Every launch and copy of the program, in XLA's order."""
    return tuple(_Ledger(compiled.module).sites(_thunks(compiled)[1], 1, ()))


def count_launches(compiled: Compiled) -> LaunchCounts:
    """The totals of ``launches``."""
    source, thunks = _thunks(compiled)
    sites = tuple(_Ledger(compiled.module).sites(thunks, 1, ()))
    every = [thunk for top in thunks for thunk in top.walk()]
    loops = _loops(compiled.module)
    return LaunchCounts(
        static_launches=sum(site.static for site in sites if not site.is_copy),
        dynamic_launches=sum(site.dynamic for site in sites if not site.is_copy),
        static_copies=sum(site.static for site in sites if site.is_copy),
        dynamic_copies=sum(site.dynamic for site in sites if site.is_copy),
        unknown_trip_loops=sum(one.kind == "kWhile" and loops.get(one.hlo_name) is None for one in every),
        conditionals=sum(one.kind == "kConditional" for one in every),
        launch_source=source,
    )


def bytes_accessed(compiled: Compiled) -> int:
    """Operand plus result bytes of every launch, trips multiplied; copies are not launches. Label it ``model``."""
    return sum(
        site.dynamic * (site.operand_bytes + site.result_bytes) for site in launches(compiled) if not site.is_copy
    )


def launch_source(compiled: Compiled) -> str:
    """The source of the launches: XLA's thunk list, or its scheduled HLO if there is none that can be read."""
    return _thunks(compiled)[0]


def _thunks(compiled: Compiled) -> tuple[str, tuple[Thunk, ...]]:
    if compiled.thunk_sequence.strip():
        try:
            return THUNK_SEQUENCE, parse_thunks(compiled.thunk_sequence, compiled.thunk_metadata)
        except ValueError as error:
            _log.warning("%s: counting launches from the scheduled HLO: %s", compiled.name, error)
    return SCHEDULED_HLO, scheduled_thunks(compiled.module)


def _loops(module: HloModule) -> dict[str, int | None]:
    """While instruction to its known trip count."""
    every = (one for computation in module.computations.values() for one in computation.instructions)
    return {one.name: one.known_trip_count for one in every if one.opcode == "while"}


class _Ledger:
    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._loops = _loops(module)
        self._places: dict[str, tuple[Computation, Instruction]] = {
            one.name: (computation, one)
            for computation in module.computations.values()
            for one in computation.instructions
        }

    def sites(self, thunks: tuple[Thunk, ...], runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        for thunk in thunks:
            if thunk.kind == "kWhile":
                yield from self._loop(thunk, runs, path)
            elif thunk.kind == "kConditional":
                yield from self._branches(thunk, runs, path)
            elif thunk.sections:
                for section in thunk.sections:
                    yield from self.sites(section.thunks, runs, path)
            elif thunk.kind not in _CONTAINERS and not _SILENT.match(thunk.kind):
                yield self._site(thunk, runs, path)

    def _loop(self, loop: Thunk, runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        trips = self._loops.get(loop.hlo_name)
        inside = (*path, loop.hlo_name or f"thunk {loop.id}")
        for section in loop.sections:
            known = 0 if section.name == "condition" else trips
            yield from self.sites(section.thunks, runs * (1 if trips is None else known or 0), inside)
        if trips is None:
            computation = self._places[loop.hlo_name][0].name if loop.hlo_name in self._places else ""
            yield LaunchSite(loop.hlo_name, "condition to host", runs, 0, runs, True, computation, inside, 1, 1)

    def _branches(self, conditional: Thunk, runs: int, path: tuple[str, ...]) -> Iterator[LaunchSite]:
        inside = (*path, conditional.hlo_name or f"thunk {conditional.id}")

        def count(section: Section) -> int:
            return sum(site.dynamic for site in self.sites(section.thunks, 1, inside) if not site.is_copy)

        longest = max(conditional.sections, key=count, default=None)
        for section in conditional.sections:
            yield from self.sites(section.thunks, runs if section is longest else 0, inside)

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
