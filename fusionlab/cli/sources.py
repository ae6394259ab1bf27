"""The subject of a verb: a model by name or a file, the target, and its compilation by XLA for that target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fusionlab.errors import InputError

if TYPE_CHECKING:
    from fusionlab.codegen.compile import Compiled
    from fusionlab.codegen.targets import Target
    from fusionlab.hlo.optimised.saved import HloFile
    from fusionlab.hlo.program import Program
    from fusionlab.study import Circumstances
    from fusionlab.workload import Workload

    Source = Workload | Program | HloFile


DEFAULT_TARGET = "a100"
"""The paper's reference GPU."""

RUN_ON = "cpu"
"""Where a check runs programs."""

_ARGS_ARE = "--args has those of a Python function, FILE.py:FUNCTION"


@dataclass(frozen=True)
class CompiledSource:
    """A program compiled by XLA for one target; ``program`` is None when the source is XLA's own text.

    ``notes`` qualify the figures of this source.
    """

    program: Program | None
    compiled: Compiled
    notes: tuple[str, ...] = ()


def load_source(
    *,
    file: str | None = None,
    model: str | None = None,
    args: Sequence[str] = (),
    target: str | None = None,
    whole: bool = False,
    **named: Any,
) -> Workload | Program:
    """The workload or the file's program; ``named`` are arguments of ``fusionlab.workloads.catalogue.build``.

    ``args``, ``target`` and ``whole`` are as for ``load_file``. InputError unless exactly one of ``file`` and ``model``
    is named.
    """
    if (file is None) == (model is None):
        raise InputError("name one thing to work on: either --model NAME or a FILE (StableHLO, FILE.py:FUNCTION, ...)")
    if file is not None:
        return load_program(file, args, target, whole=whole)
    from fusionlab.workloads.catalogue import build

    assert model is not None
    if args:
        raise InputError(f"--args: model {model} makes its own arguments; {_ARGS_ARE}")
    return build(model, **named)


def load_program(path: str, args: Sequence[str] = (), target: str | None = None, *, whole: bool = False) -> Program:
    """The StableHLO program of a file in any form that ``load_file`` reads; else InputError."""
    from fusionlab.hlo.optimised.saved import HloFile

    found = load_file(path, args, target, whole=whole)
    if isinstance(found, HloFile):
        raise InputError(f"{path}: this is XLA's optimised HLO; this command needs StableHLO")
    return found


def load_pair(
    options: Mapping[str, Any], other: str | None, target: str | None
) -> tuple[Workload | Program, Program | None, str | None]:
    """The sides of a check (``load_source`` of ``options``, the program of the file ``other`` if any), and its target.

    A check runs both: without a ``target``, Python is lowered for the CPU, beside a program for a GPU for that.
    """
    from fusionlab.hlo.python_file import is_python

    if other is None:
        return load_source(**options, target=target), None, target
    file, args = options["file"], options["args"]
    if file is not None and is_python(file):
        if is_python(other):
            target = target or RUN_ON
            return load_source(**options, target=target), load_program(other, args, target), target
        against = load_program(other, (), target)
        target = target or _target_beside(against)
        return load_source(**options, target=target), against, target
    source = load_source(**{**options, "args": () if is_python(other) else args}, target=target)
    return source, load_program(other, args, target or _target_beside(source)), target


def _target_beside(source: object) -> str:
    """The target of a Python function that is compared with ``source``."""
    from fusionlab.hlo.program import Program

    return DEFAULT_TARGET if isinstance(source, Program) and source.platform == "cuda" else RUN_ON


def load_file(
    path: str, args: Sequence[str] = (), *targets: str | None, content: bytes | None = None, whole: bool = False
) -> HloFile | Program:
    """The program of a file: StableHLO, a saved ``jax.export``, HLO text or protobuf, or ``FILE.py:FUNCTION``.

    ``args`` are the shapes of a Python function's arguments, and ``targets`` the names of those that it is lowered for
    (by default ``DEFAULT_TARGET``). ``content`` is that of the file, if it has been read. Attributes of unknown
    dialects are dropped with a warning; NotStudied for them if ``whole``. InputError names the file.
    """
    from fusionlab.codegen.targets import load_target
    from fusionlab.hlo.optimised.saved import content_as_saved, load_saved
    from fusionlab.hlo.python_file import is_python, program_of_python

    if is_python(path):
        return program_of_python(path, args, [load_target(one or DEFAULT_TARGET).kind for one in targets or (None,)])
    require_no_args(args, path)
    return load_saved(path, whole=whole) if content is None else content_as_saved(content, Path(path), whole=whole)


def require_no_args(args: Sequence[str], path: str) -> None:
    """InputError if there are ``args`` for a file that is no Python."""
    if args:
        raise InputError(f"--args: {path} has the types of its arguments in it; {_ARGS_ARE}")


