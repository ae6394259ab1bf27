"""Check two programs in a process of its own, under limits of time and memory; there always is a verdict.

The memory limit is three quarters of the machine's memory, so that a check cannot take the machine down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.exact.identity import Identity, compare_functions
from fusionlab.equivalence.few_walkers import resized
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program, program_view
from fusionlab.subprocesses import ProcessFailed, call

if TYPE_CHECKING:
    from fusionlab.equivalence.samples import Sample

TIME_LIMIT_S = 300.0


def check_files(
    original: Program,
    rewritten: Program,
    *,
    walkers: int | None = None,
    samples: Iterable[Sample] | None = None,
    oracles: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> Verdict:
    """Compare two programs; ``not-checked`` with the reason when a limit is exceeded.

    Programs that treat all walkers alike are compared at ``walkers`` of them, others at their own shapes, as are all
    without a number. ``samples`` are used instead of random ones; ``oracles`` as in ``check_programs``.
    """
    few = None if walkers is None else resized((original, rewritten), walkers)
    if few is not None:
        verdict = check_files(*few.programs, samples=samples, oracles=oracles, time_limit_s=time_limit_s)
        return replace(verdict, walkers=walkers)
    given = None if samples is None else [vars(sample) for sample in samples]
    programs = astuple(original), astuple(rewritten)
    try:
        verdict, found = call(check, *programs, given, oracles, limit_s=time_limit_s, memory_limited=True)
    except ProcessFailed as error:
        late = error.exit_code is None
        failed = f"the check failed (exit {error.exit_code}): {str(error)[:200]}"
        return Verdict("not-checked", reason=_late(time_limit_s) if late else failed)
    return replace(Verdict.from_json(verdict), counterexample=found and Counterexample.of(**found))


def check(
    original: list[Any], rewritten: list[Any], samples: list[dict[str, Any]] | None, oracles: bool
) -> tuple[Any, Any]:
    """The verdict on the two programs, and the inputs of the worst walker of a difference, as JSON."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    from fusionlab.equivalence.check import check_programs
    from fusionlab.equivalence.samples import Sample

    tuples = ("arrays", "kinds")
    given = (
        None if samples is None else [Sample(**one | {name: tuple(one[name]) for name in tuples}) for one in samples]
    )
    verdict = check_programs(Program(*original), Program(*rewritten), given, oracles=oracles)
    return verdict.to_json(), verdict.counterexample and vars(verdict.counterexample)


def compare_files(original: Program, rewritten: Program, time_limit_s: float) -> Identity:
    """The exact verdict on two programs; ``not-covered`` when it exceeds a limit or fails.

    Programs that treat all walkers alike are compared at a few walkers, others at their own shapes.
    """
    fault = "a fault of the check, not of the programs"
    try:
        found = call(compare, astuple(original), astuple(rewritten), limit_s=time_limit_s, memory_limited=True)
    except ProcessFailed as error:
        late = error.exit_code is None
        reason = (
            f"time limit: {_late(time_limit_s)}" if late else f"{fault} (exit {error.exit_code}): {str(error)[:200]}"
        )
        return Identity("not-covered", 0, 0, 1.0, reason)
    except OSError as error:  # no space for the files, or no process
        return Identity("not-covered", 0, 0, 1.0, f"{fault}: {error}")
    return Identity(**found)


def compare(original: list[Any], rewritten: list[Any]) -> dict[str, Any]:
    """The exact verdict on the two programs, as JSON."""
    programs: Sequence[Program] = [Program(*original), Program(*rewritten)]
    few = resized(programs)
    views = map(program_view, programs if few is None else few.programs)
    return replace(compare_functions(*views), walkers=None if few is None else few.walkers).to_json()


def _late(limit_s: float) -> str:
    return f"the check did not finish within {limit_s:g} s"
