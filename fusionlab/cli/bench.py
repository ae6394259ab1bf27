"""``fusionlab bench``: a program, its rewriting and its peers, timed on the attached device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code
from fusionlab.cli.pipelines import passes_of, pipeline_text
from fusionlab.cli.sources import circumstances, load_source
from fusionlab.cli.terminal import say
from fusionlab.errors import InputError
from fusionlab.files import require_writable
from fusionlab.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.bench.measurement import MeasurementPlan
    from fusionlab.bench.prepared import Preparation
    from fusionlab.codegen.targets import Target
    from fusionlab.equivalence.verdict_store import VerdictStore
    from fusionlab.study import Progress

_CPU_WALKERS = 16
"""Walkers that a CPU evaluates in a second; 1,024 take minutes."""
_OF_TIMING = ("runs", "repeats", "records", "counters", "autotune", "time_limit", "jobs")
_OF_COMPILING = ("autotune", "jobs")
_OF_ALL = ("file", "device", "as_json", "quiet")
"""The options of timing, and those that go with preparing and with timing alike."""
_MOST_SEED = 2**32 - 1
"""The largest seed of JAX's keys without float64."""


@click.command("bench")
@options.source
@click.option(
    "--device", help="gpu or cpu; of --check-only and --prepare also an absent GPU.  [default: gpu where there is one]"
)
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
@click.option(
    "--autotune/--no-autotune", default=True, help="Let XLA choose kernels by their clock.  [default: --autotune]"
)
@click.option("--jobs", default=1, show_default=True, type=int, help="Programs that are compiled at a time.")
@click.option("--time-limit", type=float, help="Seconds; what has not begun then is left out, but for wall times.")
@click.option("--check-only", is_flag=True, help="Only check, and keep the verdicts for a run to come.")
@click.option(
    "--prepare",
    type=click.Path(path_type=Path),
    help="Make and check all for --device, absent or not, in this archive, a later FILE. Of one: compile it.",
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
    seed: int,
    records: str | None,
    verdicts: str | None,
    check_only: bool,
    prepare: Path | None,
    check_walkers: str,
    console: Console,
    where: dict[str, Any],
    **plan: Any,
) -> tuple[dict[str, Any], int]:
    """Time a program, its rewriting and its peers side by side. They are checked before, and a record is kept."""
    from fusionlab.bench.measurement import MeasurementPlan
    from fusionlab.bench.prepared import is_prepared
    from fusionlab.bench.run import bench
    from fusionlab.bench.variants import FUSED
    from fusionlab.measure.records import write_record
    from fusionlab.report.tables.records import print_run

    target, ahead = _device_target(device), check_only or prepare is not None
    _require_in_range(seed, plan)
    if prepare is not None:
        _require_only_preparing(prepare, source["file"], check_only)
    if is_prepared(source["file"]):
        make = _archived(source["file"])
    else:
        make = _preparation(source, target, asked, also, against, options.check_limits(check_walkers), where)
        make = partial(make, store=_store(verdicts, where), seed=seed, verdicts_only=check_only)
    records = _records_folder(records, ahead)
    measured = MeasurementPlan(**plan)
    if prepare is not None and is_prepared(source["file"]):
        return _compile_ahead(make(), target, measured, prepare, console, where["progress"])
    if prepare is not None:
        return _save(make(), prepare, console)
    record = bench(make, target, measured, where["progress"], verdicts_only=check_only)
    print_run(record, console)
    if records != "none" and record["variants"]:
        path = write_record(Path(records), record)
        record = {**record, "path": str(path)}
        console.print(f"record: {path}", soft_wrap=True)
    names = map(_name, record["checked" if check_only else "variants"])
    return record, exit_code(["not measured"] if record["pipeline"] and FUSED not in names else [])


def _require_in_range(seed: int, plan: dict[str, Any]) -> None:
    """InputError for a number that no run can have."""
    if plan["runs"] < 2 or plan["repeats"] < 1:
        raise InputError("--runs must be at least 2 (the first is dropped) and --repeats at least 1")
    if plan["jobs"] < 1:
        raise InputError(f"--jobs must be at least 1, not {plan['jobs']}")
    if plan["time_limit"] is not None and not plan["time_limit"] > 0:
        raise InputError(f"--time-limit must be above 0 seconds, not {plan['time_limit']:g}")
    if not 0 <= seed <= _MOST_SEED:
        raise InputError(f"--seed must be between 0 and {_MOST_SEED}, not {seed}")


def _require_only_preparing(path: Path, file: str | None, check_only: bool) -> None:
    """InputError unless ``path`` can be written, and no option on the command line asks for more than preparing."""
    from fusionlab.bench.prepared import is_prepared

    options.require_file_name(str(path), "--prepare")
    given = options.on_command_line(click.get_current_context())
    of_compiling = _OF_COMPILING if is_prepared(file) else ()
    timing = [word for name, word in given.items() if name in _OF_TIMING and name not in of_compiling]
    if timing:
        raise InputError(f"--prepare times nothing: leave {timing[0]} out")
    if check_only:
        raise InputError("--check-only keeps verdicts alone, and --prepare makes more: name one of them")


