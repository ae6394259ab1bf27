"""A program compiled by another version of JAX, in a process with XLA alone (``only_xla``), and read here."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from jaxlib.mlir import ir

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.compile import (
    FUSION_DUMP,
    NO_AUTOTUNING,
    Compiled,
    Memory,
    compiled_of_dump,
    options_for_ptx,
)
from fusionlab.codegen.targets import Target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.optimised.buffers import ARGUMENT, OUTPUT, TEMP, allocated_bytes
from fusionlab.hlo.program import Program
from fusionlab.hlo.resize import view_of_copies
from fusionlab.hlo.view import child_location, inner_operations, name_entry_main, twins_of
from fusionlab.store import sources_digest
from fusionlab.subprocesses import Ended, Running
from fusionlab.versions import only_xla
from fusionlab.versions.environments import JaxEnvironment, numbers

Options = Mapping[str, str | int | bool]
_SCRIPT = Path(only_xla.__file__).resolve()
FULL_CONFIGURATION: dict[str, str | int | bool] = {"xla_dump_full_hlo_config": True}
"""Dumps every flag that is not zero; JAX 0.4 cannot."""
_LIMIT_S = 1200.0
_UNKNOWN = Memory(0, 0, 0, 0)
_UNKNOWN_TO_OLD = "sdy.sharding_rule"
"""An attribute that says how devices share a library call: of no meaning on one device, unknown before JAX 0.7."""
_RANGE = re.compile(r"^(#loc\d* = loc\(\"(?:[^\"\\]|\\.)*\":\d+:\d+) to \d*:\d+\)", re.MULTILINE)
"""A location with an end, which JAX 0.4.35 does not read."""
_BOOLEANS = re.compile(r'dense<"0x([0-9A-F]+)"> : tensor<((?:\d+x)+)i1>')
"""A large constant of booleans, whose bytes are of another form in JAX 0.8 and before."""
_WHOLE_NAMES = (0, 8)
"""From this JAX on, XLA puts the name of a call before the names of the ops in its function. Before, these have lost
their scopes, and so their phase and stage."""
_IN_ONE_PROCESS = 8
"""Compiles of one process, whose dumps lie in the folder at once: some hundred MB for a large program."""


@dataclass(frozen=True)
class Made:
    """One compile: the record, or why there is none. ``folder`` has the dump, while it is kept; ``plugin`` is the
    folder of the CUDA plugin."""

    compiled: Compiled | None
    reason: str
    folder: Path
    plugin: Path = Path()


def require_comparable(program: Program, target: Target) -> None:
    """InputError for a program of several devices, and for a target without a GPU's spec."""
    if target.kind != "cuda" or not target.spec:
        raise InputError(f"target {target.name}: versions are compared for a GPU with a spec, such as a100")
    if program.devices > 1 or program.has_collectives:
        raise InputError(f"{program.name}: a program of several devices; versions are compared on one device")


def module_text(program: Program, *, whole_names: bool = False) -> str:
    """``program``, of one device, as text that JAX 0.4.35 and all later versions read.

    ``whole_names``: every op has its whole name stack, for an XLA that does not join it to that of the call.
    """
    module = program.parse()
    name_entry_main(module)
    if whole_names:
        _write_whole_names(module)
    for operation in inner_operations(module.operation):
        if _UNKNOWN_TO_OLD in operation.attributes:
            del operation.attributes[_UNKNOWN_TO_OLD]
    text = _RANGE.sub(r"\1)", str(module.operation.get_asm(enable_debug_info=True)))
    return _BOOLEANS.sub(_listed_booleans, text)


def _write_whole_names(module: ir.Module) -> None:
    """Give every op of ``module`` the name stack of its calls and its own. Each call gets its own copy of its function,
    and has no name: what is inlined is the same. A module with kernels stays as it is: copies would be of their
    twins."""
    if twins_of(module):
        return
    view = view_of_copies(module)
    calls = {call: None for node in view.walk() for call in node.calls}
    with module.context:
        for node in view.walk():
            operation = node.operation
            operation.location = ir.Location.name(node.scope, child_location(operation) or operation.location)
        for call in calls:
            call.location = ir.Location.unknown()  # the name of a frame would be joined, too


