"""DeepQMC 1.3.0's local energy and NetKet 3.23's kinetic energy: own Laplacian, folx's and ours, for an absent A100.

    .venv-deepqmc/bin/python benchmarks/other_codes.py [--models a,b] [--molecules LiH,CH4] [--sides x,y] [--again]
    .venv-netket/bin/python benchmarks/other_codes.py

``make other-codes`` sets up both environments and runs both. All sides are compiled alike, for the same target, with
the JAX of that environment, and fill one record. Sides beside those of ``code_programs.py``: ``fused`` is the code's
own program after fuse-jvp-replay, ``verdict`` whether that computes the same, exactly at 2 walkers and in floating
point at 16. Each row is measured in a process of its own, within a time limit, and written when it is finished.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from code_programs import DEEPQMC, NETKET, SIDES, code_version, lowered  # noqa: E402  # after load_jax
from laplacian_sides import event_words, revision  # noqa: E402
from laplacian_tables import Systems, by_system, markdown_table, shown  # noqa: E402
from rows import OF_EACH_ROW, Row, add_options, fill_record, measure_apart, read_record  # noqa: E402

from fusionlab.codegen.cache import default_cache  # noqa: E402
from fusionlab.codegen.compile import versions  # noqa: E402
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.hlo.cost import program_cost  # noqa: E402
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline  # noqa: E402
from fusionlab.study import Circumstances, judge, measure, rewrite  # noqa: E402

FIGURES = {
    "launches, dynamic": ("dynamic_launches", 1.0, 0),
    "copies, dynamic": ("dynamic_copies", 1.0, 0),
    "temp MiB": ("temp_bytes", 2**-20, 0),
    "GFLOP (model)": ("flops", 1e-9, 1),
    "GiB accessed (model)": ("bytes_accessed", 2**-30, 1),
}
"""Of each column of figures: its name in a row, its unit and the digits that are shown."""

OURS = ("fused", "laplacian")
PEERS = ("folx-dense", "folx-sparse")
NOT_WORSE = ("launches, dynamic", "temp MiB", "GFLOP (model)")
"""The figures in which ours are to be at most those of the best of folx."""


def main() -> None:
    """Measure what is missing or out of date, then print."""
    given = _arguments()
    if given.one:
        for row in _measure(given):
            print(json.dumps(row), flush=True)
        return
    rows = fill_record(
        given.out,
        OF_EACH_ROW,
        _names(given),
        lambda name: measure_apart(__file__, name, _options(given, name), given.limit_s),
        lambda name, row: not given.again and "failed" not in row and row.get("revision") == (_revision(name) or None),
    )
    text = tables(by_system(rows))
    if given.markdown:
        given.markdown.write_text(text)
    print(text)


def tables(systems: Systems) -> str:
    """The document: one table for each figure, what is worse than folx, and the verdicts."""
    parts = [_CIRCUMSTANCES]
    columns = ["model", "system", "own", *PEERS, "fused", "laplacian", "log-psi"]
    for title, (figure, unit, digits) in FIGURES.items():
        lines = [
            [*key, *(shown(_scaled(sides, side, figure, unit), digits) for side in columns[2:])]
            for key, sides in systems.items()
        ]
        parts.append(f"## {title}\n\n{markdown_table(columns, lines)}\n")
    worse = [f"- {line}" for key, sides in systems.items() for line in worse_than_folx(key, sides)]
    parts.append("## Worse than folx\n\n" + ("\n".join(worse) or "Nothing.") + "\n")
    verdicts = [
        [*key, (row.get("exact") or {}).get("result", "-"), row.get("verdict", "-"), f"`{row['pipeline']}`"]
        for key, sides in systems.items()
        if "pipeline" in (row := sides.get("verdict", {}))
    ]
    header = ["model", "system", "exactly", "in floating point", "chosen"]
    parts.append(
        "## The rewritten programs\n\n" + (markdown_table(header, verdicts) if verdicts else "Not checked.") + "\n"
    )
    compiled = dict.fromkeys(
        f"- {key[0]}: {row['code']}; {row['versions']}; {row['walkers']:,} walkers, target {row['target']}"
        for key, sides in systems.items()
        for row in sides.values()
        if "code" in row and "target" in row
    )
    parts.append("## Versions\n\n" + "\n".join(compiled) + "\n")
    return "\n".join(parts)


_CIRCUMSTANCES = """\
# Other codes: figures

