"""The verdict of an equivalence check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.exact.identity import Identity

Word = Literal["equal", "within-bound", "different", "not-checked"]

_MOST_OUTPUTS = 4
"""The number of outputs in a one-line verdict; its JSON has all."""


@dataclass(frozen=True)
class OutputError:
    """The distance of one output of the rewritten program from float64 truth, against the original's own loss.

    ``tolerance`` follows from the original's own float32 error; the ``_float64`` pair is the same comparison with both
    programs computed in float64, where rounding cannot hide a wrong rewrite. Units are the output's.

    The histograms count the elements of all samples by how far the rewritten program is from the original one, both in
    their own dtype. Bin 0 of ``ulp_histogram`` holds equal elements, bin k those 2^(k-1) to 2^k - 1 units in the last
    place apart; the last bin those of which one is not finite. ``abs_histogram`` has (d, count) for 10^d <=
    |difference| < 10^(d+1). ``max_ulp`` is None for integers and booleans.

    ``mean_shift`` is the mean of the rewritten output over typical walkers minus that of the original one,
    ``standard_error`` the original's own Monte-Carlo error of that mean (None without typical walkers).
    ``max_abs_error`` is measured at one element, ``place``: there, ``value`` is the absolute value of float64 truth and
    ``original_abs_error`` how far the original itself is from it, both None for integers and booleans.
    """

    name: str
    max_abs_error: float
    tolerance: float
    max_abs_error_float64: float
    tolerance_float64: float
    bitwise: bool
    max_ulp: float | None = None
    ulp_histogram: tuple[int, ...] = ()
    abs_histogram: tuple[tuple[int, int], ...] = ()
    mean_shift: float | None = None
    standard_error: float | None = None
    mean_tolerance: float | None = None
    original_abs_error: float | None = None
    value: float | None = None
    place: str = ""

    @property
    def passed(self) -> bool:
        """True if both errors, and the shift of the mean, are within their tolerances (a NaN error is not)."""
        errors = self.max_abs_error <= self.tolerance and self.max_abs_error_float64 <= self.tolerance_float64
        return errors and not self.mean_shifted

    @property
    def used(self) -> float:
        """The largest ratio of an error to its tolerance; infinite where nothing is allowed, and for NaN."""
        pairs = [(self.max_abs_error, self.tolerance), (self.max_abs_error_float64, self.tolerance_float64)]
        if self.mean_shift is not None and self.mean_tolerance is not None:
            pairs.append((abs(self.mean_shift), self.mean_tolerance))
        parts = [_ratio(*pair) for pair in pairs]
        return max(math.inf if math.isnan(part) else part for part in parts)

    @property
    def mean_shifted(self) -> bool:
        """True if the mean is off by more than its Monte-Carlo error and the original's own loss."""
        if self.mean_shift is None or self.mean_tolerance is None:
            return False
        return not abs(self.mean_shift) <= self.mean_tolerance

    @property
    def line(self) -> str:
        """The errors against their tolerances, with the value at the element and the original's own error there."""
        scale = "" if self.value is None else f" at a value of {self.value:.3g}"
        scale += f" ({self.place})" if self.place and self.max_abs_error else ""
        lost = "" if self.original_abs_error is None else f" where the original is off by {self.original_abs_error:.2g}"
        return (
            f"{self.name}: off truth by {self.max_abs_error:.2g}{scale}{lost} (tolerance {self.tolerance:.2g}), in "
            f"float64 by {self.max_abs_error_float64:.2g} ({self.tolerance_float64:.2g})"
        )

    @property
    def short(self) -> str:
        """The error nearest to its tolerance: in float64 where that one is nearer, else in the output's own dtype."""
        if self.mean_shifted:
            return f"mean of {self.name} off by {self.mean_shift:.2g} (allowed {self.mean_tolerance:.2g})"
        own = _ratio(self.max_abs_error, self.tolerance)
        if not own >= _ratio(self.max_abs_error_float64, self.tolerance_float64) and not math.isnan(own):
            error, allowed = self.max_abs_error_float64, self.tolerance_float64
            return f"error {error:.2g} of {self.name} in float64 (allowed {allowed:.2g})"
        lost = "" if self.original_abs_error is None else f", the original's own {self.original_abs_error:.2g}"
        return f"error {self.max_abs_error:.2g} of {self.name}{lost} (allowed {self.tolerance:.2g})"


