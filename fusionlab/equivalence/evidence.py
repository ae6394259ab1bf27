"""Whether the numbers of an output say anything: two programs that give NaN everywhere agree in nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEAST_PART = 0.5
"""Of an output's elements, those that must be a number, or an infinity, at some input."""


@dataclass(frozen=True)
class Evidence:
    """What the samples so far have shown of one output: which elements were numbers at some input, and whether any was
    finite."""

    numbers: np.ndarray | None = None
    finite: bool = False

    def after(self, truth: np.ndarray, original: np.ndarray) -> Evidence:
        """This, and one more sample's values in both precisions."""
        numbers = ~(np.isnan(truth) | np.isnan(original))
        finite = bool((np.isfinite(truth) & np.isfinite(original)).any() or not truth.size)
        return Evidence(numbers if self.numbers is None else self.numbers | numbers, self.finite or finite)

    @property
    def lacks(self) -> str:
        """What is missing, in words; empty where nothing is."""
        if not self.finite:
            return "no input gave a finite value"
        if self.numbers is not None and self.numbers.size and self.numbers.mean() < LEAST_PART:
            return f"{np.count_nonzero(~self.numbers)} of {self.numbers.size} elements were NaN at every input"
        return ""