def default_target(source: object) -> str:
    """The paper's reference GPU; the CPU for a file that was lowered or compiled for it.

    Optimised HLO text with XLA's estimates names their clock, and so one of our targets.
    """
    from fusionlab.codegen.targets import target_of_clock
    from fusionlab.hlo.optimised.saved import HloFile
    from fusionlab.hlo.program import Program

    if isinstance(source, HloFile) and source.estimates_clock_ghz is not None:
        return target_of_clock(source.estimates_clock_ghz) or DEFAULT_TARGET
    return "cpu" if isinstance(source, Program | HloFile) and source.platform == "cpu" else DEFAULT_TARGET


def circumstances(
    source: object, *, target: str | None, no_cache: bool, progress: Callable[[str], None], **check: Any
) -> Circumstances:
    """``check`` are the limits of checks, those of ``options.check``. InputError for an unknown target."""
    from fusionlab.codegen.cache import default_cache
    from fusionlab.codegen.targets import load_target
    from fusionlab.study import Circumstances

    found = load_target(target or default_target(source))
    return Circumstances(found, cache=None if no_cache else default_cache(), progress=progress, **check)


def load_facts(
    options: Mapping[str, Any],
    *,
    target: str | None,
    progress: Callable[[str], None],
    no_cache: bool = True,
    several: bool = False,
    **check: Any,
) -> tuple[Source, Circumstances, list[Target]]:
    """The workload or the file's content in any form, the circumstances (with the first target), all targets.

    InputError for no target, and for ``several`` unless the command takes them.
    """
    from fusionlab.codegen.targets import load_target

    names = list(dict.fromkeys(filter(None, map(str.strip, (target or "").split(",")))))
    if target and not names:
        raise InputError("--target names no target")
    is_file = options["file"] is not None and options["model"] is None
    source: Source = load_file(options["file"], options["args"], *names) if is_file else load_source(**options)
    names = names or [default_target(source)]
    targets = [load_target(name) for name in names]
    if len(targets) > 1 and not several:
        raise InputError(f"--target {target}: this command takes one target")
    given = circumstances(source, target=names[0], no_cache=no_cache, progress=progress, **check)
    return source, given, targets


def require_program(source: Source, verb: str) -> Workload | Program:
    """``source``, unless it is optimised HLO text, which has no StableHLO: InputError."""
    from fusionlab.hlo.optimised.saved import HloFile

    if isinstance(source, HloFile):
        raise InputError(f"{source.path}: `{verb}` needs StableHLO, and this is XLA's optimised HLO")
    return source


def make(
    source: Source, given: Circumstances, *, dump: bool = False, fusions: bool = False, ptx: bool = False
) -> CompiledSource:
    """Lower and compile for ``given.target`` (from the cache if possible); HLO text is taken as it is.

    ``dump``, ``fusions`` and ``ptx`` are as for ``compile_program``. InputError for ``ptx`` where there is no code of
    kernels: for the CPU, and of HLO text.
    """
    from fusionlab.facts.interface import no_code
    from fusionlab.hlo.optimised.saved import HloFile
    from fusionlab.study import compiled, lower

    if ptx and (given.target.kind == "cpu" or isinstance(source, HloFile)):
        raise no_code(source.name, given.target.name)
    if isinstance(source, HloFile):
        return _of_text(source, given.target)
    program = lower(source, given)
    given.progress(f"compile: {program.name} ({program.ops:,} ops) for {given.target.name}")
    if fusions and given.target.kind == "cpu":
        given.progress("compile: with XLA's record of the CPU's fusions, in several times that of the compile alone")
    made = compiled(program, given, dump=dump, fusions=fusions, ptx=ptx)
    given.progress("compile: read from the cache" if made.from_cache else f"compile: {made.compile_s:.1f} s")
    return CompiledSource(program, made)


def make_all(
    source: Source, targets: Sequence[Target], given: Circumstances, *, ptx: bool = False
) -> list[CompiledSource]:
    """``make`` for each of ``targets``, in order. InputError for several targets of one optimised HLO text."""
    from fusionlab.hlo.optimised.saved import HloFile

    if isinstance(source, HloFile) and len(targets) > 1:
        named = ", ".join(target.name for target in targets)
        raise InputError(f"{source.path}: XLA compiled this text for one target; name that one, not {named}")
    return [make(source, replace(given, target=target), ptx=ptx) for target in targets]


def _of_text(source: HloFile, target: Target) -> CompiledSource:
    """The text as compiled for ``target``; InputError when it is for another platform.

    XLA's estimates in it are used only if they were made for the clock of ``target``.
    """
    from fusionlab.codegen.compile import Compiled, Memory

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
    vars(record)["module"] = source.module  # the cached property: it is already parsed
    if own:
        return CompiledSource(None, record)
    differs = f"XLA's estimates in the text are for a clock of {clock:.3f} GHz, which is not that of {target.name}"
    return CompiledSource(None, record, (f"{differs}: they are not used",))
