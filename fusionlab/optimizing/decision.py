"""Decision: the outcome for one program of an optimised function, and why; kept on disk, a file each.

A file is found under the original program, the pipeline, the versions, the sources of fusionlab, the compile options
and the kind of device. It holds records and a StableHLO module under its own SHA-256.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, replace
from typing import Any

import jax
from jaxlib.mlir import ir

from fusionlab.codegen.compile import versions
from fusionlab.codegen.laplacian.sparsity import Sparsity
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Applied, Declined, Event, told_fallbacks
from fusionlab.store import PACKAGE, digest_of, sources_digest

_FORMAT = 5
_DECIDING = ("passes", "hlo", "codegen", "equivalence", "ledger", "optimizing", "study.py")


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

    def to_json(self) -> dict[str, Any]:
        """The record on disk."""
        rewritten = self.rewritten
        return {
            "format": _FORMAT,
            "name": self.name,
            "platform": self.platform,
            "pipeline": self.pipeline,
            "events": [event.to_json() for event in self.events],
            "verdict": self.verdict.to_json() if self.verdict else None,
            "compared_on": self.compared_on,
            "reason": self.reason,
            "lines": self.original.digest if self.original else None,
            "module": base64.b64encode(rewritten.bytecode).decode() if rewritten else None,
            "sha256": rewritten.digest if rewritten else None,
        }

    @staticmethod
    def from_json(record: dict[str, Any], original: Program) -> Decision:
        """The inverse of ``to_json``, for ``original``. ValueError, LookupError, TypeError: it cannot be read, or what
        it tells names source lines that ``original`` has not."""
        if record["format"] != _FORMAT:
            raise ValueError(f"format {record['format']}, expected {_FORMAT}")
        events = tuple(map(_event_of, record["events"]))
        if record["lines"] != original.digest:
            if record["module"] is None or told_fallbacks(events):
                raise ValueError("the lines of the source have moved")
            events = tuple(map(_without_lines, events))
        return Decision(
            name=record["name"],
            platform=record["platform"],
            pipeline=record["pipeline"],
            original=original,
            rewritten=None if record["module"] is None else _rewritten_of(record, original),
            events=events,
            verdict=None if record["verdict"] is None else Verdict.from_json(record["verdict"]),
            compared_on=record["compared_on"],
            reason=record["reason"],
            remembered=True,
        )


def _rewritten_of(record: dict[str, Any], original: Program) -> Program:
    module = base64.b64decode(record["module"], validate=True)
    rewritten = Program(original.name, module, original.platform, original.provenance)
    if rewritten.digest != record["sha256"]:
        raise ValueError("the module is not the one that was written")
    try:
        signature = rewritten.inputs, rewritten.outputs
    except (ir.MLIRError, InputError) as error:
        raise ValueError(f"the module cannot be read: {error}") from None
    if signature != (original.inputs, original.outputs):
        raise ValueError("the module has another signature than the original")
    return rewritten


def _event_of(record: dict[str, Any]) -> Event:
    if "declined" in record:
        why = (record[name] for name in ("kind", "reason", "location", "cause", "op", "instead"))
        return Declined(record["pass"], *why)
    lost = record["sparsity"] and Sparsity.from_json(record["sparsity"])
    return Applied(record["pass"], record["applied"], record["location"], record["resolved"], record["fallback"], lost)


def _without_lines(event: Event) -> Event:
    if isinstance(event, Declined):
        return replace(event, op="")
    return replace(event, sparsity=event.sparsity and event.sparsity.without_lines())


def key_of(original: Program, pipeline: str, compiled_how: str) -> str:
    """SHA-256, hexadecimal. Locations do not count: a line inserted above a function changes nothing in it."""
    sources = sources_digest(PACKAGE, _DECIDING)
    return digest_of(_FORMAT, str(original.parse()), original.platform, pipeline, compiled_how, versions(), sources)


def surroundings(platform: str) -> str:
    """The circumstances that a program's numbers depend on: the kind of device and the environment's flags.

    A comparison on one GPU, or on a CPU for an absent GPU, does not carry over to another: one multiplies in TF32 and
    the other does not.
    """
    try:
        kind = jax.local_devices(backend={"cuda": "gpu"}.get(platform, platform))[0].device_kind
    except RuntimeError:
        kind = "absent"
    flags = [f"{name}={os.environ.get(name, '')}" for name in ("XLA_FLAGS", "NVIDIA_TF32_OVERRIDE")]
    return " ".join([kind, *flags])
