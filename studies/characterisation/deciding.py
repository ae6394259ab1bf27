"""Which cells decide a contradiction: the next that the older compiler must measure.

One figure outside of its range contradicts a claim, so that few of its cells may do. Where the older compiler's figures
agree in each of these sets, every cell of the claim counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from fusionlab.characterisation.claims import NOT_SHOWN, Claim, Finding, judge_all
from fusionlab.characterisation.figures import LAUNCH_MODEL, MatrixFigures
from fusionlab.characterisation.matrix import Cell, Row

CellCost = Callable[[Cell], float]
"""Seconds that a cell takes, an estimate."""


def version_may_explain(claim: Claim, finding: Finding) -> bool:
    """True for a contradiction of which the compiler's version is a possible cause."""
    return finding.verdict == "contradicted" and not claim.differs.startswith(NOT_SHOWN)


def deciding_sets(claim: Claim, rows: Mapping[Cell, Row], cost: CellCost) -> list[tuple[Cell, ...]]:
    """Disjoint sets of cells, each of which contradicts ``claim`` by ``rows``, and last all cells that it reads."""
    whole = _finding(claim, rows, rows)
    read = [cell for cell in rows if _finding(claim, rows, set(rows) - {cell}) != whole]
    left, found = sorted(read, key=cost, reverse=True), list[tuple[Cell, ...]]()
    while left and _finding(claim, rows, left).verdict == "contradicted":
        kept = list(left)
        for cell in left:  # the dearest goes first
            without = [one for one in kept if one != cell]
            if _finding(claim, rows, without).verdict == "contradicted":
                kept = without
        found.append(tuple(kept))
        left = [cell for cell in left if cell not in kept]
    return [*found, tuple(read)] if found else []


def next_cells(
    open_sets: Sequence[Sequence[tuple[Cell, ...]]], measured: Collection[Cell], cost: CellCost
) -> tuple[Cell, ...]:
    """The cells to measure next for claims that are open, each with its ``deciding_sets``: those with the least seconds
    for each claim that they decide. () where all are ``measured``."""
    lacking = Counter[frozenset[Cell]]()
    for sets in open_sets:
        rest = (frozenset(one).difference(measured) for one in sets)
        if first := next(filter(None, rest), None):
            lacking[first] += 1
    if not lacking:
        return ()

    def seconds_for_each(one: frozenset[Cell]) -> float:
        return sum(map(cost, one)) / sum(count for cells, count in lacking.items() if cells <= one)

    best = min(lacking, key=seconds_for_each)
    return tuple(sorted(best, key=cost))


def _finding(claim: Claim, rows: Mapping[Cell, Row], kept: Collection[Cell]) -> Finding:
    chosen = {cell: row for cell, row in rows.items() if cell in kept}
    return judge_all([claim], MatrixFigures(chosen, errors=LAUNCH_MODEL))[0].finding
