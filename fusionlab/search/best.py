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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fusionlab.bytesize import ByteSize, size_words
from fusionlab.codegen.compile import versions
from fusionlab.codegen.targets import Target
from fusionlab.errors import CompileError, InputError, one_line
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.hlo.program import Program, without_view
from fusionlab.passes.interface import Pass, Setting
from fusionlab.passes.pipeline import print_pipeline, run_pass
from fusionlab.search import space
from fusionlab.search.costs import OBJECTIVES, Costs, Measure, TrialFailed, figures, front, time_order
from fusionlab.store import PACKAGE, Store, digest_of, sources_digest
from fusionlab.units import time_words

_WIDTH = 3
"""The number of best pipelines that are continued even if not on the front."""
_LEAST_FOR_THE_FIRST_S = 600.0
"""Seconds that the original program always gets: every trial is compared with it."""
_FORMAT = 2
_DECIDING = ("hlo", "codegen", "passes", "equivalence", "ledger", "device_code", "search")
"""The sources that determine a pipeline's result: a changed pass is another pass."""


@dataclass(frozen=True)
class Trial:
    """``pipeline`` as text ("" is the original program) and its outcome.

    ``measured``: it was compiled, and has ``costs``. ``same``: its program equals that of pipeline ``reason``, and has
    its costs. ``nothing``: its last pass applied nothing. ``failed``: ``reason`` says why. ``unfinished``: timed out.
    """

    pipeline: str
    status: Literal["measured", "same", "nothing", "failed", "unfinished"]
    costs: Costs | None = None
    content: str = ""
    """The content digest of the rewritten program."""
    reason: str = ""
    seconds: float = 0.0
    recorded: bool = field(default=False, compare=False)
    """True if it was read from disk."""

    def __str__(self) -> str:
        """The outcome in one line."""
        costs = self.costs
        if self.status == "same":
            return f"the same program as {self.reason or 'without it'}"
        if costs is None:
            return f"{self.status}: {self.reason}"
        time = "" if costs.model_us is None else time_words(costs.model_us, at_least=costs.is_lower_bound)
        model = f", {time} (model)" if time else ""
        again = "recorded" if self.recorded else f"{self.seconds:.0f} s"
        return (
            f"{costs.launches:,} launches, {size_words(costs.bytes_accessed)}, "
            f"{size_words(costs.temp_bytes)} temp{model} ({again})"
        )


class TrialStore:
    """The trials of one program on one target, under ``search/`` in ``folder``, so that an interrupted search resumes;
    None keeps nothing. A file per trial, under program, target, pipeline, the versions of JAX and XLA, and the sources.
    """

    def __init__(self, folder: Path | None, program: Program, target: Target) -> None:
        self._entries = Store(folder / "search", title="the record of trials") if folder else None
        device = target.spec or target.name
        self._circumstances = [_FORMAT, program.digest, device, versions(), sources_digest(PACKAGE, _DECIDING)]

    def load(self, pipeline: str) -> Trial | None:
        """The stored trial of ``pipeline``, or None; an unreadable entry is ignored."""
        return self._entries.load(self._key(pipeline), _of_json) if self._entries else None

    def store(self, trial: Trial) -> None:
        """Store ``trial``, unless it is unfinished; a failed write only costs the time to try again."""
        if self._entries and trial.status != "unfinished":
            self._entries.store(self._key(trial.pipeline), asdict(trial))

    def _key(self, pipeline: str) -> str:
        return digest_of(*self._circumstances, pipeline)


def _of_json(record: dict[str, Any]) -> Trial:
    costs = None if record["costs"] is None else Costs(**record["costs"])
    return Trial(**{**record, "costs": costs, "recorded": True})


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

    def rank(self, trial: Trial) -> tuple[Any, ...]:
        """Sort key, smaller is better: within the budget first, then the objective, then the other costs."""
        assert trial.costs is not None
        found = figures(trial.costs)
        over_budget = not self.fits(trial.costs)
        return over_budget, found[self.objective], *found.values(), len(trial.pipeline), trial.pipeline


