"""Rebuild a program with its sums over directions replaced by a Laplacian that is computed in another way.

Shared by the passes collapse-replay, sparsify-directions and transpose-replay: the places of a program where directions
are pushed, each decided once (``decide``), and the program with what ``emit`` makes of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from jaxlib.mlir import ir

from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import RaiseError, Raising, raise_nodes
from fusionlab.codegen.raising.regions import RaisingWithRegion
from fusionlab.codegen.raising.splice import rebuild
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import Program
from fusionlab.hlo.region_views import enclosing_regions
from fusionlab.passes.fuse_jvp_replay.described import described, psi_per_direction
from fusionlab.passes.fuse_jvp_replay.emit import Emission
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import end_of_search
from fusionlab.passes.fuse_jvp_replay.sites import Site, View, view_of
from fusionlab.passes.interface import Applied, Declined, Pass, Result, Setting, verify
from fusionlab.passes.refusals import NO_MATCH, Ground, Refusal, ground_of_blocker, refused

_MOST_FLOPS = 0.8
"""Without a loop to remove, the rewritten program may need at most this part of the FLOPs."""


def rewrite_replays(program: Program, by: Pass, options: Options, chunks: int, setting: Setting) -> Result:
    """Replace the sums over directions of the program; ``chunks`` parts of the walkers one after another.

    The refusals follow what was applied: those of Laplacians without a loop, then those of loops, the most similar to a
    replay first. Of other sums without a loop (an identity matrix has many uses) one is reported if nothing else is.
    """
    platform = setting.platform if program.platform == "any" else program.platform
    options = replace(options, for_cpu=platform == "cpu", low_memory=chunks > 1)
    deadline, first = end_of_search(), view_of(program, setting)
    kinds = {kind for site in first.sites for kind in site.kinds}  # others are made by a rewriting
    applied = list[Applied]()
    left_alone: dict[Hashable, Refusal] = {}  # by structure, in programs that change
    while True:
        view, passed, refusals = view_of(program, setting), Counter[Hashable](), list[tuple[Site, Refusal]]()
        for site in (site for site in view.sites if not kinds.isdisjoint(site.kinds)):
            passed[site.looks] += 1
            key = site.looks, passed[site.looks]
            try:
                if key in left_alone:
                    raise left_alone[key].again()
                found = site.decision(deadline)
                entry = Emission(found, Raising(marks={}, fold=True), options, chunks)
                program, events = _rewritten(program, view, entry, by, platform)
                applied += events
                break
            except (Refusal, RaiseError, NotImplementedError) as reason:
                left_alone[key] = refused(reason)
                refusals.append((site, left_alone[key]))
        else:
            break
    return Result(program, (*applied, *_declined(first, view, refusals, by, bool(applied))))


def _rewritten(program: Program, view: View, entry: Emission, by: Pass, platform: str) -> tuple[Program, list[Applied]]:
    """The program with ``entry``, with an event for each of its loops, the first with its sparsity; Refusal if they
    stay."""
    found = entry.found
    try:
        rebuilt = _rebuilt(program, view, entry, by.name, platform)
    except (TypeError, ValueError) as error:
        if not found.marks:
            raise
        reason = f"an axis of another extent is taken for that of the walkers: {str(error).splitlines()[0]}"
        raise Refusal(Ground.AXES_MISTAKEN, reason) from error
    if not found.loops:
        part = program_cost(rebuilt).flops / max(program_cost(view.flat).flops, 1)
        if part > _MOST_FLOPS:
            raise Refusal(Ground.NO_GAIN, f"without a loop to remove, {part:.2f} times the FLOPs do not pay")
    what = described(found) + (f"; the walkers in {entry.chunks} parts" if entry.chunks > 1 else "")
    what += psi_per_direction(rebuilt, view, found)
    sums = [(f"{loop.trips} trips", loop.node) for loop in found.loops]
    sums = sums or [(f"{found.coordinates.count} directions at once", entry.producer)]
    lost = next((run.sparsity for run in reversed(entry.runs) if run.sparsity is not None), None)
    events = [Applied(by.name, f"{of} are {what}", node.scope, str(by)) for of, node in sums]
    return rebuilt, [replace(events[0], sparsity=lost), *events[1:]]


def _declined(
    first: View, last: View, refusals: Sequence[tuple[Site, Refusal]], by: Pass, is_applied: bool
) -> Iterator[Declined]:
    """The refusals of the loops that the ``first`` view has and the ``last`` still has; those of sums without a loop
    that are Laplacians; of another, if there is nothing else to report. ``refusals`` are of the ``last`` view."""
    of_sites = {node: reason for site, reason in refusals for node in site.loops}
    there = {replay.loop.node.scope for replay in last.replays}
    blocked = [replay for replay in first.replays if replay.blockers and replay.loop.node.scope in there]
    others = [replay for replay in last.replays if not replay.blockers]
    without_loop = [(site, reason) for site, reason in refusals if not site.loops]
    likely = [each for each in without_loop if each[1].ground not in NO_MATCH]
    reported = is_applied or bool(likely)
    yield from (reason.of(by.name, site.scope) for site, reason in likely)
    for replay in sorted((*blocked, *others), key=lambda each: each.likeness, reverse=True):
        reason = of_sites.get(replay.loop.node)
        if replay.blockers and (reason is None or reason.ground in NO_MATCH):
            blocker = replay.blockers[0]
            reason = Refusal(ground_of_blocker(blocker), blocker.reason, blocker.node)
        if reason is None:
            entries = "the loop reads entries of unit vectors, and pushes none of these"
            reason = Refusal(Ground.NO_DIRECTION, entries, replay.loop.node)
        reported = True
        yield reason.of(by.name, replay.loop.node.scope)
    if not reported and without_loop:
        [(site, first_reason), *_] = without_loop
        yield first_reason.of(by.name, site.scope)


def _rebuilt(program: Program, view: View, entry: Emission, name: str, platform: str) -> Program:
    """``program`` with ``entry``; if that is a region of it, only the region is rebuilt."""
    flat, marks, function = view.flat, entry.raising.marks, entry.__call__
    assert marks is not None
    if entry.flat is not flat:
        region = enclosing_regions(flat, entry.producer)[-1]
        around = RaisingWithRegion(
            marks=marks, fold=True, replaced=region, arguments=entry.flat.arguments, function=function
        )
        function = raise_nodes(flat.nodes, flat.arguments, flat.returns, around)
    with view.module.context:  # where the locations of the view's nodes live
        module = ir.Module.parse(program.bytecode)
    rebuild(module, function, name=name.replace("-", "_"), platform=platform, origins=marks)
    verify(module, name)
    known = None if program.platform == "any" else program.platform
    return Program.from_module(module, name=program.name, provenance=program.provenance, platform=known)
