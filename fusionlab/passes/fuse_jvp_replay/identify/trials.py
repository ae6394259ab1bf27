"""The trials of a search: which directions, positions x and functions F are tried together, in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from fusionlab.codegen.raising import has_rule
from fusionlab.equivalence.exact.rules.contractions import TARGETS
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, free_values
from fusionlab.passes.fuse_jvp_replay.directions import Place, UnitRows, constant_seeds, subject_of
from fusionlab.passes.fuse_jvp_replay.identify.cuts import candidates
from fusionlab.passes.fuse_jvp_replay.identify.few_walkers import FEW_ENOUGH
from fusionlab.passes.fuse_jvp_replay.identify.positions import groups, positions_of
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial
from fusionlab.passes.refusals import NO_MATCH, Ground, Refusal, collected

_MOST_SEEDS = 4
_OF_PROGRAM = (
    Ground.WALKERS_TOLD_APART, Ground.AXES_MISTAKEN, Ground.NO_EXACT_MEANING, Ground.NO_RULE, Ground.NO_DERIVATIVE,
    Ground.OPAQUE_CALL, Ground.SHARDED, Ground.ALGORITHM, Ground.TOO_LARGE,
)  # fmt: skip
"""What a program of few walkers or many outputs may be refused for, and that of all walkers or fewer outputs not."""
_OF_VALUES = (*NO_MATCH, Ground.TERMS_USED)
"""What values are refused for that are no derivatives as they were evaluated."""


def trials(
    flat: FunctionView, places: Sequence[Place], extent: int, deadline: float, reasons: list[Refusal]
) -> Iterator[ProductTrial]:
    """The trials for directions of ``extent`` coordinates in ``places``, together or some of them.

    ``reasons`` are those that trials were refused for; to them are added what is refused before any trial. Directions
    are not tried again with positions for which every trial with them found nothing, and was not refused; nor are the
    outputs of these with a copy of the positions.
    """
    numbers = ValueNumbers(flat, through_reshapes=True)
    none = set[tuple[Place, Value]]()
    for some in _subsets(places):
        positions = list[tuple[Value, int, list[Value]]]()
        with collected(reasons):
            positions = positions_of(flat, some, extent)
        nothing = dict[Value, list[Value]]()
        for x, leading, outputs in positions:
            if none.issuperset((place, x) for place in some):
                continue
            for other, tried in nothing.items():
                outputs = _not_through(flat, x, other, outputs, tried)
            if not outputs:
                continue
            before = len(reasons)
            made = partial(ProductTrial, flat, x=x, leading=leading, numbers=numbers, deadline=deadline)
            if _has_products(flat, some, x, leading, outputs):
                yield from _of_outputs(made, some, groups(flat, outputs, x.type.shape[:leading]), reasons)
            if not _is_none(reasons[before:]):
                continue
            nothing[x] = outputs
            if len({place.loop is None for place in some}) == 1:
                none.update((place, x) for place in some)


def _has_products(
    flat: FunctionView, places: Sequence[Place], x: Value, leading: int, outputs: Sequence[Value]
) -> bool:
    """True if values of ``places`` may be products H d of some of ``outputs``, or are made of several of these."""
    directed = reached(flat, constant_seeds(places))
    found, together = candidates(places, outputs, math.prod(x.type.shape[leading:]), directed, reached(flat, [x]))
    return bool(together) or any(2 in cut.orders for cut in found)


def _not_through(
    flat: FunctionView, x: Value, other: Value, outputs: list[Value], tried: Collection[Value]
) -> list[Value]:
    """Those of ``outputs`` that may have other second derivatives by ``x`` than those ``tried`` have by ``other``.

    All, unless one of both is the other, reshaped or shifted by what does not depend on it; then those that were not
    tried, and those that depend on that one beside its copy, too.
    """
    for original, copied in ((other, x), (x, other)):
        if _is_copy(flat, copied, original):
            rest = replace(flat, nodes=[node for node in flat.nodes if node is not copied.producer])
            beside = reached(rest, [original])
            return [output for output in outputs if output in beside or output not in tried]
    return outputs


def _is_copy(flat: FunctionView, value: Value, original: Value) -> bool:
    """True if ``value`` is the ``original``, reshaped or shifted by what does not depend on it."""
    dependent = reached(flat, [original])
    while value is not original:
        node = value.producer
        if node is None or node.op not in (ops.RESHAPE, ops.BROADCAST_IN_DIM, ops.ADD, ops.SUBTRACT):
            return False
        moved, *by = node.operands
        if node.op is ops.BROADCAST_IN_DIM and not _keeps_order(node):
            return False
        if moved not in dependent or not dependent.isdisjoint(by) or _size(moved) != _size(value):
            return False
        value = moved
    return True


def _keeps_order(broadcast: Node) -> bool:
    axes = [*broadcast.attributes["broadcast_dimensions"]]
    return axes == sorted(axes)


def _size(value: Value) -> int:
    return math.prod(value.type.shape)


def _of_outputs(
    made: Callable[..., ProductTrial], places: Sequence[Place], of: Sequence[list[Value]], reasons: list[Refusal]
) -> Iterator[ProductTrial]:
    """The trials ``made`` of ``places`` with the first group of outputs, and with all others together.

    With each of these where something in the program of them together is what they are refused for.
    """
    first, *rest = of
    yield from _of_group(partial(made, outputs=first, is_likely=True), places, reasons)
    before = len(reasons)
    if rest:
        together = [value for group in rest for value in group]
        yield from _of_group(partial(made, outputs=together, of_several=len(rest) > 1), places, reasons)
    if len(rest) > 1 and any(reason.ground in _OF_PROGRAM for reason in reasons[before:]):
        for group in rest:
            yield from _of_group(partial(made, outputs=group), places, reasons)


def _of_group(
    made: Callable[..., ProductTrial], places: Sequence[Place], reasons: list[Refusal], resize: bool = True
) -> Iterator[ProductTrial]:
    """The trial ``made`` of ``places``, and then each of several seeds alone.

    Where a few walkers do not stand for all, or their axes are mistaken for others, all are evaluated, if they are few.
    """
    before, trial = len(reasons), None
    with collected(reasons):
        trial = made(places=places, resize=resize)
    if trial is None:
        return
    yield trial
    for some in _alone(places, trial.together) if _is_none(reasons[before:]) else ():
        alone = None
        with collected(reasons):
            alone = made(places=some, resize=resize)
        if alone is not None:
            yield alone
    of_walkers = any(reason.ground in _OF_PROGRAM for reason in reasons[before:])
    if of_walkers and trial.marks and math.prod(trial.x.type.shape[: trial.walkers]) <= FEW_ENOUGH:
        del reasons[before:]
        yield from _of_group(made, places, reasons, resize=False)


def _is_none(reasons: Sequence[Refusal]) -> bool:
    """True if trials found no sum of second derivatives, and were not refused for anything else."""
    return all(reason.ground is Ground.TERMS_USED for reason in reasons)


def _subsets(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """All loops, which may share what they differentiate, first with rows that they lack; identities; rows of them;
    then each loop alone.

    An identity beside a loop, and rows beside an identity, may have nothing to do with directions. Rows beside loops
    that lack them may be the trips that a loop of several at once leaves over.
    """
    loops = [place for place in places if place.loop is not None]
    pushed = {k for place in loops for k in _coordinates(place)}
    for place in places if loops else ():
        if place.loop is None and pushed.isdisjoint(_coordinates(place)):
            yield [*loops, place]
    if loops:
        yield loops
    for place in places:
        if place.loop is None:
            yield [place]
    if len(loops) > 1:
        yield from ([place] for place in loops)


def _coordinates(place: Place) -> set[int]:
    """The coordinates of the directions of ``place``."""
    return {int(k) for seed in place.seeds for k in seed.places.ravel()}


def _alone(places: Sequence[Place], together: Collection[UnitRows]) -> Iterator[Sequence[Place]]:
    """Each of the seeds alone: what is the derivative along one may have another direction beside it, as of a gradient
    that is made of its entries."""
    for place in places:
        for seed in [each for each in place.seeds if each in together][:_MOST_SEEDS]:
            yield [Place(place.loop, (seed,), place.region, tuple(each for each in place.seeds if each is not seed))]


def most_telling(reasons: Sequence[Refusal], flat: FunctionView, places: Sequence[Place]) -> Refusal:
    """The refusal of ``places`` in ``flat``: each trial of them was refused for one of ``reasons`` or found nothing."""
    subject = subject_of(places)
    none = f"of the values without directions, none has the Laplacian that {subject} computes"
    every = [*reasons, Refusal(Ground.FUNCTION_NOT_FOUND, none)]
    found = next((reason for reason in every if reason.ground not in NO_MATCH), every[0])
    if (call := _opaque_call(flat, places, found.ground in _OF_VALUES)) is None:
        return found
    reason = f"{subject} cannot be evaluated: custom call @{call.call_target} is opaque"
    return Refusal(Ground.OPAQUE_CALL, reason, call)


def _opaque_call(flat: FunctionView, places: Sequence[Place], of_values: bool) -> Node | None:
    """A call of which nothing is known: one that directions are given to, or, where that is why values were refused
    (``of_values``), one in ``places`` or before them."""
    directed = {value for p in places for value in reached(p.region, [seed.value for seed in p.seeds])}
    inside = {node for place in places for node in place.region.walk()}
    read = {value for place in places if place.loop is not None for value in free_values(place.region)}
    calls = [node for node in flat.walk() if node.call_target and node.call_target not in TARGETS]
    pushed = (node for node in calls if not directed.isdisjoint(node.results) and not has_rule(node))
    other = (node for node in calls if node in inside or not read.isdisjoint(reached(flat, node.results)))
    return next(pushed, next(other, None) if of_values else None)
