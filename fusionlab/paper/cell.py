"""One cell of the matrix, measured: it is lowered and compiled, and its launches are counted.

The row is a JSON object with units in its field names. Launches and memory are XLA's; FLOPs, bytes and time are models
(``fusionlab.ledger.launch_rows``). ``groups`` are the totals by phase, stage and family. It is made in a process of
its own, so that a compile that fails or never ends costs one row.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fusionlab import store
from fusionlab.paper.matrix import Cell, Circumstances

Row = dict[str, Any]
GROUP_BY = ("phase", "stage", "family")
GROUP_FIGURES = ("dynamic_launches", "flops", "bytes", "model_us", "unmodelled_us_launches", "unmodelled_bytes")


def measure(cell: Cell, given: Circumstances, *, use_cache: bool = True) -> Row:
    """The row of ``cell``: it is lowered, compiled for its absent GPU, and its launches are counted and attributed."""
    from fusionlab.codegen.cache import default_cache
    from fusionlab.codegen.compile import compile_program, versions
    from fusionlab.codegen.targets import load_target
    from fusionlab.hlo.lowering import lower
    from fusionlab.ledger.launch_rows import launch_rows, totals, totals_by
    from fusionlab.ledger.ledger import count_launches
    from workloads.catalogue import build

    started = time.perf_counter()
    workload = build(cell.model, cell.molecule, cell.program, walkers=given.walkers, dtype=given.dtype, size=given.size)
    target = load_target(cell.target)
    program = lower(workload, target.kind)
    lower_s = time.perf_counter() - started
    compiled = compile_program(program, target, cache=default_cache() if use_cache else None)
    rows, counts = launch_rows(compiled), count_launches(compiled)
    found = totals(rows)
    return {
        "versions": versions(),
        "sources": sources_digest(),
        "laplacian": workload.laplacian,
        "electrons": workload.electrons,
        "lower_s": round(lower_s, 1),
        "compile_s": round(compiled.compile_s, 1),
        "stablehlo_ops": program.ops,
        "static_launches": counts.static_launches,
        "dynamic_launches": counts.dynamic_launches,
        "dynamic_copies": counts.dynamic_copies,
        "unknown_trip_loops": counts.unknown_trip_loops,
        "most_laplacian_trips": max((row.trip_count for row in rows if row.phase == "laplacian"), default=0),
        "argument_bytes": compiled.memory.argument_bytes,
        "output_bytes": compiled.memory.output_bytes,
        "temp_bytes": compiled.memory.temp_bytes,
        "alias_bytes": compiled.memory.alias_bytes,
        "flops": found.flops,
        "bytes": found.bytes,
        "model_us": found.model_us,
        "unmodelled_us_launches": found.unmodelled_us_launches,
        "unmodelled_bytes": found.unmodelled_bytes,
        "groups": {
            "columns": [*GROUP_BY, *GROUP_FIGURES],
            "rows": [
                [*key, *(_rounded(getattr(group, name)) for name in GROUP_FIGURES)]
                for key, group in totals_by(rows, GROUP_BY).items()
            ],
        },
    }


def _rounded(figure: float | None) -> float | None:
    return round(figure, 3) if isinstance(figure, float) else figure


def sources_digest() -> str:
    """SHA-256 (the first 12 digits) of the programs' sources: a row of other sources is of another program."""
    import workloads

    return store.sources_digest(Path(workloads.__file__).parent)[:12]


def measure_named(name: str, given: dict[str, Any], use_cache: bool) -> Row:
    """``measure`` in a process of its own, which has what it needs as JSON."""
    from fusionlab import quiet_start

    quiet_start.load_jax()
    return measure(Cell.parse(name), Circumstances(**given), use_cache=use_cache)
