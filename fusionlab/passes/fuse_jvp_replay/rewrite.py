"""Rebuild a program with its replays replaced by a Laplacian that is computed in another way.

Shared by the passes collapse-replay, sparsify-directions and transpose-replay: the walk over replays, and the entry
as a JAX callable in which the replay's sum and the gradient come from jets.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace

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
from fusionlab.hlo.view import FunctionView, Node, Value
from fusionlab.passes.fuse_jvp_replay import candidates, recognise
from fusionlab.passes.fuse_jvp_replay.complex_sums import complex_sums, with_real_sums
from fusionlab.passes.fuse_jvp_replay.decide import Derivation, decided, places_of
from fusionlab.passes.fuse_jvp_replay.directions import seeds_of_loop
from fusionlab.passes.fuse_jvp_replay.emit import Emission
from fusionlab.passes.fuse_jvp_replay.entry import JointEntry, RewrittenEntry
from fusionlab.passes.fuse_jvp_replay.identify import MOST_SECONDS_WITH_WEIGHTS, Laplacian
from fusionlab.passes.fuse_jvp_replay.no_laplacian import LimitReached, NoMatch, NotALaplacian, UncoveredMatch
from fusionlab.passes.fuse_jvp_replay.products import Place
from fusionlab.passes.fuse_jvp_replay.recognise import TraceCandidate
from fusionlab.passes.fuse_jvp_replay.region_views import (
    RaisingWithRegion,
    enclosing_regions,
    read_constants_directly,
    regions_around,
    view_of_region,
)
from fusionlab.passes.interface import Applied, Declined, Event, Pass, Result, Setting, verify
from fusionlab.passes.refusals import Ground, Refusal, ground_of_blocker, refused

_MOST_FLOPS = 0.8
"""Without a loop to remove, the rewritten program may need at most this part of the FLOPs."""

_MOST_VIEWS = 16
"""The most programs of which what was identified in them is kept."""
ASKS_FOR_PRODUCTS = False
"""Whether the five steps (``decide``, ``emit``) run where no sum is identified. Off: tests of planted terms expect
refusals where these rewrite correctly (docs/decisions/0014)."""
_WITHOUT_LOOP = (True, True, math.inf)
"""The likeness to a replay (``Replay.likeness``) of a sum over directions without a loop."""


class SumSite:
    """A loop, or a sum over directions without one, in the view ``flat`` of a program or of a region of it; it is
    identified once. Of a sum whose unit vectors only loops read, ``loops`` are these."""

    def __init__(
        self, flat: FunctionView, found: Replay | TraceCandidate, effect: Node | None, loops: Sequence[SumSite] = ()
    ) -> None:
        self.flat, self._found, self._effect, self._loops = flat, found, effect, loops
        self.replay = found if isinstance(found, Replay) else None
        self.scope = (found.loop.node if isinstance(found, Replay) else found.producer).scope
        self.likeness = _WITHOUT_LOOP if self.replay is None else self.replay.likeness
        self.looks = (self.scope, found.trips if isinstance(found, Replay) else (found.directions,))
        self._known: tuple[TraceCandidate, Laplacian] | Refusal | None = None

    def identified(self) -> tuple[TraceCandidate, Laplacian]:
        """The sum and its Laplacian; Refusal if there is none."""
        if self._known is None:
            try:
                self._known = self._identified()
            except (Refusal, RaiseError) as reason:
                self._known = refused(reason)  # without its traceback, which would keep all of the search
        if isinstance(self._known, Refusal):
            raise self._known.again()
        return self._known

    def _has_no_function(self, directions: int) -> bool:
        """True if it is a loop over so many directions that adds derivatives of no value."""
        with contextlib.suppress(Refusal):
            self.identified()
        known = isinstance(self._known, NoMatch) and self._known.ground is Ground.FUNCTION_NOT_FOUND
        return (
            known and self.replay is not None and self.replay.seed is not None and self.replay.seed.extent == directions
        )

    @property
    def is_like_a_laplacian(self) -> bool:
        """True of a loop, and of a sum without one that equals a Laplacian in all draws. Once identified."""
        return self.replay is not None or isinstance(self._known, tuple | UncoveredMatch)

    def besides(self) -> Iterator[SumSite]:
        """The further sums without a loop of the same candidate, one after another, once this is identified."""
        candidate, found = self.identified()
        if (rest := candidate.besides(found.target)) is not None:
            site = SumSite(self.flat, rest, self._effect)
            yield site
            with contextlib.suppress(Refusal, RaiseError):
                yield from site.besides()

    @functools.cached_property
    def _fitting(self) -> Collection[Value] | None:
        """The values whose derivatives the trips of its loop may add; None without a loop or where they do not tell."""
        if not isinstance(self._found, Replay):
            return None
        try:
            candidate = recognise.candidate_of_loop(self.flat, self._found)
        except NotALaplacian:
            return None
        return candidates.values_that_fit(replace(candidate, weights=None))

    def _identified(self) -> tuple[TraceCandidate, Laplacian]:
        found, flat = self._found, self.flat
        if isinstance(found, Replay) and found.blockers:
            blocker = found.blockers[0]
            raise NotALaplacian(ground_of_blocker(blocker), blocker.reason, blocker.node)
        _require_no_effect(self._effect)
        try:
            candidate = found if isinstance(found, TraceCandidate) else recognise.candidate_of_loop(flat, found)
            if candidate.replay is None and candidate.weighted and not _may_pay(candidate):
                reason = "most of the FLOPs of the program are no sum over directions"
                raise NotALaplacian(Ground.NO_GAIN, reason, candidate.producer)
            among = (lambda: self._fitting) if candidate.weights is None else (lambda: None)
            return candidate, candidates.find_laplacian(candidate, among=among)
        except NoMatch:
            with contextlib.suppress(LimitReached):
                if (weighted := self._identified_with_weights()) is not None:
                    return weighted
            raise

    def _identified_with_weights(self) -> tuple[TraceCandidate, Laplacian] | None:
        found, loops = self._found, self._loops
        if loops and not isinstance(found, Replay) and all(each._has_no_function(found.directions) for each in loops):
            return None
        deadline = time.monotonic() + MOST_SECONDS_WITH_WEIGHTS  # of all of them together
        every = list(_weighted(self.flat, self._found))
        for candidate in every if self._fitting is None or self._fitting else ():
            try:
                return candidate, candidates.find_laplacian(candidate, deadline, lambda: self._fitting)
            except (UncoveredMatch, LimitReached):
                raise
            except (Refusal, RaiseError):
                continue
        return None


class Pushed:
    """The directions of so many coordinates in a function, wherever they are pushed; decided once."""

    def __init__(self, flat: FunctionView, places: Sequence[Place], extent: int, effect: Node | None) -> None:
        self.flat, self.places, self.extent, self._effect = flat, places, extent, effect
        loops = [place.loop.node.scope for place in places if place.loop is not None]
        self.looks = (extent, *loops, *(len(place.seeds) for place in places))
        self._known: Derivation | Refusal | None = None

    def decision(self) -> Derivation:
        """What is summed; Refusal if it is no Laplacian."""
        if self._known is None:
            try:
                _require_no_effect(self._effect)
                self._known = decided(self.flat, self.places, self.extent)
            except (Refusal, RaiseError) as reason:
                self._known = refused(reason)  # without its traceback, which would keep all of the search
        if isinstance(self._known, Refusal):
            raise self._known.again()
        return self._known


def _require_no_effect(effect: Node | None) -> None:
    if effect is not None:
        reason = f"{effect.label} has an effect, which a rebuilt entry would not have"
        raise NotALaplacian(Ground.EFFECT, reason, effect)


def _require_gain(rebuilt: Program, view: View) -> None:
    """Refusal where ``rebuilt``, which has no loop less, does not need few enough FLOPs."""
    part = program_cost(rebuilt).flops / max(program_cost(view.flat).flops, 1)
    if part > _MOST_FLOPS:
        raise Refusal(Ground.NO_GAIN, f"without a loop to remove, {part:.2f} times the FLOPs do not pay")


def _weighted(flat: FunctionView, found: Replay | TraceCandidate) -> Iterator[TraceCandidate]:
    """The sums of ``found`` in which directions may have weights."""
    if isinstance(found, Replay):
        return recognise.weighted_candidates(flat, found)
    return filter(_may_pay, recognise.weighted_without_loop(found))


def _may_pay(candidate: TraceCandidate) -> bool:
    """True if without its targets ``_MOST_FLOPS`` of the program's FLOPs are left at most."""
    flat = candidate.flat
    rest, whole = (
        sum(map(node_cost, live_nodes(flat.nodes, [*flat.arguments, *targets], flat.returns)), Cost()).flops
        for targets in (candidate.targets, ())
    )
    return rest <= _MOST_FLOPS * whole


