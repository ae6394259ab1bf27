"""The sites of a program: the functions in it, and the directions that each of them pushes; decided once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from fusionlab.codegen.raising import RaiseError
from fusionlab.hlo.loops import Invariant, has_effect, hoist_in_view, separate_in_view
from fusionlab.hlo.program import Program
from fusionlab.hlo.region_views import read_constants_directly, regions_around, view_of_region
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.hlo.view import FunctionView, Node
from fusionlab.passes.fuse_jvp_replay import derivation
from fusionlab.passes.fuse_jvp_replay.decide import Derivation
from fusionlab.passes.fuse_jvp_replay.directions import Place, identities, places_of, seeds_of_loop
from fusionlab.passes.interface import Setting
from fusionlab.passes.refusals import Ground, Refusal, refused

_MOST_VIEWS = 16
"""The most programs of which what was decided in them is kept."""


class Site:
    """The directions of so many coordinates in a function, wherever they are pushed; decided once."""

    def __init__(self, flat: FunctionView, places: Sequence[Place], extent: int, effect: Node | None) -> None:
        self.flat, self.places, self.extent, self._effect = flat, places, extent, effect
        self._known: Derivation | Refusal | None = None

    @property
    def loops(self) -> list[Node]:
        """Those over the directions."""
        return [place.loop.node for place in self.places if place.loop is not None]

    @property
    def scope(self) -> str:
        """The location in events."""
        node = self.loops[0] if self.loops else self.places[0].seeds[0].value.producer
        return node.scope if node is not None else ""

    @property
    def kinds(self) -> set[tuple[int, bool]]:
        """The coordinates, and whether there is no loop, of each place."""
        return {(self.extent, place.loop is None) for place in self.places}

    @property
    def looks(self) -> Hashable:
        """What is equal for the same site of a program that was changed elsewhere."""
        return (self.extent, *(node.scope for node in self.loops), *(len(place.seeds) for place in self.places))

    def decision(self, deadline: float) -> Derivation:
        """What is summed; Refusal if it is no Laplacian, or where this is not decided until the ``deadline``."""
        if self._known is None:
            try:
                if self._effect is not None:
                    reason = f"{self._effect.label} has an effect, which a rebuilt entry would not have"
                    raise Refusal(Ground.EFFECT, reason, self._effect)
                self._known = derivation(self.flat, self.places, self.extent, deadline)
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


def view_of(program: Program, setting: Setting) -> View:
    """The one view of ``program`` for all passes in ``setting``; of many programs those last asked for are kept."""
    known: dict[str, View] = setting.findings.setdefault(View, {})
    found = known.pop(program.digest, None) or View(program)
    known[program.digest] = found
    if len(known) > _MOST_VIEWS:
        del known[next(iter(known))]
    return found
