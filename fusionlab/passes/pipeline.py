"""Pipelines as text and as passes: ``"licm,batch-replay{chunk=10}"``; parse, print and run."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from fusionlab.bytesize import ByteSize
from fusionlab.codegen.between_collectives import divided, parts, with_parts
from fusionlab.errors import CompileError, InputError, one_line, unknown
from fusionlab.hlo import ops
from fusionlab.hlo.program import Program
from fusionlab.host_settings import one_blas_thread, own_settings, young_only
from fusionlab.passes.catalogue import PIPELINES, SEARCHED, find_pass
from fusionlab.passes.interface import Declined, Event, Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal

_log = logging.getLogger(__name__)

Observer = Callable[[Pass, Result, float], None]
"""Called after each pass with the pass, its result and the seconds it took."""

_ITEM = re.compile(r"\s*((?:[^{},]+\.py:)?[A-Za-z0-9_.:/-]+)\s*(?:\{([^{}]*)\})?\s*(,|$)")


def parse_pipeline(text: str) -> tuple[Pass, ...]:
    """The passes that ``text`` names; InputError for an unknown pass or option, a bad value, or bad punctuation."""
    passes: list[Pass] = []
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None:
            raise InputError(f"pipeline {text!r}: cannot read {text[position:]!r}; write a,b{{option=value}}")
        passes += _named(match[1], match[2])
        position = match.end()
        if match[3] == "," and position >= len(text):
            raise InputError(f"pipeline {text!r} ends with a comma")
    if not passes:
        raise InputError("the pipeline is empty; name at least one pass")
    return tuple(passes)


def print_pipeline(passes: Sequence[Pass]) -> str:
    """The text that ``parse_pipeline`` reads back."""
    return ",".join(map(str, passes))


def run_pipeline(
    program: Program, passes: Sequence[Pass], setting: Setting, observer: Observer | None = None
) -> Result:
    """Run the passes in order; the events of all of them. A pass that fails leaves the program to the next one."""
    import time

    events: list[Event] = []
    for pass_ in passes:
        started = time.perf_counter()
        result = _run(pass_, program, setting)
        if observer is not None:
            observer(pass_, result, time.perf_counter() - started)
        program = result.program
        events += result.events
    return Result(program, tuple(events))


def _run(pass_: Pass, program: Program, setting: Setting) -> Result:
    """The pass's result; a fault of the pass is an event, with its traceback in the log.

    InputError and CompileError are the user's and XLA's, and propagate.
    """
    try:
        return run_pass(pass_, program, setting)
    except (InputError, CompileError):
        raise
    except Exception as error:  # the one place where a fault of a pass surfaces: the program stays as it was
        _log.exception("pass %s failed on %s", pass_, program.name)
        return Result(program, (Refusal(Ground.FAULT, one_line(error)).of(pass_.name, ""),))


@own_settings()
@young_only()
@one_blas_thread()
def run_pass(pass_: Pass, program: Program, setting: Setting) -> Result:
    """The pass on ``program``; of one with collectives, which stay as they are, on each function between them. Where
    there is no such function, on the whole program, for its refusals. What the pass raises propagates."""
    if not program.has_collectives:
        return pass_.run(program, setting)
    whole = divided(program)
    results = {name: pass_.run(part, setting) for name, part in parts(whole).items()}
    if not results:
        return pass_.run(program, setting)
    changed = {name: result.program for name, result in results.items() if result.applied}
    events = tuple(event for result in results.values() for event in result.events)
    return Result(with_parts(whole, changed) if changed else program, events)


def resolved_pipeline(events: Sequence[Event]) -> str:
    """The pipeline with every choice made explicit, so that it can be repeated at another number of walkers."""
    return ",".join(dict.fromkeys(event.resolved for event in events if hasattr(event, "resolved")))


def why_nothing_applied(events: Sequence[Event], original: Program) -> str:
    """Of each pass that left ``original`` alone the reason that it tells first, the number of its others, and the cause
    with what to write instead, once where several have the same.

    A pass over loops tells that of the loop that resembles a replay most (``Replay.likeness``) first.
    """
    refusals: dict[str, list[Declined]] = {}
    for event in events:
        if isinstance(event, Declined):
            refusals.setdefault(event.pass_name, []).append(event)
    reasons = dict.fromkeys(
        part for name, found in refusals.items() for part in (f"{name}: {_first_of(found)}", found[0].explained)
    )
    if not reasons and ops.WHILE.name not in str(original.parse()):
        return "there is no loop in the program"
    return "; ".join(filter(None, reasons)) or "no pass found anything to rewrite"


def _first_of(refusals: Sequence[Declined]) -> str:
    first, others = refusals[0], len(refusals) - 1
    return first.reason + (f", at {first.location}" * bool(first.location)) + (f" (and {others} more)" * bool(others))


def _named(name: str, options: str | None) -> tuple[Pass, ...]:
    """The pass called ``name``, or those that the preset of this name stands for."""
    if name == SEARCHED:
        raise InputError(
            f"{SEARCHED} is searched, and stands last and without options: apply --pipeline 'a,{SEARCHED}'"
        )
    if name not in PIPELINES:
        return (_make(name, options or ""),)
    if options:
        raise InputError(f"{name} stands for {PIPELINES[name]}: give options to these")
    return parse_pipeline(PIPELINES[name])


def _make(name: str, options: str) -> Pass:
    class_ = find_pass(name)
    fields = {field.name: field for field in dataclasses.fields(class_)}  # type: ignore[arg-type]
    name = class_.name  # of an alias, the present one
    values: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in options.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        key = key.replace("-", "_")
        if key not in fields:
            raise unknown(f"option of {name}", key, fields) if fields else InputError(f"{name} has no options")
        if not equals or not value:
            raise InputError(f"{name}: option {key} needs a value, {key}=...")
        values[key] = _convert(f"{name}: option {key}", fields[key].default, value)
    return class_(**values)


def _convert(where: str, default: Any, text: str) -> Any:
    if isinstance(default, ByteSize):
        return ByteSize.parse(text)
    if isinstance(default, bool):
        if text not in ("true", "false"):
            raise InputError(f"{where}: {text!r} is neither true nor false")
        return text == "true"
    if isinstance(default, int):
        if not re.fullmatch(r"-?\d+", text):
            raise InputError(f"{where}: {text!r} is not an integer")
        return int(text)
    if isinstance(default, float):
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{where}: {text!r} is not a number") from None
    return text