Printed by `python benchmarks/other_codes.py` in the environment of each code: DeepQMC 1.3.0's local energies (its
`compute_local_energy` and its configurations' networks at full size, float32) and NetKet's kinetic energies (float64),
all sides of a row compiled alike. *own* is the code's own Laplacian (DeepQMC's loop over the coordinates, NetKet's
`jacfwd(jacrev)`), *folx* its forward Laplacian (sparsity_threshold 0 and 0.6), *fused* the own program after
fuse-jvp-replay, *laplacian* `fusionlab.laplacian` in the place of the Laplacian, *log-psi* no Laplacian. "-" is not
measured.
"""


def worse_than_folx(key: tuple[str, str], sides: Mapping[str, Row]) -> list[str]:
    """Where a figure of ours is above that of one of folx's, in words."""
    found = []
    for title in NOT_WORSE:
        figure, unit, digits = FIGURES[title]
        for ours in OURS:
            mine = _scaled(sides, ours, figure, unit)
            above = [
                f"{peer} {shown(theirs, digits)}"
                for peer in PEERS
                if (theirs := _scaled(sides, peer, figure, unit)) is not None and mine is not None and mine > theirs
            ]
            if above:
                found.append(f"{' '.join(key)}, {title}: {ours} {shown(mine, digits)}, {', '.join(above)}")
    return found


def _scaled(sides: Mapping[str, Row], side: str, figure: str, unit: float) -> float | None:
    value = sides.get(side, {}).get(figure)
    return None if value is None else unit * value


def _measure(given: argparse.Namespace) -> Iterator[Row]:
    model, system, side = given.one.split()
    if side == "verdict" and not given.pipeline:
        raise SystemExit(f"{given.one}: nothing was rewritten that could be checked")
    around = Circumstances(load_target(given.target), cache=default_cache())
    started = time.perf_counter()
    program = lowered(model, system, side if side in SIDES else "own", given.walkers, around.target.kind)
    row: Row = {"revision": _revision(given.one), "lower_s": round(time.perf_counter() - started, 2)}
    row |= {"code": code_version(model), "versions": versions()}
    row |= {"stablehlo_ops": program.ops, "flops": program_cost(program).flops}
    yield row
    if side in SIDES:
        yield {**row, **measure(program, program, around).to_json(), "walkers": given.walkers}
        return
    if side == "verdict":
        result, _ = rewrite(program, parse_pipeline(given.pipeline), around)
        verdict = judge(program, program, result, around)
        yield {**row, "pipeline": given.pipeline, **verdict.to_json()}
        return
    result, pass_s = rewrite(program, parse_pipeline("fuse-jvp-replay"), around)
    row |= {"pass_s": round(pass_s, 2), "pipeline": resolved_pipeline(result.events), "events": event_words(result)}
    row |= {"ops_before": row.pop("stablehlo_ops"), "flops": program_cost(result.program).flops}
    yield row
    yield {**row, **measure(program, result.program, around).to_json(), "walkers": given.walkers}


def _names(given: argparse.Namespace) -> list[str]:
    names = []
    for model in given.models.split(","):
        systems = given.particles if model == NETKET else given.molecules
        names += [f"{model} {system} {side}" for system in systems.split(",") for side in given.sides.split(",")]
    return names


def _options(given: argparse.Namespace, name: str) -> Sequence[str]:
    """How the process of one row is called, beside its name."""
    options = ["--target", given.target, "--walkers", str(given.walkers)]
    if name.endswith(" verdict"):
        fused = read_record(given.out, "")["rows"].get(name.replace(" verdict", " fused"), {})
        options += ["--pipeline", fused.get("pipeline", "")]
    return options


def _revision(name: str) -> str:
    """The sources that decide what the row ``name`` has: the passes too, where something is rewritten."""
    side = name.split()[-1]
    return revision(side if side in ("fused", "laplacian", "verdict") else "replay")


def _installed() -> list[str]:
    models = list(DEEPQMC.values()) if importlib.util.find_spec("deepqmc") else []
    return [*models, *([NETKET] if importlib.util.find_spec("netket") else [])]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", help="Comma-separated; those of the codes in this environment if not given.")
    parser.add_argument("--molecules", default="CH4", help="Comma-separated, of DeepQMC's models.")
    parser.add_argument("--particles", default="10", help="Comma-separated numbers, of NetKet's.")
    parser.add_argument("--sides", default=",".join((*SIDES, "fused", "verdict")))
    parser.add_argument("--walkers", type=int, default=1024)
    parser.add_argument("--target", default="a100", help="A GPU that need not be there, or cpu.")
    parser.add_argument("--out", type=Path, default=Path("studies/other-codes-a100.json"), help="The JSON record.")
    parser.add_argument("--markdown", type=Path, help="Write the tables to this file as well.")
    add_options(parser)
    parser.add_argument("--pipeline", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.models = given.models or ",".join(_installed())
    return given


if __name__ == "__main__":
    main()