def _archived(file: str) -> Callable[..., Preparation]:
    """What loads the archive ``file``; InputError for options of what it has."""
    from fusionlab.bench.prepared import Preparation

    given = options.on_command_line(click.get_current_context())
    if others := [word for name, word in given.items() if name not in (*_OF_TIMING, *_OF_ALL, "prepare")]:
        words = f"{file} has its variants, shown equal, and is only compiled and timed"
        raise InputError(f"{words}: leave {others[0]} out")
    return partial(Preparation.load, Path(file))


def _save(found: Preparation, path: Path, console: Console) -> tuple[dict[str, Any], int]:
    """Write the archive ``path`` of what is ``found``, not compiled yet."""
    from fusionlab.bench.variants import FUSED

    found.save(path)
    console.print(f"archive: {path}", soft_wrap=True)
    checked = [{"name": one.name, "verdict": one.verdict.verdict} for one in found.variants]
    document = {"checked": checked, "failures": [asdict(one) for one in found.failures], "path": str(path)}
    return document, exit_code(["not shown"] if found.pipeline and FUSED not in map(_name, checked) else [])


def _compile_ahead(
    found: Preparation, target: Target, plan: MeasurementPlan, path: Path, console: Console, progress: Progress
) -> tuple[dict[str, Any], int]:
    """Write the archive ``path``: ``found`` with its programs compiled for ``target``."""
    from fusionlab.bench.compilation import compile_ahead

    found.require_platform(target)
    if not target.attached and plan.autotune:
        progress(f"not autotuned: there is no {target.name}; the run takes these with --no-autotune")
    made, failures = compile_ahead(found, target, plan.options(target), plan.jobs, progress)
    made.save(path)
    for one in failures:
        console.print(f"not compiled: {one.name} ({one.step}): {one.reason}", soft_wrap=True)
    console.print(f"archive: {path}, with {len(made.executables)} executables", soft_wrap=True)
    document = {"executables": len(made.executables), "failures": [asdict(one) for one in failures], "path": str(path)}
    return document, exit_code(["not compiled"] if failures else [])


def _name(variant: dict[str, Any]) -> Any:
    return variant["name"]


def _preparation(
    source: dict[str, Any],
    target: Target,
    asked: dict[str, Any],
    also: Sequence[str],
    against: str | None,
    check: dict[str, Any],
    where: dict[str, Any],
) -> Callable[..., Preparation]:
    """``prepare`` for what the options name; InputError for what is invalid for any source."""
    from fusionlab.bench.prepared import prepare
    from fusionlab.bench.variants import FUSED
    from fusionlab.measure.peers import DEFAULT_PEERS, peers_of

    context = click.get_current_context()
    if target.kind == "cpu" and context.get_parameter_source("walkers") == ParameterSource.DEFAULT:
        source["walkers"] = _CPU_WALKERS
    if source["laplacian"] is None:
        source["laplacian"] = "replay"
    if not pipeline_text(**asked):
        asked["pipeline"] = "fuse-jvp-replay"
    pipelines = {} if asked["pipeline"] == "none" else {FUSED: passes_of(**asked)}
    pipelines |= {text: passes_of(pipeline=text, memory_budget=asked["memory_budget"]) for text in also}
    loaded = load_source(**source, target=target.name)
    if against is None:
        has_peers = isinstance(loaded, Workload) and loaded.laplacian != "none"
        against = ",".join(DEFAULT_PEERS) if has_peers else ""
    given = circumstances(loaded, target=target.name, **where, **check)
    return partial(prepare, loaded, pipelines, peers_of(against), given)


def _device_target(name: str | None) -> Target:
    """The target of that name; by default the attached GPU if there is one, else the CPU."""
    from fusionlab.codegen.targets import load_target

    if name is not None:
        return load_target(name)
    try:
        return load_target("gpu")
    except InputError:
        return load_target("cpu")


def _records_folder(named: str | None, ahead: bool) -> str:
    """The folder of records, or ``none``: by default the latter ``ahead`` of a run; InputError if it is of no use."""
    if named == "":
        raise InputError("--records needs the name of a folder, or none for no record")
    if named is None:
        return "none" if ahead else _default_records()
    if named != "none" and not ahead:
        require_writable(Path(named))
    return named


def _default_records() -> str:
    """The folder of records beside the compile cache; ``none``, with a warning, where it cannot be written to."""
    from fusionlab.codegen.cache import kept_folder

    folder = kept_folder("bench")
    try:
        require_writable(folder)
    except InputError as error:
        say(f"no record: {error}; --records names another folder")
        return "none"
    return str(folder)


def _store(folder: str | None, where: dict[str, Any]) -> VerdictStore | None:
    """The store of verdicts: the named folder, or one beside the compile cache."""
    from fusionlab.codegen.cache import default_cache
    from fusionlab.equivalence.verdict_store import VerdictStore

    if folder:
        require_writable(Path(folder))
        return VerdictStore(Path(folder))
    cache = None if where["no_cache"] else default_cache()
    return VerdictStore(cache.folder / "verdicts") if cache else None
