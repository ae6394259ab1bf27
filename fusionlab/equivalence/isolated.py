"""The entry of both checks: two programs are compared in a process of its own, under limits of time and memory.

    check_files      in floating point (``check``), at as many walkers as are asked for
    compare_files    exactly (``exact.identity``), at two walkers (``few_walkers``)

There always is a verdict. Programs of several devices run on as many simulated CPU devices
(``jax_setup.provide_cpu_devices``); their float64 truth is one program (``codegen.raising.devices``). In floating point
the whole program comes first; where it exceeds a limit or cannot be raised, the check goes function by function
(``between_collectives``). The exact check of programs with collectives always does.

The memory limit is three quarters of the machine's memory, so that a check cannot take the machine down. The exact
check and that in floating point run at once (``study.judge``, ``fusionlab.optimize``), and have it each.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

from fusionlab.equivalence.between_collectives import (
    BY_FUNCTION,
    OtherAround,
    functions_between,
    identity_of_all,
    verdict_of_all,
)
from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.exact.identity import Identity, compare_functions
from fusionlab.equivalence.few_walkers import CHECKED_WALKERS, resized
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program, program_view
from fusionlab.subprocesses import ProcessFailed, call

if TYPE_CHECKING:
    from fusionlab.equivalence.samples import Sample

TIME_LIMIT_S = 300.0
_OUT_OF_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|MemoryError|(?i:out of memory)|bad_alloc")


def check_files(
    original: Program,
    rewritten: Program,
    *,
    walkers: int | None = None,
    samples: Iterable[Sample] | None = None,
    oracles: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
    began: float | None = None,
) -> Verdict:
    """Compare two programs; ``not-checked`` with the reason when a limit is exceeded.

    The time limit counts from ``began`` on the monotonic clock; None: from now.

    Programs that treat all walkers alike are compared at ``walkers`` of them, others at their own shapes, as are all
    without a number. Those of several devices run on as many of the CPU; where that exceeds a limit, or one of their
    ops has no rule for raising, they are compared function by function between their collectives. ``samples`` are used
    instead of random ones; ``oracles`` as in ``check_programs``.
    """
    began = time.monotonic() if began is None else began
    few = None if walkers is None else resized((original, rewritten), walkers)
    if few is not None:
        verdict = check_files(*few.programs, samples=samples, oracles=oracles, time_limit_s=time_limit_s, began=began)
        return replace(verdict, walkers=walkers)
    given = None if samples is None else [vars(sample) for sample in samples]
    programs = astuple(original), astuple(rewritten)
    try:
        verdict, found = call(check, *programs, given, oracles, limit_s=_left(time_limit_s, began), memory_limited=True)
    except ProcessFailed as error:
        failed = f"the check failed (exit {error.exit_code}): {str(error)[:200]}"
        why = _late(time_limit_s) if error.exit_code is None else failed
        by_function = error.exit_code is None or _OUT_OF_MEMORY.search(str(error)) is not None
    else:
        if verdict is not None:
            return replace(Verdict.from_json(verdict), counterexample=found and Counterexample.of(**found))
        why, by_function = f"one of the programs cannot be raised: {found}", True
    if by_function and original.has_collectives and samples is None:
        return _check_functions(original, rewritten, why, time_limit_s)
    return Verdict("not-checked", reason=why)


def _check_functions(original: Program, rewritten: Program, why: str, time_limit_s: float) -> Verdict:
    """The verdict by function between collectives, where there is none on the whole for the reason ``why``; all of them
    together within the limit."""
    began = time.monotonic()
    try:
        pairs = functions_between(original, rewritten).values()
    except OtherAround as reason:
        return Verdict("not-checked", reason=f"of the whole, {why}; {reason}")
    found = [check_files(*pair, walkers=CHECKED_WALKERS, time_limit_s=time_limit_s, began=began) for pair in pairs]
    return verdict_of_all(found, f"of the whole, {why}: compared {BY_FUNCTION}")


def check(
    original: list[Any], rewritten: list[Any], samples: list[dict[str, Any]] | None, oracles: bool
) -> tuple[Any, Any]:
    """The verdict on the two programs, and the inputs of the worst walker of a difference, as JSON; where one of
    them cannot be raised, None and the reason."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    from fusionlab.codegen.raising import RaiseError
    from fusionlab.equivalence.check import check_programs
    from fusionlab.equivalence.samples import Sample

    programs = Program(*original), Program(*rewritten)
    if (devices := max(program.devices for program in programs)) > 1:
        jax_setup.provide_cpu_devices(devices, to_run=True)
    tuples = ("arrays", "kinds")
    given = (
        None if samples is None else [Sample(**one | {name: tuple(one[name]) for name in tuples}) for one in samples]
    )
    try:
        verdict = check_programs(*programs, given, oracles=oracles)
    except RaiseError as error:
        return None, str(error)
    return verdict.to_json(), verdict.counterexample and vars(verdict.counterexample)


def compare_files(
    original: Program,
    rewritten: Program,
    time_limit_s: float,
    stop: threading.Event | None = None,
    *,
    began: float | None = None,
) -> Identity:
    """The exact verdict on two programs; ``not-covered`` when it exceeds a limit or fails, or ``stop`` is set.

    The time limit counts from ``began`` on the monotonic clock; None: from now.

    Programs that treat all walkers alike are compared at a few walkers, others at their own shapes; those of several
    devices function by function between their collectives.
    """
    fault = "a fault of the check, not of the programs"
    try:
        programs = astuple(original), astuple(rewritten)
        left_s = _left(time_limit_s, time.monotonic() if began is None else began)
        found = call(compare, *programs, limit_s=left_s, memory_limited=True, stop=stop)
    except ProcessFailed as error:
        if error.exit_code is None:
            reason = f"time limit: {_late(time_limit_s)}"
        elif _OUT_OF_MEMORY.search(str(error)):
            reason = "memory limit: the check needs more than three quarters of the machine's memory"
        else:
            reason = f"{fault} (exit {error.exit_code}): {str(error)[:200]}"
        return Identity("not-covered", 0, 0, 1.0, reason)
    return Identity(**found)


def compare(original: list[Any], rewritten: list[Any]) -> dict[str, Any]:
    """The exact verdict on the two programs, as JSON."""
    programs = Program(*original), Program(*rewritten)
    if not any(program.has_collectives for program in programs):
        return _compare(*programs).to_json()
    try:
        pairs = functions_between(*programs).values()
    except OtherAround as reason:
        return Identity("not-covered", 0, 0, 1.0, str(reason)).to_json()
    return identity_of_all([_compare(*pair) for pair in pairs]).to_json()


def _compare(*programs: Program) -> Identity:
    few = resized(programs)
    views = map(program_view, programs if few is None else few.programs)
    return replace(compare_functions(*views), walkers=None if few is None else few.walkers)


def _left(limit_s: float, began: float) -> float:
    return max(limit_s - (time.monotonic() - began), 0.0)


def _late(limit_s: float) -> str:
    return f"the check did not finish within {limit_s:g} s"