class View:
    """A program's entry, with the places in it that may be the trace of a Hessian."""

    def __init__(self, program: Program) -> None:
        self.module = program.parse()
        self.flat = simplified_view(self.module, _hoist)
        replays = inventory(self.flat)
        around = list(regions_around(self.flat, {each.loop.node for each in replays if not each.blockers}))
        for regions in around:
            read_constants_directly(self.flat, regions)
        effect = next((node for node in self.flat.walk() if not node.regions and has_effect(node)), None)
        functions = [self.flat, *(view_of_region(self.flat, regions) for regions in around)]
        holding = {node: function for function in reversed(functions) for node in function.nodes}
        for node in (each.loop.node for each in replays):
            if node not in holding:  # in the body of another replay
                holding[node] = view_of_region(self.flat, enclosing_regions(self.flat, node))
        self.sites = [SumSite(holding[each.loop.node], each, effect) for each in replays]
        adding = {each.loop.node for each in replays if not each.blockers and each.adds_in_one_direction}
        loops = [site for site in self.sites if site.replay is not None and site.replay.loop.node in adding]
        self.complex_sums = complex_sums(self.flat, replays)
        self.pushed = [
            Pushed(function, places, extent, effect)
            for function in (functions if ASKS_FOR_PRODUCTS else ())
            for extent, places in places_of(function).items()
        ]
        for function in functions:
            own = [site for site in loops if site.flat is function]
            without_loop = recognise.candidates_without_loop(function, adding)
            self.sites += [SumSite(function, each, effect, own if each.of_replays else ()) for each in without_loop]


