"""``fusionlab apply --pipeline best``: search the pipeline, print the Pareto front, and give the best to apply."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.console import Console

from fusionlab.bytesize import ByteSize
from fusionlab.errors import InputError, unknown
from fusionlab.hlo.program import Program
from fusionlab.passes.catalogue import SEARCHED
from fusionlab.passes.contract import Pass, Setting
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.report.search_view import print_search
from fusionlab.search.best import Found, Goal, search
from fusionlab.search.costs import OBJECTIVES, measure_for
from fusionlab.search.trials import TrialStore
from fusionlab.study import Circumstances


@dataclass(frozen=True)
class SearchOptions:
    """The options of the search; None where the command line said nothing."""

    objective: str | None = None
    time_limit_s: float | None = None
    seed: int | None = None

    @property
    def given(self) -> bool:
        """Whether the command line said anything."""
        return self != SearchOptions()


def fixed_part(pipeline: str) -> tuple[Pass, ...] | None:
    """The passes in front of ``best``; None when ``pipeline`` does not end with it."""
    front, comma, last = pipeline.rpartition(",")
    if last.strip() != SEARCHED:
        return None
    return parse_pipeline(front) if comma else ()


def require_search(pipeline: str, options: SearchOptions, memory_budget: str | None = None) -> None:
    """InputError where ``options`` are given and ``pipeline`` searches nothing, or where they cannot be followed."""
    if fixed_part(pipeline) is not None:
        _goal(options, memory_budget)
    elif options.given:
        raise InputError("--objective, --time-limit and --seed are for --pipeline best")


def searched(
    program: Program,
    fixed: tuple[Pass, ...],
    options: SearchOptions,
    memory_budget: str | None,
    given: Circumstances,
    console: Console,
) -> tuple[tuple[Pass, ...], Found]:
    """The passes to apply to ``program``, and how they were found. InputError: an unknown objective, no time."""
    goal = _goal(options, memory_budget)
    store = TrialStore(given.cache.folder if given.cache else None, program, given.target)
    measure = measure_for(given.target, given.cache)
    found = search(program, fixed, goal, Setting(platform=given.target.kind), measure, store, given.progress)
    print_search(found, console)
    return (parse_pipeline(found.best.pipeline) if found.best.pipeline else ()), found


def _goal(options: SearchOptions, memory_budget: str | None) -> Goal:
    objective = options.objective or Goal.objective
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    limit_s = Goal.time_limit_s if options.time_limit_s is None else options.time_limit_s
    if not 0 < limit_s < math.inf:
        raise InputError(f"--time-limit must be positive seconds, not {limit_s}")
    budget = ByteSize.parse(memory_budget) if memory_budget else None
    return Goal(objective, budget, limit_s, options.seed or 0)
