"""A model is checked by the modules of the study, resized to another number of walkers, or else by another lowering."""

import pytest

import fusionlab.study
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.exact.identity import Identity, compare_exactly
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo import lowering
from fusionlab.passes.interface import Result, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.study import Circumstances, at_walkers, check, check_exactly
from fusionlab.workloads.catalogue import build


@pytest.fixture(scope="module")
def rewritten():
    """``rewritten(pipeline, **settings)``: a tiny model, its program, and the result of a pipeline."""
    made = {}

    def of(pipeline, **settings):
        key = (pipeline, *sorted(settings.items()))
        if key not in made:
            source = build("ferminet", "LiH", **{"size": "tiny", "walkers": 4, **settings})
            program = lowering.lower(source, "cpu")
            made[key] = source, program, run_pipeline(program, parse_pipeline(pipeline), Setting())
        return made[key]

    return of


@pytest.fixture
def passes_run(monkeypatch):
    """The pipelines that a check runs."""
    ran = []

    def counted(program, passes, setting, observer=None):
        ran.append([str(each) for each in passes])
        return run_pipeline(program, passes, setting, observer)

    monkeypatch.setattr(fusionlab.study, "run_pipeline", counted)
    return ran


@pytest.mark.parametrize("walkers", [2, 4, 6])
def test_a_models_modules_are_resized_and_no_pass_runs_again(walkers, rewritten, passes_run):
    source, program, result = rewritten("batch-replay")
    small = at_walkers(source, program, result, walkers)
    assert (small.workload.walkers, small.instead, passes_run) == (walkers, "", [])
    assert [one.outputs[0].shape for one in small.programs] == [(walkers,)] * 2
    if walkers == source.walkers:
        assert small.programs == (program, result.program)


@pytest.mark.slow
@pytest.mark.parametrize("walkers", [2, 6])
def test_the_resized_modules_are_equal_and_identical(walkers, rewritten, passes_run):
    source, program, result = rewritten("batch-replay")
    small = at_walkers(source, program, result, walkers)
    assert small.verdict().passed
    assert compare_exactly(*small.programs).result == "identical"
    assert passes_run == []


@pytest.mark.slow
def test_parts_of_the_walkers_are_made_again_from_the_resized_original(rewritten, passes_run):
    source, program, result = rewritten("sparsify-directions{chunks=2}")
    assert result.applied
    small = at_walkers(source, program, result, 2)
    assert passes_run == [["sparsify-directions{chunks=2}"]]
    assert "rewritten again" in small.instead
    assert [one.outputs[0].shape for one in small.programs] == [(2,)] * 2


def test_a_model_whose_walkers_are_not_found_is_lowered_again_and_the_verdict_says_so(
    rewritten, passes_run, monkeypatch
):
    source, program, result = rewritten("batch-replay")
    monkeypatch.setattr(fusionlab.study, "resized", lambda *_, **__: None)
    given = Circumstances(load_target("cpu"), check_walkers=2)
    monkeypatch.setattr(fusionlab.study, "check_module", lambda *_, **__: Verdict("equal", reason="as seen"))
    assert check(source, program, result, given).reason == (
        "as seen; compared at another lowering, rewritten again: the walkers of the modules are not found"
    )
    found = Identity("identical", 12, 2, 1e-36)
    monkeypatch.setattr(fusionlab.study, "compare_files", lambda *_, **__: found)
    assert check_exactly(source, program, result, given).line == (
        f"{found.line.replace('outputs', 'outputs of 2 walkers')}, "
        "compared at another lowering, rewritten again: the walkers of the modules are not found"
    )
    assert passes_run == [["batch-replay"]] * 2


def test_folded_constants_are_no_difference(rewritten, passes_run, monkeypatch):
    """Where the float64 version of the module differs, that of the model in float64 decides."""
    source, program, result = rewritten("batch-replay")
    monkeypatch.setattr(fusionlab.study, "check_module", lambda *_, **__: Verdict("different", worst="in float64"))
    seen = []

    def compared(workload, own, wide, *_, **__):
        seen.append((workload.walkers, own, wide.inputs[0].dtype))
        return Verdict("within-bound")

    monkeypatch.setattr(fusionlab.study, "check_workload", compared)
    assert check(source, program, result, Circumstances(load_target("cpu"), check_walkers=4)).passed
    assert seen == [(4, result.program, "f64")]
    assert passes_run == [["batch-replay"]]


@pytest.mark.slow
def test_a_module_that_differs_is_different(rewritten, program_of_text, monkeypatch):
    """Also where the passes, run again, would make the right one: what is written is what is compared."""
    source, program, result = rewritten("batch-replay")
    wrong = program_of_text(result.program.text.replace("stablehlo.tanh ", "stablehlo.sine "))
    assert wrong.digest != result.program.digest
    verdict = check(source, program, Result(wrong, result.events), Circumstances(load_target("cpu"), check_walkers=2))
    assert verdict.verdict == "different"
