"""Rebuild a program with its replays replaced by a Laplacian that is computed in another way.

What the passes collapse-replay, sparsify-directions and transpose-replay share: the walk over replays, and the entry
as a JAX callable in which the replay's sum and the gradient come from jets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import RaiseError, Raising, raise_nodes
from fusionlab.codegen.raising.rebuild import rebuild
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.invariants import has_effect
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.value_numbers import merge_equal
from fusionlab.hlo.view import Node, view_of
from fusionlab.passes.interface import Applied, Declined, Event, Kind, Pass, Result, Setting, verify
from fusionlab.passes.laplacian_entry import NotInParts, RewrittenEntry
from fusionlab.passes.laplacian_finding import Laplacian
from fusionlab.passes.laplacian_search import Findings
from fusionlab.passes.region_views import RaisingWithRegion, enclosing_regions, view_of_region
from fusionlab.passes.sums_over_directions import DirectionSum, NoLaplacian, NotSeen, sum_of_loop, sums_without_loop

Function = Callable[..., tuple[Any, ...]]

_MOST_FLOPS = 0.8
"""Where there is no loop to be rid of, the rewritten program needs at most this part of the FLOPs."""


def rewrite_replays(
    program: Program, by: Pass, how: Options, chunks: int, setting: Setting, findings: Findings
) -> Result:
    """Replace every replay of the program's entry; ``chunks`` parts of the walkers one after another."""
    platform = setting.platform if program.platform == "any" else program.platform
    how = replace(how, for_cpu=platform == "cpu", low_memory=chunks > 1)
    events: dict[Event, None] = {}
    left_alone: Counter[Hashable] = Counter()
    while True:
        attempt = _Attempt(program, by, how, chunks, platform, findings)
        applied = attempt.first(left_alone, events)
        if applied is None:
            return Result(program, tuple(events))
        program = applied[0]
        events[applied[1]] = None


class _Attempt:
    """One look at a program, for the first sum over directions in it that can be replaced."""

    def __init__(
        self, program: Program, by: Pass, how: Options, chunks: int, platform: str, findings: Findings
    ) -> None:
        self.program, self.by, self.how, self.chunks, self.platform = program, by, how, chunks, platform
        self.findings = findings
        self.module = program.parse()
        self.flat = view_of(self.module)
        merge_equal(self.flat)

    def first(self, left_alone: Counter[Hashable], events: dict[Event, None]) -> tuple[Program, Applied] | None:
        """The program with one sum replaced; ``left_alone`` counts, by what they look like, those that cannot be."""
        places = {event.location for event in events if isinstance(event, Applied)}
        passed: Counter[Hashable] = Counter()
        for looks, replay, question in self._sums():
            passed[looks] += 1
            if passed[looks] <= left_alone[looks]:
                continue
            found = self._replaced(replay, question)
            if isinstance(found, tuple):
                return found
            left_alone[looks] += 1
            if found is not None and not (found.location in places and self._is_over_parts(replay)):
                events[found] = None
        return None

    def _is_over_parts(self, replay: Replay | None) -> bool:
        """Whether a loop of a scope where something was applied goes over parts of the walkers: that was reported."""
        return replay is not None and (bool(replay.blockers) or replay.trips == self.chunks > 1)

    def _sums(self) -> Iterator[tuple[Hashable, Replay | None, DirectionSum | None]]:
        for replay in inventory(self.flat):
            node = replay.loop.node
            yield (node.scope, replay.trips), replay, None
        for question in sums_without_loop(self.flat):
            yield (question.scope, question.directions), None, question

    def _replaced(
        self, replay: Replay | None, question: DirectionSum | None
    ) -> tuple[Program, Applied] | Declined | None:
        """The rewritten program, or why not; None for an identity without a Laplacian."""
        scope = replay.loop.node.scope if replay else question.scope if question else ""
        try:
            if replay is not None:
                question = self._question(replay)
            assert question is not None
            return self._rewritten(question)
        except _Refused as refused:
            return Declined(self.by.name, refused.kind, str(refused), scope)
        except NoLaplacian as reason:
            known = replay is not None or isinstance(reason, NotSeen)
            return Declined(self.by.name, "unsafe", str(reason), scope) if known else None
        except (NotInParts, RaiseError, NotImplementedError) as error:
            return Declined(self.by.name, "unsupported", str(error), scope) if replay is not None else None

    def _question(self, replay: Replay) -> DirectionSum:
        if replay.blockers:
            raise NoLaplacian(replay.blockers[0])
        regions = enclosing_regions(self.flat, replay.loop.node)
        return sum_of_loop(view_of_region(self.flat, regions) if regions else self.flat, replay)

    def _rewritten(self, question: DirectionSum) -> tuple[Program, Applied]:
        effect = next((node for node in self.flat.walk() if not node.regions and has_effect(node)), None)
        if effect is not None:
            raise NoLaplacian(f"{effect.label} has an effect, which a rebuilt entry would not have")
        program, by = self.program, self.by
        found = self.findings.find(question, program.digest)
        origins: dict[int, Node] = {}
        raising = Raising(marks=origins, fold=True)
        function = self._entry(question, RewrittenEntry(question, found, raising, self.how, self.chunks), raising)
        with self.module.context:  # where the locations of the view's nodes live
            module = ir.Module.parse(program.bytecode)
        rebuild(module, function, name=by.name.replace("-", "_"), platform=self.platform, origins=origins)
        verify(module, by.name)
        if question.replay is None:
            part = program_cost(view_of(module)).flops / max(program_cost(self.flat).flops, 1)
            if part > _MOST_FLOPS:
                raise _Refused("unprofitable", f"without a loop to be rid of, {part:.2f} times the FLOPs do not pay")
        known = None if program.platform == "any" else program.platform
        rebuilt = Program.from_module(module, name=program.name, provenance=program.provenance, platform=known)
        return rebuilt, Applied(by.name, _describe(question, found, self.chunks), question.scope, str(by))

    def _entry(self, question: DirectionSum, rewritten: Function, raising: Raising) -> Function:
        """The whole entry; where ``rewritten`` is a region of it, as it stands but for that region."""
        if question.flat is self.flat:
            return rewritten
        region = enclosing_regions(self.flat, question.producer)[-1]
        around = RaisingWithRegion(
            marks=raising.marks,
            fold=True,
            replaced=region,
            arguments=question.flat.arguments,
            function=rewritten,
        )
        return raise_nodes(self.flat.nodes, self.flat.arguments, self.flat.returns, around)


class _Refused(Exception):
    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def _describe(question: DirectionSum, found: Laplacian, chunks: int) -> str:
    factor = "" if found.scale == 1 else f"{found.scale:g} times "
    squares = "" if not found.squares else f" and {found.squares:g} times its squared gradient"
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    parts = f"; the walkers in {chunks} parts" if chunks > 1 else ""
    what = f"{question.directions} {'trips' if question.replay else 'directions at once'}"
    return (
        f"{what} are {factor}the Laplacian of %{found.output.id} ({found.output.type}) with respect to "
        f"%{found.x.id} ({found.x.type}){squares}{gradient}{parts}"
    )
