"""The search of ``--pipeline best``: best first over pipelines that grow by one pass.

The program as it is, the presets and the Laplacian's rewrites are tried first. Then pipelines are continued by every
pass that may follow: the empty one first, after it the best by the objective among those that are worth it (on the
Pareto front, or among the few best). A program is rewritten once per pipeline, from that of its prefix; a pass that
applies nothing, and a pipeline whose program computes the same as another's, are not compiled. Failures are recorded
with their reason.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fusionlab.bytesize import ByteSize
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Pass, Setting
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.search import space
from fusionlab.search.costs import OBJECTIVES, Costs, Measure, TrialFailed, front
from fusionlab.search.trials import Trial, TrialStore

_WIDTH = 3
"""The number of best pipelines that are continued even if not on the front."""
_LEAST_FOR_THE_FIRST_S = 600.0
"""Seconds that the original program always gets: every trial is compared with it."""


@dataclass(frozen=True)
class Goal:
    """A search's goal: ``objective`` of OBJECTIVES, ``memory_budget`` on temp bytes (None: none) and time limit."""

    objective: str = "time"
    memory_budget: ByteSize | None = None
    time_limit_s: float = 600.0
    seed: int = 0

    def fits(self, costs: Costs) -> bool:
        """True if a program is within the budget."""
        return self.memory_budget is None or costs.temp_bytes <= self.memory_budget

    def cost(self, costs: Costs) -> float:
        """The objective's value, to be minimised; an unknown time is infinite."""
        figure = OBJECTIVES[self.objective](costs)
        return float("inf") if figure is None else figure

    def rank(self, trial: Trial) -> tuple[Any, ...]:
        """Sort key, smaller is better: within the budget first, then the objective, then the other costs."""
        assert trial.costs is not None
        others = tuple(measure(trial.costs) or 0 for measure in OBJECTIVES.values())
        return not self.fits(trial.costs), self.cost(trial.costs), *others, len(trial.pipeline), trial.pipeline


@dataclass(frozen=True)
class SearchResult:
    """The result of a search. ``trials`` are in the order tried; ``complete`` is True when nothing was left to try."""

    goal: Goal
    best: Trial
    front: tuple[Trial, ...]
    trials: tuple[Trial, ...]
    complete: bool
    seconds: float

    def count(self, status: str) -> int:
        """The number of trials with that outcome."""
        return sum(trial.status == status for trial in self.trials)

    def to_json(self) -> dict[str, Any]:
        """The ``search`` part of the document of ``apply``."""
        goal = self.goal
        return {
            "objective": goal.objective,
            "memory_budget_bytes": None if goal.memory_budget is None else int(goal.memory_budget),
            "time_limit_s": goal.time_limit_s,
            "seed": goal.seed,
            "pipeline": self.best.pipeline,
            "front": [asdict(trial) for trial in self.front],
            "trials": [asdict(trial) for trial in self.trials],
            "complete": self.complete,
            "seconds": self.seconds,
        }


def search(
    program: Program,
    fixed: Sequence[Pass],
    goal: Goal,
    setting: Setting,
    measure: Measure,
    store: TrialStore,
    progress: Callable[[str], None],
) -> SearchResult:
    """Search the pipelines that begin with ``fixed``; CompileError when not even ``fixed`` alone can be measured.

    InputError: no time is known for the target, and ``goal`` asks for the least; nothing fits the memory budget.
    """
    return _Search(program, tuple(fixed), goal, setting, measure, store, progress).run()


class _OutOfTime(Exception):
    """The time is up: no further trial is started."""


