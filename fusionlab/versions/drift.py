"""One program compiled by several versions of XLA: a row each, and what changed between neighbours.

All figures are of one program text and one model, so that they differ by the compiler alone. Launches and
copies are XLA's thunk list from JAX 0.10 on, and follow from the optimised HLO and the buffer assignment before. Bytes
follow from the optimised HLO, temp memory is the buffer assignment. Time is the roofline of the target's
spec: XLA's own estimates changed with the versions, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.compile import Compiled
from fusionlab.codegen.targets import Target
from fusionlab.device_code.kernel_rows import kernels_by_launch
from fusionlab.device_code.ptx import PtxKernel
from fusionlab.errors import CompileError
from fusionlab.hlo.program import Program
from fusionlab.ledger.changes import LedgerDiff, compare_ledgers
from fusionlab.ledger.ledger import Reading
from fusionlab.ledger.saved import LedgerRecord, ledger_record
from fusionlab.versions.causes import GONE, RETURNS, Cause, Figures, Side, causes, differing, listed
from fusionlab.versions.compiling import Options, compile_apart, compiles, default_options, require_comparable
from fusionlab.versions.environments import JaxEnvironment, NoEnvironment, environment

FIGURES = ("launches", "copies", "bytes", "temp_bytes", "model_us", "cas_loops")
"""The names of the figures of a version."""
Progress = Callable[[str], None]
_SILENT: Progress = lambda line: None  # noqa: E731 - the default of a parameter
_MOST_SWITCHED_OPS = 500
"""A program of more ops is not compiled with every switch of XLA:GPU, which are some dozens."""
_AT_ONCE = 2
"""Environments that are made at once: one downloads while another is unpacked."""


@dataclass(frozen=True)
class CasLoop:
    """A kernel with an atomic update as a loop of compare-and-swap, and its origin."""

    kernel: str
    op: str
    source: str
    launches: int


@dataclass(frozen=True)
class VersionRow:
    """The program by one version: its ledger, or the ``reason`` why there is none.

    ``cas_loops`` is None where XLA wrote no code of kernels (from JAX 0.11 on, unless it is asked for).
    """

    version: str
    record: LedgerRecord | None = None
    reason: str = ""
    compile_s: float = 0.0
    cas_loops: tuple[CasLoop, ...] | None = None

    @property
    def figures(self) -> dict[str, float | None]:
        """Launches, copies, bytes, temp memory, modelled time, kernels with compare-and-swap loops; none without a
        record, None for what is not known."""
        if self.record is None:
            return {}
        return {
            "launches": self.record.dynamic_launches,
            "copies": self.record.dynamic_copies,
            "bytes": self.record.bytes_accessed,
            "temp_bytes": self.record.temp_bytes,
            "model_us": self.record.model_us,
            "cas_loops": None if self.cas_loops is None else len(self.cas_loops),
        }

    def to_json(self) -> dict[str, Any]:
        """The row of the document."""
        known: dict[str, Any] = {
            "jax": self.version,
            "reason": self.reason or None,
            "versions": self.record.versions if self.record else None,
            "launch_source": self.record.launch_source if self.record else None,
            "compile_s": self.compile_s if self.record else None,
        }
        figures = {name: self.figures.get(name) for name in FIGURES}
        loops = None if self.cas_loops is None else [asdict(one) for one in self.cas_loops]
        return {**known, **figures, "cas_loops": loops}


@dataclass(frozen=True)
class VersionStep:
    """What changed from one version to the next; ``causes`` are what in XLA accounts for it, None if not looked for.

    ``cause_note`` says why a cause could not be looked for, or what was left out.
    """

    before: VersionRow
    after: VersionRow
    changes: LedgerDiff
    causes: tuple[Cause, ...] | None = None
    cause_note: str = ""

    @property
    def is_same(self) -> bool:
        """True if no figure differs that both sides know."""
        pairs = ((old, self.after.figures[name]) for name, old in self.before.figures.items())
        return all(old == new for old, new in pairs if old is not None and new is not None) and self.changes.is_same


@dataclass(frozen=True)
class Drift:
    """The program ``name`` over versions, the oldest first, and the steps between those that compiled it."""

    name: str
    target: str
    rows: tuple[VersionRow, ...]
    steps: tuple[VersionStep, ...]

    @property
    def compiled(self) -> tuple[VersionRow, ...]:
        """The rows with figures."""
        return tuple(row for row in self.rows if row.record is not None)


def drift(
    program: Program,
    target: Target,
    versions: Sequence[str],
    *,
    ptx: bool = False,
    cache: CompileCache | None = None,
    progress: Progress = _SILENT,
) -> Drift:
    """Compile ``program`` by each of ``versions`` (the oldest first), in environments that are made where they are not.

    ``ptx``: the code of kernels from JAX 0.11 on, too. InputError for a program of several devices, and for a target
    without a GPU's spec.
    """
    require_comparable(program, target)  # before environments are made
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        made = [pool.submit(environment, version, progress) for version in versions]
        rows = [
            _row(program, target, version, where, ptx=ptx, cache=cache, progress=progress)
            for version, where in zip(versions, made, strict=True)
        ]
    finally:  # after an error, no more environments
        pool.shutdown(wait=False, cancel_futures=True)
    return of_rows(program.name, target.name, rows)


def of_rows(name: str, target: str, rows: Sequence[VersionRow]) -> Drift:
    """The rows with the steps between neighbours that have figures."""
    known = [row for row in rows if row.record is not None]
    steps = [VersionStep(old, new, _changes(old, new)) for old, new in itertools.pairwise(known)]
    return Drift(name, target, tuple(rows), tuple(steps))


def _changes(old: VersionRow, new: VersionRow) -> LedgerDiff:
    sides = [replace(row.record, name=f"JAX {row.version}") for row in (old, new) if row.record is not None]
    return compare_ledgers(*sides)


def _row(
    program: Program,
    target: Target,
    version: str,
    where: Future[JaxEnvironment],
    *,
    ptx: bool,
    cache: CompileCache | None,
    progress: Progress,
) -> VersionRow:
    try:
        found = where.result()
        progress(f"compile: {program.name} ({program.ops:,} ops) for {target.name} by JAX {version}")
        compiled = compile_apart(program, target, found, ptx=ptx, cache=cache)
    except (NoEnvironment, CompileError) as error:
        return VersionRow(version, reason=str(error))
    return row_of(version, compiled)


def row_of(version: str, compiled: Compiled) -> VersionRow:
    """The figures of one compile, by the same models for every version."""
    alike = alike_in_all_versions(compiled)
    reading = Reading(alike)
    record = ledger_record(alike, reading)
    return VersionRow(version, record, "", compiled.compile_s, _cas_loops(alike, record, reading))


def alike_in_all_versions(compiled: Compiled) -> Compiled:
    """``compiled`` without what only some versions write: XLA's estimates, and a list of thunks without names, from
    which launches are not counted."""
    listed = bool(compiled.thunk_metadata)
    return replace(
        compiled, estimates_are_of_target=False, thunk_sequence=compiled.thunk_sequence if listed else "",
        captured_thunks=compiled.captured_thunks if listed else "",
    )  # fmt: skip


def _cas_loops(compiled: Compiled, record: LedgerRecord, reading: Reading) -> tuple[CasLoop, ...] | None:
    if not compiled.ptx:
        return None
    looping = {name for name, kernel in kernels_by_launch(compiled, reading).items() if _has_cas(kernel)}
    rows = [row for row in record.rows if row.dynamic_launches and row.name in looping]
    return tuple(CasLoop(row.name, row.op, row.source, row.dynamic_launches) for row in rows)


def _has_cas(kernel: PtxKernel) -> bool:
    return any(one.operation == "cas" and one.access == "atomic" for one in kernel.instructions)


def with_causes(
    program: Program, target: Target, found: Drift, *, ptx: bool = False, progress: Progress = _SILENT
) -> Iterator[VersionStep]:
    """The steps of ``found`` with the cause of each that differs, one after the other: a search takes long.

    The environments of its versions are there. ``ptx`` is that of ``drift``.
    """
    all_switches = program.ops <= _MOST_SWITCHED_OPS
    left_out = f"switches with the same default on both sides were left out: the program has {program.ops:,} ops"

    def measure(where: JaxEnvironment, options: Sequence[Options]) -> Iterator[Figures | None]:
        progress(f"cause: {len(options)} compiles of {program.name} by JAX {where.version}")
        asked = [{**default_options(where, ptx=ptx), **one} for one in options]
        with compiles(program, target, where, asked) as made:
            for one in made:
                yield None if one.compiled is None else row_of(where.version, one.compiled).figures

    def side(row: VersionRow) -> Side:
        return listed(program, target, environment(row.version), row.figures)

    for step in found.steps:
        if not differing(step.before.figures, step.after.figures):
            yield replace(step, causes=())
            continue
        try:
            known = causes(side(step.before), side(step.after), measure, all_switches=all_switches)
        except (CompileError, NoEnvironment) as error:
            yield replace(step, cause_note=f"no cause: {error}")
            continue
        is_found = all(one.how in (RETURNS, GONE) for one in known)
        yield replace(step, causes=known, cause_note="" if all_switches or is_found else left_out)
