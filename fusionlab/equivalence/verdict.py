"""The verdict of an equivalence check."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Word = Literal["equal", "within-bound", "different", "not-checked"]


@dataclass(frozen=True)
class OutputError:
    """How far one output of the rewritten program is from float64 truth, against what the original itself loses.

    ``tolerance`` follows from the original's own float32 error; the ``_float64`` pair is the same comparison with
    both programs computed in float64, where a wrong rewrite cannot hide in rounding. Units are the output's.
    """

    name: str
    max_abs_error: float
    tolerance: float
    max_abs_error_float64: float
    tolerance_float64: float
    bitwise: bool

    @property
    def passed(self) -> bool:
        """Whether both errors are within their tolerances (a NaN error is not)."""
        return self.max_abs_error <= self.tolerance and self.max_abs_error_float64 <= self.tolerance_float64


@dataclass(frozen=True)
class Verdict:
    """``equal`` (bitwise in float32), ``within-bound``, ``different`` (see ``worst``) or ``not-checked``, with reasons.

    ``worst`` names the seed, parameters, walker and output where the rewritten program is furthest off.
    """

    verdict: Word
    outputs: tuple[OutputError, ...] = ()
    walkers: int | None = None
    worst: str = ""
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether the rewritten program was shown equivalent."""
        return self.verdict in ("equal", "within-bound")

    def to_json(self) -> dict[str, Any]:
        """The ``equivalence`` object of the ``--json`` contract: the worst output's error and tolerance in front.

        JSON has no infinity and no NaN; an error that is one is written as the string ``"inf"`` or ``"nan"``.
        """
        worst = max(self.outputs, key=lambda o: _ratio(o.max_abs_error, o.tolerance), default=None)
        return {
            "verdict": self.verdict,
            **{name: _number(getattr(worst, name)) if worst else None for name in _FIGURES},
            "walkers": self.walkers,
            "worst": self.worst,
            "reason": self.reason,
            "outputs": [
                {**asdict(output), **{name: _number(getattr(output, name)) for name in _FIGURES}}
                for output in self.outputs
            ],
        }

    @staticmethod
    def from_json(document: dict[str, Any]) -> Verdict:
        """The verdict that ``to_json`` wrote."""
        outputs = tuple(
            OutputError(**{**output, **{name: float(output[name]) for name in _FIGURES}})
            for output in document["outputs"]
        )
        return Verdict(document["verdict"], outputs, document["walkers"], document["worst"], document["reason"])


_FIGURES = ("max_abs_error", "tolerance", "max_abs_error_float64", "tolerance_float64")


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _ratio(error: float, tolerance: float) -> float:
    return error / tolerance if tolerance else (float("inf") if error else 0.0)
