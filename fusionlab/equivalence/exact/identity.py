"""Two programs as algebra: equal at every point, under random and steered orders, element by element, or not."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from fusionlab.equivalence.exact.coverage import DataIntegers
from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import FieldWithUndefined, PrimeField, primes
from fusionlab.equivalence.exact.rules.regions import MOST_TRIPS
from fusionlab.equivalence.exact.steering import Tracker, first_wishes
from fusionlab.equivalence.exact.values import Array, Drawn, Held, Known, Uncovered
from fusionlab.hlo import ops
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import FunctionView, Node, Value, source_of, view_of
from fusionlab.host_settings import one_blas_thread, own_settings, young_only

SHARES = ((1.0, 0.0, 0.75, np.nan), (0.5, np.nan, np.nan, np.nan))
"""For each prime its steered points: the probability with which a predicate is steered to make a value non-zero; NaN:
each op has its own."""
POINTS = 6
"""Draws per prime, each with its own arguments; the first of them are evaluated under a steered order, too."""
MOST_REPEATS, ELEMENTS = 12, 2**21
"""Draws of a small program are repeated until its values have ``ELEMENTS`` elements in all, up to a maximum: with few
elements, a branch guarded by several predicates is rarely taken at one of them."""
ROUNDS = 2
"""Evaluations under a steered order; the second is steered by predicates of the first one's branches, too."""
DEGREE = 2**11
"""The degree up to which two different outputs may agree by chance in ``error_probability``; see docs/exact.md."""


@dataclass(frozen=True)
class Identity:
    """The verdict of the exact check.

    ``identical``: all outputs are equal in all ``draws``, distinct points of all arguments over ``primes`` primes; two
    outputs that differ by a polynomial of degree up to ``DEGREE`` pass with at most ``error_probability``.
    ``not-identical``: they differ, in as many elements as ``reason`` says, first in the op ``first_difference``; no
    proof that the programs differ as functions of real numbers, because an identity of functions may be missing.
    ``not-covered``: something in them has no exact meaning (``reason``). ``walkers`` is the number of walkers at
    which the programs were compared, None for their own shapes. ``at_ties`` is the difference of identical programs
    where inputs are exactly tied and the original is defined; empty if there is none. ``except_for`` names what the
    draws do not cover: integers made of data, other than those drawn; then there is no bound on the error (1).
    """

    result: Literal["identical", "not-identical", "not-covered"]
    draws: int
    primes: int
    error_probability: float
    reason: str = ""
    first_difference: str = ""
    walkers: int | None = None
    at_ties: str = ""
    except_for: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.result == "identical":
            walkers = "" if self.walkers is None else f" of {self.walkers} walkers"
            known = f" (chance of error below {self.error_probability:.0e})" if not self.except_for else ""
            return (
                f"identical{self.except_for and f', except for {self.except_for}'}: all outputs{walkers} equal in "
                f"{self.draws} draws over {self.primes} primes, under random and steered predicates{known}"
                + (f", {self.reason}" if self.reason else "")
                + (f", but where inputs are exactly tied {self.at_ties}" if self.at_ties else "")
            )
        where = f"; the first value that differs: {self.first_difference}" if self.first_difference else ""
        return f"{self.result}: {self.reason}{where}"

    @property
    def short(self) -> str:
        """The verdict without the draws and primes behind it."""
        if self.result != "identical":
            return self.line
        chance = f" (chance of error < {self.error_probability:.0e})" if not self.except_for else ""
        return (
            f"identical in exact arithmetic{self.except_for and f', except for {self.except_for}'}{chance}"
            + (f", {self.reason}" if self.reason else "")
            + (f", but where inputs are exactly tied {self.at_ties}" if self.at_ties else "")
        )


def compare_exactly(original: Program, rewritten: Program) -> Identity:
    """Evaluate both programs at their own shapes; their signatures must be the same."""
    modules = original.parse(), rewritten.parse()
    return compare_functions(*map(view_of, modules))


