"""The passes that ``--pass`` and ``--pipeline`` name, and the search that a final ``best`` requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusionlab.bytesize import ByteSize
from fusionlab.errors import InputError, unknown

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.hlo.program import Program
    from fusionlab.passes.interface import Pass
    from fusionlab.search.best import Goal, SearchResult
    from fusionlab.study import Circumstances


def pipeline_text(passes: Sequence[str], pipeline: str | None, **_: Any) -> str:
    """The pipeline that ``--pass`` and ``--pipeline`` name, as text."""
    return ",".join([*passes, *([pipeline] if pipeline else [])])


def passes_of(
    passes: Sequence[str] = (), pipeline: str | None = None, memory_budget: str | None = None
) -> tuple[Pass, ...]:
    """The passes that the options name, in order; InputError when they name none."""
    from fusionlab.passes.pipeline import parse_pipeline, print_pipeline

    text = pipeline_text(passes, pipeline)
    if not text:
        raise InputError("name what to apply: --pass NAME (repeatable) or --pipeline 'a,b{x=1}'")
    named = parse_pipeline(text)
    if not memory_budget:
        return named
    budget = ByteSize.parse(memory_budget)
    if not any(hasattr(one, "memory_budget") for one in named):
        raise InputError(f"no pass of {print_pipeline(named)} has the option memory_budget")
    return tuple(one.with_options(memory_budget=budget) if hasattr(one, "memory_budget") else one for one in named)


def planned(
    passes: Sequence[str], pipeline: str | None, memory_budget: str | None, **search: Any
) -> tuple[tuple[Pass, ...], Goal | None]:
    """The named passes, without a final ``best``, and the goal of its search (None without ``best``).

    ``search``: ``objective``, ``time_limit`` in seconds and ``seed``, None where not given. InputError for options that
    are invalid for any program.
    """
    from fusionlab.passes.catalogue import SEARCHED
    from fusionlab.passes.pipeline import parse_pipeline

    front, comma, last = pipeline_text(passes, pipeline).rpartition(",")
    if last.strip() == SEARCHED:
        return parse_pipeline(front) if comma else (), _goal(memory_budget, **search)
    if any(value is not None for value in search.values()):
        raise InputError("--objective, --time-limit and --seed are for --pipeline best")
    return passes_of(passes, pipeline, memory_budget), None


def searched(
    program: Program, fixed: tuple[Pass, ...], goal: Goal, given: Circumstances, console: Console
) -> tuple[tuple[Pass, ...], SearchResult]:
    """The passes to apply to ``program``, ``fixed`` first, and the search that found them; prints the Pareto front."""
    from fusionlab.passes.interface import Setting
    from fusionlab.passes.pipeline import parse_pipeline
    from fusionlab.report.tables.programs import print_search
    from fusionlab.search.best import Search, TrialStore
    from fusionlab.search.costs import measure_for

    store = TrialStore(given.cache.folder if given.cache else None, program, given.target)
    measure = measure_for(given.target, given.cache)
    found = Search(program, fixed, goal, Setting(platform=given.target.kind), measure, store, given.progress).run()
    print_search(found, console)
    return (parse_pipeline(found.best.pipeline) if found.best.pipeline else ()), found


def _goal(
    memory_budget: str | None, objective: str | None = None, time_limit: float | None = None, seed: int | None = None
) -> Goal:
    from fusionlab.search.best import Goal
    from fusionlab.search.costs import OBJECTIVES

    objective = objective or Goal.objective
    if objective not in OBJECTIVES:
        raise unknown("objective", objective, OBJECTIVES)
    limit_s = Goal.time_limit_s if time_limit is None else time_limit
    if not 0 < limit_s < math.inf:
        raise InputError(f"--time-limit must be positive seconds, not {limit_s}")
    budget = ByteSize.parse(memory_budget) if memory_budget else None
    return Goal(objective, budget, limit_s, seed or 0)
