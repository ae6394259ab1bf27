"""``fusionlab bench``: a program, its rewriting and its peers, timed on the device that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.bench.measurement import Plan
from fusionlab.bench.run import Request, bench
from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.targets import Target, load_target
from fusionlab.equivalence.verdict_store import VerdictStore
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.measure.peers import DEFAULT_PEERS, peers_of
from fusionlab.measure.records import write_record
from fusionlab.output import require_writable
from fusionlab.passes.interface import Pass
from fusionlab.report.tables.records import print_run
from fusionlab.study import Circumstances
from fusionlab.workload import Workload

CPU_WALKERS = 16
"""What a CPU does in a second; 1,024 take minutes."""
_MOST_SEED = 2**32 - 1
"""JAX's keys take no more bits of a seed, unless float64 is on."""


@dataclass(frozen=True)
class BenchOptions:
    """``against`` is a list of peers, ``records`` the folder for the record (None: none is written)."""

    passes: Sequence[Pass] = ()
    against: str | None = None
    records: str | None = None
    verdicts: str | None = None
    runs: int = Plan.runs
    repeats: int = Plan.repeats
    seed: int = Plan.seed
    check_only: bool = False
    counters: bool = False


def run_bench(
    source: Workload | Program, options: BenchOptions, given: Circumstances, console: Console
) -> tuple[dict[str, Any], int]:
    """Measure, print the table, write the record. Gives the record and the exit code: 1 when what was to be compared
    with the source (its rewriting) is not among what was measured."""
    against = options.against
    if against is None:
        has_peers = isinstance(source, Workload) and source.laplacian != "none"
        against = ",".join(DEFAULT_PEERS) if has_peers else ""
    if options.runs < 2 or options.repeats < 1:
        raise InputError("--runs must be at least 2 (the first is dropped) and --repeats at least 1")
    if not 0 <= options.seed <= _MOST_SEED:
        raise InputError(f"--seed must be between 0 and {_MOST_SEED}, not {options.seed}")
    if options.records == "":
        raise InputError("--records needs the name of a folder, or none for no record")
    peers = peers_of(against)
    if options.records:
        require_writable(Path(options.records))
    request = Request(
        passes=options.passes,
        peers=peers,
        plan=Plan(options.runs, options.repeats, options.seed, options.counters),
        store=_store(options.verdicts, given),
        check_only=options.check_only,
    )
    record = bench(source, request, given)
    print_run(record, console)
    if options.records and record["variants"]:
        path = write_record(Path(options.records), record)
        record = {**record, "path": str(path)}
        console.print(f"record: {path}", soft_wrap=True)
    return record, _code(record, options)


def device_target(name: str | None) -> Target:
    """The attached device: ``gpu`` or ``cpu``, or without a name the GPU where there is one."""
    if name is not None:
        return load_target(name)
    try:
        return load_target("gpu")
    except InputError:
        return load_target("cpu")


def _store(folder: str | None, given: Circumstances) -> VerdictStore | None:
    """Where verdicts are kept: the folder that was named, or beside the compile cache."""
    if folder:
        require_writable(Path(folder))
        return VerdictStore(Path(folder))
    cache = default_cache() if given.cache is not None else None
    return VerdictStore(cache.folder / "verdicts") if cache else None


def _code(record: Mapping[str, Any], options: BenchOptions) -> int:
    names = {one["name"] for one in record["checked" if options.check_only else "variants"]}
    return 1 if options.passes and "fused" not in names else 0
