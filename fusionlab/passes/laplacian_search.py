"""Find which value of a program a sum over directions is the Laplacian of, by evaluating both exactly.

A replay computes y = sum_k d^2 F / d x_k^2 of some value F of the program at some positions x. Neither is named.
Here are the candidates for x and F; ``laplacian_identity`` evaluates them, in prime fields.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import replace

from fusionlab.codegen.raising import RaiseError, live_nodes
from fusionlab.hlo.replay import reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, reads
from fusionlab.passes.laplacian_finding import Laplacian
from fusionlab.passes.laplacian_identity import FEW_ENOUGH, Identification, subject
from fusionlab.passes.sums_over_directions import DirectionSum, NoLaplacian, NotSeen, is_float, with_what_follows


class Findings:
    """What sums over directions were found to be, for passes that are tried in turn on one program.

    It lives as long as that run. A finding is kept under everything that decides it, and given in terms of the view
    that is asked about: each pass looks at a view of its own, all of which number values and nodes alike.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, Laplacian | NoLaplacian] = {}

    def find(self, question: DirectionSum, digest: str) -> Laplacian:
        """As ``find_laplacian``, for the program that ``digest`` names."""
        key = (digest, *_decides(question))
        if key not in self._found:
            try:
                self._found[key] = find_laplacian(question)
            except NoLaplacian as reason:
                self._found[key] = _anew(reason)
        known = self._found[key]
        if isinstance(known, NoLaplacian):
            raise _anew(known)
        return _in_terms_of(known, question.flat)


def _decides(question: DirectionSum) -> tuple[Hashable, ...]:
    """Everything of ``question`` that a search in a given program depends on."""
    return (
        question.producer.id,
        question.replay is None,
        question.directions,
        None if question.initial is None else question.initial.id,
        *(tuple(v.id for v in values) for values in (question.targets, question.read, question.flat.arguments)),
        *(tuple(node.id for node in nodes) for nodes in (question.before, question.flat.nodes)),
    )


def _anew(reason: NoLaplacian) -> NoLaplacian:
    """The same reason without its traceback, which would keep all that the search held."""
    return type(reason)(str(reason))


def _in_terms_of(known: Laplacian, flat: FunctionView) -> Laplacian:
    """The same finding with the values of another view of the same program, which numbers them alike."""
    values = {value.id: value for value in flat.arguments}
    for node in flat.walk():
        values.update((value.id, value) for value in node.results)
        values.update((value.id, value) for region in node.regions for value in region.arguments)
    axes = {values[value.id]: marked for value, marked in known.axes.items()}
    shapes = {values[value.id]: shape for value, shape in known.one.shapes.items()}
    return replace(
        known,
        x=values[known.x.id],
        output=values[known.output.id],
        target=values[known.target.id],
        gradients=tuple(values[value.id] for value in known.gradients),
        still=tuple(values[value.id] for value in known.still),
        ties={values[value.id]: slope for value, slope in known.ties.items()},
        axes=axes,
        one=replace(known.one, shapes=shapes),
    )


def find_laplacian(question: DirectionSum) -> Laplacian:
    """What ``question`` is the Laplacian of; NoLaplacian if that is no value of the program.

    It is searched among what stands before the loop, then among what follows it and does not need it: a loop that
    computes the function anew in every trip may be written before the function itself is called.
    """
    tried: dict[Value, None] = {}
    refused: list[NoLaplacian | RaiseError] = []
    for asked in _asked(question):
        try:
            return _search_in(asked, tried)
        except NotSeen:
            raise
        except (NoLaplacian, RaiseError) as reason:
            refused.append(reason)
    raise refused[0]


def _asked(question: DirectionSum) -> Iterator[DirectionSum]:
    yield question
    if (later := with_what_follows(question)) is not None:
        yield later


def _search_in(question: DirectionSum, tried: dict[Value, None]) -> Laplacian:
    """Candidates that are in ``tried`` are passed over; those that are tried come into it."""
    numbers = ValueNumbers(question.flat, through_reshapes=True)
    known = set(tried)
    refused: list[NoLaplacian | RaiseError] = []
    for x, walkers, outputs in _positions(question):
        for group in _groups(question.before, [value for value in outputs if value not in known]):
            tried.update(dict.fromkeys(group))
            try:
                found = _tried(question, numbers, x, walkers, group)
            except (NoLaplacian, RaiseError) as reason:
                refused.append(reason)
                continue
            if found is not None:
                return found
    if refused:
        raise next((reason for reason in refused if isinstance(reason, NotSeen)), refused[0])
    where = "before the loop" if question.replay else "without directions"
    raise NoLaplacian(f"of {len(tried)} values {where}, none has the Laplacian that {subject(question)} computes")


