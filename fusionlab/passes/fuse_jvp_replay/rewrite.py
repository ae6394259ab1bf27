"""Rebuild a program with its sums over directions replaced by a Laplacian that is computed in another way.

Shared by the passes collapse-replay, sparsify-directions and transpose-replay: the places of a program where directions
are pushed, each decided once (``decide``), and the program with what ``emit`` makes of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxlib.mlir import ir

from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import RaiseError, Raising, raise_nodes
from fusionlab.codegen.raising.splice import rebuild
from fusionlab.hlo.cost import Cost, node_cost, program_cost
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.loops import Invariant, has_effect, hoist_in_view, separate_in_view
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.hlo.view import FunctionView, Node
from fusionlab.passes.fuse_jvp_replay.decide import Derivation, decided
from fusionlab.passes.fuse_jvp_replay.directions import Place, identities, places_of, seeds_of_loop
from fusionlab.passes.fuse_jvp_replay.emit import Emission
from fusionlab.passes.fuse_jvp_replay.evaluating import end_of_search
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NoMatch, NotALaplacian
from fusionlab.passes.fuse_jvp_replay.region_views import (
    RaisingWithRegion,
    enclosing_regions,
    read_constants_directly,
    regions_around,
    view_of_region,
)
from fusionlab.passes.interface import Applied, Declined, Pass, Result, Setting, verify
from fusionlab.passes.refusals import Ground, Refusal, ground_of_blocker, refused

_MOST_FLOPS = 0.8
"""Without a loop to remove, the rewritten program may need at most this part of the FLOPs."""

_MOST_VIEWS = 16
"""The most programs of which what was decided in them is kept."""


class Site:
    """The directions of so many coordinates in a function, wherever they are pushed; decided once."""

    def __init__(self, flat: FunctionView, places: Sequence[Place], extent: int, effect: Node | None) -> None:
        self.flat, self.places, self.extent, self._effect = flat, places, extent, effect
        self.loops = [place.loop.node for place in places if place.loop is not None]
        self.looks = (extent, *(node.scope for node in self.loops), *(len(place.seeds) for place in places))
        node = self.loops[0] if self.loops else places[0].seeds[0].value.producer
        self.scope = node.scope if node is not None else ""
        self.kinds = {(extent, place.loop is None) for place in places}
        self._known: Derivation | Refusal | None = None

    def decision(self, deadline: float) -> Derivation:
        """What is summed; Refusal if it is no Laplacian, or where this is not decided until the ``deadline``."""
        if self._known is None:
            try:
                if self._effect is not None:
                    reason = f"{self._effect.label} has an effect, which a rebuilt entry would not have"
                    raise NotALaplacian(Ground.EFFECT, reason, self._effect)
                self._known = decided(self.flat, self.places, self.extent, deadline)
            except (Refusal, RaiseError) as reason:
                self._known = refused(reason)  # without its traceback, which would keep all of the search
        if isinstance(self._known, Refusal):
            raise self._known.again()
        return self._known


class View:
    """A program's entry, with the sites in it where directions are pushed, and its loops (``replays``)."""

    def __init__(self, program: Program) -> None:
        self.module = program.parse()
        self.flat = simplified_view(self.module, _hoist)
        self.replays = inventory(self.flat)
        around = list(regions_around(self.flat, {each.loop.node for each in self.replays if not each.blockers}))
        for regions in around:
            read_constants_directly(self.flat, regions)
        effect = next((node for node in self.flat.walk() if not node.regions and has_effect(node)), None)
        functions = [self.flat, *(view_of_region(self.flat, regions) for regions in around)]
        self.sites = [
            Site(function, places, extent, effect)
            for function in functions
            for extent, places in places_of(function).items()
        ]


def _has_directions(flat: FunctionView, replay: Replay) -> bool:
    """True of a loop that makes unit vectors in a way that the inventory does not know."""
    unknown = {blocker.what for blocker in replay.blockers} <= {"another table", "no direction"}
    return unknown and bool(seeds_of_loop(flat, replay.loop))


def _hoist(flat: FunctionView) -> None:
    """Compute before each replay of ``flat``, where it is, what every trip of it recomputes, and apart from tangents in
    a loop the values that do not depend on directions."""
    replays = [replay for replay in inventory(flat) if not replay.blockers or _has_directions(flat, replay)]
    whole = {replay.loop.node for replay in replays}
    for region in (flat, *[regions[-1] for regions in regions_around(flat, whole)]):
        for replay in replays:
            if replay.loop.node in region.nodes:
                body, fixed = replay.loop.body, replay.loop.indices(Invariant)
                varying = [argument for i, argument in enumerate(body.arguments) if i not in fixed]
                if separate_in_view(body, varying) or replay.repeats_arithmetic:
                    hoist_in_view(region, replay.loop)
        of_extent = identities(region)
        for extent in {value.type.shape[0]: None for value in of_extent}:  # what is added to a matrix is no direction
            directed = [value for value in of_extent if value.type.shape[0] == extent]
            separate_in_view(region, directed, whole, {extent})


class Findings(dict[str, View]):
    """Views of programs by digest: a cache of analyses for several passes tried on one program."""

    @staticmethod
    def within(setting: Setting) -> Findings:
        """Those of all passes that run in ``setting``."""
        found: Findings = setting.findings.setdefault(Findings, Findings())
        return found

    def of(self, program: Program) -> View:
        """The one view of ``program``; of many programs those that were last asked for are kept."""
        found = self.pop(program.digest, None) or View(program)
        self[program.digest] = found
        if len(self) > _MOST_VIEWS:
            del self[next(iter(self))]
        return found