class _Search:
    def __init__(
        self,
        program: Program,
        fixed: tuple[Pass, ...],
        goal: Goal,
        setting: Setting,
        measure: Measure,
        store: TrialStore,
        progress: Callable[[str], None],
    ) -> None:
        self._fixed, self._goal, self._setting = fixed, goal, setting
        self._measure, self._store, self._progress = measure, store, progress
        self._programs: dict[tuple[Pass, ...], Program] = {(): program}
        self._trials: dict[tuple[Pass, ...], Trial] = {}
        self._by_content: dict[str, Trial] = {}
        self._moves = space.moves()
        self._random = random.Random(goal.seed)
        self._started = time.monotonic()

    def run(self) -> SearchResult:
        complete = False
        root = self._try(self._fixed)
        self._require_usable(root)
        try:
            for pipeline in space.beginnings():
                self._try_growing(pipeline)
            self._continue_best()
            complete = True
        except _OutOfTime:
            pass
        measured = [trial for trial in self._trials.values() if trial.status == "measured" and trial.costs is not None]
        fitting = [trial for trial in measured if self._fits(trial)]
        if not fitting:
            least = min(trial.costs.temp_bytes for trial in measured if trial.costs)
            raise InputError(
                f"none of {len(measured)} programs fits the memory budget of {self._goal.memory_budget}; "
                f"the smallest needs {ByteSize(least)}"
            )
        fitting.sort(key=self._goal.rank)
        on_front = tuple(fitting[at] for at in front([trial.costs for trial in fitting if trial.costs]))
        seconds = time.monotonic() - self._started
        return SearchResult(self._goal, fitting[0], on_front, tuple(self._trials.values()), complete, seconds)

    def _require_usable(self, root: Trial) -> None:
        if root.costs is None:
            name = root.pipeline or "the program as it is"
            raise CompileError(f"{name} could not be measured, there is nothing to compare with: {root.reason}")
        if OBJECTIVES[self._goal.objective](root.costs) is None:
            raise InputError(
                f"objective {self._goal.objective}: this target has no model of time; "
                "say --objective launches, bytes or temp"
            )

    def _fits(self, trial: Trial) -> bool:
        return trial.costs is not None and self._goal.fits(trial.costs)

    def _left_s(self) -> float:
        return self._goal.time_limit_s - (time.monotonic() - self._started)

    def _try_growing(self, pipeline: Sequence[Pass]) -> None:
        """Try ``pipeline`` without the passes that apply nothing; its prefixes are not measured."""
        grown = self._fixed
        for pass_ in pipeline:
            if not space.allowed(grown, pass_):
                continue
            longer = (*grown, pass_)
            trial = self._trials.get(longer) or self._store.load(print_pipeline(longer))
            if trial is None:
                self._require_time()
                trial = self._rewrite(longer)
            if trial is None or trial.status in ("measured", "same"):
                grown = longer
            else:
                self._note(longer, trial)
        self._try(grown)

    def _continue_best(self) -> None:
        """Extend pipelines by one pass until none worth extending is left."""
        done: set[tuple[Pass, ...]] = set()
        following: tuple[Pass, ...] | None = self._fixed
        while following is not None:
            done.add(following)
            moves = [move for move in self._moves if space.allowed(following, move)]
            self._random.shuffle(moves)
            for move in moves:
                self._try((*following, move))
            following = next((pipeline for pipeline in self._worth_continuing() if pipeline not in done), None)

    def _worth_continuing(self) -> list[tuple[Pass, ...]]:
        """The pipelines of the front and the few best, in ascending order of rank."""
        measured = [(pipeline, trial) for pipeline, trial in self._trials.items() if trial.status == "measured"]
        measured.sort(key=lambda item: self._goal.rank(item[1]))
        on_front = set(front([trial.costs for _, trial in measured if trial.costs]))
        return [pipeline for at, (pipeline, _) in enumerate(measured) if at < _WIDTH or at in on_front]

    def _try(self, pipeline: tuple[Pass, ...]) -> Trial:
        """The trial of ``pipeline``: known, recorded, or made now; _OutOfTime when it is new and no time is left."""
        if pipeline in self._trials:
            return self._trials[pipeline]
        recorded = self._store.load(print_pipeline(pipeline))
        if recorded is not None:
            return self._note(pipeline, recorded)
        if pipeline != self._fixed:
            self._require_time()
        started = time.monotonic()
        trial = self._rewrite(pipeline) or self._measured(pipeline)
        return self._note(pipeline, replace(trial, seconds=time.monotonic() - started))

    def _require_time(self) -> None:
        if self._left_s() <= 0:
            raise _OutOfTime

    def _rewrite(self, pipeline: tuple[Pass, ...]) -> Trial | None:
        """Make the program of ``pipeline``; return the trial if that decides it."""
        text = print_pipeline(pipeline)
        try:
            before = self._program(pipeline[:-1]) if pipeline else self._programs[()]
            after = self._program(pipeline)
        except Exception as error:  # a pass that breaks is a finding, and must not end the search
            return Trial(text, "failed", reason=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        if len(pipeline) > len(self._fixed) and after.bytecode == before.bytecode:
            return Trial(text, "nothing")
        return None

    def _program(self, pipeline: tuple[Pass, ...]) -> Program:
        """The program of ``pipeline``, rewritten from that of its prefix."""
        if pipeline not in self._programs:
            self._programs[pipeline] = pipeline[-1].run(self._program(pipeline[:-1]), self._setting).program
        return self._programs[pipeline]

    def _measured(self, pipeline: tuple[Pass, ...]) -> Trial:
        text, program = print_pipeline(pipeline), self._programs[pipeline]
        content = content_digest(program)
        if content in self._by_content:
            known = self._by_content[content]
            return Trial(text, "same", known.costs, content, known.pipeline)
        self._progress(f"search: compiling {text or 'the program as it is'} ({program.ops:,} ops)")
        try:
            limit_s = max(self._left_s(), 1.0 if pipeline != self._fixed else _LEAST_FOR_THE_FIRST_S)
            return Trial(text, "measured", self._measure(program, limit_s), content)
        except TrialFailed as error:
            return Trial(text, "unfinished" if error.may_do_later else "failed", None, content, str(error))

    def _note(self, pipeline: tuple[Pass, ...], trial: Trial) -> Trial:
        """Record ``trial`` and report its outcome."""
        if pipeline in self._trials:
            return self._trials[pipeline]
        self._trials[pipeline] = trial
        if trial.status == "measured":
            self._by_content.setdefault(trial.content, trial)
        if not trial.recorded:
            self._store.store(trial)
        if trial.status != "nothing":
            self._progress(f"search {len(self._trials)}: {trial.pipeline or 'as it is'}: {_told(trial)}")
        return trial


def _told(trial: Trial) -> str:
    costs = trial.costs
    if trial.status == "same":
        return f"the same program as {trial.reason or 'without it'}"
    if costs is None:
        return f"{trial.status}: {trial.reason}"
    time_said = "" if costs.model_us is None else f", {costs.model_us / 1e3:,.2f} ms (model)"
    again = "recorded" if trial.recorded else f"{trial.seconds:.0f} s"
    return (
        f"{costs.launches:,} launches, {costs.bytes_accessed / 2**30:,.2f} GiB, "
        f"{costs.temp_bytes / 2**20:,.0f} MiB temp{time_said} ({again})"
    )