def _has_directions(flat: FunctionView, replay: Replay) -> bool:
    """True of a loop that makes unit vectors in a way that the inventory does not know."""
    unknown = {blocker.what for blocker in replay.blockers} <= {"another table", "no direction"}
    return ASKS_FOR_PRODUCTS and unknown and bool(seeds_of_loop(flat, replay.loop))


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
        identities = recognise.identities(region)
        for extent in {value.type.shape[0]: None for value in identities}:  # what is added to a matrix is no direction
            directed = [value for value in identities if value.type.shape[0] == extent]
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


def rewrite_replays(program: Program, by: Pass, options: Options, chunks: int, setting: Setting) -> Result:
    """Replace every replay of the program's entry; ``chunks`` parts of the walkers one after another.

    The refusals are told after what was applied, first those of the loops that resemble a replay most. Of sums without
    a loop that are no Laplacian (an identity matrix has many uses) one is told if nothing else is. A complex sum of
    which a part is refused stays as it is.
    """
    findings = Findings.within(setting)
    split = set(findings.of(program).complex_sums)
    while split:
        apart = with_real_sums(program, by, setting, split)
        result = _replays_rewritten(apart, by, options, chunks, setting, findings)
        if not result.applied:
            return Result(program, result.events)
        left = {event.location for event in result.events if isinstance(event, Declined)}
        if split.isdisjoint(left):
            return result
        split -= left
    return _replays_rewritten(program, by, options, chunks, setting, findings)


def _replays_rewritten(
    program: Program, by: Pass, options: Options, chunks: int, setting: Setting, findings: Findings
) -> Result:
    """As ``rewrite_replays``, with complex sums as they are."""
    platform = setting.platform if program.platform == "any" else program.platform
    options = replace(options, for_cpu=platform == "cpu", low_memory=chunks > 1)
    events: dict[Event, tuple[bool, bool, float]] = {}
    left_alone: Counter[Hashable] = Counter()  # by structure, in programs that change
    extents = {site.looks[1] for site in findings.of(program).sites if site.replay is None}
    counts = {pushed.extent for pushed in findings.of(program).pushed}
    unlike: dict[Event, None] = {}
    applied: tuple[Program, dict[Event, tuple[bool, bool, float]]] | Declined
    while True:
        places = {event.location for event in events if isinstance(event, Applied)}
        view, passed = findings.of(program), Counter[Hashable]()
        for site in view.sites:
            passed[site.looks] += 1
            is_new = site.replay is None and site.looks[1] not in extents  # an earlier rewriting made it
            if is_new or passed[site.looks] <= left_alone[site.looks]:
                continue
            applied = _rewritten(program, view, site, by, options, chunks, platform)
            if isinstance(applied, tuple):
                break
            left_alone[site.looks] += 1
            # A loop over parts of the walkers, where something was applied, was reported then.
            over_parts = site.replay is not None and (site.replay.blockers or site.replay.trips == chunks > 1)
            if not site.is_like_a_laplacian:
                unlike[applied] = None
            elif not (over_parts and applied.location in places):
                events[applied] = site.likeness
        else:
            emitted = _first_emitted(program, view, counts, left_alone, by, options, chunks, platform)
            if emitted is not None:
                program, done_at_once = emitted
                events |= done_at_once
                continue
            if not events:
                return Result(program, tuple(unlike)[:1])
            done = [event for event in events if isinstance(event, Applied)]
            there = {each.scope for each in view.sites}  # what a loop that is gone was left alone for is moot
            left = [
                e
                for e, of in events.items()
                if isinstance(e, Declined) and (of == _WITHOUT_LOOP or e.location in there)
            ]
            return Result(program, (*done, *sorted(left, key=events.__getitem__, reverse=True)))
        program, done_at_once = applied
        events |= done_at_once


