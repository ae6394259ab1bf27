"""Evaluate whole programs: arguments drawn from a seed, and all rules."""

from __future__ import annotations

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.rules import contractions, control, elementwise, moves, reductions
from fusionlab.equivalence.exact.values import Drawn, Held
from fusionlab.hlo.view import FunctionView

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **moves.RULES,
    **contractions.RULES,
    **reductions.RULES,
    **control.RULES,
}


def drawn_arguments(function: FunctionView, evaluator: Evaluator) -> list[Held]:
    """One value per argument and draw: residues of floats; integers and booleans whose range depends on the draw."""
    field: PrimeField = evaluator.arithmetic
    found: list[Held] = []
    for at, value in enumerate(function.arguments):
        randoms = (np.random.default_rng([field.p, seed, at]) for seed in field.seeds)
        found.append(Drawn(np.stack([evaluator.drawn(value, draw, one) for draw, one in enumerate(randoms)])))
    return found
