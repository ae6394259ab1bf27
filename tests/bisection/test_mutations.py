"""Every planted mistake is called different by the check and located by the bisection; without it, nothing differs."""

import functools

import pytest

from fusionlab.bisection.steps import judge_steps, steps_of
from fusionlab.codegen.laplacian.rules import elementwise
from fusionlab.equivalence.check import check_programs
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .mutations import MUTATIONS, instead, times
from .small_programs import PROGRAMS


@pytest.fixture(scope="module")
def programs(lowered):
    return functools.cache(lambda name: lowered(*PROGRAMS[name]))


def marked(mutation):
    return pytest.param(
        mutation, id=mutation.name.replace(" ", "-"), marks=() if mutation.fast else pytest.mark.by_turns(3)
    )


@pytest.mark.parametrize("mutation", [marked(mutation) for mutation in MUTATIONS])
def test_a_mistake_is_different_and_located(mutation, programs, monkeypatch):
    program = programs(mutation.program)
    mutation.plant(monkeypatch)
    result = run_pipeline(program, parse_pipeline(mutation.pipeline), Setting(platform="cpu"))
    assert result.applied, result.events
    verdict = check_programs(program, result.program)
    assert verdict.verdict == "different", verdict
    steps, _ = steps_of(program, parse_pipeline(mutation.pipeline), Setting(platform="cpu"))
    step, of_step = judge_steps(steps, check_programs).wrong
    assert str(step.by) == mutation.guilty
    assert of_step.counterexample is not None


CORRECT = sorted({(mutation.program, mutation.pipeline) for mutation in MUTATIONS if mutation.program != "of-another"})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pipeline"), CORRECT)
def test_without_a_mistake_nothing_differs(name, pipeline, programs):
    steps, _ = steps_of(programs(name), parse_pipeline(pipeline), Setting(platform="cpu"))
    assert steps
    assert all(verdict.passed for _, verdict in judge_steps(steps, check_programs).steps)


def test_a_rule_that_is_wrong_is_not_found_to_be_a_laplacian(programs, monkeypatch):
    """What guards the passes before any check: the value is looked for by the rules that rewrite it."""
    instead(elementwise, "row_products", times(0.5))(monkeypatch)
    result = run_pipeline(programs("gradient"), parse_pipeline("sparsify-directions"), Setting(platform="cpu"))
    assert not result.applied
    assert any("none has the Laplacian" in getattr(event, "reason", "") for event in result.events)


def test_every_pass_that_replaces_a_loop_has_some():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) == 30
    assert len({mutation.guilty.partition("{")[0] for mutation in MUTATIONS}) == 5