def _first_emitted(
    program: Program, view: View, counts: Collection[int], left_alone: Counter[Hashable], by: Pass, options: Options,
    chunks: int, platform: str,
) -> tuple[Program, dict[Event, tuple[bool, bool, float]]] | None:  # fmt: skip
    """As ``_emitted``, of the first directions of one of these ``counts`` that are not left alone."""
    passed = Counter[Hashable]()
    for pushed in view.pushed:
        passed[pushed.looks] += 1
        if pushed.extent not in counts or passed[pushed.looks] <= left_alone[pushed.looks]:
            continue
        if (emitted := _emitted(program, view, pushed, by, options, chunks, platform)) is not None:
            return emitted
        left_alone[pushed.looks] += 1
    return None


def _emitted(
    program: Program, view: View, pushed: Pushed, by: Pass, options: Options, chunks: int, platform: str
) -> tuple[Program, dict[Event, tuple[bool, bool, float]]] | None:
    """The program without the sums of ``pushed``, with an event for each of its loops; None if they stay."""
    try:
        found = pushed.decision()
        entry = Emission(found, Raising(marks={}, fold=True), options, chunks)
        rebuilt = _rebuilt(program, view, entry, by.name, platform)
        if not found.loops:
            _require_gain(rebuilt, view)
    except (Refusal, RaiseError, NotImplementedError):
        return None
    except (TypeError, ValueError):
        if not pushed.decision().marks:
            raise
        return None  # where another extent equals the number of walkers, axes may be mistaken for one another
    likeness = {site.replay.loop.node: site.likeness for site in view.sites if site.replay is not None}
    told: dict[Event, tuple[bool, bool, float]] = {}
    gone = {loop.node for loop in found.loops}
    others = [site for site in view.sites if site.replay is not None and site.replay.loop.node not in gone]
    what = _described(found, chunks)
    what += _psi_per_direction(rebuilt, view, pushed.flat, others, found.outputs, found.coordinates.count)
    for loop in found.loops:
        trips = f"{loop.trips} trips are "
        told[Applied(by.name, trips + what, loop.node.scope, str(by))] = likeness.get(loop.node, _WITHOUT_LOOP)
    if not found.loops:
        many = f"{found.coordinates.count} directions at once are "
        told[Applied(by.name, many + what, entry.producer.scope, str(by))] = _WITHOUT_LOOP
    return rebuilt, told


def _described(found: Derivation, chunks: int) -> str:
    terms = [term for target in found.targets for term in target.terms]
    rows = [row for term in terms for row in (*term.real, *term.imaginary) if any(row)]
    plain = all(len(set(row)) == 1 for row in rows)
    factor = rows[0][0] if len(rows) == 1 and plain else 1
    scale = "" if factor == 1 else f"{float(factor):g} times "
    of = ", ".join(f"%{output.id} ({output.type})" for output in found.outputs)
    weights = "" if plain else ", with weights of the coordinates"
    weights += f", {len(rows)} sums with weights" if len(rows) > 1 and not plain else ""
    rest = ", beside what the loop adds to it" if any(target.offset == "tail" for target in found.targets) else ""
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    parts = f"; the walkers in {chunks} parts" if chunks > 1 else ""
    return (
        f"{scale}the Laplacian of {of} with respect to %{found.x.id} ({found.x.type}){weights}{rest}{gradient}{parts}"
    )


