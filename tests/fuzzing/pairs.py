"""Pairs of expressions, equal by construction or different by one edit, and what the exact check says of them.

Many pairs are the outputs of two functions that are lowered together, each pair with arguments of its own, and every
op is evaluated for one pair alone; a point's tables are made once. The verdict of a pair is that of
``compare_exactly``, which a test holds; a verdict against the construction is asked of it, too, and of float64.
Every third batch is of integers, bits and complex numbers (``typed_pairs``), whose other oracle is XLA.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

import jax  # noqa: E402  # after JAX's quiet start
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared  # noqa: E402
from fusionlab.equivalence.exact.field import PrimeField  # noqa: E402
from fusionlab.equivalence.exact.identity import compare_functions, evaluators, points  # noqa: E402
from fusionlab.equivalence.exact.values import Drawn, Held, is_float  # noqa: E402
from fusionlab.hlo import ops  # noqa: E402
from fusionlab.hlo.view import FunctionView, Node, reads, view_of  # noqa: E402
from tests.equivalence.exact.reals import Reals  # noqa: E402
from tests.fuzzing import typed_pairs  # noqa: E402
from tests.fuzzing.edits import edited  # noqa: E402
from tests.fuzzing.expressions import INPUTS, SCALAR, VECTOR, WIDE, Expression, Generator, evaluate  # noqa: E402
from tests.fuzzing.identities import IDENTITIES, UNCLAIMED, rewritten  # noqa: E402

BATCH = 250
_SCALES = (0.3, 1.0, 1.0, 1.0, 3.0, 30.0, 3000.0)
"""Of the arguments in float64; half of the points have positive ones alone."""


@dataclass(frozen=True)
class Pair:
    """Two expressions; ``identities`` made one of the other, and then an ``edit``, none where it is empty."""

    number: int
    first: Expression
    second: Expression
    identities: tuple[str, ...]
    edit: str = ""

    @property
    def is_claimed(self) -> bool:
        return not set(self.identities) & set(UNCLAIMED)


def made(seed: int, number: int) -> Pair:
    """The pair ``number`` of ``seed``: every other one is edited; every tenth of the others is by unclaimed ones."""
    choices = random.Random(f"{seed}/{number}")
    names, most = (tuple(UNCLAIMED), 1) if number % 20 == 2 else (tuple(IDENTITIES), choices.choice((1, 1, 2, 3)))
    used: list[str] = []
    while not used:
        shape, depth = choices.choice((SCALAR, SCALAR, VECTOR, WIDE)), choices.choice((2, 2, 3))
        first = Generator(choices).expression(shape, depth)
        second, used = rewritten(first, choices, most, names)
    edit = ""
    if number % 2:
        second, edit = edited(second, choices)
    if choices.random() < 0.5:
        first, second = second, first
    return Pair(number, first, second, tuple(used), edit)


def lowered(pairs: Sequence[Pair]) -> tuple[FunctionView, FunctionView]:
    """The functions whose outputs are the first, and the second, expressions; a row of each argument is a pair's."""
    shapes = [jax.ShapeDtypeStruct((len(pairs), *shape), np.float32) for shape in INPUTS.values()]

    def of(expressions: Sequence[Expression]) -> FunctionView:
        def function(*arrays: Any) -> list[Any]:
            rows = dict(zip(INPUTS, arrays, strict=True))
            return [
                evaluate(one, lambda name, at=at: lax.index_in_dim(rows[name], at, keepdims=False))
                for at, one in enumerate(expressions)
            ]

        module = jax.jit(function, keep_unused=True).trace(*shapes).lower(lowering_platforms=("cpu",))
        return view_of(module.compiler_ir("stablehlo"))

    return of([pair.first for pair in pairs]), of([pair.second for pair in pairs])


