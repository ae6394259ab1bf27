"""``fusionlab bench``: a program, its rewriting and its peers, timed on the attached device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code
from fusionlab.cli.pipelines import passes_of, pipeline_text
from fusionlab.cli.sources import circumstances, load_source
from fusionlab.errors import InputError
from fusionlab.files import require_writable
from fusionlab.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.codegen.targets import Target
    from fusionlab.equivalence.verdict_store import VerdictStore
    from fusionlab.study import Circumstances

_CPU_WALKERS = 16
"""Walkers that a CPU evaluates in a second; 1,024 take minutes."""
_MOST_SEED = 2**32 - 1
"""The largest seed of JAX's keys without float64."""


@click.command("bench")
@options.source
@click.option("--device", help="gpu or cpu; of --check-only also an absent target.  [default: gpu where there is one]")
@options.passes(
    "Time the source after this pass; repeatable.", "The same as 'a,b{x=1}', or none.  [default: fuse-jvp-replay]"
)
@click.option("--also", multiple=True, help="Another pipeline to time beside; repeatable.")
@click.option("--against", help="Peers: replay,vmap,folx,folx-sparse,jet,enzyme, or none.  [default: all]")
@click.option("--runs", default=11, show_default=True, type=int, help="Traced runs; the first is dropped.")
@click.option("--repeats", default=10, show_default=True, type=int, help="Interleaved rounds for wall times.")
@click.option("--seed", default=1, show_default=True, type=int, help="Seed of the inputs.")
@click.option(
    "--records", help="Folder for the record; none: no record.  [default: one below $FUSIONLAB_CACHE, printed]"
)
@click.option("--verdicts", help="Folder that keeps verdicts.  [default: beside the compile cache]")
@click.option("--counters", is_flag=True, help="Hardware counters of every kernel, by Nsight Compute (ncu).")
@click.option("--check-only", is_flag=True, help="Only check, and keep the verdicts for a run to come.")
@click.option(
    "--turns", type=click.Path(path_type=Path), help="Have the device alone, in turn with all that name this FILE."
)
@options.check_walkers("Walkers of the equivalence check.")
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    device: str | None,
    asked: dict[str, Any],
    also: Sequence[str],
    against: str | None,
    records: str | None,
    verdicts: str | None,
    check_only: bool,
    check_walkers: str,
    turns: Path | None,
    console: Console,
    where: dict[str, Any],
    **plan: Any,
) -> tuple[dict[str, Any], int]:
    """Time a program, its rewriting and its peers side by side, after a check that they are equal; keep a record."""
    from fusionlab.bench.measurement import MeasurementPlan
    from fusionlab.bench.run import Request, bench
    from fusionlab.bench.turns import Turns
    from fusionlab.bench.variants import FUSED
    from fusionlab.codegen.cache import kept_folder
    from fusionlab.measure.peers import DEFAULT_PEERS, peers_of
    from fusionlab.measure.records import write_record
    from fusionlab.report.tables.records import print_run

    check = options.check_limits(check_walkers)
    target = _device_target(device)
    context = click.get_current_context()
    if target.kind == "cpu" and context.get_parameter_source("walkers") == ParameterSource.DEFAULT:
        source["walkers"] = _CPU_WALKERS
    if source["laplacian"] is None:
        source["laplacian"] = "replay"
    if not pipeline_text(**asked):
        asked["pipeline"] = "fuse-jvp-replay"
    pipelines = {} if asked["pipeline"] == "none" else {FUSED: passes_of(**asked)}
    pipelines |= {text: passes_of(pipeline=text, memory_budget=asked["memory_budget"]) for text in also}
    loaded = load_source(**source)
    given = circumstances(loaded, target=target.name, **where, **check)
    if against is None:
        has_peers = isinstance(loaded, Workload) and loaded.laplacian != "none"
        against = ",".join(DEFAULT_PEERS) if has_peers else ""
    if plan["runs"] < 2 or plan["repeats"] < 1:
        raise InputError("--runs must be at least 2 (the first is dropped) and --repeats at least 1")
    if not 0 <= plan["seed"] <= _MOST_SEED:
        raise InputError(f"--seed must be between 0 and {_MOST_SEED}, not {plan['seed']}")
    records = str(kept_folder("bench")) if records is None else records
    if records == "":
        raise InputError("--records needs the name of a folder, or none for no record")
    peers = peers_of(against)
    if records != "none":
        require_writable(Path(records))
    request = Request(
        pipelines=pipelines,
        peers=peers,
        plan=MeasurementPlan(**plan),
        store=_store(verdicts, given),
        check_only=check_only,
        turns=Turns(turns),
    )
    record = bench(loaded, request, given)
    print_run(record, console)
    if records != "none" and record["variants"]:
        path = write_record(Path(records), record)
        record = {**record, "path": str(path)}
        console.print(f"record: {path}", soft_wrap=True)
    measured = {one["name"] for one in record["checked" if check_only else "variants"]}
    return record, exit_code(["not measured"] if FUSED in pipelines and FUSED not in measured else [])


def _device_target(name: str | None) -> Target:
    """The target of that name; by default the attached GPU if there is one, else the CPU."""
    from fusionlab.codegen.targets import load_target

    if name is not None:
        return load_target(name)
    try:
        return load_target("gpu")
    except InputError:
        return load_target("cpu")


def _store(folder: str | None, given: Circumstances) -> VerdictStore | None:
    """The store of verdicts: the named folder, or one beside the compile cache."""
    from fusionlab.codegen.cache import default_cache
    from fusionlab.equivalence.verdict_store import VerdictStore

    if folder:
        require_writable(Path(folder))
        return VerdictStore(Path(folder))
    cache = default_cache() if given.cache is not None else None
    return VerdictStore(cache.folder / "verdicts") if cache else None
