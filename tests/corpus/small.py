"""A corpus of one small program."""

import hashlib
import json

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.corpus.manifest import ARTIFACT, MANIFEST, SCHEMA, TEXT, Corpus, CorpusProgram, packed
from fusionlab.corpus.references import InputSpec, OutputDigest
from fusionlab.hlo.program import Program
from fusionlab.versions.compiling import module_text


def write_small_corpus(folder, **changed):
    """The corpus of ``tanh(x) @ x`` in ``folder``; ``changed`` are fields of its entry."""
    spec = InputSpec("x", (8, 8), "float32", "normal", 0.0, 1.0)
    text = module_text(Program.from_function(lambda x: jnp.tanh(x) @ x, jax.ShapeDtypeStruct((8, 8), "float32")))
    x = spec.array(0).astype(np.float64)
    outputs = (OutputDigest.of(np.tanh(x) @ x, "float32", 1e-4),)
    digest = hashlib.sha256(text.encode()).hexdigest()
    entry = CorpusProgram("small", "other", "a product", "none", 3, digest, (spec,), outputs).to_json()
    folder.mkdir(exist_ok=True)
    (folder / f"small{TEXT}").write_bytes(packed(text.encode()))
    (folder / f"small{ARTIFACT}").write_bytes(packed(text.encode()))  # MLIR reads both forms
    manifest = {"schema": SCHEMA, "licence": "none", "programs": [{**entry, **changed}]}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return Corpus.read(folder)
