"""What became of each tried pipeline, in memory and on disk, so that a search that was stopped goes on.

One JSON file per trial under ``search/`` in the cache, named by the SHA-256 of all that decides its content: program,
target, pipeline, the versions of JAX and XLA, and this tool's own code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fusionlab.codegen.compile import versions
from fusionlab.codegen.targets import Target
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.output import require_writable, write_whole
from fusionlab.own_sources import PACKAGE, sources_digest
from fusionlab.search.costs import Costs

_log = logging.getLogger(__name__)
_FORMAT = 1
_DECIDING = ("hlo", "codegen", "passes", "measure", "search")
"""What a pipeline gives: a changed pass is another pass."""

Status = Literal["measured", "same", "nothing", "failed", "unfinished"]


@dataclass(frozen=True)
class Trial:
    """``pipeline`` as text ("" is the program as it is) and what became of it.

    ``measured``: it was compiled, and has ``costs``. ``same``: it computes what pipeline ``reason`` gives, and has its
    costs. ``nothing``: its last pass applied nothing. ``failed``: ``reason`` says why. ``unfinished``: the time was up.
    """

    pipeline: str
    status: Status
    costs: Costs | None = None
    content: str = ""
    """The content digest of the rewritten program."""
    reason: str = ""
    seconds: float = 0.0
    recorded: bool = dataclasses.field(default=False, compare=False)
    """Whether it was read from disk."""

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


class TrialStore:
    """The trials of one program on one target; ``folder`` is None where nothing is to be kept."""

    def __init__(self, folder: Path | None, program: Program, target: Target) -> None:
        self._folder = folder
        device = target.spec or target.name
        self._circumstances = [_FORMAT, program.digest, device, versions(), sources_digest(PACKAGE, _DECIDING)]

    def load(self, pipeline: str) -> Trial | None:
        """The trial of ``pipeline`` that was kept, or None; what cannot be read counts for nothing."""
        if self._folder is None:
            return None
        try:
            record = json.loads(self._path(pipeline).read_text("utf-8"))
            costs = None if record["costs"] is None else Costs(**record["costs"])
            return Trial(**{**record, "costs": costs, "recorded": True})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.info("ignoring the record of %s: %s", pipeline, error)
            return None

    def store(self, trial: Trial) -> None:
        """Keep ``trial``, unless it is unfinished; what cannot be written costs only the time to try again."""
        if self._folder is None or trial.status == "unfinished":
            return
        path = self._path(trial.pipeline)
        try:
            require_writable(path.parent)
            write_whole(path, json.dumps(trial.to_json()))
        except InputError as error:
            _log.warning("a trial was not recorded: %s", error)
            self._folder = None

    def _path(self, pipeline: str) -> Path:
        assert self._folder is not None
        key = hashlib.sha256(json.dumps([*self._circumstances, pipeline]).encode()).hexdigest()
        return self._folder / "search" / key[:2] / f"{key}.json"
