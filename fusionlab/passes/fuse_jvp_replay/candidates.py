"""Candidates for the function F and the positions x of which a sum over directions may be the Laplacian.

A replay computes y = sum_k d^2 F / d x_k^2 of some value F of the program at some positions x. Neither is named.
``identify`` evaluates the candidates that are found here, in prime fields.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from fusionlab.codegen.raising import RaiseError
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes, reached, sources_of
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import TensorType, Value, reads
from fusionlab.passes.fuse_jvp_replay import identify
from fusionlab.passes.fuse_jvp_replay.decide import groups
from fusionlab.passes.fuse_jvp_replay.evaluating import FEW_ENOUGH
from fusionlab.passes.fuse_jvp_replay.identify import Identification, Laplacian
from fusionlab.passes.fuse_jvp_replay.no_laplacian import (
    LimitReached,
    NoMatch,
    NotALaplacian,
    UncoveredMatch,
    Unevaluated,
)
from fusionlab.passes.fuse_jvp_replay.recognise import TraceCandidate, is_float
from fusionlab.passes.refusals import Ground, Refusal


def find_laplacian(
    candidate: TraceCandidate,
    deadline: float = math.inf,
    among: Callable[[], Collection[Value] | None] = lambda: None,
) -> Laplacian:
    """The Laplacian that ``candidate`` computes; NotALaplacian if it is that of no value of the program.

    F is searched among the values before the loop, then among those after it that do not need it: a loop that
    recomputes the function in every trip may be written before the call of the function itself. Of a weighted sum, and
    once the likeliest values of another are none, only those that ``among`` returns are evaluated, if it returns any.
    """
    numbers = ValueNumbers(candidate.flat, through_reshapes=True)
    deadline = min(deadline, time.monotonic() + identify.seconds_for(candidate))
    refused: list[Refusal | RaiseError] = []
    tried: set[tuple[bool, Value]] = set()
    for shared, each in _forms(candidate):
        known, reasons = frozenset(tried), list[Refusal | RaiseError]()
        try:
            positions = _positions(each, shared)
        except NotALaplacian as reason:
            positions, reasons = [], [reason]
        for x, outputs in positions:
            for group in groups(each.before, [value for value in outputs if (shared, value) not in known]):
                fitting = among() if tried or candidate.weighted else None
                tried.update((shared, value) for value in group)
                group = [value for value in group if fitting is None or value in fitting]
                try:
                    if group and (found := _identified(each, numbers, x, group, deadline)) is not None:
                        return found
                except MemoryError:
                    too_large = f"{candidate.subject} needs more memory than there is to be identified"
                    reasons.append(LimitReached(Ground.HOST_MEMORY, too_large))
                except (Refusal, RaiseError) as reason:
                    if time.monotonic() > deadline:
                        raise
                    reasons.append(reason)
        if (uncovered := next((reason for reason in reasons if isinstance(reason, UncoveredMatch)), None)) is not None:
            raise uncovered
        if not shared:  # what is sought beside does not hide that there is no Laplacian of the usual form
            where = "before the loop" if candidate.replay else "without directions"
            none = f"of {len(tried)} values {where}, none has the Laplacian that {candidate.subject} computes"
            refused += reasons or [NoMatch(Ground.FUNCTION_NOT_FOUND, none)]
    raise next((reason for reason in refused if isinstance(reason, LimitReached)), refused[0])


def values_that_fit(candidate: TraceCandidate) -> Collection[Value] | None:
    """The values whose derivatives the loop of ``candidate`` may add, with weights or without, those by one coordinate
    in each trip; None where its trips do not tell."""
    if candidate.replay is None or not candidate.replay.adds_in_one_direction:
        return None
    deadline = time.monotonic() + identify.MOST_SECONDS_WITH_WEIGHTS
    numbers = ValueNumbers(candidate.flat, through_reshapes=True)
    found, tried = set[Value](), set[tuple[bool, Value]]()
    for shared, each in _forms(candidate):
        known = frozenset(tried)
        try:
            positions = _positions(each, shared)
        except NotALaplacian:
            continue
        for x, outputs in positions:
            outputs = [value for value in outputs if (shared, value) not in known]
            tried.update((shared, value) for value in outputs)
            try:
                found.update(Identification(each, numbers, x, outputs, deadline).fitting() if outputs else ())
            except (Refusal, RaiseError, MemoryError):
                if time.monotonic() > deadline:
                    return None
                found.update(outputs)
    return found


def _forms(candidate: TraceCandidate) -> Iterator[tuple[bool, TraceCandidate]]:
    """Whether all walkers share the positions, and the values among which F is searched."""
    for shared in (False, True):
        for each in (candidate, candidate.with_what_follows()):
            if each is not None:
                yield shared, each


def _identified(
    candidate: TraceCandidate, numbers: ValueNumbers, x: Value, outputs: Sequence[Value], deadline: float
) -> Laplacian | None:
    trial = Identification(candidate, numbers, x, outputs, deadline)
    try:
        return trial.run()
    except (RaiseError, Unevaluated):
        # Where another extent equals the number of walkers, axes may be mistaken for one another.
        if not trial.marks or math.prod(candidate.walkers) > FEW_ENOUGH:
            raise
        return Identification(candidate, numbers, x, outputs, deadline, resize=False).run()


def _positions(candidate: TraceCandidate, shared: bool) -> list[tuple[Value, list[Value]]]:
    """Values that may be the positions, with the candidates for the function that is differentiated by them.

    ``shared``: one set of coordinates for all walkers, as of nuclei. They are those on which most of the values read
    beside the directions depend, and through which alone they depend on the arguments, if there are any: the last two
    of them, and the first.
    """
    found = []
    walkers, dtype = candidate.walkers, candidate.targets[0].type.dtype
    if shared and not walkers:
        raise NoMatch(Ground.POSITIONS_NOT_FOUND, "there are no walkers to share them")
    own = () if shared else walkers
    for value in (*candidate.flat.arguments, *(value for node in candidate.before for value in node.results)):
        if not is_float(value) or value.type.dtype != dtype or _numbers(value, own) != candidate.directions:
            continue
        if shared and _numbers(value, walkers) == candidate.directions:
            continue
        node = value.producer
        if node is None or node.op is not ops.RESHAPE or not _numbers(node.operands[0], own):  # the first
            found.append(value)
    if candidate.replay is None and not walkers:  # as ``candidates_without_loop``
        given = reached(candidate.flat, candidate.flat.arguments)
        found = [value for value in found if value in given]
    if not found:
        reason = f"no value of the program has {candidate.directions} coordinates per walker"
        raise NoMatch(Ground.POSITIONS_NOT_FOUND, reason)
    dependent = sources_of(candidate.flat, found)
    counts = [sum(dependent.get(read, 0) >> i & 1 for read in candidate.read) for i in range(len(found))]
    most, output = max(counts), TensorType(walkers, dtype)
    values = [v for node in candidate.before for v in node.results if v in dependent and v.type == output]
    best = [
        (value, outputs)
        for i, value in enumerate(found)
        if counts[i] == most and (outputs := [other for other in values if dependent[other] >> i & 1])
    ]
    if not best:
        reason = "no value of one number per walker is computed from the positions before the loop"
        raise NoMatch(Ground.FUNCTION_NOT_FOUND, reason)
    positions = set(found)
    chosen = [(value, outputs) for value, outputs in best if _stands_for(candidate, value, positions)] or best
    return [*chosen[:-3:-1], *chosen[:-2][:1]]


def _numbers(value: Value, walkers: tuple[int, ...]) -> int:
    """The elements of ``value`` per walker; 0 if it has no axes besides those of the walkers, or lacks these."""
    shape, axes = value.type.shape, len(walkers)
    return math.prod(shape[axes:]) if shape[:axes] == walkers and len(shape) > axes else 0


def _stands_for(candidate: TraceCandidate, value: Value, positions: Collection[Value]) -> bool:
    """True if the sum needs none of the arguments in ``positions`` that ``value`` is computed from: it is all of them.

    Walkers after sampling stand for those before it, whatever else both depend on.
    """
    flat = candidate.flat
    above = {v for node in live_nodes(flat.nodes, flat.arguments, [value]) for v in reads(node)} - {value}
    below = live_nodes(flat.nodes, [*flat.arguments, value], candidate.targets)
    return above.isdisjoint(v for node in below for v in reads(node) if v in flat.arguments and v in positions)
