"""A content-addressed cache of what XLA made of programs for absent GPUs: records only, nothing that runs.

One gzipped JSON file per compile, under the SHA-256 of everything that decides its content. Writers write a temporary
file and rename it, so readers never see half a file and concurrent writers of the same key do no harm. A cache that
cannot be used is never an error: it costs the compile, and one log line.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import logging
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import Target
from fusionlab.hlo.program import Program

_log = logging.getLogger(__name__)
_FORMAT = 2
_TEXTS = (
    "optimized_hlo", "thunk_sequence", "thunk_metadata", "versions", "captured_thunks", "priority_fusion", "fused_hlo"
)  # fmt: skip


def default_cache() -> CompileCache | None:
    """The cache in ``$FUSIONLAB_CACHE``, or else ``~/.cache/fusionlab``; None when the variable is ``off``."""
    folder = os.environ.get("FUSIONLAB_CACHE") or "~/.cache/fusionlab"
    return None if folder == "off" else CompileCache(Path(folder).expanduser())


class CompileCache:
    """Compiled records in ``compiles`` below ``folder``, which is made when the first one is stored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writable = True

    def key(self, program: Program, target: Target, options: Mapping[str, str | int | bool], versions: str) -> str:
        """SHA-256, hexadecimal, of the module (with its locations), the spec, the options and the versions."""
        parts = [_FORMAT, program.digest, target.spec, sorted((name, str(value)) for name, value in options.items())]
        return hashlib.sha256(json.dumps([*parts, versions]).encode()).hexdigest()

    def load(self, key: str, program: Program, target: Target) -> Compiled | None:
        """The record stored under ``key``, or None; a file that cannot be read as one is ignored (and replaced)."""
        path = self._path(key)
        try:
            return _from_json(json.loads(gzip.decompress(path.read_bytes())), program, target)
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
            _log.info("ignoring the cache entry %s: %s", path, error)
            return None

    def store(self, key: str, compiled: Compiled) -> None:
        """Keep ``compiled`` under ``key``. When that fails, say so once and store nothing from then on."""
        if not self._writable:
            return
        path = self._path(key)
        temporary = ""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
                temporary = file.name
                file.write(gzip.compress(json.dumps(_to_json(compiled)).encode(), compresslevel=6, mtime=0))
            os.replace(temporary, path)
        except OSError as error:
            self._writable = False
            _log.warning("the compile cache in %s is off: %s", self.folder, error.strerror or error)
            if temporary:
                Path(temporary).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / "compiles" / key[:2] / f"{key}.json.gz"


def _to_json(compiled: Compiled) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        **{name: getattr(compiled, name) for name in _TEXTS},
        "memory": dataclasses.asdict(compiled.memory),
        "compile_s": compiled.compile_s,
        "options": dict(compiled.options),
        "artifacts": dict(compiled.artifacts),
    }


def _from_json(record: dict[str, Any], program: Program, target: Target) -> Compiled:
    if record["format"] != _FORMAT:
        raise ValueError(f"format {record['format']}, expected {_FORMAT}")
    texts = {name: record[name] for name in _TEXTS}
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
