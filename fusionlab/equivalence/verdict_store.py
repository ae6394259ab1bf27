"""Stored verdicts: one JSON file each, below the cache's folder.

A check depends on the programs, the inputs (seeded), the versions and the sources that check; not on the device that is
measured. So it can be done once, ahead of time for an absent device. Only equality is kept: a difference, or a failed
check, is tried again.

A verdict is kept under two keys: the programs themselves (``key``), and how they are made (``recipe``), which is known
before they are lowered and changes with every source of this project.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fusionlab.codegen.compile import versions
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.store import PACKAGE, Store, digest_of, package_versions, sources_digest
from fusionlab.workload import Workload

CHECKING = (
    "equivalence", "hlo", "codegen/raising", "codegen/cpu_options.py", "codegen/compile.py",
    "codegen/cache.py", "codegen/executable.py", "codegen/targets", "codegen/between_collectives.py",
    "codegen/collective_levels.py",
)  # fmt: skip
"""The sources that read, raise, compile and run the programs of a check and judge their results; not the passes."""
_EVERYTHING = (".", "workloads")
_PACKAGES = ("folx", "enzyme-ad", "deepqmc", "numpy")


class VerdictStore:
    """The verdicts below ``folder``, which is made when the first one is stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries = Store(folder, nested=False)

    def key(self, original: Program, rewritten: Iterable[Program]) -> str:
        """SHA-256, hexadecimal, of the programs, the versions and the sources of the check.

        Locations do not count: they hold source paths, which differ between machines.
        """
        texts = [str(program.parse()) for program in (original, *rewritten)]
        return digest_of(*texts, versions(), sources_digest(PACKAGE, CHECKING))

    def recipe(self, workload: Workload, what: str, platform: str) -> str:
        """SHA-256, hexadecimal, of what determines the programs: the workload as it stands, the rewriting ``what``, the
        versions, and all sources of this project."""
        fields = {
            name: str(value) for name, value in vars(workload).items() if name not in ("function", "inputs", "rebuild")
        }
        sources = sources_digest(PACKAGE, _EVERYTHING)
        return digest_of(sorted(fields.items()), what, platform, versions(), package_versions(*_PACKAGES), sources)

    def load(self, key: str) -> Verdict | None:
        """The verdict stored under ``key``; None if there is none that can be read."""
        verdict = self._entries.load(key, Verdict.from_json)
        return verdict if verdict and verdict.passed else None

    def store(self, key: str, verdict: Verdict) -> None:
        """Store ``verdict`` if the programs were shown equal; a failed write costs a check later."""
        if verdict.passed:
            self._entries.store(key, verdict.to_json())
