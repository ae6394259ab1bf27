"""The assertion that two functions compute the same, by the same check as of rewritten programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fusionlab.codegen.raising import RaiseError, RaisingFault
from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.samples import Sample
from fusionlab.equivalence.verdict import Verdict
from fusionlab.testing.lowered import arrays_of, flat_program


def assert_equivalent(f: Any, g: Any, args: Sequence[Any], *, perturbations: int = 2) -> Verdict:
    """AssertionError unless ``g`` computes the same as ``f``, on the CPU.

    ``f`` and ``g`` are functions (jitted or not) of ``args``, or Programs, of which ``args`` are the arrays. They are
    compared on ``args`` and on ``perturbations`` of them, floats moved by a tenth of each array's spread. Truth is
    ``f`` in float64: ``g`` may be a few times further from it than ``f`` itself in its own precision, and in float64
    has to be right (docs/trust.md). Results are compared leaf by leaf. No verdict is a failure too. Returns the
    verdict. InputError for arguments without numbers.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    arrays = arrays_of(args)
    original, other = flat_program(f, args), flat_program(g, args)
    try:
        verdict = check_programs(original, other, _samples(arrays, perturbations))
    except (RaiseError, RaisingFault) as error:
        verdict = Verdict("not-checked", reason=str(error))
    if not verdict.passed:
        what = verdict.worst if verdict.verdict == "different" else ""
        said = "; ".join(filter(None, (what, verdict.reason)))
        if "signatures" in verdict.reason:
            said = f"{_types(original)} against {_types(other)}"
        raise AssertionError(f"{original.name} and {other.name} are {verdict.verdict}: {said}")
    return verdict


def _samples(arrays: tuple[np.ndarray, ...], perturbations: int) -> Iterator[Sample]:
    yield Sample("the arguments given", arrays, typical=False)
    for seed in range(perturbations):
        random = np.random.default_rng(seed)
        moved = tuple(_moved(array, random) for array in arrays)
        yield Sample(f"the arguments moved, seed {seed}", moved, typical=False)


def _moved(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if not np.issubdtype(array.dtype, np.inexact):
        return array
    spread = float(np.std(array)) or 1.0
    return np.asarray(array + 0.1 * spread * random.standard_normal(array.shape)).astype(array.dtype)


def _types(program: Any) -> str:
    return f"({', '.join(map(str, program.inputs))}) -> ({', '.join(map(str, program.outputs))})"
