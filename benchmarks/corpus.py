"""Make the corpus of ``fusionlab corpus``: texts, portable artifacts, references, and launches by version of JAX.

    python benchmarks/corpus.py [--folder studies/corpus] [--only NAME ...] [--texts] [--jax 0.10.2,...] [--target a100]

``--texts`` lowers the programs anew and computes their references; launches of a program whose text changed are
dropped. ``--jax`` then records what these versions make of each program where that is not recorded. Each program is
written at once, and an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

import jax  # noqa: E402  # after load_jax
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.lib import _jax  # noqa: E402

from fusionlab.codegen.cache import default_cache  # noqa: E402
from fusionlab.codegen.compile import versions  # noqa: E402
from fusionlab.codegen.raising import RaiseError  # noqa: E402
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.corpus.manifest import ARTIFACT, MANIFEST, SCHEMA, TEXT, Corpus, CorpusProgram, packed  # noqa: E402
from fusionlab.corpus.references import InputSpec, OutputDigest  # noqa: E402
from fusionlab.corpus.runs import compiled_counts, outputs_of  # noqa: E402
from fusionlab.equivalence.oracle import program_runner, xla_runner  # noqa: E402
from fusionlab.errors import unknown  # noqa: E402
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.hlo.lowering import lower  # noqa: E402
from fusionlab.hlo.program import Program  # noqa: E402
from fusionlab.passes.pipeline import parse_pipeline  # noqa: E402
from fusionlab.study import Circumstances, rewrite  # noqa: E402
from fusionlab.versions.compiling import module_text  # noqa: E402
from fusionlab.versions.environments import NoEnvironment, environment, numbers, parse_versions  # noqa: E402
from fusionlab.workloads.catalogue import build  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from ten_programs import PROGRAMS, Example  # noqa: E402

from tests.docs.pages import Snippet, parts  # noqa: E402
from tests.forms.forms import TOTALS  # noqa: E402
from tests.forms.networks import NETWORKS  # noqa: E402

ARTIFACT_VERSION = "1.1.0"
"""Of StableHLO: the oldest that JAX 0.6.2 reads."""
LICENCE = (
    "Apache-2.0; programs, inputs and references are this project's own; the licence of an entry also names other "
    "projects whose code was traced"
)
OWN_LICENCE, WITH_FOLX = "Apache-2.0", "Apache-2.0; traced through folx (MIT)"
ERROR_FACTOR, LEAST_ERROR = 64.0, 1e-6
"""A tolerance is so many times the error of the original in its own dtype, and at least this share of the output."""
OWN_ERROR = 1e-4
"""The tolerance of a reference that is not of float64, as a share of the largest element."""
WALKERS, SIZE = 16, "tiny"
"""Of the local energies."""
_PATH = re.compile(r'loc\("(/[^"]*)"')


@dataclass(frozen=True)
class Recipe:
    """How a program of the corpus is made; ``original`` is the program whose outputs it has to have (its own if None).

    ``inputs`` are the draws of its arguments; without ``outputs`` no reference is computed, for this reason.
    """

    group: str
    about: str
    made: Callable[[], Program]
    original: str | None = None
    draws: Callable[[str, tuple[int, ...], str], tuple[str, float, float]] | None = None
    why_no_outputs: str = ""
    licence: str = OWN_LICENCE


def weights_and_walkers(name: str, shape: tuple[int, ...], dtype: str) -> tuple[str, float, float]:
    """Matrices keep the scale of what they multiply; vectors and scalars are positive; walkers are about the origin."""
    if name.startswith("walkers"):
        return "normal", 0.0, 1.0
    return ("normal", 0.0, shape[-2] ** -0.5) if len(shape) > 1 else ("uniform", 0.2, 1.0)


DRAWS_OF = {
    "transformer_step": {"int32": ("integers", 0, 256)},
    "optimiser_step": {"float32": ("uniform", 0.01, 1.0)},
    "force_field": {"float32": ("normal", 0.0, 3.0)},
    "sampling_loop": {"uint32": ("integers", 0, 2**31)},
}
"""Draws of the programs that are no wavefunctions, by dtype, where they are not those of weights."""


REGRESSIONS = {
    "many_small": ("twelve independent loops over small arrays", {}),
    "histogram": ("a scatter-add into 64 bins", {"int32": ("integers", 0, 64)}),
    "phases": ("gathers into a sum of complex phases", {"int32": ("integers", 0, 200)}),
    "segments": ("a batched sum by segments", {"int32": ("integers", 0, 1024)}),
}
"""The functions of docs/drift.md, with the draws of their indices."""


@cache
def regressions() -> dict[str, Any]:
    page = parts(ROOT / "docs" / "drift.md")
    code = next(part.code for part in page if isinstance(part, Snippet) and part.file == "regressions.py")
    found: dict[str, Any] = {}
    exec(compile(code, "/regressions.py", "exec"), found)  # the name in source lines
    return found


def of_regression(name: str) -> Program:
    function = regressions()[name]
    return Program.from_function(function, *function.example_args)


def draws_of_regression(
    draws: dict[str, Any], name: str, shape: tuple[int, ...], dtype: str
) -> tuple[str, float, float]:
    return draws.get(dtype) or ("normal", 0.0, 1.0)


def draws_of_example(example: str, name: str, shape: tuple[int, ...], dtype: str) -> tuple[str, float, float]:
    return DRAWS_OF.get(example, {}).get(dtype) or weights_and_walkers(name, shape, dtype)


@cache
def lowered(model: str, molecule: str, laplacian: str) -> Program:
    return lower(build(model, molecule=molecule, walkers=WALKERS, laplacian=laplacian, size=SIZE), "cuda")


def rewritten(model: str, molecule: str) -> Program:
    given = Circumstances(load_target("a100"))
    found, _ = rewrite(lowered(model, molecule, "replay"), parse_pipeline("fuse-jvp-replay"), given)
    if found.program.digest == lowered(model, molecule, "replay").digest:
        raise SystemExit(f"{model} {molecule}: was not rewritten: {found.events}")
    return found.program


def of_example(example: Example) -> Program:
    return Program.from_function(example.function, *example.arguments)


def energy(form: str, network: str) -> Program:
    """A kinetic energy of 64 walkers with 3 particles, the Laplacian in that form."""
    laplacian, log_psi = TOTALS[form], NETWORKS[network]

    def kinetic(x: Any) -> Any:
        return -0.5 * (laplacian(log_psi, x) + jnp.sum(jax.grad(log_psi)(x) ** 2))

    return Program.from_function(jax.vmap(kinetic), jax.ShapeDtypeStruct((64, 9), "float32"))


NOT_ON_A_CPU = {"cholesky": "cuSOLVER's Cholesky factorisation does not run on a CPU"}
HOW = {
    "replay": "the Laplacian by a loop over directions",
    "rewritten": "after fuse-jvp-replay, by one forward pass",
    "forward": "by folx's forward Laplacian",
}
ENERGIES = {
    "energy-fori-loop": ("fori", "ferminet-like", "FermiNet's form of a loop over directions"),
    "energy-jacfwd-jacrev": ("jacfwd-of-jacrev", "mlp-with-pairs", "NetKet's form, the diagonal of the Hessian"),
    "energy-jvp-in-loop": ("jvp-in-loop", "attention", "JaQMC's form, the JVP of the gradient in each trip"),
    "energy-scan": ("scan", "ferminet-like", "a scan over directions, as FermiNet's option has it"),
    "energy-vmapped": ("vmapped", "attention", "all directions at once, by vmap"),
    "energy-reverse": ("reverse-over-reverse", "mlp-with-pairs", "reverse over reverse mode"),
    "energy-chunks": ("chunks", "attention", "directions in chunks"),
    "energy-recurrent": ("scan-stacked", "recurrent", "a scan inside the network, and one over directions"),
    "energy-taylor": ("taylor", "mlp-with-pairs", "Taylor mode"),
    "energy-complex": ("trace-of-hessian", "complex-periodic", "complex orbitals of a periodic cell"),
}


def recipes() -> dict[str, Recipe]:
    """All programs by name."""
    found: dict[str, Recipe] = {}
    for model in ("ferminet", "paulinet", "psiformer", "orbformer"):
        for kind in ("replay", "rewritten", "forward"):
            found[f"{model}-LiH-{kind}"] = _energy_of(model, "LiH", kind)
    for kind in ("replay", "rewritten"):
        found[f"ferminet-CH4-{kind}"] = _energy_of("ferminet", "CH4", kind)
    for name, (form, network, whose) in ENERGIES.items():
        about = f"kinetic energy of a small {network} network, {whose}; 64 walkers"
        found[name] = Recipe("energy", about, partial(energy, form, network))
    for name, example in PROGRAMS.items():
        about = (example.function.__doc__ or "").strip().splitlines()[0].rstrip(".")
        draws = partial(draws_of_example, name)
        found[name] = Recipe("other", about, partial(of_example, example), None, draws, NOT_ON_A_CPU.get(name, ""))
    for name, (about, draws) in REGRESSIONS.items():
        drawn = partial(draws_of_regression, draws)
        found[name] = Recipe("regression", about, partial(of_regression, name), None, drawn)
    return found


def _energy_of(model: str, molecule: str, kind: str) -> Recipe:
    about = f"local energy of {model} ({SIZE}), {molecule}, {WALKERS:,} walkers: {HOW[kind]}"
    made = partial(rewritten, model, molecule) if kind == "rewritten" else partial(lowered, model, molecule, kind)
    original = None if kind == "replay" else f"{model}-{molecule}-replay"
    licence = WITH_FOLX if kind == "forward" else OWN_LICENCE
    return Recipe("nnvmc", about, made, original, weights_and_walkers, licence=licence)


def text_of(program: Program) -> str:
    """The text that all versions read, without the paths of this machine."""
    return _PATH.sub(lambda found: f'loc("{_portable(found[1])}"', module_text(program))


def _portable(path: str) -> str:
    _, installed, inside = path.rpartition("/site-packages/")
    if installed:
        return inside
    return path.removeprefix(f"{ROOT}/") if path.startswith(f"{ROOT}/") else Path(path).name


def names_of(program: Program) -> list[str]:
    """The names of the arguments, by their locations."""
    module = program.parse()
    entry = next(one for one in module.body.operations if one.attributes["sym_name"].value == "main")
    names = [
        re.fullmatch(r'loc\("(.*?)"(?:\(.*\))?\)', str(one.location)) for one in entry.regions[0].blocks[0].arguments
    ]
    return [f"argument {number}" if one is None else one[1] for number, one in enumerate(names)]


def specs(program: Program, recipe: Recipe) -> tuple[InputSpec, ...]:
    """The draws of the arguments."""
    draws, names = recipe.draws or weights_and_walkers, names_of(program)
    found = []
    for name, type_, array in zip(names, program.inputs, dummies(program), strict=True):
        dtype = str(array.dtype)
        called = "walkers" if recipe.group != "other" and name in ("args[1]", names[-1]) else name
        found.append(InputSpec(name, type_.shape, dtype, *draws(called, type_.shape, dtype)))
    return tuple(found)


def dummies(program: Program) -> list[np.ndarray]:
    from fusionlab.codegen.executable import numpy_dtype

    return [np.zeros(type_.shape, numpy_dtype(type_)) for type_ in program.inputs]


def references(program: Program, inputs: Sequence[InputSpec]) -> tuple[OutputDigest, ...]:
    """The digests of ``program`` in float64, with tolerances by its own error in its own dtype.

    Where float64 computes something else (random bits, an op that cannot be widened) they are of its own dtype.
    """
    arrays = [spec.array(number) for number, spec in enumerate(inputs)]
    own = (program_runner if program.platform == "cuda" else xla_runner)(program)(arrays)
    try:
        truth = program_runner(program, widen=True)(arrays)
    except RaiseError as error:
        print(f"    not in float64: {error}")
        return tuple(map(of_own_dtype, own))
    floating = [np.issubdtype(one.dtype, np.inexact) for one in own]
    if any(not wide and not np.array_equal(*pair) for wide, *pair in zip(floating, truth, own, strict=True)):
        print("    integers are others in float64")
        return tuple(map(of_own_dtype, own))
    return tuple(map(of_truth, truth, own))


def of_own_dtype(own: np.ndarray) -> OutputDigest:
    if not np.issubdtype(own.dtype, np.inexact):
        return OutputDigest.of(own, str(own.dtype), 0.0)
    return OutputDigest.of(own, str(own.dtype), float(f"{OWN_ERROR * np.abs(own).max():.2g}"))


def of_truth(truth: np.ndarray, own: np.ndarray) -> OutputDigest:
    if not np.issubdtype(own.dtype, np.inexact):
        return OutputDigest.of(own, str(own.dtype), 0.0)
    error, scale = float(np.abs(truth - own).max(initial=0.0)), float(np.abs(truth).max(initial=0.0))
    if not np.isfinite(scale):
        raise SystemExit("a reference is not finite")
    tolerance = float(f"{max(ERROR_FACTOR * error, LEAST_ERROR * scale):.2g}")
    print(f"    reference: largest {scale:.4g}, own dtype off by {error:.2g}, tolerance {tolerance:g}", flush=True)
    return OutputDigest.of(truth, str(own.dtype), tolerance)


def make(
    name: str, recipe: Recipe, folder: Path, old: CorpusProgram | None, known: dict[str, CorpusProgram]
) -> CorpusProgram:
    """Lower it, write its files, compute its references; launches of the same text are kept."""
    if recipe.original is not None and recipe.original not in known:
        raise SystemExit(
            f"{name}: its reference is that of {recipe.original}; make that too: --only {recipe.original} {name}"
        )
    text = text_of(recipe.made())
    program = Program.of_foreign_bytes(text.encode(), folder / f"{name}.mlir", name=name)
    inputs = specs(program, recipe)
    outputs = None
    if not recipe.why_no_outputs:
        outputs = known[recipe.original].outputs if recipe.original else references(program, inputs)
        inputs = known[recipe.original].inputs if recipe.original else inputs
    digest = hashlib.sha256(text.encode()).hexdigest()
    expected = old.expected if old is not None and old.digest == digest else {}
    found = CorpusProgram(
        name=name,
        group=recipe.group,
        about=recipe.about,
        licence=recipe.licence,
        ops=program.ops,
        digest=digest,
        inputs=inputs,
        outputs=outputs,
        why_no_outputs=recipe.why_no_outputs,
        expected=expected,
    )
    said = outputs_of(program, found)
    if outputs is not None and said.verdict != "equal":
        raise SystemExit(f"{name}: its own outputs are {said}")
    artifact = _jax.mlir.serialize_portable_artifact(program.parse(), ARTIFACT_VERSION, False)
    write_whole(folder / f"{name}{TEXT}", packed(text.encode()))
    write_whole(folder / f"{name}{ARTIFACT}", packed(artifact))
    print(f"{name}: {program.ops:,} ops, outputs {said.verdict}, {said.worst} of the tolerance", flush=True)
    return found


def record(corpus: Corpus, names: Sequence[str], asked: Sequence[str], target_name: str) -> None:
    """What these versions make of each program, where that is not recorded."""
    target = load_target(target_name)
    for version in asked:
        try:
            where = environment(version, print)
        except NoEnvironment as error:
            print(f"JAX {version}: {error}")
            continue
        for name in names:
            (one,) = corpus.select([name])
            if one.expected_of(target_name, version) is not None:
                continue
            found = compiled_counts(corpus.program(one), target, where, cache=default_cache())
            print(f"{name} by JAX {version}: {found.to_json()}", flush=True)
            by_target = {**one.expected.get(target_name, {}), version: found}
            ordered = dict(sorted(by_target.items(), key=lambda item: numbers(item[0])))
            new = replace(one, expected={**one.expected, target_name: ordered})
            corpus = replace(corpus, programs=tuple(new if old.name == name else old for old in corpus.programs))
            write(corpus)


HEAD = {
    "schema": SCHEMA,
    "licence": LICENCE,
    "inputs": "input number i (from 0) is drawn from numpy.random.RandomState(i) and cast to its dtype: normal is "
    "low + high * standard_normal(shape), uniform is uniform(low, high, shape), integers is randint(low, high, shape, "
    "int64)",
    "outputs": "mean, root mean square and some elements of the flat output in float64 arithmetic; each may be off by "
    "tolerance",
    "artifacts": f"StableHLO {ARTIFACT_VERSION}, with CHLO expanded; the figures are those of the text",
}


def write(corpus: Corpus) -> None:
    """The manifest: an entry has a line per field."""
    document = {**HEAD, "made_with": versions(), **corpus.to_json()}
    programs = document.pop("programs")
    entries = [
        ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in one.items()) for one in programs
    ]
    head = ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
    listed = ",\n".join(f"  {{{one}}}" for one in entries)
    write_whole(corpus.folder / MANIFEST, f'{{\n {head},\n "programs": [\n{listed}\n ]\n}}\n')


def chosen(given: Sequence[str] | None, all_names: Sequence[str]) -> list[str]:
    """The names that were given, in the order of all; all if none were. SystemExit for an unknown one."""
    for name in given or ():
        if name not in all_names:
            raise SystemExit(str(unknown("program", name, all_names)))
    return [name for name in all_names if given is None or name in given]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "studies" / "corpus")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--jax", default="")
    parser.add_argument("--target", default="a100")
    given = parser.parse_args(words)
    if not given.texts and not given.jax:
        parser.error("nothing to do: name --texts, --jax or both")
    everything = recipes()
    names = chosen(given.only, list(everything))
    asked = parse_versions(given.jax) if given.jax else ()
    given.folder.mkdir(parents=True, exist_ok=True)
    there = (given.folder / MANIFEST).exists()
    corpus = Corpus.read(given.folder) if there else Corpus(given.folder, {}, ())
    known = {one.name: one for one in corpus.programs}
    for name in names if given.texts else []:
        known[name] = make(name, everything[name], given.folder, known.get(name), known)
        ordered = tuple(known[one] for one in everything if one in known)
        corpus = Corpus(given.folder, {}, ordered)
        write(corpus)
    if given.only and (absent := [name for name in names if name not in known]):
        raise SystemExit(f"{given.folder}: has no {', '.join(absent)}; make it with --texts")
    record(corpus, [name for name in names if name in known], asked, given.target)


if __name__ == "__main__":
    main()
