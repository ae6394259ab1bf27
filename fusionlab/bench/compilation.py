"""The compiles of a measurement: which there are, several at a time, and ahead of the device.

    archive -> compile for an absent or attached device -> archive with executables          any machine with this JAX
    archive with executables -> load, run, check, time -> record                             the device

An executable is loaded where program, options, ``XLA_FLAGS``, versions of JAX and kind of device are those that it was
compiled with; elsewhere, and where XLA does not load it, the program is compiled anew, and this is said.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from fusionlab.bench.prepared import TRUTH, AheadOfTime, Preparation
from fusionlab.bench.variants import Failure, Variant, attempt
from fusionlab.codegen.cache import compiled_from_json, compiled_to_json
from fusionlab.codegen.compile import (
    NO_AUTOTUNING,
    Compiled,
    compile_program,
    load_compiled,
    require_devices,
    versions,
)
from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.targets import Target
from fusionlab.equivalence.oracle import Options
from fusionlab.errors import CompileError
from fusionlab.hlo.optimised.parser import HloSyntaxError
from fusionlab.hlo.program import Program
from fusionlab.measure.environment import device_facts
from fusionlab.measure.ncu import WITHOUT_GRAPHS
from fusionlab.store import digest_of
from fusionlab.study import Progress

ALONE = "compile without CUDA graphs"
LEFT_OUT = "left out: the time limit was reached"
_UNREAD = ("priority_fusion", "fused_hlo")
"""Texts of a compile's record that no measurement reads."""


@dataclass(frozen=True)
class Compilation:
    """A program to compile with ``options``; ``name`` and ``step`` are those of its ``Failure``. What is ``required``
    is compiled whatever the time limit."""

    name: str
    step: str
    program: Program
    options: Options
    required: bool = False


def of_variants(found: Preparation, target: Target, options: Options) -> list[Compilation]:
    """The variants, the first of which is required, and the reference in float64 last, if there is one."""
    first = found.variants[0].name
    asked = [Compilation(one.name, "compile", one.program, options, one.name == first) for one in found.variants]
    if found.truth is not None:
        exactly = CPU_OPTIONS if target.kind == "cpu" else NO_AUTOTUNING
        asked.append(Compilation(first, TRUTH, found.truth, exactly))
    return asked


def without_graphs(variants: Sequence[Variant], options: Options) -> list[Compilation]:
    """The variants without CUDA graphs: every kernel is launched by itself, and has an event of its own in a trace (of
    a graph, JAX 0.11's has one)."""
    return [Compilation(one.name, ALONE, one.program, {**options, **WITHOUT_GRAPHS}) for one in variants]


def compile_all(
    asked: Sequence[Compilation], ahead: Mapping[str, AheadOfTime], target: Target, jobs: int, until: float,
    failures: list[Failure], progress: Progress,
) -> list[Compiled | None]:  # fmt: skip
    """The results in order, ``jobs`` at a time (XLA compiles without Python's lock), loaded where ``ahead`` has them;
    None for what failed or had not begun at ``until``."""
    device = _kind(target)
    prebuilt = [ahead.get(_key(each, device)) for each in asked]
    if ahead and (anew := [each.name for each, known in zip(asked, prebuilt, strict=True) if known is None]):
        progress(f"compiled anew ({device}, {versions()}, these options are not the archive's): {', '.join(anew)}")

    def one(each: Compilation, known: AheadOfTime | None) -> tuple[Compiled | None, list[Failure]]:
        if time.monotonic() > until and not each.required:
            return None, [Failure(each.name, each.step, LEFT_OUT)]
        if known is not None:
            try:
                loaded = _loaded(known, each, target)
            except (CompileError, HloSyntaxError) as error:
                progress(f"{each.step}: what was compiled of {each.name} ahead of time does not load: {error}")
            else:
                progress(f"{each.step}: {each.name} was compiled ahead of time")
                return loaded, []
        return _compiled(each, target, progress)

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, asked, prebuilt))
    failures.extend(failure for _, own in results for failure in own)
    return [made for made, _ in results]


def _loaded(known: AheadOfTime, each: Compilation, target: Target) -> Compiled:
    """The executable and its record, whose text is read at once. CompileError, HloSyntaxError: one cannot be read."""
    record = compiled_from_json(known.record, each.program, target)
    found = load_compiled(record, known.serialized, each.program, each.options)
    assert found.module
    return found


def compile_ahead(
    found: Preparation, target: Target, options: Options, jobs: int, progress: Progress
) -> tuple[Preparation, list[Failure]]:
    """``found`` with the executables of all its compiles for ``target``, attached or not, ``jobs`` at a time, beside
    those that it has; and what could not be compiled."""
    asked = of_variants(found, target, options)
    if target.kind == "cuda":
        asked += without_graphs(found.variants, options)
    device = _kind(target)
    require_devices(target)
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda each: _compiled(each, target, progress, serialize=True), asked))
    executables = dict(found.executables)
    for each, (made, _) in zip(asked, results, strict=True):
        if made is not None:
            record = {**compiled_to_json(made), **dict.fromkeys(_UNREAD, "")}
            executables[_key(each, device)] = AheadOfTime(record, made.serialized)
    return dataclasses.replace(found, executables=executables), [one for _, own in results for one in own]


def _compiled(
    each: Compilation, target: Target, progress: Progress, **how: Any
) -> tuple[Compiled | None, list[Failure]]:
    progress(f"{each.step}: {each.name} ({each.program.ops:,} ops) for {target.name}")
    own: list[Failure] = []
    ask = partial(compile_program, each.program, target, options=each.options, **how)
    made = attempt(each.name, each.step, ask, own)
    if made is not None:
        progress(f"{each.step}: {each.name} took {made.compile_s:.1f} s")
    return made, own


def _kind(target: Target) -> str:
    """The kind of device that executables are for: the processor, or the GPU by its own name."""
    return str(device_facts(target)["name"]) if target.kind == "cpu" else target.device_kind


def _key(each: Compilation, device: str) -> str:
    options = sorted((name, str(value)) for name, value in each.options.items())
    return digest_of(each.program.digest, options, os.environ.get("XLA_FLAGS", ""), device, versions())
