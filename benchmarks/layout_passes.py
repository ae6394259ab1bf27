"""Layout passes and own kernels on whole programs: launches, bytes, memory and work, for an absent A100.

    python benchmarks/layout_passes.py [--models a,b] [--programs x,y] [--again] [--markdown studies/layout-a100.md]

CH4, 1,024 walkers, float32: ten transitions and a local energy (``inference-step``) and a training step, with each
model's own Laplacian, then after fuse-jvp-replay, from the replay. Each row is measured in a process of its own, within
a time limit, and written to ``--out`` when it is finished; one that is there is not measured again if it comes from the
same sources, unless ``--again``. The table is printed last (Markdown).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from laplacian_sides import revision, timed_rewrite  # noqa: E402  # after load_jax
from laplacian_tables import markdown_table, shown  # noqa: E402
from rows import Row, add_options, fill_record, measure_apart  # noqa: E402

from fusionlab.codegen.cache import default_cache  # noqa: E402
from fusionlab.codegen.compile import versions  # noqa: E402
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.hlo.cost import program_cost  # noqa: E402
from fusionlab.study import Circumstances, lower, measure  # noqa: E402
from fusionlab.workloads.catalogue import build  # noqa: E402

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")
PLAIN = "-"
"""In place of a pipeline: the program as lowered."""
WIDER = "layout,batched-dot-kernels{longest=256,intensity=100},dot-epilogue-kernels{widest=256}"
"""Own kernels that contract up to 256 features, but for attention's."""
PIPELINES = {
    "inference-step": (
        PLAIN,
        "scatter-to-gather,expand-small-dots,merge-dots,licm",
        "layout",
        "layout,dot-chain-kernels",
        "kernels",
        "sink-broadcast-through-dot,hoist-reduce-through-dot,layout",
        "fuse-jvp-replay",
        "fuse-jvp-replay,layout",
        "fuse-jvp-replay,layout,dot-epilogue-kernels",
        "fuse-jvp-replay,kernels",
        f"fuse-jvp-replay,{WIDER}",
    ),
    "train-step": (PLAIN, "layout", "kernels"),
}
"""By program. A pipeline that begins with fuse-jvp-replay starts from the replay."""


def measured(name: str, target: str = "a100", walkers: int = 1024, size: str = "full") -> Iterator[Row]:
    """What is known of the row MODEL PROGRAM PIPELINE, more each time."""
    model, program, pipeline = name.split()
    given = Circumstances(load_target(target), cache=default_cache())
    laplacian = "replay" if pipeline.startswith("fuse-jvp-replay") else None
    workload = build(model, "CH4", program, walkers, laplacian=laplacian, size=size)
    lowered = lower(workload, given)
    row: Row = {"revision": revision("fused")}
    if pipeline != PLAIN:
        result, seconds = timed_rewrite(lowered, pipeline, given)
        lowered = result.program
        row |= seconds
    row |= {"stablehlo_ops": lowered.ops, "flops": program_cost(lowered).flops}
    yield row
    yield {**row, **measure(workload, lowered, given).to_json()}


def table(rows: Mapping[str, Row]) -> str:
    """One line per row; launches also in per cent of those of the plain program with the same Laplacian."""
    lines = []
    for name, row in rows.items():
        model, program, pipeline = name.split()
        fused = pipeline.startswith("fuse-jvp-replay")
        plain = rows.get(f"{model} {program} {'fuse-jvp-replay' if fused else PLAIN}", {})
        launches, of = row.get("dynamic_launches"), plain.get("dynamic_launches")
        change = None if not of or launches is None else 100 * (launches / of - 1)
        figures = (("dynamic_copies", 1, 0), ("bytes_accessed", 2**30, 1), ("temp_bytes", 2**20, 0), ("flops", 1e9, 0))
        cells = [
            shown(None if row.get(figure) is None else row[figure] / unit, digits) for figure, unit, digits in figures
        ]
        said = "-" if change is None else f"{change:+.0f} %"
        lines.append(
            [model, program, f"`{pipeline}`" if pipeline != PLAIN else "as lowered", shown(launches, 0), said, *cells]
        )
    heads = ["model", "program", "pipeline", "launches", "change", "copies", "GiB accessed", "temp MiB", "GFLOP"]
    page = [
        "# Layout passes and own kernels: figures",
        "",
        "Printed by `python benchmarks/layout_passes.py`: CH4, 1,024 walkers, float32, compiled for an absent A100.",
        "Programs have the model's own Laplacian (PauliNet, FermiNet: the replay; Psiformer, Orbformer: folx), those",
        "after `fuse-jvp-replay` the replay. *Change* is that of launches from the program as lowered, or from",
        "`fuse-jvp-replay` alone. Launches, copies and temp memory are XLA's; bytes and GFLOP are models, with the",
        "trips of loops. The passes are described in `docs/layout-passes.md`.",
        "",
        markdown_table(heads, lines),
    ]
    return "\n".join(page) + "\n"


def main() -> None:
    """Measure what is missing or out of date, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--programs", default=",".join(PIPELINES))
    parser.add_argument("--out", type=Path, default=Path("studies/layout-a100.json"))
    parser.add_argument("--markdown", type=Path, help="Write the table to this file as well.")
    add_options(parser)
    given = parser.parse_args()
    for name, known in (("models", MODELS), ("programs", PIPELINES)):
        if unknown := set(getattr(given, name).split(",")) - set(known):
            parser.error(f"--{name}: no {', '.join(sorted(unknown))} here; known: {', '.join(known)}")
    if given.one:
        for row in measured(given.one):
            print(json.dumps(row), flush=True)
        return
    names = [
        f"{model} {program} {pipeline}"
        for program in given.programs.split(",")
        for model in given.models.split(",")
        for pipeline in PIPELINES[program]
    ]
    current = revision("fused") or None
    rows = fill_record(
        given.out,
        versions(),
        names,
        lambda name: measure_apart(__file__, name, [], given.limit_s),
        lambda _, row: not given.again and "failed" not in row and row.get("revision") == current,
    )
    text = table(rows)
    if given.markdown:
        given.markdown.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
