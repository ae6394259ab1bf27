"""The matrix of the characterisation (Section III-A): ansatz x molecule x GPU x {training, inference}.

A cell is one program on one GPU: lowered, compiled, its launches counted and attributed. Its row is a JSON object with
units in its field names. Launches and memory are XLA's; FLOPs, bytes and time are models
(``fusionlab.ledger.launch_rows``). ``groups`` are the totals by phase, stage and family.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fusionlab import store
from fusionlab.errors import InputError, unknown

if TYPE_CHECKING:
    from fusionlab.codegen.compile import Compiled
    from fusionlab.hlo.program import Program
    from fusionlab.workload import Workload

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")
MOLECULES = ("LiH", "CH4", "C2H6", "C4H4")
TARGETS = ("a5000", "a100", "h200")
INFERENCE, TRAINING = "inference-step", "train-step"
PROGRAMS = (INFERENCE, TRAINING)

_MOLECULES_FIRST_WANTED = ("CH4", "LiH", "C4H4", "C2H6")
"""CH4 has the kernel tables, LiH and C4H4 the scaling."""


@dataclass(frozen=True)
class MatrixSetup:
    """The common settings of all cells of one record: walkers, size of the ansätze, dtype."""

    walkers: int = 1024
    size: str = "full"
    dtype: str = "float32"

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True, order=True)
class Cell:
    """One program of one ansatz on one molecule, compiled for one GPU."""

    model: str
    molecule: str
    program: str
    target: str

    def __str__(self) -> str:
        return f"{self.model} {self.molecule} {self.program} {self.target}"

    @staticmethod
    def parse(name: str) -> Cell:
        """The inverse of ``str``; InputError for anything else."""
        words = name.split()
        if len(words) != 4:
            raise InputError(f"{name!r}: not MODEL MOLECULE PROGRAM TARGET")
        return Cell(*words)


EVERY = tuple(Cell(*words) for words in itertools.product(MODELS, MOLECULES, PROGRAMS, TARGETS))
"""The 96 cells of the characterisation."""


def select(models: str | None, molecules: str | None, programs: str | None, targets: str | None) -> list[Cell]:
    """The cells that the comma-separated lists name (None: all), in order of priority.

    InputError for a name that is in no table; programs may be any that can be built.
    """
    from fusionlab.workloads.catalogue import ANSATZE
    from fusionlab.workloads.catalogue import PROGRAMS as BUILT

    chosen_models = _named("model", models, MODELS, ANSATZE)
    chosen_molecules = _named("molecule", molecules, MOLECULES, MOLECULES)
    chosen_programs = _named("program", programs, PROGRAMS, BUILT)
    chosen_targets = _named("target", targets, TARGETS, TARGETS)
    order = sorted(chosen_molecules, key=_MOLECULES_FIRST_WANTED.index)
    return [
        Cell(model, molecule, program, target)
        for molecule, program, target, model in itertools.product(order, chosen_programs, chosen_targets, chosen_models)
    ]


def _named(kind: str, given: str | None, default: Sequence[str], known: Sequence[str] | dict[str, str]) -> list[str]:
    if given is None:
        return list(default)
    names = list(dict.fromkeys(word.strip() for word in given.split(",") if word.strip()))
    if not names:
        raise InputError(f"no {kind} is named")
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)
    return names


Row = dict[str, Any]
GROUP_BY = ("phase", "stage", "family")
GROUP_FIGURES = ("dynamic_launches", "flops", "bytes", "model_us", "unmodelled_us_launches", "unmodelled_bytes")


def measure(cell: Cell, given: MatrixSetup, *, use_cache: bool = True) -> Row:
    """The row of ``cell``: lowered, compiled for its absent GPU, its launches counted and attributed."""
    from fusionlab.codegen.cache import default_cache
    from fusionlab.codegen.compile import compile_program, versions
    from fusionlab.codegen.targets import load_target
    from fusionlab.hlo.lowering import lower
    from fusionlab.workloads.catalogue import build

    started = time.perf_counter()
    workload = build(cell.model, cell.molecule, cell.program, walkers=given.walkers, dtype=given.dtype, size=given.size)
    target = load_target(cell.target)
    program = lower(workload, target.kind)
    lower_s = time.perf_counter() - started
    compiled = compile_program(program, target, cache=default_cache() if use_cache else None)
    named = {"versions": versions(), "sources": sources_digest()}
    return named | row_of_compiled(workload, program, compiled, lower_s)


def row_of_compiled(workload: Workload, program: Program, compiled: Compiled, lower_s: float) -> Row:
    """The figures of a cell, of one compile of its program."""
    from fusionlab.ledger.launch_rows import launch_rows, totals
    from fusionlab.ledger.ledger import count_launches
    from fusionlab.ledger.views import totals_by

    rows, counts = launch_rows(compiled), count_launches(compiled)
    found = totals(rows)
    return {
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
    return store.sources_digest(store.PACKAGE / "workloads")[:12]


def measure_named(name: str, given: dict[str, Any], use_cache: bool) -> Row:
    """``measure`` in a process of its own, with its settings as JSON."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    return measure(Cell.parse(name), MatrixSetup(**given), use_cache=use_cache)
