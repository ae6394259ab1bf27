"""A pipeline taken apart: one step for every application of every elementary pass, with the program before and after.

fuse-jvp-replay   -->   licm (1st loop), licm (2nd), batch-replay (1st loop), ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Applied, Declined, Pass, Setting, applications, faults
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline, run_pipeline

Judge = Callable[[Program, Program], Verdict]
"""Returns the verdict on whether two programs compute the same."""


@dataclass(frozen=True)
class Step:
    """Application number ``number`` (from 1) of ``of`` applications of ``by``, at ``location``.

    ``before`` and ``after`` are the programs around it. A pass that cannot be taken apart is one step with all its
    applications, and ``number`` is 0.
    """

    by: Pass
    number: int
    of: int
    location: str
    before: Program
    after: Program

    def __str__(self) -> str:
        which = f"application {self.number} of {self.of}" if self.number else f"all {self.of} applications together"
        return f"{self.by}, {which}, at {self.location or 'no scope'}"


def steps_of(program: Program, passes: Sequence[Pass], setting: Setting) -> tuple[list[Step], tuple[Declined, ...]]:
    """The steps from ``program`` to the result of ``passes``, and the passes that failed.

    A pass that chooses among others counts as its choice.
    """
    events = run_pipeline(program, passes, setting).events
    failed = [*faults(events)]
    elementary = resolved_pipeline(events)
    found: list[Step] = []
    for pass_ in parse_pipeline(elementary) if elementary else ():
        with applications() as made:
            result = run_pipeline(program, (pass_,), setting)
        failed += faults(result.events)
        found += _steps_of_pass(pass_, program, result.program, result.applied, made)
        program = result.program
    return found, tuple(failed)


def _steps_of_pass(
    pass_: Pass, before: Program, after: Program, applied: Sequence[Applied], made: Sequence[bytes]
) -> list[Step]:
    if not applied:
        return []
    # Some applications were dropped again, and it is unknown which; or those made are parts of a program.
    if len(made) != len(applied) or before.has_collectives:
        return [Step(pass_, 0, len(applied), applied[0].location, before, after)]
    steps = []
    for number, (event, bytecode) in enumerate(zip(applied, made, strict=True), 1):
        reached = after if number == len(applied) else replace(after, bytecode=bytecode)
        steps.append(Step(pass_, number, len(applied), event.location, before, reached))
        before = reached
    return steps


@dataclass(frozen=True)
class JudgedSteps:
    """The verdicts on the steps, in order, up to the first whose programs are different."""

    steps: tuple[tuple[Step, Verdict], ...]

    @property
    def wrong(self) -> tuple[Step, Verdict] | None:
        """The step whose programs are different."""
        return next(((step, verdict) for step, verdict in self.steps if verdict.verdict == "different"), None)

    @property
    def unknown(self) -> tuple[tuple[Step, Verdict], ...]:
        """The steps on which there was no verdict."""
        return tuple((step, verdict) for step, verdict in self.steps if verdict.verdict == "not-checked")


def judge_steps(steps: Sequence[Step], judge: Judge) -> JudgedSteps:
    """Judge the steps in order, up to the first that differs.

    Each step is judged by itself, so that a small error is not hidden by that of an earlier step.
    """
    judged: list[tuple[Step, Verdict]] = []
    for step in steps:
        judged.append((step, judge(step.before, step.after)))
        if judged[-1][1].verdict == "different":
            break
    return JudgedSteps(tuple(judged))
