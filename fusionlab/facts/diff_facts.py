"""Two programs side by side: what of their launches appeared, went, grew or shrank, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.facts.interface import Facts
from fusionlab.ledger.changes import LedgerDiff
from fusionlab.report.tables import Table
from fusionlab.report.tables.changes import (
    change_table,
    diff_lines,
    matched_words,
    totals_table,
    verdict,
)

_CHANGES = 4
_CHANGES_OF_NOTEBOOK = 20
"""Changes in ``repr``, and in a notebook, as the command lists them."""


@dataclass(frozen=True, repr=False)
class DiffFacts(Facts):
    """The comparison of two ledgers; ``failures`` are the limits of the command that it exceeds, a sentence each."""

    command = "diff"

    found: LedgerDiff
    failures: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Launches before and after."""
        return verdict(self.found)

    @property
    def notes(self) -> tuple[str, ...]:
        """How much was matched, and what qualifies the figures."""
        return (matched_words(self.found), *self.found.notes)

    def lines(self) -> Sequence[str]:
        """The figures, what happened to loops and conditionals, and the largest changes with the first reason."""
        return diff_lines(self.found, max(1, _CHANGES - len(self.found.summary) // 2), reasons=1)

    def tables(self) -> Sequence[Table]:
        """Totals and changes."""
        shown = self.found.changes[:_CHANGES_OF_NOTEBOOK]
        title = f"the {len(shown)} largest of {len(self.found.changes)} changes"
        return (totals_table(self.found), *([change_table(shown, title)] if shown else []))

    def records(self) -> list[dict[str, Any]]:
        """A row per change, with every field of ``LedgerChange``; launches and bytes as pairs: before, after."""
        return [dataclasses.asdict(one) for one in self.found.changes]

    def fields(self) -> dict[str, Any]:
        """The fields of ``diff --json``."""
        return {**self.found.to_json(), "failures": list(self.failures)}
