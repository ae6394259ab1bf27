"""Decision: what became of one program of an optimised function, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Applied, Declined, Event


@dataclass(frozen=True)
class Decision:
    """``rewritten`` is None where the original runs, for ``reason``; ``original`` is None where it was not lowered.

    ``verdict`` is None where nothing was compared; ``compared_on`` says which inputs were, and ``provisional`` that
    others may show what those hid: such a verdict is not kept on disk. ``rewrite_s`` and ``check_s`` are seconds spent
    in this process, 0 for what was remembered (``remembered``).
    """

    name: str
    platform: str
    pipeline: str
    original: Program | None
    rewritten: Program | None
    events: tuple[Event, ...] = ()
    verdict: Verdict | None = None
    compared_on: str = ""
    reason: str = ""
    rewrite_s: float = 0.0
    check_s: float = 0.0
    remembered: bool = False
    provisional: bool = False
    alone: bool = True
    """Whether the function was called by itself, and not inside another one that JAX traces."""
    failed: bool = False
    """Whether the original runs because something went wrong, and not because nothing applies."""

    @property
    def why_not(self) -> str:
        """Why the original runs; "" where the rewritten program does."""
        return "" if self.rewritten is not None else self.reason


def why_nothing_applied(events: tuple[Event, ...], original: Program) -> str:
    """The reasons of the passes that left ``original`` alone, each once."""
    reasons = [f"{event.pass_name}: {event.reason}" for event in events if isinstance(event, Declined)]
    if not reasons and "stablehlo.while" not in str(original.parse()):
        return "there is no replay in it: its program has no loop"
    return "; ".join(dict.fromkeys(reasons)) or "no pass found anything to rewrite"


def event_of_json(record: dict[str, Any]) -> Event:
    """The event that ``to_json`` wrote. KeyError, TypeError: it is none."""
    if "declined" in record:
        return Declined(record["pass"], record["kind"], record["reason"], record["location"])
    return Applied(record["pass"], record["applied"], record["location"], record["resolved"])
