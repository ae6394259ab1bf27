"""The table of programs: StableHLO ops, launches, temp memory and the seconds to lower, for an absent A100.

    python benchmarks/programs.py [--models a,b] [--molecules CH4,...] [--programs x,y] [--out FILE.json]

Each program is lowered and compiled in a process of its own, within a time limit. A finished one is written to
``--out`` at once, and one that is there already is not compiled again. A failure is recorded in its row and does not
end the run. The table is printed last (Markdown).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from rows import Row, fill_record, measure_apart  # noqa: E402

from fusionlab.codegen.compile import compile_program, versions  # noqa: E402  # after load_jax
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.errors import CompileError  # noqa: E402  # after load_jax
from fusionlab.hlo.lowering import lower  # noqa: E402
from fusionlab.ledger.ledger import count_launches  # noqa: E402
from fusionlab.workloads.catalogue import PROGRAMS, build  # noqa: E402

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")
MOLECULES = ("LiH", "CH4", "C2H6", "C4H4")


def measure(model: str, molecule: str, program: str, target_name: str) -> Iterator[Row]:
    """What is known of one row after lowering, then the row: 1,024 walkers, float32, the ansatz's own Laplacian."""
    started = time.perf_counter()
    workload = build(model, molecule=molecule, program=program)
    lowered = lower(workload, "cuda")
    row: Row = {"lower_s": round(time.perf_counter() - started, 1), "stablehlo_ops": lowered.ops}
    yield row
    try:
        compiled = compile_program(lowered, load_target(target_name))
    except CompileError as error:
        yield {**row, "failed": str(error)}
        return
    counts = count_launches(compiled)
    yield {
        **row,
        "static_launches": counts.static_launches,
        "dynamic_launches": counts.dynamic_launches,
        "dynamic_copies": counts.dynamic_copies,
        "temp_bytes": compiled.memory.temp_bytes,
        "compile_s": round(compiled.compile_s, 1),
        "unknown_trip_loops": counts.unknown_trip_loops,
    }


def print_table(rows: Mapping[str, Row]) -> None:
    """Markdown, one line per program."""
    print("| model | molecule | program | lower s | StableHLO ops | dynamic launches | temp MiB | compile s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        ops = "-" if row["stablehlo_ops"] is None else f"{row['stablehlo_ops']:,}"
        start = f"| {name.replace(' ', ' | ')} | {row['lower_s'] or '-'} | {ops}"
        if "failed" in row:
            print(f"{start} | {row['failed']} | - | - |")
            continue
        mib = row["temp_bytes"] / 2**20
        print(f"{start} | {row['dynamic_launches']:,} | {mib:,.0f} | {row['compile_s']} |")


def main() -> None:
    """Measure what is missing, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--molecules", default=",".join(MOLECULES))
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--target", default="a100")
    parser.add_argument("--out", type=Path, default=Path("studies/programs-a100.json"))
    parser.add_argument("--limit-s", type=float, default=1500.0, help="Seconds for one program.")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        for row in measure(*given.one.split(), given.target):
            print(json.dumps(row), flush=True)
        return
    names = [
        f"{model} {molecule} {program}"
        for molecule in given.molecules.split(",")
        for model in given.models.split(",")
        for program in given.programs.split(",")
    ]

    def apart(name: str) -> Row:
        unknown = {"lower_s": None, "stablehlo_ops": None}
        return unknown | measure_apart(__file__, name, ["--target", given.target], given.limit_s)

    print_table(fill_record(given.out, versions(), names, apart))


if __name__ == "__main__":
    main()