@dataclass(frozen=True)
class _Way:
    """How what is decided is written: the pass, its options, the number of parts of the walkers, and the platform."""

    by: Pass
    options: Options
    chunks: int
    platform: str
    deadline: float

    def rewritten(self, program: Program, view: View, site: Site) -> tuple[Program, list[Applied]]:
        """The program without the sums of ``site``, with an event for each of its loops; Refusal if they stay."""
        found = site.decision(self.deadline)
        entry = Emission(found, Raising(marks={}, fold=True), self.options, self.chunks)
        try:
            rebuilt = _rebuilt(program, view, entry, self.by.name, self.platform)
        except (TypeError, ValueError) as error:
            if not found.marks:
                raise
            reason = f"an axis of another extent is taken for that of the walkers: {str(error).splitlines()[0]}"
            raise NotALaplacian(Ground.AXES_MISTAKEN, reason) from error
        part = program_cost(rebuilt).flops / max(program_cost(view.flat).flops, 1)
        if not found.loops and part > _MOST_FLOPS:
            raise Refusal(Ground.NO_GAIN, f"without a loop to remove, {part:.2f} times the FLOPs do not pay")
        what = _described(found) + (f"; the walkers in {self.chunks} parts" if self.chunks > 1 else "")
        what += _psi_per_direction(rebuilt, view, found)
        sums = [(f"{loop.trips} trips", loop.node) for loop in found.loops]
        sums = sums or [(f"{found.coordinates.count} directions at once", entry.producer)]
        return rebuilt, [Applied(self.by.name, f"{of} are {what}", node.scope, str(self.by)) for of, node in sums]


def rewrite_replays(program: Program, by: Pass, options: Options, chunks: int, setting: Setting) -> Result:
    """Replace the sums over directions of the program; ``chunks`` parts of the walkers one after another.

    The refusals follow what was applied: those of Laplacians without a loop, then those of loops, the most similar to a
    replay first. Of other sums without a loop (an identity matrix has many uses) one is reported if nothing else is.
    """
    platform = setting.platform if program.platform == "any" else program.platform
    options = replace(options, for_cpu=platform == "cpu", low_memory=chunks > 1)
    way, findings = _Way(by, options, chunks, platform, end_of_search()), Findings.within(setting)
    first = findings.of(program)
    kinds = {kind for site in first.sites for kind in site.kinds}  # others are made by a rewriting
    applied = list[Applied]()
    left_alone: dict[Hashable, Refusal] = {}  # by structure, in programs that change
    while True:
        view, passed, refusals = findings.of(program), Counter[Hashable](), list[tuple[Site, Refusal]]()
        for site in (site for site in view.sites if not kinds.isdisjoint(site.kinds)):
            passed[site.looks] += 1
            key = site.looks, passed[site.looks]
            try:
                if key in left_alone:
                    raise left_alone[key].again()
                program, events = way.rewritten(program, view, site)
                applied += events
                break
            except (Refusal, RaiseError, NotImplementedError) as reason:
                left_alone[key] = refused(reason)
                refusals.append((site, left_alone[key]))
        else:
            break
    return Result(program, (*applied, *_declined(first, view, refusals, by, bool(applied))))


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
    likely = [each for each in without_loop if not isinstance(each[1], NoMatch)]
    reported = is_applied or bool(likely)
    yield from (reason.of(by.name, site.scope) for site, reason in likely)
    for replay in sorted((*blocked, *others), key=lambda each: each.likeness, reverse=True):
        reason = of_sites.get(replay.loop.node)
        if replay.blockers and (reason is None or isinstance(reason, NoMatch)):
            blocker = replay.blockers[0]
            reason = NotALaplacian(ground_of_blocker(blocker), blocker.reason, blocker.node)
        if reason is None:
            entries = "the loop reads entries of unit vectors, and pushes none of these"
            reason = NotALaplacian(Ground.NO_DIRECTION, entries, replay.loop.node)
        reported = True
        yield reason.of(by.name, replay.loop.node.scope)
    if not reported and without_loop:
        [(site, first_reason), *_] = without_loop
        yield first_reason.of(by.name, site.scope)


def _described(found: Derivation) -> str:
    terms = [term for target in found.targets for term in target.terms]
    rows = [row for term in terms for row in (*term.real, *term.imaginary) if any(row)]
    plain = all(len(set(row)) == 1 for row in rows) and not any(term.of_program for term in terms)
    factor = rows[0][0] if len(rows) == 1 and plain else 1
    scale = "" if factor == 1 else f"{float(factor):g} times "
    of = ", ".join(f"%{output.id} ({output.type})" for output in found.outputs)
    weights = "" if plain else ", with weights of the coordinates"
    weights += f", {len(rows)} sums with weights" if len(rows) > 1 and not plain else ""
    rest = ", beside what the loop adds to it" if any(target.offset == "tail" for target in found.targets) else ""
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    return f"{scale}the Laplacian of {of} with respect to %{found.x.id} ({found.x.type}){weights}{rest}{gradient}"


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


def _psi_per_direction(rebuilt: Program, view: View, found: Derivation) -> str:
    """FLOPs of ``rebuilt`` over those of the values that are differentiated, for each direction, in words; nothing
    where the entry has further loops over directions, or costs that are not known."""
    gone = {loop.node for loop in found.loops}
    others = [replay for replay in view.replays if replay.directed and replay.loop.node not in gone]
    if found.flat is not view.flat or others:
        return ""
    needed = live_nodes(found.flat.nodes, found.flat.arguments, found.outputs)
    whole, psi = program_cost(rebuilt), sum(map(node_cost, needed), Cost())
    if not psi.flops or whole.unmodelled or psi.unmodelled:
        return ""
    per_direction = whole.flops / psi.flops / found.coordinates.count
    return f"; the program: {per_direction:.2f} psi per direction in FLOPs"
