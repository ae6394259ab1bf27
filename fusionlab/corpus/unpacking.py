"""A corpus for tools that know nothing of it: plain text, plain artifacts, and inputs as arrays."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from fusionlab.corpus.manifest import ARTIFACT, MANIFEST, SCHEMA, TEXT, Corpus, CorpusProgram
from fusionlab.errors import InputError
from fusionlab.files import Own, require_own_folder, write_folder

_OWN = Own((MANIFEST, "*.mlir", "*.mlirbc", "*.npz"), MANIFEST, SCHEMA)


def unpack(corpus: Corpus, programs: Iterable[CorpusProgram], folder: Path) -> list[str]:
    """Write the manifest of ``programs``, and of each its text, its artifact and its inputs where it has reference
    outputs (``NAME.npz``: ``0``, ``1``, ... in the order of arguments); the names of the files.

    InputError: a file of the corpus is damaged, or ``folder`` is not one of ours, or is that of the corpus.
    """
    if folder.resolve() == corpus.folder.resolve():
        raise InputError(f"{folder}: is the corpus itself, which export would replace; name another folder")
    require_own_folder(folder, _OWN)
    files: dict[str, bytes | str] = {}
    chosen = tuple(programs)
    for one in chosen:
        files[f"{one.name}{TEXT.removesuffix('.gz')}"] = corpus.text(one)
        files[f"{one.name}{ARTIFACT.removesuffix('.gz')}"] = corpus.artifact(one)
        if one.outputs is not None:
            files[f"{one.name}.npz"] = _inputs(one)
    document = {**replace(corpus, programs=chosen).to_json(), "format": SCHEMA}
    files[MANIFEST] = json.dumps(document, indent=1) + "\n"
    write_folder(folder, files, _OWN)
    return sorted(files)


def _inputs(one: CorpusProgram) -> bytes:
    content = io.BytesIO()
    np.savez(content, **{str(number): spec.array(number) for number, spec in enumerate(one.inputs)})  # type: ignore[arg-type]
    return content.getvalue()
