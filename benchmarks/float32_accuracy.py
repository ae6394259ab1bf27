"""Float32 errors of local energies at all walkers: replay, folx, and the replay after fuse-jvp-replay, on the CPU.

    python benchmarks/float32_accuracy.py [--models a,b] [--molecules LiH,CH4] [--compare folx|tf32x3] [--again]
        [--markdown PATH]

Error: |E - E64| in hartree, infinite where E is not finite. E64 is the energy of the replay's program in float64, of
the same float32 constants, parameters and walkers; E is that of each side in float32, all compiled for the CPU by the
options of the check (low optimisation). Parameters are initial ones plus 0.02 N(0, 1). Walkers: 256 as samplers begin
(about the nuclei), and the same after 40 Metropolis transitions in |psi|^2 of all electrons. The rewritten program's
figures over dense folx's have a 95 % interval, bootstrapped over walkers. Each row (a model on a molecule) is measured
in a process of its own and kept in the record.

With ``--compare tf32x3`` the sides are the replay, the rewritten program, and this one lowered for CUDA after
``jet-layer-kernels{precision=tf32x3}``: its twins, whose three products are computed by bits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

import jax  # noqa: E402  # after load_jax
import numpy as np  # noqa: E402
from laplacian_sides import LAPLACIANS, Case, event_words, revision, timed_rewrite  # noqa: E402
from laplacian_tables import markdown_table  # noqa: E402
from rows import Row, add_options, fill_record, measure_apart  # noqa: E402

from fusionlab.codegen.compile import versions  # noqa: E402
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.equivalence.oracle import Runner, program_runner, xla_runner  # noqa: E402
from fusionlab.equivalence.samples import equilibrated, log_psi_runner  # noqa: E402
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.hlo.lowering import lower as lower_for  # noqa: E402
from fusionlab.passes.interface import Setting  # noqa: E402
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline, run_pipeline  # noqa: E402
from fusionlab.study import Circumstances, lower  # noqa: E402
from fusionlab.workload import Workload  # noqa: E402

MODELS = (
    "paulinet",
    "ferminet",
    "psiformer",
    "orbformer",
    "psiformer-deepqmc",
    "deepqmc:psiformer",
    "deepqmc:deeperwin",
)
MOLECULES = ("LiH", "CH4")
JET_LAYERS = "jet-layer-kernels{precision=tf32x3}"
WALKERS = 256
NOISE = 0.02
BATCH = 64
"""Walkers moved together by ``equilibrated``."""
AT_ONCE = 1024
"""Walkers of the programs: more are several calls, a multiple of it."""
RESAMPLES = 2000
FIGURES = {
    "geometric mean": lambda errors: np.exp(np.log(np.maximum(errors, 1e-12)).mean(-1)),
    "median": lambda errors: np.median(errors, -1),
    "p99": lambda errors: np.percentile(errors, 99, -1, method="higher"),
    "max": lambda errors: errors.max(-1),
}
"""Of errors [..., walkers], hartree."""


@dataclass(frozen=True)
class Comparison:
    """Errors of ``side`` over those of ``reference``, which are ``reference_words`` in prose, among ``sides``.

    ``bounds``: the most that each bounded figure may be.
    """

    sides: tuple[str, ...]
    side: str
    reference: str
    reference_words: str
    bounds: Mapping[str, float]

    @property
    def key(self) -> str:
        """Its name in the record and in the table's heads."""
        return f"{self.side} / {self.reference}"


COMPARISONS = {
    "folx": Comparison(
        (*LAPLACIANS, "rewritten"),
        "rewritten",
        "folx-dense",
        "dense folx's",
        {"geometric mean": 1.1, "p99": 1.5},
    ),
    "tf32x3": Comparison(
        ("replay", "rewritten", "tf32x3"),
        "tf32x3",
        "rewritten",
        "the rewritten program's",
        {"geometric mean": 1.2, "p99": 1.5},
    ),
}