@dataclass(frozen=True)
class UndecidedTrial:
    """A program of which the model of time cannot say that the best one takes less: it is ``apart``, a share, from
    the best, and ``pair_error`` would be needed."""

    trial: Trial
    apart: float
    pair_error: float


@dataclass(frozen=True)
class SearchResult:
    """The result of a search. ``trials`` are in the order tried; ``complete`` is True when nothing was left to try."""

    goal: Goal
    best: Trial
    front: tuple[Trial, ...]
    trials: tuple[Trial, ...]
    complete: bool
    seconds: float

    @property
    def undecided(self) -> tuple[UndecidedTrial, ...]:
        """The undecided programs within the budget, the nearest first; none for another objective."""
        best = self.best.costs
        if self.goal.objective != "time" or best is None:
            return ()
        others = ((one, one.costs) for one in self.trials if one.status == "measured" and one is not self.best)
        near = [
            UndecidedTrial(one, found.apart, found.needed)
            for one, costs in others
            if costs is not None
            and self.goal.fits(costs)
            and (found := time_order(best, costs)) is not None
            and found.apart < found.needed
        ]
        return tuple(sorted(near, key=lambda one: one.apart))

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
            "undecided": [
                {"pipeline": one.trial.pipeline, "apart": one.apart, "pair_error": one.pair_error}
                for one in self.undecided
            ],
            "front": [asdict(trial) for trial in self.front],
            "trials": [asdict(trial) for trial in self.trials],
            "complete": self.complete,
            "seconds": self.seconds,
        }


class _OutOfTime(Exception):
    """The time is up: no further trial is started."""


