"""A cache of compiles for absent GPUs: records only, no executables, a gzipped file per compile.

An unusable cache is never an error: it costs the compile, and one log line.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import Target
from fusionlab.hlo.program import Program
from fusionlab.store import Store, cache_folder, digest_of

RECORD_FORMAT = 4
RECORDED_TEXTS = (
    "optimized_hlo", "thunk_sequence", "thunk_metadata", "versions", "captured_thunks", "priority_fusion", "fused_hlo",
    "buffer_assignment", "live_ranges", "ptx",
)  # fmt: skip


def default_cache() -> CompileCache | None:
    """The cache in ``store.cache_folder``; None where there is none."""
    folder = cache_folder()
    return None if folder is None else CompileCache(folder)


def kept_folder(kind: str) -> Path:
    """The folder of ``kind`` beside the cache, for what a command keeps and the user named no place for; where the
    cache is off, one of this user for temporary files."""
    cache = default_cache()
    return (Path(tempfile.gettempdir()) / f"fusionlab-{os.getuid()}" if cache is None else cache.folder) / kind


class CompileCache:
    """Compiled records in ``folder``/compiles, which is made when the first one is stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries = Store(folder / "compiles", ".json.gz", title=f"the compile cache in {folder}")

    def key(self, program: Program, target: Target, options: Mapping[str, str | int | bool], versions: str) -> str:
        """SHA-256, hexadecimal, of the module (with its locations), the spec, the options and the versions."""
        given = sorted((name, str(value)) for name, value in options.items())
        return digest_of(RECORD_FORMAT, program.digest, target.spec, given, versions)

    def load(self, key: str, program: Program, target: Target) -> Compiled | None:
        """The record stored under ``key``, or None; a file that cannot be read as one is ignored (and replaced)."""
        return self._entries.load(key, lambda record: compiled_from_json(record, program, target))

    def store(self, key: str, compiled: Compiled) -> None:
        """Keep ``compiled`` under ``key``. When that fails, log it once and store nothing from then on."""
        self._entries.store(key, compiled_to_json(compiled))


def compiled_to_json(compiled: Compiled) -> dict[str, Any]:
    """The record of a compile without its executable, for ``json.dumps``; the inverse of ``compiled_from_json``."""
    return {
        "format": RECORD_FORMAT,
        **{name: getattr(compiled, name) for name in RECORDED_TEXTS},
        "memory": dataclasses.asdict(compiled.memory),
        "compile_s": compiled.compile_s,
        "options": dict(compiled.options),
        "artifacts": dict(compiled.artifacts),
    }


def compiled_from_json(record: dict[str, Any], program: Program, target: Target) -> Compiled:
    """The record of a compile of ``program`` for ``target``; ValueError, LookupError or TypeError for anything else."""
    if record["format"] != RECORD_FORMAT:
        raise ValueError(f"format {record['format']}, expected {RECORD_FORMAT}")
    texts = {name: record[name] for name in RECORDED_TEXTS}
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("a text is missing")
    return Compiled(
        name=program.name,
        target=target,
        memory=Memory(**record["memory"]),
        compile_s=float(record["compile_s"]),
        options=dict(record["options"]),
        artifacts=dict(record["artifacts"]),
        from_cache=True,
        **texts,
    )
