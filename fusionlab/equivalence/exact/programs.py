"""Evaluate whole programs: arguments drawn from a seed, and all rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.rules import contractions, control, elementwise, moves, reductions
from fusionlab.equivalence.exact.values import Drawn, Held
from fusionlab.hlo.flat import FlatFunction

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **moves.RULES,
    **contractions.RULES,
    **reductions.RULES,
    **control.RULES,
}

_INTEGERS = 8


def drawn_arguments(function: FlatFunction, field: PrimeField, evaluator: Evaluator) -> list[Held]:
    """One value per argument and draw: residues for floats, small integers, random booleans."""
    found: list[Held] = []
    for at, value in enumerate(function.arguments):
        dtype, shape = evaluator.dtype(value), value.type.shape
        parts: list[Any] = []
        for seed in field.seeds:
            random = np.random.default_rng([field.p, seed, at])
            if evaluator.is_float(value):
                real, imaginary = random.integers(-field.half, field.half + 1, (2, *shape)).astype(np.float64)
                parts.append(real + 1j * imaginary if dtype.kind == "c" else real)
            elif dtype == np.bool_:
                parts.append(random.integers(0, 2, shape).astype(np.bool_))
            else:
                parts.append(np.asarray(random.integers(0, _INTEGERS, shape)).astype(dtype))
        found.append(Drawn(np.stack(parts)))
    return found


def evaluated(function: FlatFunction, field: PrimeField) -> list[np.ndarray[Any, Any]]:
    """The results of ``function`` [draws, ...] at the arguments that the field's seeds give."""
    evaluator = Evaluator(field, RULES)
    return evaluator.outputs(function, drawn_arguments(function, field, evaluator))


def agreement(
    first: Sequence[np.ndarray[Any, Any]], second: Sequence[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """Elementwise equality of the results of two programs."""
    return [np.asarray(x == y) for x, y in zip(first, second, strict=True)]
