"""Rewritten programs that were made and checked before: one file each, that is whole or not there.

A file is found under what decides its content: the original program, the pipeline, the versions, the sources of
fusionlab, how the program is to be compiled and on which kind of device. It holds records and a StableHLO module under
its own SHA-256; a file that is not what was written is passed over and written again.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.compile import versions
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.optimizing.decision import Decision, event_of_json
from fusionlab.output import require_writable, write_whole
from fusionlab.own_sources import PACKAGE, sources_digest

_FORMAT = 2
_DECIDING = ("passes", "hlo", "codegen", "equivalence", "optimizing", "study.py")


class OptimizedStore:
    """Decisions below ``folder``, which is made when the first one is stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, key: str, original: Program) -> Decision | None:
        """What was decided for ``original``; None where nothing that can be read is stored."""
        try:
            content = gzip.decompress(self._path(key).read_bytes())
            return _of_json(json.loads(content), original)
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, ir.MLIRError):
            return None

    def store(self, key: str, decision: Decision) -> None:
        """Keep ``decision``; a folder that cannot be written to costs the work again, later."""
        content = gzip.compress(json.dumps(_to_json(decision)).encode(), mtime=0)
        with contextlib.suppress(InputError):
            require_writable(self._path(key).parent)
            write_whole(self._path(key), content)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json.gz"


def key_of(original: Program, pipeline: str, compiled_how: str) -> str:
    """SHA-256, hexadecimal. Locations do not count: a line inserted above a function changes nothing in it."""
    sources = sources_digest(PACKAGE, _DECIDING)
    parts = [_FORMAT, str(original.parse()), original.platform, pipeline, compiled_how, versions(), sources]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


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
        if (rewritten.inputs, rewritten.outputs) != (original.inputs, original.outputs):
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