def with_outputs(function: FunctionView, places: Sequence[int]) -> FunctionView:
    """``function`` with some of its outputs and what they need."""
    returns = tuple(function.returns[place] for place in places)
    needed = set(returns)
    nodes = []
    for node in reversed(function.nodes):
        if not needed.isdisjoint(node.results):
            nodes.append(node)
            needed.update(reads(node))
    return FunctionView(function.arguments, nodes[::-1], returns, function.name, function.module)


def differing(first: FunctionView, second: FunctionView) -> list[bool]:
    """For each output, whether it is not identical in both functions; what differs once is evaluated no more.

    The draws are those of ``compare_functions``, for all outputs at once.
    """
    left = list(range(len(first.returns)))
    prepared = Prepared()
    integers = prepared.integers_of(first, second)
    with np.errstate(all="ignore"):
        for p, seeds, shares in points(with_outputs(first, left[:1])):
            for pair in evaluators(PrimeField(p, seeds, integers), shares, prepared):
                views = [with_outputs(function, left) for function in (first, second)]
                xs, ys = (e.outputs(view, e.drawn_arguments(view)) for e, view in zip(pair, views, strict=True))
                left = [at for at, x, y in zip(left, xs, ys, strict=True) if not (x != y).any()]
    return [at not in set(left) for at in range(len(first.returns))]


_ADDITIONS = (ops.ADD, ops.SUBTRACT)
_REAL_POINTS = 64
FEW_ROUNDINGS, ROUNDINGS = 3, 20
"""Evaluations that tell rounding from a difference: a step at a value that is zero but for rounding shows in half."""
_ROUNDED = 1e-8
"""Values that are below this in float64 can be roundings of zero."""
SURELY = 1e-7
"""The relative difference in float64 above which two expressions are taken for different functions."""


class _Points(Reals):
    """Numbers of many points at once."""

    def pivot_size(self, x: Any) -> Any:
        size = np.abs(x)
        return size if len(size) > 1 else np.repeat(size, _REAL_POINTS, 0)


def distance(first: FunctionView, second: FunctionView, roundings: int) -> float:
    """The largest relative difference of the output in float64, at points where no value of either is NaN; NaN without
    any.

    A difference of at most a hundred times the change of the outputs under random relative errors of rounding ops,
    in one of ``roundings`` evaluations (Monte Carlo arithmetic, Parker 1997), is rounding: 0 there.
    """
    random, scales = np.random.default_rng(0), np.resize(_SCALES, _REAL_POINTS)
    given = []
    for value in first.arguments:
        array = random.standard_normal((_REAL_POINTS, *value.type.shape)) * scales.reshape(
            -1, *(1,) * len(value.type.shape)
        )
        array[::2] = np.abs(array[::2])
        given.append(array)
    defined = np.ones(_REAL_POINTS, bool)

    def outputs(relative_error: float) -> list[Any]:
        def rounded(node: Node, results: Sequence[Held]) -> None:
            for held in results:
                if isinstance(held, Drawn) and is_float(held.array.dtype):
                    if len(held.array) == _REAL_POINTS:
                        np.logical_and(defined, ~np.isnan(held.array.reshape(_REAL_POINTS, -1)).any(1), out=defined)
                    if relative_error and (node.op.derivative in ("product", "smooth") or node.op in _ADDITIONS):
                        held.array = held.array * (1 + relative_error * random.standard_normal(held.array.shape))

        evaluators = (Evaluator(_Points(), watch=rounded) for _ in range(2))
        functions = zip((first, second), evaluators, strict=True)
        return np.broadcast_arrays(*(e.outputs(f, [Drawn(a.copy()) for a in given])[0] for f, e in functions))

    with np.errstate(all="ignore"):
        x, y = outputs(0.0)
        changes = [np.abs(z - one) for _ in range(roundings) for z, one in zip(outputs(1e-13), (x, y), strict=True)]
        apart = np.where(
            np.abs(x - y) > 100 * np.max(changes, 0), np.abs(x - y) / np.maximum(np.abs(x), np.abs(y)), 0.0
        )
        apart = np.where((x == y) | (np.maximum(np.abs(x), np.abs(y)) < _ROUNDED), 0.0, apart)
    finite = np.isfinite(apart) & np.isfinite(x) & np.isfinite(y)
    finite &= defined.reshape(-1, *(1,) * (x.ndim - 1)) if len(x) == _REAL_POINTS else True
    return float(apart[finite].max()) if finite.any() else float("nan")


