"""A claim of the characterisation and what our figures say to it.

A verdict is ``confirmed``, ``contradicted``, ``not testable here`` (it needs what a compiler cannot say) or ``not
measured yet`` (a cell is not in the record). A figure agrees when it is within a quarter of the characterisation's,
a share also when it is within 2 percentage points and between half and twice of it; a range agrees when all our figures
lie in it, its ends widened by a quarter. Times here are modelled, so a narrower band would judge the model and not the
claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fusionlab.paper.figures import Figures, NotMeasured
from fusionlab.paper.matrix import Cell

Verdict = Literal["confirmed", "contradicted", "not testable here", "not measured yet"]
VERDICTS: tuple[Verdict, ...] = ("confirmed", "contradicted", "not testable here", "not measured yet")

PAPER_JAX = "0.4.28"
"""The characterisation's JAX (Section III-A)."""

NOT_SHOWN = "cause not shown"
"""How ``Claim.differs`` begins where nothing speaks for a cause."""

QUARTER, POINTS, TWICE = 0.25, 0.02, 2.0
_MOST_LISTED = 8


@dataclass(frozen=True)
class Finding:
    """What our figures say: the verdict, our figure as text, and the cells that it lacks."""

    verdict: Verdict
    ours: str
    lacking: tuple[Cell, ...] = ()


Judge = Callable[[Figures], Finding]
Values = Sequence[tuple[str, Callable[[], float], Cell]]
"""Figures by name, each with the cell that is reported where there is none."""
Statements = Sequence[tuple[str, Callable[[], tuple[bool, str]]]]
"""Statements by name: whether each holds, and the figure that says so."""


@dataclass(frozen=True)
class Claim:
    """``where`` is the section and observation, ``paper`` its figure; ``differs`` is what is not the same on the two
    sides and bears on this claim, beside the compiler's version: it is printed where the claim is contradicted."""

    where: str
    statement: str
    paper: str
    judge: Judge
    differs: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim and what was found."""

    claim: Claim
    finding: Finding

    def to_json(self) -> dict[str, Any]:
        """Words and figures, ready for ``json.dumps``."""
        return {
            "where": self.claim.where,
            "statement": self.claim.statement,
            "paper": self.claim.paper,
            "verdict": self.finding.verdict,
            "ours": self.finding.ours,
            "differs": self.claim.differs if self.finding.verdict == "contradicted" else "",
            "lacking": [str(cell) for cell in self.finding.lacking],
        }


def judge_all(claims: Iterable[Claim], figures: Figures) -> list[Judged]:
    """Every claim with its finding, in their order."""
    return [Judged(claim, _judged(claim.judge, figures)) for claim in claims]


def _judged(judge: Judge, figures: Figures) -> Finding:
    try:
        return judge(figures)
    except NotMeasured as missing:
        return Finding("not measured yet", "", missing.cells)


def untestable(reason: str) -> Judge:
    """No figure of ours can say anything to it, for ``reason``."""
    return lambda _: Finding("not testable here", reason)


def share_is(expected: float, found: Callable[[Figures], float]) -> Judge:
    """A share (0 to 1) is within a quarter of the expected one; or within 2 points, and between half and twice of it:
    to a share of 1 %, nothing at all is not near."""

    def judge(figures: Figures) -> Finding:
        ours = found(figures)
        off = abs(ours - expected)
        near = off <= QUARTER * expected or (off <= POINTS and expected / TWICE <= ours <= expected * TWICE)
        return Finding("confirmed" if near else "contradicted", f"{100 * ours:.1f} %")

    return judge


def all_within(
    low: float, high: float, of: Callable[[Figures], Values], unit: str = "", above: float = -math.inf
) -> Judge:
    """Every figure lies between ``low`` and ``high``, widened by a quarter, and is larger than ``above``.

    ``of`` gives name, figure and the cell that is reported when there is none. One that is outside contradicts,
    also where others are lacking; that all are inside is only said when all are there.
    """

    def judge(figures: Figures) -> Finding:
        there: list[tuple[str, float]] = []
        lacking: list[Cell] = []
        for name, figure, cell in of(figures):
            try:
                there.append((name, figure()))
            except NotMeasured as missing:
                lacking += missing.cells or [cell]
        least, most = low * (1 - QUARTER), high * (1 + QUARTER)
        outside = [name for name, value in there if not (least <= value <= most and value > above)]
        return Finding(_verdict(bool(outside), bool(lacking)), _listed(there, unit), tuple(lacking))

    return judge


def holds(of: Callable[[Figures], Statements]) -> Judge:
    """Every statement (a name, and whether it holds with a figure) holds; lacking cells as in ``all_within``."""

    def judge(figures: Figures) -> Finding:
        there: list[tuple[str, bool, str]] = []
        lacking: list[Cell] = []
        for name, statement in of(figures):
            try:
                there.append((name, *statement()))
            except NotMeasured as missing:
                lacking += missing.cells
        wrong = [(name, said) for name, true, said in there if not true]
        return Finding(_verdict(bool(wrong), bool(lacking)), _said(there, wrong), tuple(lacking))

    return judge


def _verdict(wrong: bool, lacking: bool) -> Verdict:
    if wrong:
        return "contradicted"
    return "not measured yet" if lacking else "confirmed"


def _said(there: Sequence[tuple[str, bool, str]], wrong: Sequence[tuple[str, str]]) -> str:
    """Each statement with its figure; of many how many hold, and some that do not."""
    if len(there) <= _MOST_LISTED:
        return "; ".join(f"{name} {said}".strip() for name, _, said in there)
    but = "; ".join(f"{name} {said}" for name, said in wrong[:_MOST_LISTED])
    return f"{len(there) - len(wrong)} of {len(there)} hold" + (f"; not: {but}" if but else "")


def _listed(there: Sequence[tuple[str, float]], unit: str) -> str:
    """Each figure by name, or the least and the most of many."""
    if len(there) > _MOST_LISTED:
        least, most = (choose(there, key=lambda one: one[1]) for choose in (min, max))
        return f"{_text(least[1])} ({least[0]}) to {_text(most[1])}{unit} ({most[0]}), {len(there)} figures"
    return "; ".join(f"{name} {_text(value)}{unit}" for name, value in there)


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 1 else f"{value:.1f}"