def _listed_booleans(found: re.Match[str]) -> str:
    """The constant with its elements as words."""
    dims = [int(dim) for dim in found[2].split("x") if dim]
    content, count = bytes.fromhex(found[1]), math.prod(dims)
    if len(content) < count:  # packed: the first element is the lowest bit
        content = bytes(content[at // 8] >> at % 8 & 1 for at in range(count))
    parts = ["true" if one else "false" for one in content]
    for dim in reversed(dims):
        parts = [f"[{', '.join(parts[at : at + dim])}]" for at in range(0, len(parts), dim)]
    return f"dense<{parts[0]}> : tensor<{found[2]}i1>"


def compile_apart(
    program: Program, target: Target, where: JaxEnvironment, *, ptx: bool = False, cache: CompileCache | None = None
) -> Compiled:
    """``program`` compiled for an absent GPU by the JAX of that environment.

    ``ptx``: the code of kernels, which JAX 0.11 writes on request alone. CompileError says why it cannot be compiled.
    """
    options = default_options(where, ptx=ptx)
    named = {"names": "whole"} if _needs_whole_names(where) else {}
    key = "" if cache is None else cache.key(program, target, {**options, **named, "apart": _digest()}, where.version)
    if cache is not None and (found := cache.load(key, program, target)) is not None:
        return found
    with compiles(program, target, where, [options]) as made:
        first = next(made)
    if first.compiled is None:
        raise CompileError(first.reason)
    if cache is not None:
        cache.store(key, first.compiled)
    return first.compiled


def _needs_whole_names(where: JaxEnvironment) -> bool:
    return numbers(where.version) < _WHOLE_NAMES


def default_options(where: JaxEnvironment, *, ptx: bool = False) -> dict[str, str | int | bool]:
    """The options of a compile: no autotuning, XLA's decisions about fusions, and ``ptx`` if asked for."""
    return {**NO_AUTOTUNING, **FUSION_DUMP["cuda"], **(options_for_ptx(numbers(where.version)) if ptx else {})}


@contextmanager
def compiles(
    program: Program, target: Target, where: JaxEnvironment, options: Sequence[Options]
) -> Iterator[Iterator[Made]]:
    """A context with the compiles of ``program`` with each of ``options``, in their order; the dumps are kept in it.

    Each process compiles a few, or until XLA ends it, and the next goes on behind that compile.
    """
    with tempfile.TemporaryDirectory(prefix="fusionlab-versions-") as name:
        folder = Path(name)
        request = {
            "module": module_text(program, whole_names=_needs_whole_names(where)),
            "spec": target.spec,
            "compiles": [dict(one) for one in options],
            "droppable": [*NO_AUTOTUNING, *FULL_CONFIGURATION],
        }
        (folder / "request.json").write_text(json.dumps(request), "utf-8")
        yield _made(program, target, where, folder, len(options))


def _made(program: Program, target: Target, where: JaxEnvironment, folder: Path, count: int) -> Iterator[Made]:
    for number in range(count):
        place = folder / str(number)
        if not (place / "result.json").exists():
            _run(where, folder, range(number, min(number + _IN_ONE_PROCESS, count)))
        yield _read(program, target, place)
        shutil.rmtree(place, ignore_errors=True)


def _run(where: JaxEnvironment, folder: Path, asked: range) -> None:
    """The compiles of those numbers; where XLA ends the process in the first of them, that is its result."""
    place = folder / str(asked.start)
    command = [str(where.python), "-P", "-B", str(_SCRIPT), str(folder), str(asked.start), str(asked.stop)]
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THIS_PROCESS}
    ended = Running(command, environment, _LIMIT_S).wait()
    if not (place / "result.json").exists():
        place.mkdir(exist_ok=True)
        (place / "result.json").write_text(json.dumps({"error": _ending(where.version, ended)}), "utf-8")


_OF_THIS_PROCESS = ("XLA_FLAGS", "JAX_PLATFORMS", "PYTHONPATH", "PYTHONHOME", "JAX_COMPILATION_CACHE_DIR")
"""Variables that would change what another version does."""


def _ending(version: str, ended: Ended) -> str:
    """Why a process has no result: XLA ends it by a signal or a failed check, and Python by an error."""
    if ended.exit_code is None:
        return f"no result within {_LIMIT_S:g} s"
    said = [line.strip() for line in ended.errors.splitlines() if line.strip()]
    checks = [line for line in said if "Check failed" in line or line.startswith("F0")]
    why = (checks or said or ["no message"])[-1][:300]
    if checks or ended.exit_code < 0:
        return f"XLA ended the process (exit code {ended.exit_code}): {why}"
    return f"the process of JAX {version} failed: {why}"


def _read(program: Program, target: Target, place: Path) -> Made:
    result = json.loads((place / "result.json").read_text("utf-8"))
    if "error" in result:
        return Made(None, str(result["error"]), place)
    text = (place / "hlo.txt").read_text("utf-8", "replace") if result["hlo"] else ""
    known = result["memory"]
    compiled = compiled_of_dump(
        place,
        name=program.name,
        target=target,
        optimized_hlo=text,
        memory=_UNKNOWN if known is None else Memory(**known),
        compile_s=float(result["compile_s"]),
        options=result["options"],
        versions=result["versions"],
    )
    if known is None:
        compiled = replace(compiled, memory=_memory_of(compiled.buffer_assignment))
    return Made(compiled, "", place, Path(result["plugin"]))


def _memory_of(assignment: str) -> Memory:
    """The totals of XLA's buffer assignment; an output that reuses an argument is of the argument."""
    found = allocated_bytes(assignment)
    return Memory(found.get(ARGUMENT, 0), found.get(OUTPUT, 0), found.get(TEMP, 0), 0)


def _digest() -> str:
    return sources_digest(_SCRIPT.parent, (_SCRIPT.name,))
