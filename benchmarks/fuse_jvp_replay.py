"""fuse-jvp-replay beside the replay and folx: launches, memory, work and seconds, for an absent A100 or on the CPU.

    python benchmarks/fuse_jvp_replay.py [--models a,b] [--molecules CH4,...] [--sides x,y] [--target a100] [--again]
    python benchmarks/fuse_jvp_replay.py --device cpu [--models a,b] [--molecules CH4]

Local energy, 1,024 walkers, float32; on the CPU 16 walkers, and times. Each row is measured in a process of its own,
within a time limit, and written to ``--out`` when it is finished; a failure is recorded in its row and does not end
the run. A row that is there is not measured again if it comes from the same sources (of the workloads and of counting,
and for rewritten programs of the passes too), unless ``--again``. ``--markdown`` writes the tables to a file as well.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from cpu_times import cpu_table, measure_times  # noqa: E402  # after load_jax
from laplacian_sides import SIDES, Case, measure_side, revision  # noqa: E402
from laplacian_tables import by_system, tables  # noqa: E402
from rows import Row, add_options, fill_record, measure_apart, read_record  # noqa: E402

from fusionlab.codegen.compile import versions  # noqa: E402

DEEPQMC = ("deepqmc:paulinet", "deepqmc:ferminet", "deepqmc:psiformer", "deepqmc:deeperwin")
OWN = ("paulinet", "ferminet", "psiformer", "orbformer")
MOLECULES = ("LiH", "CH4", "C2H6", "C4H4")


def main() -> None:
    """Measure what is missing or out of date, then print."""
    given = _arguments()
    if given.one:
        for row in _measure(given):
            print(json.dumps(row), flush=True)
        return
    rows = fill_record(
        given.out,
        versions(),
        _names(given),
        lambda name: measure_apart(__file__, name, _options(given, name), given.limit_s),
        lambda name, row: not given.again and "failed" not in row and row.get("revision") == _revision(given, name),
    )
    text = cpu_table(rows) if given.device == "cpu" else tables(by_system(rows), versions())
    if given.markdown:
        given.markdown.write_text(text)
    print(text)


def _names(given: argparse.Namespace) -> list[str]:
    """Rows in the order in which they are measured: the models of others first, small molecules before large."""
    names = []
    for molecule in given.molecules.split(","):
        for model in given.models.split(","):
            if model.startswith("deepqmc:") and molecule != "CH4":
                continue
            sides = ["times"] if given.device == "cpu" else given.sides.split(",")
            names += [f"{model} {molecule} {side}" for side in sides]
    return names


def _options(given: argparse.Namespace, name: str) -> Sequence[str]:
    """How the process of one row is called, beside its name."""
    options = ["--target", given.target, "--device", given.device, "--size", given.size]
    options += ["--repeats", str(given.repeats)]
    if given.walkers:
        options += ["--walkers", str(given.walkers)]
    if name.endswith(" verdict"):
        known = read_record(given.out, versions())["rows"].get(name.replace(" verdict", " fused"), {})
        options += ["--pipeline", known.get("pipeline", "")]
    return options


def _measure(given: argparse.Namespace) -> Iterator[Row]:
    model, molecule, side = given.one.split()
    on_cpu = given.device == "cpu"
    walkers = given.walkers or (16 if on_cpu else 1024)
    case = Case(model, molecule, "cpu" if on_cpu else given.target, walkers, given.size)
    if on_cpu:
        return measure_times(case, given.repeats)
    if side == "verdict" and not given.pipeline:
        raise SystemExit(f"{given.one}: nothing was rewritten that could be checked")
    return measure_side(case, side, given.pipeline)


def _revision(given: argparse.Namespace, name: str) -> str | None:
    """None, which no row has, where the sources are not those of a commit."""
    return revision(name.split()[-1]) or None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="Comma-separated; all of DeepQMC's (CH4) and our own if not given.")
    parser.add_argument("--molecules", help="Comma-separated; all four if not given, on the CPU CH4.")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--target", default="a100", help="A GPU that need not be there.")
    parser.add_argument("--device", choices=("none", "cpu"), default="none", help="cpu: time the sides on the CPU.")
    parser.add_argument("--walkers", type=int, help="1,024 if not given, on the CPU 16.")
    parser.add_argument("--size", default="full", help="full, or tiny for a trial of this script.")
    parser.add_argument("--repeats", type=int, default=15, help="Timed runs of each side on the CPU.")
    parser.add_argument("--out", type=Path, help="The JSON record; under studies/ if not given.")
    parser.add_argument("--markdown", type=Path, help="Write the tables to this file as well.")
    add_options(parser)
    parser.add_argument("--pipeline", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    on_cpu = given.device == "cpu"
    given.models = given.models or ",".join(OWN if on_cpu else (*DEEPQMC, *OWN))
    given.molecules = given.molecules or ("CH4" if on_cpu else ",".join(MOLECULES))
    given.out = given.out or Path(f"studies/fuse-jvp-replay-{'cpu' if on_cpu else given.target}.json")
    return given


if __name__ == "__main__":
    main()
