"""Facts about control flow, a line each, for a terminal and a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fusionlab.ledger.control_flow import ControlFact

_MOST_OF_A_KIND = 3


def control_lines(facts: Sequence[ControlFact]) -> Iterator[str]:
    """At most three facts of each kind, the most bytes over all runs first, with scope and source line."""
    for kind, found in groupby(facts, key=lambda one: one.kind):
        every = sorted(found, key=lambda one: -one.runs * one.bytes)
        for one in every[:_MOST_OF_A_KIND]:
            at = ", ".join(filter(None, (one.scope, one.source)))
            yield f"{kind}: {one.words}" + (f" ({at})" if at else "")
        if (more := len(every) - _MOST_OF_A_KIND) > 0:
            yield f"{kind}: {more} more (--json has all)"
