"""Check two programs in a process of its own, under time and memory limits; it always returns a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, astuple, replace
from typing import TYPE_CHECKING, Any

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.subprocesses import ProcessFailed, call

if TYPE_CHECKING:
    from fusionlab.equivalence.samples import Sample

TIME_LIMIT_S = 300.0


def check_files(
    original: Program,
    rewritten: Program,
    *,
    samples: Iterable[Sample] | None = None,
    oracles: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> Verdict:
    """Compare two programs at their own shapes; ``not-checked`` with the reason when a limit is exceeded.

    ``samples`` are used instead of random ones; ``oracles`` as in ``check_programs``.

    The memory limit is three quarters of the machine's memory, so that a check cannot take the machine down.
    """
    given = None if samples is None else [vars(sample) for sample in samples]
    programs = astuple(original), astuple(rewritten)
    try:
        verdict, found = call(check, *programs, given, oracles, limit_s=time_limit_s, memory_limited=True)
    except ProcessFailed as error:
        if error.exit_code is None:
            return Verdict("not-checked", reason=f"the check did not finish within {time_limit_s:g} s")
        return Verdict("not-checked", reason=f"the check failed (exit {error.exit_code}): {str(error)[:200]}")
    if found is not None:
        found = Counterexample(**{**found, "arrays": tuple(found["arrays"]), "index": tuple(found["index"])})
    return replace(Verdict.from_json(verdict), counterexample=found)


def check(
    original: list[Any], rewritten: list[Any], samples: list[dict[str, Any]] | None, oracles: bool
) -> tuple[Any, Any]:
    """The verdict on the two programs, and the inputs of the worst walker of a difference, as JSON."""
    from fusionlab import quiet_start

    quiet_start.load_jax()
    from fusionlab.equivalence.check import check_programs

    given = None if samples is None else [_sample(**one) for one in samples]
    verdict = check_programs(Program(*original), Program(*rewritten), given, oracles=oracles)
    worst = verdict.counterexample
    return verdict.to_json(), None if worst is None else {**asdict(worst), "arrays": worst.arrays}


def _sample(arrays: list[Any], kinds: list[str], **facts: Any) -> Sample:
    from fusionlab.equivalence.samples import Sample

    return Sample(arrays=tuple(arrays), kinds=tuple(kinds), **facts)