def _rewritten(
    program: Program, view: View, site: SumSite, by: Pass, options: Options, chunks: int, platform: str
) -> tuple[Program, dict[Event, tuple[bool, bool, float]]] | Declined:
    """The program without the sum and others whose jets are the same, with an event for each; or the reason why not."""
    try:
        raising = Raising(marks={}, fold=True)
        own = RewrittenEntry(*site.identified(), raising, options, chunks)
        sites, entry = _together(view, site, own)
        rebuilt = _rebuilt(program, view, entry, by.name, platform)
        if site.replay is None:
            _require_gain(rebuilt, view)
        per_direction = _psi_of_sites(rebuilt, view, sites)
        told: dict[Event, tuple[bool, bool, float]] = {}
        for each in sites:
            what = _describe(*each.identified(), chunks) + per_direction
            told[Applied(by.name, what, each.scope, str(by))] = each.likeness
        return rebuilt, told
    except (Refusal, RaiseError, NotImplementedError) as error:
        return refused(error).of(by.name, site.scope)


def _together(view: View, site: SumSite, own: RewrittenEntry) -> tuple[Sequence[SumSite], RewrittenEntry | JointEntry]:
    """``site`` with those after it whose jets are the same, and the entry without all of them."""
    sites, entries = [site], [own]
    entry: RewrittenEntry | JointEntry = own
    later = view.sites[view.sites.index(site) + 1 :]
    loops = (other for other in later if other.replay is not None and other.flat is site.flat)
    for other in site.besides() if site.replay is None else loops:
        with contextlib.suppress(Refusal, RaiseError):
            more = RewrittenEntry(*other.identified(), own.raising, own.options, own.chunks)
            joint = JointEntry([*entries, more])
            if joint.is_one_pass:
                entry, sites, entries = joint, [*sites, other], [*entries, more]
    return sites, entry


def _rebuilt(
    program: Program, view: View, entry: RewrittenEntry | JointEntry | Emission, name: str, platform: str
) -> Program:
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


def _psi_of_sites(rebuilt: Program, view: View, sites: Sequence[SumSite]) -> str:
    """``_psi_per_direction`` of one of ``sites``; of several, nothing."""
    [site, *more] = sites
    if more:
        return ""
    candidate, found = site.identified()
    others = [other for other in view.sites if other is not site]
    return _psi_per_direction(rebuilt, view, site.flat, others, [found.output], candidate.directions)


def _psi_per_direction(
    rebuilt: Program, view: View, flat: FunctionView, others: Sequence[SumSite], outputs: Sequence[Value], count: int
) -> str:
    """FLOPs of ``rebuilt`` over those of the ``outputs`` that are differentiated, for each of ``count`` directions, in
    words; nothing where the entry has further loops over directions among ``others``, or costs that are not known."""
    if flat is not view.flat or any(other.replay is not None and other.replay.directed for other in others):
        return ""
    needed = live_nodes(flat.nodes, flat.arguments, outputs)
    whole, psi = program_cost(rebuilt), sum(map(node_cost, needed), Cost())
    if not psi.flops or whole.unmodelled or psi.unmodelled:
        return ""
    return f"; the program: {whole.flops / psi.flops / count:.2f} psi per direction in FLOPs"


def _describe(candidate: TraceCandidate, found: Laplacian, chunks: int) -> str:
    factor = "" if found.scale == 1 else f"{found.scale:g} times "
    squares = "" if not found.squares else f" and {found.squares:g} times its squared gradient"
    if found.trip_weights is not None:
        squares += ", with weights of the coordinates"
    if found.combinations:
        channels = sum(len(each.second) for each in found.combinations.values())
        squares += f", {channels} sums with weights" if found.channels else ", with weights of the coordinates"
    if found.sums:
        squares += f"; {len(found.sums)} more sum{'s' * (len(found.sums) > 1)} of the loop made of these"
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    parts = f"; the walkers in {chunks} parts" if chunks > 1 else ""
    over = f"{candidate.replay.trips} trips" if candidate.replay else f"{candidate.directions} directions at once"
    return (
        f"{over} are {factor}the Laplacian of "
        f"%{found.output.id} ({found.output.type}) with respect to %{found.x.id} ({found.x.type})"
        f"{squares}{gradient}{parts}"
    )
