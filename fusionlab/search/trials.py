"""The outcome of each tried pipeline, kept under ``search/`` in the cache so that an interrupted search resumes.

A file per trial, under program, target, pipeline, the versions of JAX and XLA, and this tool's own code.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fusionlab.codegen.compile import versions
from fusionlab.codegen.targets import Target
from fusionlab.hlo.program import Program
from fusionlab.search.costs import Costs
from fusionlab.store import PACKAGE, Store, digest_of, sources_digest

_FORMAT = 1
_DECIDING = ("hlo", "codegen", "passes", "equivalence", "ledger", "search")
"""The sources that determine a pipeline's result: a changed pass is another pass."""

Status = Literal["measured", "same", "nothing", "failed", "unfinished"]


@dataclass(frozen=True)
class Trial:
    """``pipeline`` as text ("" is the original program) and its outcome.

    ``measured``: it was compiled, and has ``costs``. ``same``: its program equals that of pipeline ``reason``, and has
    its costs. ``nothing``: its last pass applied nothing. ``failed``: ``reason`` says why. ``unfinished``: timed out.
    """

    pipeline: str
    status: Status
    costs: Costs | None = None
    content: str = ""
    """The content digest of the rewritten program."""
    reason: str = ""
    seconds: float = 0.0
    recorded: bool = dataclasses.field(default=False, compare=False)
    """True if it was read from disk."""


class TrialStore:
    """The trials of one program on one target; ``folder`` is None to keep nothing."""

    def __init__(self, folder: Path | None, program: Program, target: Target) -> None:
        self._entries = Store(folder / "search", title="the record of trials") if folder else None
        device = target.spec or target.name
        self._circumstances = [_FORMAT, program.digest, device, versions(), sources_digest(PACKAGE, _DECIDING)]

    def load(self, pipeline: str) -> Trial | None:
        """The stored trial of ``pipeline``, or None; an unreadable entry is ignored."""
        return self._entries.load(self._key(pipeline), _of_json) if self._entries else None

    def store(self, trial: Trial) -> None:
        """Store ``trial``, unless it is unfinished; a failed write only costs the time to try again."""
        if self._entries and trial.status != "unfinished":
            self._entries.store(self._key(trial.pipeline), dataclasses.asdict(trial))

    def _key(self, pipeline: str) -> str:
        return digest_of(*self._circumstances, pipeline)


def _of_json(record: dict[str, Any]) -> Trial:
    costs = None if record["costs"] is None else Costs(**record["costs"])
    return Trial(**{**record, "costs": costs, "recorded": True})
