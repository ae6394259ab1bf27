"""Decision: the outcome for one program of an optimised function, and why; kept on disk, a file each.

A file is found under the original program, the pipeline, the versions, the sources of fusionlab, the compile options
and the kind of device. It holds records and a StableHLO module under its own SHA-256.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.compile import versions
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo import ops
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Applied, Declined, Event
from fusionlab.store import PACKAGE, Store, digest_of, sources_digest


@dataclass(frozen=True)
class Decision:
    """``rewritten`` is None where the original runs, for ``reason``; ``original`` is None where it was not lowered.

    ``verdict`` is None where nothing was compared; ``compared_on`` names the inputs, and ``provisional`` means that
    others may show what those hid: such a verdict is not kept on disk. ``rewrite_s`` and ``check_s`` are seconds spent
    in this process, 0 if ``remembered``.
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
    """True if the function was called by itself, not inside another traced function."""
    failed: bool = False
    """True if the original runs because of a failure, and not because nothing applies."""

    @property
    def why_not(self) -> str:
        """The reason why the original runs; "" if the rewritten program does."""
        return "" if self.rewritten is not None else self.reason


def why_nothing_applied(events: tuple[Event, ...], original: Program) -> str:
    """The reasons of the passes that left ``original`` alone, each once."""
    reasons = [f"{event.pass_name}: {event.reason}" for event in events if isinstance(event, Declined)]
    if not reasons and ops.WHILE.name not in str(original.parse()):
        return "there is no replay in it: its program has no loop"
    return "; ".join(dict.fromkeys(reasons)) or "no pass found anything to rewrite"


def event_of_json(record: dict[str, Any]) -> Event:
    """The event that ``to_json`` wrote. KeyError, TypeError: invalid."""
    if "declined" in record:
        return Declined(record["pass"], record["kind"], record["reason"], record["location"])
    return Applied(record["pass"], record["applied"], record["location"], record["resolved"])


_FORMAT = 2
_DECIDING = ("passes", "hlo", "codegen", "equivalence", "ledger", "optimizing", "study.py")


class OptimizedStore:
    """Decisions below ``folder``, which is made when the first one is stored."""

    def __init__(self, folder: Path) -> None:
        self._entries = Store(folder, ".json.gz")

    def load(self, key: str, original: Program) -> Decision | None:
        """The decision for ``original``; None if nothing that can be read is stored."""
        return self._entries.load(key, lambda record: _of_json(record, original))

    def store(self, key: str, decision: Decision) -> None:
        """Store ``decision``; after a failed write the work is done again later."""
        self._entries.store(key, _to_json(decision))


def key_of(original: Program, pipeline: str, compiled_how: str) -> str:
    """SHA-256, hexadecimal. Locations do not count: a line inserted above a function changes nothing in it."""
    sources = sources_digest(PACKAGE, _DECIDING)
    return digest_of(_FORMAT, str(original.parse()), original.platform, pipeline, compiled_how, versions(), sources)


def _to_json(decision: Decision) -> dict[str, Any]:
    rewritten = decision.rewritten
    return {
        "format": _FORMAT,
        "name": decision.name,
        "platform": decision.platform,
        "pipeline": decision.pipeline,
        "events": [event.to_json() for event in decision.events],
        "verdict": decision.verdict.to_json() if decision.verdict else None,
        "compared_on": decision.compared_on,
        "reason": decision.reason,
        "module": base64.b64encode(rewritten.bytecode).decode() if rewritten else None,
        "sha256": rewritten.digest if rewritten else None,
    }


def _of_json(record: dict[str, Any], original: Program) -> Decision:
    if record["format"] != _FORMAT:
        raise ValueError(f"format {record['format']}, expected {_FORMAT}")
    rewritten = None
    if record["module"] is not None:
        module = base64.b64decode(record["module"], validate=True)
        rewritten = Program(original.name, module, original.platform, original.provenance)
        if rewritten.digest != record["sha256"]:
            raise ValueError("the module is not the one that was written")
        try:
            signature = rewritten.inputs, rewritten.outputs
        except ir.MLIRError as error:
            raise ValueError(f"the module cannot be read: {error}") from None
        if signature != (original.inputs, original.outputs):
            raise ValueError("the module has another signature than the original")
    return Decision(
        name=record["name"],
        platform=record["platform"],
        pipeline=record["pipeline"],
        original=original,
        rewritten=rewritten,
        events=tuple(map(event_of_json, record["events"])),
        verdict=None if record["verdict"] is None else Verdict.from_json(record["verdict"]),
        compared_on=record["compared_on"],
        reason=record["reason"],
        remembered=True,
    )