def main() -> None:
    """Measure what is missing or out of date, then print."""
    given = _arguments()
    compared = COMPARISONS[given.compare]
    if given.one:
        model, molecule = given.one.split()
        for row in measure(Case(model, molecule, "cpu", given.walkers, given.size), compared):
            print(json.dumps(row), flush=True)
        return
    names = [f"{model} {molecule}" for molecule in given.molecules.split(",") for model in given.models.split(",")]
    options = ["--walkers", str(given.walkers), "--size", given.size, "--compare", given.compare]
    rows = fill_record(
        given.out,
        versions(),
        names,
        lambda name: measure_apart(__file__, name, options, given.limit_s),
        lambda name, row: not given.again and "failed" not in row and _is_current(row, given),
    )
    text = table(rows, compared)
    if given.markdown:
        write_whole(given.markdown, text)
    print(text)


def _is_current(row: Row, given: argparse.Namespace) -> bool:
    """True if ``row`` is of the same sources, versions and sizes; False where the sources are not those of a commit."""
    known = [row.get(name) for name in ("revision", "versions", "walkers", "size")]
    return known == [revision("fused") or None, versions(), given.walkers, given.size]


def measure(case: Case, compared: Comparison) -> Iterator[Row]:
    """The errors of every side at both kinds of walkers."""
    given = Circumstances(load_target("cpu"))
    workload = case.workload("replay")
    at_once = replace(case, walkers=min(case.walkers, AT_ONCE))
    programs = {side: lower(at_once.workload(side), given) for side in LAPLACIANS if side in compared.sides}
    result, seconds = timed_rewrite(programs["replay"], "fuse-jvp-replay", given)
    if "sparsify-directions" not in [event.pass_name for event in result.applied]:
        raise SystemExit(f"{given.target.name}: no forward Laplacian: {event_words(result)}")
    programs["rewritten"] = result.program
    row: Row = {"revision": revision("fused"), "versions": versions(), "walkers": case.walkers, "size": case.size}
    row |= {"pipeline": resolved_pipeline(result.events), **seconds}
    truth = program_runner(programs["replay"], widen=True)
    runs = {side: xla_runner(program) for side, program in programs.items()}
    if "tf32x3" in compared.sides:
        runs["tf32x3"], row["layers"] = in_tf32x3(at_once.workload("replay"), row["pipeline"])

    def in_parts(run: Runner, arrays: Sequence[np.ndarray]) -> np.ndarray:
        *leaves, walkers = arrays
        return np.concatenate([run([*leaves, part])[0] for part in np.split(walkers, len(walkers) // at_once.walkers)])

    for kind, arrays in samples(workload).items():
        exact = in_parts(truth, arrays)
        found = {side: in_parts(run, arrays) for side, run in runs.items()}
        if not np.isfinite(exact).all():
            raise SystemExit(f"{kind} walkers: {np.sum(~np.isfinite(exact))} energies are not finite in float64")
        errors = {side: errors_of(energies, exact) for side, energies in found.items()}
        row[kind] = {"energy": quantiles(np.abs(exact))} | {side: quantiles(of) for side, of in errors.items()}
        row[kind][compared.key] = ratios(errors[compared.side], errors[compared.reference], compared.bounds)
        yield row


def in_tf32x3(workload: Workload, pipeline: str) -> tuple[Runner, list[str]]:
    """``workload`` lowered for CUDA after ``pipeline`` and ``JET_LAYERS``, as a raised program, and its layers' events.

    The runner takes the flat arguments of ``workload`` and returns its outputs, in float32. SystemExit where no layer
    contracts by three products.
    """
    passes = parse_pipeline(f"{pipeline},{JET_LAYERS}")
    result = run_pipeline(lower_for(workload, "cuda"), passes, Setting(platform="cuda"))
    layers = [event.what for event in result.applied if event.pass_name == passes[-1].name]
    if not any("three products" in what for what in layers):
        raise SystemExit(f"no layer contracts by three products: {event_words(result)}")
    return program_runner(result.program), layers


def samples(workload: Workload) -> dict[str, list[np.ndarray]]:
    """Flat arguments by the kind of walkers."""
    random = np.random.default_rng(0)
    parameters, walkers = workload.inputs(0)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(parameters)]
    leaves = [
        (leaf + NOISE * random.standard_normal(leaf.shape)).astype(leaf.dtype) if leaf.dtype.kind == "f" else leaf
        for leaf in leaves
    ]
    start = np.array(walkers)
    batch = min(BATCH, len(start))
    log_psi = log_psi_runner(workload, batch)
    moved = [
        equilibrated(log_psi, leaves, start[first : first + batch], first) for first in range(0, len(start), batch)
    ]
    return {"initial": [*leaves, start], "equilibrated": [*leaves, np.concatenate(moved)]}


def errors_of(energies: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|E - E64| [walkers] in hartree; infinite where E is not finite."""
    errors: np.ndarray = np.abs(energies.astype(np.float64) - exact)
    return np.where(np.isfinite(errors), errors, np.inf)


def quantiles(errors: np.ndarray) -> dict[str, float]:
    """Geometric mean, median, 99th percentile and maximum, four digits."""
    return {name: float(f"{figure(errors):.4g}") for name, figure in FIGURES.items()}


def ratios(errors: np.ndarray, of: np.ndarray, bounded: Iterable[str]) -> dict[str, list[float]]:
    """[ratio, lower, upper] of the figures that are bounded; both ends of the interval of resampled walkers."""
    chosen = np.random.default_rng(0).integers(0, len(errors), (RESAMPLES, len(errors)))
    found = {}
    for name in bounded:
        figure = FIGURES[name]
        resampled = figure(errors[chosen]) / figure(of[chosen])
        ends = np.percentile(resampled, [2.5, 97.5])
        found[name] = [float(f"{one:.4g}") for one in (figure(errors) / figure(of), *ends)]
    return found


def table(rows: Mapping[str, Row], compared: Comparison) -> str:
    """Errors of all sides by the bounded figures, and those of the comparison, Markdown."""
    heads = [f"{figure}: {side}" for figure in compared.bounds for side in (*compared.sides, compared.key)]
    bounds = " and ".join(f"{most} ({figure})" for figure, most in compared.bounds.items())
    walkers = " or ".join(sorted({f"{row['walkers']:,}" for row in rows.values() if "walkers" in row}))
    cells = [
        [*name.split(), kind, *_cells(row.get(kind), compared)]
        for name, row in rows.items()
        for kind in ("initial", "equilibrated")
    ]
    lines = [
        f"Errors of local energies in float32, hartree, {walkers} walkers, on the CPU; protocol: the docstring of",
        f"`benchmarks/float32_accuracy.py`. Bold: over {bounds} of {compared.reference_words}.",
        "",
        markdown_table(["model", "molecule", "walkers", *heads], cells),
    ]
    return "\n".join(lines) + "\n"


def _cells(sides: Any, compared: Comparison) -> Iterator[str]:
    for figure, most in compared.bounds.items():
        if sides is None:
            yield from ["-"] * (len(compared.sides) + 1)
            continue
        yield from (f"{sides[side][figure]:.2g}" for side in compared.sides)
        ratio, lower, upper = sides[compared.key][figure]
        yield (f"{ratio:.2f}" if ratio <= most else f"**{ratio:.2f}**") + f" [{lower:.2f}, {upper:.2f}]"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--molecules", default=",".join(MOLECULES))
    parser.add_argument("--walkers", type=int, default=WALKERS, help=f"At most {AT_ONCE}, or a multiple of it.")
    parser.add_argument("--size", default="full", help="full, or tiny for a trial of this script.")
    parser.add_argument("--compare", choices=list(COMPARISONS), default="folx", help="The sides: folx's, or tf32x3.")
    parser.add_argument("--out", type=Path, default=Path("studies/float32-accuracy.json"), help="The JSON record.")
    parser.add_argument("--markdown", type=Path, help="Write the table to this file as well.")
    add_options(parser)
    given = parser.parse_args()
    if given.walkers < 1 or (given.walkers > AT_ONCE and given.walkers % AT_ONCE):
        parser.error(f"--walkers must be from 1 to {AT_ONCE} or a multiple of it, not {given.walkers}")
    return given


if __name__ == "__main__":
    main()
