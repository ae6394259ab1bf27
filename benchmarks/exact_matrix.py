"""What the exact check says of the catalogue of passes, and what it takes at full size.

    python benchmarks/exact_matrix.py catalogue [--models a,b] [--programs x,y] [--pipelines 'p;q'] [--again]
    python benchmarks/exact_matrix.py full-size [--models a,b] [--molecules LiH,CH4] [--again]

Programs are lowered for CUDA at two walkers, in float32, the local energy with the replay. ``catalogue``: every pass
and preset, and some of them together, on every model and program, on LiH, at tiny size (DeepQMC's own models at full
size); a row is a model and a program. ``full-size``: the local energy after fuse-jvp-replay, an inference step after
kernels. Each row is made in a process of its own, within a time limit, and written to ``--out`` when it is finished;
one that is there is not made again, unless ``--again``. The tables are printed last (Markdown).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from rows import Row, add_options, fill_record, measure_apart  # noqa: E402  # after load_jax

from fusionlab.codegen.compile import versions  # noqa: E402
from fusionlab.equivalence.exact.evaluation import Evaluator  # noqa: E402
from fusionlab.equivalence.exact.field import PrimeField, primes  # noqa: E402
from fusionlab.equivalence.exact.identity import compare_exactly  # noqa: E402
from fusionlab.equivalence.few_walkers import EXACT_WALKERS  # noqa: E402
from fusionlab.equivalence.isolated import compare_files  # noqa: E402
from fusionlab.hlo.lowering import lower  # noqa: E402
from fusionlab.hlo.program import Program, program_view, without_view  # noqa: E402
from fusionlab.passes.catalogue import PASSES, PIPELINES, present_names  # noqa: E402
from fusionlab.passes.interface import Result, Setting, told_faults  # noqa: E402
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline  # noqa: E402
from fusionlab.workloads.catalogue import ANSATZE, PROGRAMS, build  # noqa: E402

AT_FULL_SIZE = {"local-energy": "fuse-jvp-replay", "inference-step": "kernels"}
"""Programs that are compared at full size, and the pipeline that each is rewritten by."""
SEVEN = ("paulinet", "ferminet", "psiformer", "orbformer", "deepqmc:paulinet", "deepqmc:ferminet", "deepqmc:psiformer")
TOGETHER = ("sink-broadcast-through-dot{fewest=2},hoist-reduce-through-dot{fewest=2}", "fuse-jvp-replay,kernels")
"""Passes of which one finds what another one leaves; models of tiny size have few rows that share features."""


def lowered(model: str, molecule: str, program: str, size: str) -> Program:
    """The program at two walkers; its Laplacian, if it has one, is the replay. Adapted models have no tiny size."""
    size = "full" if model.startswith("deepqmc:") else size
    return lower(build(model, molecule, program, EXACT_WALKERS, laplacian="replay", size=size), "cuda")


def rewrite(program: Program, pipeline: str) -> Result:
    return run_pipeline(program, parse_pipeline(pipeline), Setting(platform="cuda"))


def catalogue_row(name: str, pipelines: list[str], size: str = "tiny") -> Iterator[Row]:
    """The results by pipeline, more each time: of the check, or why there is nothing to compare."""
    model, program = name.split()
    original = lowered(model, "LiH", program, size)
    row: Row = {"stablehlo_ops": original.ops, "results": {}}
    known: dict[str, Row] = {}  # several pipelines may come to one program
    for pipeline in pipelines:
        started = time.process_time()
        result = rewrite(original, pipeline)
        if fault := told_faults(result.events):
            found: Row = {"result": "fault", "reason": fault}
        elif not result.applied:
            found = {"result": "unchanged"}
        else:
            digest = result.program.digest
            found = known[digest] if digest in known else known.setdefault(digest, verdict(original, result.program))
        row["results"][pipeline] = {**found, "process_s": round(time.process_time() - started, 1)}
        yield row


def verdict(original: Program, rewritten: Program) -> Row:
    """The result of the check, with its reason where it is not ``identical``."""
    found = compare_exactly(original, rewritten)
    row: Row = {"result": found.result}
    return row if found.result == "identical" else row | {"reason": found.reason, "first": found.first_difference}


def full_size_row(name: str, size: str = "full", limit_s: float = 1500.0) -> Iterator[Row]:
    """The verdict, in a process of its own, with its seconds and memory; before that those of one draw."""
    model, molecule, program = name.split()
    original = lowered(model, molecule, program, size)
    result = rewrite(original, AT_FULL_SIZE[program])
    row: Row = {"ops": [original.ops, result.program.ops], "applied": len(result.applied)}
    one_draw_s(result.program)  # the first one computes the tables of the field
    row["draw_process_s"] = [one_draw_s(program) for program in (original, result.program)]
    yield row
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = compare_files(original, result.program, limit_s)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield {**row, **found.to_json(), "process_s": round(seconds, 1), "peak_bytes": after.ru_maxrss * 1024}


def one_draw_s(program: Program) -> float:
    """Process seconds of one evaluation at one point, with what reading the program takes."""
    started = time.process_time()
    function = program_view(without_view(program))
    evaluator = Evaluator(PrimeField(primes(1)[0], range(1)))
    evaluator.outputs(function, evaluator.drawn_arguments(function))
    return round(time.process_time() - started, 2)


def catalogue_table(rows: Mapping[str, Row]) -> str:
    """One line per pipeline: by program, how many of the models that it changed are identical; then other results."""
    results = {  # records may have former names of passes
        name: {present_names(pipeline): found for pipeline, found in row.get("results", {}).items()}
        for name, row in rows.items()
    }
    pipelines = dict.fromkeys(pipeline for found in results.values() for pipeline in found)
    programs = dict.fromkeys(name.split()[1] for name in rows)
    lines = [f"| pipeline | {' | '.join(programs)} |", "|---" * (1 + len(programs)) + "|"]
    others = [f"- {name}: {row['failed']}" for name, row in rows.items() if "failed" in row]
    for pipeline in pipelines:
        counts: dict[str, Counter[str]] = {program: Counter() for program in programs}
        for name in rows:
            if (found := results[name].get(pipeline)) is not None:
                counts[name.split()[1]][found["result"]] += 1
                if "reason" in found:
                    others.append(
                        f"- {name}, `{pipeline}`: {found['result']}: {found['reason']} {found.get('first', '')}"
                    )
        lines.append(f"| `{pipeline}` | {' | '.join(map(_cell, counts.values()))} |")
    return "\n".join([*lines, "", *others]) + "\n"


def _cell(counts: Counter[str]) -> str:
    changed = counts.total() - counts["unchanged"]
    return f"{counts['identical']} of {changed}" if changed else "unchanged" if counts else "-"


def full_size_table(rows: Mapping[str, Row]) -> str:
    """One line per model and program; a cell per molecule: the result, seconds of a draw of each program, of the whole
    check, and MiB."""
    molecules = list(dict.fromkeys(name.split()[1] for name in rows))
    lines = [f"| model | program | {' | '.join(molecules)} |", "|---" * (2 + len(molecules)) + "|"]
    for model, program in dict.fromkeys((name.split()[0], name.split()[2]) for name in rows):
        cells = (_full_size_cell(rows.get(f"{model} {molecule} {program}")) for molecule in molecules)
        lines.append(f"| {model} | {program} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _full_size_cell(row: Row | None) -> str:
    if row is None:
        return "-"
    if "result" not in row:
        return str(row.get("failed", "-"))
    draws = " + ".join(map(str, row["draw_process_s"]))
    reason = f" ({row['reason']})" if row["result"] == "not-covered" else ""
    return f"{row['result']}{reason}: {draws}, {row['process_s']} s, {row['peak_bytes'] / 2**20:,.0f} MiB"


def main() -> None:
    """Make what is missing, then print."""
    given = _arguments()
    catalogue = given.table == "catalogue"
    pipelines = given.pipelines.split(";") if given.pipelines else [*PASSES, *PIPELINES, *TOGETHER]
    if given.one:
        made = (
            catalogue_row(given.one, pipelines, given.size or "tiny")
            if catalogue
            else full_size_row(given.one, given.size or "full", given.limit_s)
        )
        for row in made:
            print(json.dumps(row), flush=True)
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for the processes of rows: their seconds are those of one core
    models = given.models.split(",") if given.models else [*ANSATZE] if catalogue else SEVEN
    if catalogue:
        others = (given.programs or ",".join(PROGRAMS)).split(",")
    else:
        programs = (given.programs or ",".join(AT_FULL_SIZE)).split(",")
        others = [f"{molecule} {program}" for molecule in given.molecules.split(",") for program in programs]
    options = [given.table, "--pipelines", given.pipelines, "--limit-s", str(given.limit_s), "--size", given.size]
    rows = fill_record(
        given.out or Path(f"studies/exact-{given.table}.json"),
        versions(),
        [f"{model} {other}" for other in others for model in models],
        lambda name: measure_apart(__file__, name, options, given.limit_s),
        lambda name, row: not given.again and "failed" not in row,
    )
    print((catalogue_table if catalogue else full_size_table)(rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("catalogue", "full-size"))
    parser.add_argument("--models", help="Comma-separated; for catalogue all, for full-size seven if not given.")
    parser.add_argument("--programs", default="", help="Comma-separated; all, for full-size two if not given.")
    parser.add_argument("--pipelines", default="", help="Separated by semicolons; all passes and presets if not given.")
    parser.add_argument("--molecules", default="LiH,CH4")
    parser.add_argument("--size", default="", help="full or tiny, to try the other one.")
    parser.add_argument("--out", type=Path, help="The JSON record; under studies/ if not given.")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