def _tried(
    question: DirectionSum, numbers: ValueNumbers, x: Value, walkers: int, outputs: Sequence[Value]
) -> Laplacian | None:
    trial = Identification(question, numbers, x, walkers, outputs)
    try:
        return trial.run()
    except RaiseError:
        # Where walkers are as many as something else is, axes are mistaken for one another.
        if not trial.axes or x.type.shape[0] > FEW_ENOUGH:
            raise
        return Identification(question, numbers, x, walkers, outputs, resize=False).run()


def _positions(question: DirectionSum) -> Iterator[tuple[Value, int, list[Value]]]:
    """Values that may be the positions, with their walker axes and the candidates for what is differentiated by them.

    They are those that most of what is read beside the directions depends on, and through which alone it does, if
    there are such: the last two of them, and the first.
    """
    target = question.targets[0]
    walkers = target.type.shape
    found = []
    for value in (*question.flat.arguments, *(value for node in question.before for value in node.results)):
        if not is_float(value) or value.type.dtype != target.type.dtype or _reshaped(value, walkers):
            continue
        shape = value.type.shape
        coordinates = math.prod(shape[len(walkers) :])
        if shape[: len(walkers)] == walkers and coordinates == question.directions and len(shape) > len(walkers):
            dependent = reached(question.flat, [value])
            found.append((sum(read in dependent for read in question.read), value))
    if not found:
        raise NoLaplacian(f"no value of the program has {question.directions} coordinates per walker")
    most = max(count for count, _ in found)
    positions = {value for _, value in found}
    best = [(value, _outputs(question.before, value, target)) for count, value in found if count == most]
    best = [(value, outputs) for value, outputs in best if outputs]
    if not best:
        raise NoLaplacian("no value of one number per walker is computed from the positions before the loop")
    whole = [(value, outputs) for value, outputs in best if _stands_for(question, value, positions)]
    chosen = whole or best
    for value, outputs in [*chosen[:-3:-1], *chosen[:-2][:1]]:
        yield value, len(walkers), outputs


def _reshaped(value: Value, walkers: tuple[int, ...]) -> bool:
    """Whether ``value`` is an earlier candidate, with the coordinates of a walker in another shape."""
    node = value.producer
    if node is None or node.name != "stablehlo.reshape":
        return False
    shape = node.operands[0].type.shape
    return shape[: len(walkers)] == walkers and len(shape) > len(walkers)


def _stands_for(question: DirectionSum, value: Value, positions: Collection[Value]) -> bool:
    """Whether the sum needs none of the arguments in ``positions`` that ``value`` is computed from: it is all of them.

    Walkers that were sampled before stand for those that the sampling began with, whatever else both depend on.
    """
    flat = question.flat
    above = {v for node in live_nodes(flat.nodes, flat.arguments, [value]) for v in reads(node)} - {value}
    below = live_nodes(flat.nodes, [*flat.arguments, value], question.targets)
    return above.isdisjoint(v for node in below for v in reads(node) if v in flat.arguments and v in positions)


def _outputs(before: Sequence[Node], x: Value, target: Value) -> list[Value]:
    """Values of one number per walker that depend on ``x`` (not by complex numbers) and are known before the loop."""
    dependent, by_complex = {x}, set[Value]()
    found = []
    for node in before:
        read = reads(node)
        if dependent.isdisjoint(read):
            continue
        dependent.update(node.results)
        if not by_complex.isdisjoint(read) or any(v.type.dtype.startswith("complex") for v in node.results):
            by_complex.update(node.results)
        found += [v for v in node.results if is_float(v) and v.type == target.type and v not in by_complex]
    return found


def _groups(before: Sequence[Node], outputs: Sequence[Value]) -> Iterator[list[Value]]:
    """Candidates that no other candidate is computed from, then the others."""
    used: set[Value] = set()
    for node in reversed(before):
        if any(value in used or value in outputs for value in node.results):
            used.update(node.operands)
    last = [value for value in outputs if value not in used]
    rest = [value for value in outputs if value in used]
    if last:
        yield last
    if rest:
        yield rest
