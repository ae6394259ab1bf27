"""Verdicts that were reached before, by the content of what was compared: one JSON file each, below the cache's folder.

A check depends on the programs, the inputs (seeded), the versions and the sources that check; not on the device that
is measured. So it can be done once, also before a rented device is there. Only equality is kept: what was found
different, or could not be checked, is tried again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fusionlab.codegen.compile import versions
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.output import require_writable, write_whole

_PACKAGE = Path(__file__).parents[1]
_SOURCES = ("equivalence", "codegen/raising_rules", "codegen/raising.py", "codegen/trips.py")


@dataclass(frozen=True)
class VerdictStore:
    """The verdicts below ``folder``, which is made when the first one is stored."""

    folder: Path

    def key(self, original: Program, rewritten: Iterable[Program]) -> str:
        """SHA-256, hexadecimal, of the programs, the versions and the sources of the check.

        Locations do not count: they hold the paths of the sources, which are others on another machine.
        """
        parts = [*(str(program.parse()) for program in (original, *rewritten)), versions(), _sources()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def load(self, key: str) -> Verdict | None:
        """The verdict stored under ``key``; None where there is none that can be read."""
        try:
            verdict = Verdict.from_json(json.loads(self._path(key).read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return verdict if verdict.passed else None

    def store(self, key: str, verdict: Verdict) -> None:
        """Keep ``verdict`` if the programs were shown equal; a folder that cannot be written to costs a check later."""
        if verdict.passed:
            with contextlib.suppress(InputError):
                require_writable(self.folder)
                write_whole(self._path(key), json.dumps(verdict.to_json()) + "\n")

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


@functools.cache
def _sources() -> str:
    digest = hashlib.sha256()
    for name in _SOURCES:
        path = _PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()
