"""What the fact commands share: a source of any form, and what XLA made of it for each target asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import Target
from fusionlab.commands.source import SourceOptions, load_source
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.hlo.saved import HloFile, load_saved
from fusionlab.study import Circumstances, compiled, lower
from fusionlab.workload import Workload

Source = Workload | Program | HloFile


@dataclass(frozen=True)
class Made:
    """A program and what XLA made of it for one target; ``program`` is None when the source is XLA's own text.

    ``notes`` are what a reader of the figures must know about this source.
    """

    program: Program | None
    compiled: Compiled
    notes: tuple[str, ...] = ()


def load_facts_source(options: SourceOptions) -> Source:
    """The workload, or the content of the file whatever its form; InputError unless exactly one is named."""
    if options.file is not None and options.model is None:
        return load_saved(options.file)
    return load_source(options)


def require_program(source: Source, command: str) -> Workload | Program:
    """``source``, unless it is optimised HLO text, which has no StableHLO to look at: InputError."""
    if isinstance(source, HloFile):
        raise InputError(f"{source.path}: `{command}` reads StableHLO, and this is XLA's optimised HLO")
    return source


def make(source: Source, given: Circumstances) -> Made:
    """Lower and compile for ``given.target`` (from the cache when it holds it); HLO text is taken as it is."""
    if isinstance(source, HloFile):
        return _of_text(source, given.target)
    program = lower(source, given)
    given.progress(f"compile: {program.name} ({program.ops:,} ops) for {given.target.name}")
    made = compiled(program, given)
    given.progress("compile: read from the cache" if made.from_cache else f"compile: {made.compile_s:.1f} s")
    return Made(program, made)


def make_all(source: Source, targets: Sequence[Target], given: Circumstances) -> list[Made]:
    """``make`` for each of ``targets``, in order. InputError for several targets of one optimised HLO text."""
    if isinstance(source, HloFile) and len(targets) > 1:
        named = ", ".join(target.name for target in targets)
        raise InputError(f"{source.path}: XLA compiled this text for one target; name that one, not {named}")
    return [make(source, replace(given, target=target)) for target in targets]


def _of_text(source: HloFile, target: Target) -> Made:
    """The text as what XLA made for ``target``; InputError when the text is another platform's.

    XLA's estimates in it are used only if they were made for the clock of ``target``.
    """
    if source.platform not in ("", target.kind):
        kind = {"cuda": "a GPU", "cpu": "the CPU"}
        raise InputError(
            f"{source.path}: XLA compiled this text for {kind[source.platform]}, but target {target.name} is "
            f"{kind[target.kind]}; leave --target out or name the one it was compiled for"
        )
    clock = source.estimates_clock_ghz
    own = clock is None or target.has_clock(clock)
    record = Compiled(
        name=source.name,
        target=target,
        optimized_hlo=source.text,
        thunk_sequence="",
        thunk_metadata="",
        memory=Memory(0, 0, 0, 0),
        compile_s=0.0,
        options={},
        versions="",
        estimates_are_of_target=own,
    )
    vars(record)["module"] = source.module  # the cached property: it has been parsed already
    if own:
        return Made(None, record)
    return Made(None, record, (f"XLA's estimates in the text are for a clock of {clock:.3f} GHz, which is not that of "
                               f"{target.name}: they are not used",))  # fmt: skip
