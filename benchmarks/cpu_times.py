"""Times on the CPU: the sides of one ansatz run in turn in one process, so that a busy machine slows all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping

import jax
import numpy as np
from laplacian_sides import LAPLACIANS, Case, revision, timed_rewrite
from rows import Row

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.passes.pipeline import resolved_pipeline
from fusionlab.study import Circumstances, lower

_WARM_UP = 2


def measure_times(case: Case, repeats: int) -> Iterator[Row]:
    """Milliseconds of every side, one run of each in turn, ``repeats`` times; and how far their energies are apart.

    All sides are compiled by XLA for the CPU with the same options: YNN's library fusions off, without which some
    dense forward Laplacians are wrong (``fusionlab.codegen.compile``), everything else as XLA has it.
    """
    given = Circumstances(load_target("cpu"))
    programs = {side: lower(case.workload(side), given) for side in LAPLACIANS}
    result, seconds = timed_rewrite(programs["replay"], "fuse-jvp-replay", given)
    programs["fused"] = result.program
    row: Row = {"revision": revision("times"), "walkers": case.walkers, "pipeline": resolved_pipeline(result.events)}
    row |= seconds
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(case.workload("replay").inputs(1))]
    executables = {side: compile_program(program, given.target).executable for side, program in programs.items()}
    placed = {side: one.place(arrays) for side, one in executables.items() if one is not None}
    samples: dict[str, list[float]] = {side: [] for side in executables}
    energies = {}
    for turn in range(_WARM_UP + repeats):
        for side, executable in executables.items():
            assert executable is not None
            started = time.perf_counter()
            results = jax.block_until_ready(executable(placed[side]))
            if turn >= _WARM_UP:
                samples[side].append(1e3 * (time.perf_counter() - started))
            energies[side] = np.asarray(results[0])
    yield row | {
        "median_ms": {side: statistics.median(times) for side, times in samples.items()},
        "samples_ms": {side: [round(one, 2) for one in times] for side, times in samples.items()},
        "max_energy_difference_to_replay": {
            side: float(np.max(np.abs(energy - energies["replay"]))) for side, energy in energies.items()
        },
    }


def cpu_table(rows: Mapping[str, Row]) -> str:
    """Medians in milliseconds and what fuse-jvp-replay is of them, Markdown."""
    sides = (*LAPLACIANS, "fused")
    lines = [
        f"| model | molecule | {' | '.join(f'{side} ms' for side in sides)} | fused / folx-sparse | fused / replay |",
        "|---" * (len(sides) + 4) + "|",
    ]
    for name, row in rows.items():
        model, molecule, _ = name.split()
        times = row.get("median_ms")
        if times is None:
            lines.append(f"| {model} | {molecule} |" + " - |" * (len(sides) + 2))
            continue
        ratios = [times["fused"] / times[side] for side in ("folx-sparse", "replay")]
        shown = [f"{times[side]:,.1f}" for side in sides] + [f"{ratio:.2f}" for ratio in ratios]
        lines.append(f"| {model} | {molecule} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"