@dataclass(frozen=True)
class OracleAgreement:
    """Agreement of the original with an oracle that shares no code with the passes: ``agrees`` is None if not asked,
    for ``reason``."""

    name: str
    agrees: bool | None
    max_abs_error: float | None = None
    tolerance: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """``equal`` (bitwise in float32), ``within-bound``, ``different`` (see ``worst``) or ``not-checked``, with reasons.

    ``worst`` names the seed, parameters, walker and output where the rewritten program is furthest off, and
    ``counterexample`` holds its inputs; ``undecided`` marks a ``not-checked`` whose inputs led to too few numbers,
    where others may lead to more (neither is in the JSON).

    ``exact`` is the verdict in prime fields, None if skipped or nothing was rewritten. ``passed`` is that in floating
    point alone, and ``line`` says so of a program that is not ``identical``. ``optimizing.rewriting`` declines a
    forward Laplacian that is ``not-identical`` all the same.
    """

    verdict: Word
    outputs: tuple[OutputError, ...] = ()
    walkers: int | None = None
    worst: str = ""
    reason: str = ""
    oracles: tuple[OracleAgreement, ...] = ()
    exact: Identity | None = None
    counterexample: Counterexample | None = field(default=None, compare=False, repr=False)
    undecided: bool = field(default=False, compare=False, repr=False)

    @property
    def passed(self) -> bool:
        """True if the rewritten program was shown equivalent."""
        return self.verdict in ("equal", "within-bound")

    @property
    def line(self) -> str:
        """The verdict in one line: the exact one first, then the one in floating point, with its figures."""
        if self.exact is None:
            return self.in_floats
        return f"{self._only_floats}{self.exact.line}; floating point: {self.in_floats}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict for a terminal, in at most two lines: the word with the exact verdict, and the largest error."""
        if self.exact is None:
            return (f"{self.verdict}{self._at_walkers}: {self._largest_error}",)
        figures = self._largest_error if self.outputs else self.in_floats
        exact = f"{self._only_floats}{self.exact.short}"
        return f"{self.verdict}; {exact}", f"floating point{self._at_walkers}: {figures}"

    @property
    def _only_floats(self) -> str:
        """What precedes an exact verdict that does not accept what the verdict in floating point does."""
        if self.exact is None or self.exact.result == "identical" or not self.passed:
            return ""
        return "accepted by the float verdict only: "

    @property
    def _at_walkers(self) -> str:
        return f" at {self.walkers} walkers" if self.walkers and self.outputs else ""

    @property
    def _largest_error(self) -> str:
        """The output nearest to its tolerance, and at which inputs or why; the reason alone without outputs."""
        nearest = max(self.outputs, key=lambda output: output.used).short if self.outputs else ""
        worst = f"worst: {self.worst}" if self.worst else ""
        return "; ".join(filter(None, (nearest, worst, self.reason)))

    @property
    def in_floats(self) -> str:
        """The verdict's word, with the errors nearest to their tolerance or the reason."""
        if not self.outputs:
            return f"{self.verdict}: {self.reason}"
        parts = [output.line for output in _nearest(self.outputs)]
        left = len(self.outputs) - len(parts)
        parts += [f"{left} other outputs are further from their tolerance"] if left else []
        where = f" at {self.walkers} walkers" if self.walkers else ""
        rest = "; ".join(filter(None, (self.worst and f"worst: {self.worst}", self.reason)))
        return f"{self.verdict}{where}; {'; '.join(parts)}{'; ' if rest else ''}{rest}"

    def to_json(self) -> dict[str, Any]:
        """The ``equivalence`` object of the ``--json`` contract: the worst output's error and tolerance in front.

        JSON has no infinity and no NaN; an error that is one is written as the string ``"inf"`` or ``"nan"``.
        """
        worst = max(self.outputs, key=lambda o: _ratio(o.max_abs_error, o.tolerance), default=None)
        return {
            "verdict": self.verdict,
            "exact": self.exact.to_json() if self.exact else None,
            **{name: _number(getattr(worst, name)) if worst else None for name in _FIGURES},
            "walkers": self.walkers,
            "worst": self.worst,
            "reason": self.reason,
            "outputs": [_numbers(asdict(output)) for output in self.outputs],
            "oracles": [_numbers(asdict(oracle)) for oracle in self.oracles],
        }

    @staticmethod
    def from_json(document: dict[str, Any]) -> Verdict:
        """The verdict that ``to_json`` wrote."""
        outputs = tuple(OutputError(**_read_back(output)) for output in document["outputs"])
        oracles = tuple(OracleAgreement(**_read_back(oracle)) for oracle in document["oracles"])
        exact = None if document["exact"] is None else Identity(**document["exact"])
        words = {name: document[name] for name in ("verdict", "walkers", "worst", "reason")}
        return Verdict(outputs=outputs, oracles=oracles, exact=exact, **words)


_FIGURES = ("max_abs_error", "tolerance", "max_abs_error_float64", "tolerance_float64")
_WORDS = ("name", "reason", "place")


def _nearest(outputs: Sequence[OutputError]) -> list[OutputError]:
    """The outputs nearest to their tolerance, in program order."""
    nearest = sorted(range(len(outputs)), key=lambda i: -outputs[i].used)[:_MOST_OUTPUTS]
    return [outputs[i] for i in sorted(nearest)]


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _numbers(record: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(value) if isinstance(value, float) else value for name, value in record.items()}


def _read_back(record: dict[str, Any]) -> dict[str, Any]:
    """``record`` with numbers for strings and tuples for lists, the inverse of its JSON form."""
    found: dict[str, Any] = {
        name: float(value) if isinstance(value, str) and name not in _WORDS else value for name, value in record.items()
    }
    if "ulp_histogram" in found:
        found["ulp_histogram"] = tuple(found["ulp_histogram"])
        found["abs_histogram"] = tuple(map(tuple, found["abs_histogram"]))
    return found


def _ratio(error: float, tolerance: float) -> float:
    return error / tolerance if tolerance else math.inf if error else 0.0