@own_settings()
@young_only()
@one_blas_thread()
def compare_functions(original: FunctionView, rewritten: FunctionView) -> Identity:
    """``compare_exactly`` of two views."""
    if (unlike := _other_signature(original, rewritten)) is not None:
        return Identity("not-identical", 0, 0, 1.0, unlike)
    draws, used = 0, set[int]()
    called: set[tuple[str, str]] = set()  # by one program and not the other, and of what
    prepared = Prepared()
    try:
        for p, seeds, shares in points(original):
            draws += len(seeds)
            used.add(p)
            field = PrimeField(p, seeds, prepared.integers_of(original, rewritten))
            for first, second in evaluators(field, shares, prepared):
                expected, found = _outputs(original, first), _outputs(rewritten, second)
                called |= first.uncovered ^ second.uncovered
                if (difference := _difference(expected, found, first.left_out | second.left_out)) is not None:
                    if called:
                        names = ", ".join(sorted({name for name, _ in called}))
                        return Identity("not-covered", draws, len(used), 1.0, f"{names} has no rule")
                    where = first_difference(original, rewritten, first.arithmetic)
                    return Identity("not-identical", draws, len(used), 1.0, difference, where)
    except Uncovered as error:
        return Identity("not-covered", draws, len(used), 1.0, str(error))
    limits = not_covered_by_draws(original, rewritten)
    chance = 1.0 if limits else max((DEGREE / min(used)) ** draws, 1e-300)
    ties = _at_ties(original, rewritten, prepared)
    return Identity("identical", draws, len(used), chance, at_ties=ties, except_for=limits)


def not_covered_by_draws(*functions: FunctionView) -> str:
    """Other integers than those drawn on which the functions depend, and the first op that does, in words; "" if
    there are none."""
    each = [_outside(function) for function in functions]
    loops = any(node.op is ops.WHILE for nodes in each for node in nodes)
    found = [node for nodes in each for node in nodes]
    if not found:
        return ""
    node, others = found[0], len(found) - 1
    where = f" at {node.source[0].rpartition('/')[2]}:{node.source[1]}" if node.source else ""
    more = f" and {others} more" if others else ""
    what = f"integers beyond those drawn ({node.op.mnemonic}{where}{more})"
    return f"{what}, loops of more than {MOST_TRIPS} trips" if loops else what


def _outside(function: FunctionView) -> list[Node]:
    integers = DataIntegers.of(function)
    return [node for node in integers.walk() if integers.outside(node) is not None]