def judged(pair: Pair, functions: tuple[FunctionView, FunctionView], at: int, differs: bool) -> dict[str, Any]:
    """The class of a verdict and, for one against the construction, what it takes to look into it."""
    if pair.edit and differs:
        return {"kind": "edited: not identical"}
    if not pair.edit and (not differs or not pair.is_claimed):
        return {"kind": f"{'equal' if pair.is_claimed else 'unclaimed'}: {'not ' if differs else ''}identical"}
    views = with_outputs(functions[0], [at]), with_outputs(functions[1], [at])
    apart = distance(*views, FEW_ROUNDINGS)
    if apart > SURELY:
        apart = distance(*views, ROUNDINGS)
    if pair.edit and not apart > SURELY:
        kind = "edited: identical, and equal in float64"
    elif differing(*views)[0] != differs:  # beside others it had another order
        return {"kind": "equal: identical" if differs else "edited: not identical"}
    else:
        said = compare_functions(*views).result
        kind = f"edited: {said}" if pair.edit else f"equal: {said}{', different in float64' * (apart > SURELY)}"
    return {**_words(pair, kind), "float64": apart, "edit": pair.edit, "identities": pair.identities}


def _words(pair: Pair, kind: str) -> dict[str, Any]:
    return {"pair": pair.number, "kind": kind, "first": repr(pair.first)[:1500], "second": repr(pair.second)[:1500]}


def _verdicts(pairs: Sequence[Pair]) -> Iterator[tuple[dict[str, Any], Pair, bool]]:
    """What is said of each pair; where the check itself fails, half of the pairs at a time, to find which."""
    functions = lowered(pairs)
    try:
        found = differing(*functions)
    except Exception as error:
        if len(pairs) > 1:
            for part in (pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]):
                yield from _verdicts(part)
        else:
            words = _words(pairs[0], "fault of the check")
            yield {**words, "error": f"{type(error).__name__}: {error}"}, pairs[0], True
        return
    for at, (pair, differs) in enumerate(zip(pairs, found, strict=True)):
        yield judged(pair, functions, at, differs), pair, differs


def run(seed: int, first: int, count: int) -> dict[str, Any]:
    """``count`` pairs of ``seed`` from ``first`` on: counts by class, identity and edit, and verdicts to look into."""
    classes: Counter[str] = Counter()
    identities: Counter[str] = Counter()
    edits: dict[str, Counter[str]] = {}
    looked: list[dict[str, Any]] = []
    for found, pair, differs in _verdicts([made(seed, number) for number in range(first, first + count)]):
        classes[found["kind"]] += 1
        if not pair.edit:
            identities.update(f"{name}: {'not ' if differs else ''}identical" for name in set(pair.identities))
        else:
            edits.setdefault(pair.edit, Counter())[found["kind"]] += 1
        if "pair" in found:
            looked.append(found)
    return {"classes": classes, "identities": identities, "edits": edits, "looked_into": looked}


def runs(seed: int, first: int, count: int) -> list[dict[str, Any]]:
    """The same of every batch."""
    gc.disable()  # a batch leaves little behind; to look for it takes a fifth of the time
    found = []
    for at in range(first, first + count, BATCH):
        number = min(BATCH, first + count - at)
        typed = at // BATCH % 3 == 2
        found.append(typed_pairs.run(seed, at, number, differing) if typed else run(seed, at, number))
        gc.collect()
    return found
