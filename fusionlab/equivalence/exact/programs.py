"""Evaluate whole programs: arguments drawn from a seed, and all rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.field import PrimeField, integer_range
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


def drawn_arguments(function: FlatFunction, evaluator: Evaluator) -> list[Held]:
    """One value per argument and draw: residues of floats; integers and booleans whose range depends on the draw."""
    field: PrimeField = evaluator.arithmetic
    found: list[Held] = []
    for at, value in enumerate(function.arguments):
        dtype, shape = evaluator.dtype(value), value.type.shape
        parts: list[Any] = []
        for draw, seed in enumerate(field.seeds):
            random = np.random.default_rng([field.p, seed, at])
            if evaluator.is_float(value):
                real, imaginary = random.integers(-field.half, field.half + 1, (2, *shape)).astype(np.float64)
                parts.append(real + 1j * imaginary if dtype.kind == "c" else real)
            else:
                parts.append(np.asarray(random.integers(*integer_range(draw, dtype), shape)).astype(dtype))
        found.append(Drawn(np.stack(parts)))
    return found