def points(function: FunctionView) -> Iterator[tuple[int, Sequence[int], Sequence[float]]]:
    """Primes, each with the seeds of its draws and the shares of those that are steered; a small program has more."""
    repeats = min(max(ELEMENTS // (POINTS * max(_computed(function.nodes), 1)), 1), MOST_REPEATS)
    for first, last in ((0, 1), (1, repeats))[: min(repeats, 2)]:
        for p, shares in zip(primes(len(SHARES)), SHARES, strict=True):
            yield p, range(POINTS * first, POINTS * last), shares * (last - first)


def _computed(nodes: Sequence[Node]) -> int:
    """Elements of all values that one evaluation of ``nodes`` computes, each trip of a loop counted."""
    found = 0
    for node in nodes:
        inner = sum(_computed(region.nodes) for region in node.regions)
        trips = analyse(node).trips if node.op is ops.WHILE else 1
        found += inner * (ELEMENTS if trips is None else trips)
        found += sum(math.prod(value.type.shape) for value in node.results if value.is_array)
    return found


def _at_ties(original: FunctionView, rewritten: FunctionView, prepared: Prepared) -> str:
    """The first output that differs at tied inputs, in words, among the elements that are defined in the original."""
    integers = prepared.integers_of(original, rewritten)
    evaluator = Evaluator(FieldWithUndefined(primes(1)[0], range(len(TIES)), integers), prepared)
    arguments = [Drawn(tied(at, held.array)) for at, held in enumerate(evaluator.drawn_arguments(original))]
    try:
        expected, found = (evaluator.outputs(function, arguments) for function in (original, rewritten))
    except Uncovered as error:
        return f"they were not compared: {error}"
    found = [np.where(np.isnan(x), x, y) for x, y in zip(expected, found, strict=True)]
    return _difference(expected, found, evaluator.left_out) or ""


TIES = ("small integers", "zeros among them", "equal halves", "every other argument zero")
"""The kind of tie in the arguments of each draw."""


def tied(number: int, array: Array) -> Array:
    """The argument ``number`` [draws, ...], tied in another way in each of the draws ``TIES``."""
    if array.dtype.kind not in "fc":
        return array
    array = array.copy()
    array[0] = array[0].real % 3 - 1
    array[1] = np.where(array[1].real % 2 == 0, 0, array[1])
    flat = array[2].reshape(-1)
    flat[flat.size - flat.size // 2 :] = flat[: flat.size // 2]
    array[2] = flat.reshape(array[2].shape)
    array[3] = array[3] if number % 2 else 0
    return array


def evaluators(
    field: PrimeField, shares: Sequence[float], prepared: Prepared, programs: int = 2, rounds: int = ROUNDS
) -> Iterator[Sequence[Evaluator]]:
    """Evaluators of the programs over ``field``, then, where predicates are combined, over it under steered orders.

    The predicates of all programs are steered; where their wishes differ, each has its own at some of the points.
    Other differences are compared under a steered order than before, which is steered once more.
    """
    wishes = [first_wishes([]) for _ in shares]
    for _ in range(rounds):
        trackers = [Tracker(field, shares, prepared) for _ in range(programs)]
        yield trackers
        before, wishes = wishes, []
        for at, (held, *own) in enumerate(zip(before, *(tracker.wishes for tracker in trackers), strict=True)):
            first = own.pop(-1 - at % programs)
            wishes.append(first_wishes([held, first, *reversed(own)]))
        if list(map(len, wishes)) == list(map(len, before)):
            return
        field = field.steered(wishes)
    yield [Evaluator(field, prepared) for _ in range(programs)]


def _outputs(function: FunctionView, evaluator: Evaluator) -> list[Array]:
    return evaluator.outputs(function, evaluator.drawn_arguments(function))


def _other_signature(original: FunctionView, rewritten: FunctionView) -> str | None:
    types = [[[v.type for v in values] for values in (f.arguments, f.returns)] for f in (original, rewritten)]
    kinds = zip(("arguments", "results"), *types, strict=True)
    return next((f"the {kind} have other types" for kind, ours, theirs in kinds if ours != theirs), None)


def _difference(expected: Sequence[Array], found: Sequence[Array], left_out: Collection[int] = ()) -> str | None:
    """The first output that differs and its number of differing elements, in words; None where all are equal.

    Draws that are ``left_out`` are not compared."""
    for index, (x, y) in enumerate(zip(expected, found, strict=True)):
        differing = (x != y) & ~(np.isnan(x) & np.isnan(y))
        if len(differing) > 1:
            differing[list(left_out)] = False
        if differing.any():
            return f"output {index} differs at {int(differing.sum())} of {differing.size} elements"
    return None


def first_difference(original: FunctionView, rewritten: FunctionView, field: PrimeField) -> str:
    """The first op of ``rewritten`` that computes, from values of the original, none of them, with its source line.

    Values are equal here if they have the same set of elements, in any order and number: a rewrite moves and repeats
    them. If no op of the rewritten program is known to be the first, the op of the output that differs.
    """
    seen: set[bytes] = set()

    def note(node: Node, results: Sequence[Held]) -> None:
        seen.update(_elements(held) for held in results)

    told: list[Node] = []
    matched: dict[Value, bool] = dict.fromkeys(rewritten.arguments, True)

    def look(node: Node, results: Sequence[Held]) -> None:
        same = all(isinstance(held, Known) or _elements(held) in seen for held in results)
        if not same and node.operands and all(matched.get(value, True) for value in node.operands):
            told.append(node)
        matched.update(dict.fromkeys(node.results, same))

    for function, watch in ((original, note), (rewritten, look)):
        _outputs(function, Evaluator(field, watch=watch))
    for node in told[:1]:
        place = source_of(node.operation)
        return f"{node.name} at {node.scope or 'no scope'}" + (f" ({place[0]}:{place[1]})" if place else "")
    return ""


def _elements(held: Held) -> bytes:
    """A digest of the set of elements in the first draw."""
    array = held.constant if isinstance(held, Known) else held.array[0]
    return hashlib.sha256(np.unique(np.asarray(array) + 0).tobytes()).digest()