@dataclass
class Search:
    """A search of the pipelines that begin with ``fixed``; ``progress`` gets a line per trial."""

    program: Program
    fixed: tuple[Pass, ...]
    goal: Goal
    setting: Setting
    measure: Measure
    store: TrialStore
    progress: Callable[[str], None]

    def __post_init__(self) -> None:
        self._programs: dict[tuple[Pass, ...], Program] = {(): self.program}
        self._trials: dict[tuple[Pass, ...], Trial] = {}
        self._by_content: dict[str, Trial] = {}
        self._random = random.Random(self.goal.seed)
        self._started = time.monotonic()

    def run(self) -> SearchResult:
        """The result; CompileError when not even ``fixed`` alone can be measured.

        InputError: no time is known for the target, and the goal asks for the least; nothing fits the memory budget.
        """
        self._require_usable(self._try(self.fixed))
        complete = False
        try:
            for pipeline in space.beginnings():
                self._try_growing(pipeline)
            self._continue_best()
            complete = True
        except _OutOfTime:
            pass
        measured = [(trial, costs) for _, trial, costs in self._ranked()]
        fitting = [(trial, costs) for trial, costs in measured if self.goal.fits(costs)]
        if not fitting:
            least = ByteSize(min(costs.temp_bytes for _, costs in measured))
            raise InputError(
                f"none of {len(measured)} programs fits the memory budget of {self.goal.memory_budget}; "
                f"the smallest needs {least}"
            )
        on_front = tuple(fitting[at][0] for at in front([costs for _, costs in fitting]))
        seconds = time.monotonic() - self._started
        return SearchResult(self.goal, fitting[0][0], on_front, tuple(self._trials.values()), complete, seconds)

    def _require_usable(self, root: Trial) -> None:
        if root.costs is None:
            name = root.pipeline or "the program as it is"
            raise CompileError(f"{name} could not be measured, there is nothing to compare with: {root.reason}")
        if OBJECTIVES[self.goal.objective](root.costs) is None:
            raise InputError(
                f"objective {self.goal.objective}: this target has no model of time; "
                "say --objective launches, bytes or temp"
            )

    def _ranked(self) -> list[tuple[tuple[Pass, ...], Trial, Costs]]:
        """The pipelines that were measured, the best first."""
        measured = [
            (pipeline, trial, trial.costs)
            for pipeline, trial in self._trials.items()
            if trial.status == "measured" and trial.costs is not None
        ]
        return sorted(measured, key=lambda one: self.goal.rank(one[1]))

    def _try_growing(self, pipeline: Sequence[Pass]) -> None:
        """Try ``pipeline`` without the passes that apply nothing; its prefixes are not measured."""
        grown = self.fixed
        for pass_ in pipeline:
            if not space.allowed(grown, pass_):
                continue
            longer = (*grown, pass_)
            trial = self._trials.get(longer) or self.store.load(print_pipeline(longer))
            if trial is None:
                self._require_time()
                trial = self._rewrite(longer)
            if trial is None or trial.status in ("measured", "same"):
                grown = longer
            else:
                self._note(longer, trial)
        self._try(grown)

    def _continue_best(self) -> None:
        """Extend pipelines by one pass until none worth extending is left: of the front, and the few best."""
        done: set[tuple[Pass, ...]] = set()
        every_move = space.moves()
        following: tuple[Pass, ...] | None = self.fixed
        while following is not None:
            done.add(following)
            moves = [move for move in every_move if space.allowed(following, move)]
            self._random.shuffle(moves)
            for move in moves:
                self._try((*following, move))
            ranked = self._ranked()
            worth_it = {*range(_WIDTH), *front([costs for _, _, costs in ranked])}
            following = next((one for at, (one, _, _) in enumerate(ranked) if at in worth_it and one not in done), None)

    def _try(self, pipeline: tuple[Pass, ...]) -> Trial:
        """The trial of ``pipeline``: known, recorded, or made now; _OutOfTime when it is new and no time is left."""
        if pipeline in self._trials:
            return self._trials[pipeline]
        recorded = self.store.load(print_pipeline(pipeline))
        if recorded is not None:
            return self._note(pipeline, recorded)
        if pipeline != self.fixed:
            self._require_time()
        started = time.monotonic()
        trial = self._rewrite(pipeline) or self._measured(pipeline)
        return self._note(pipeline, replace(trial, seconds=time.monotonic() - started))

    def _left_s(self) -> float:
        return self.goal.time_limit_s - (time.monotonic() - self._started)

    def _require_time(self) -> None:
        if self._left_s() <= 0:
            raise _OutOfTime

    def _rewrite(self, pipeline: tuple[Pass, ...]) -> Trial | None:
        """Make the program of ``pipeline``; return the trial if that decides it."""
        text = print_pipeline(pipeline)
        try:
            after = self._program(pipeline)
        except Exception as error:  # a pass that breaks is a finding, and must not end the search
            return Trial(text, "failed", reason=one_line(error))
        if len(pipeline) > len(self.fixed) and after.bytecode == self._program(pipeline[:-1]).bytecode:
            return Trial(text, "nothing")
        return None

    def _program(self, pipeline: tuple[Pass, ...]) -> Program:
        """The program of ``pipeline``, rewritten from that of its prefix."""
        if pipeline not in self._programs:
            before = without_view(self._program(pipeline[:-1]))
            self._programs[pipeline] = without_view(run_pass(pipeline[-1], before, self.setting).program)
        return self._programs[pipeline]

    def _measured(self, pipeline: tuple[Pass, ...]) -> Trial:
        text, program = print_pipeline(pipeline), without_view(self._programs[pipeline])
        content = content_digest(program)
        if content in self._by_content:
            known = self._by_content[content]
            return Trial(text, "same", known.costs, content, known.pipeline)
        self.progress(f"search: compiling {text or 'the program as it is'} ({program.ops:,} ops)")
        try:
            limit_s = max(self._left_s(), 1.0 if pipeline != self.fixed else _LEAST_FOR_THE_FIRST_S)
            return Trial(text, "measured", self.measure(program, limit_s), content)
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
            self.store.store(trial)
        if trial.status != "nothing":
            self.progress(f"search {len(self._trials)}: {trial.pipeline or 'as it is'}: {trial}")
        return trial
