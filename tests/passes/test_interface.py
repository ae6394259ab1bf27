"""What every pass of the catalogue promises; adding a pass adds no line here, but a file of tests and cases."""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from fusionlab.bytesize import ByteSize
from fusionlab.passes.catalogue import PASSES, find_pass
from fusionlab.passes.interface import Applied, Declined, KernelFigures, Overfused, Setting
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.passes.split_fusions import MARK

from .case_files import CASES, expectations, sources
from .loop_functions import FUNCTIONS, WEIGHTS, X

each_pass = pytest.mark.parametrize("name", PASSES)
# Between them, every pass applies to one of them and declines another.
CHANGED = ("energy", "jvp-in-loop", "nested", "determinants", "called-twice", "pairs", "layers", "shared", "halves")


@pytest.fixture(scope="module")
def programs(loop_program, lowered):
    kernels = (
        lowered(FUNCTIONS[name], WEIGHTS, X, platform="cuda") for name in ("layers", "heads", "jets", "attended")
    )
    return [*map(loop_program, CHANGED), *kernels]


def figures_by_code(program):
    """As of a target on which the first sum of a program is computed again, until there is a barrier in it."""
    if "stablehlo.optimization_barrier" in program.text:
        return KernelFigures(1.0, 1, 1, ())
    sums = re.findall(rf"reduce_sum/{MARK}(\d+)", program.text)
    found = (Overfused("kernel", "reduce_sum", (f"reduce_sum/{MARK}{sums[0]}",), 1.0),) if sums else ()
    return KernelFigures(2.0, 1, 1, found)


SETTING = Setting(kernels=figures_by_code)


@pytest.fixture(scope="module")
def results(programs):
    """Every pass on every program, once."""
    return {name: [find_pass(name)().run(program, SETTING) for program in programs] for name in PASSES}


@each_pass
def test_some_program_is_changed(name, results):
    assert any(result.applied for result in results[name])


@each_pass
def test_the_same_input_gives_the_same_text_which_verifies_and_is_described_as_the_input(name, programs, results):
    for program, result in zip(programs, results[name], strict=True):
        again = find_pass(name)().run(program, SETTING)
        assert again.program.text == result.program.text
        assert again.program.digest == result.program.digest
        assert again.events == result.events
        module = result.program.parse()
        assert module.operation.verify()
        assert "f64>" not in str(module)
        for what in ("inputs", "outputs", "name", "platform"):
            assert getattr(result.program, what) == getattr(program, what)


@each_pass
def test_a_second_run_applies_nothing(name, results):
    """A program that was left alone was run again above: the same input gives the same events."""
    for result in filter(lambda result: result.applied, results[name]):
        again = find_pass(name)().run(result.program, SETTING)
        assert again.applied == ()
        assert again.program is result.program


@each_pass
def test_a_module_without_loops_scatters_and_contractions_is_left_alone(name, lowered):
    """Passes over loops have nothing to say; passes over operations say which there is none of."""
    program = lowered(lambda x: abs(x.T) + np.float32(1), X)
    result = find_pass(name)().run(program, SETTING)
    assert result.program is program
    assert all(isinstance(e, Declined) and e.reason.startswith("there is no ") for e in result.events)


@each_pass
def test_what_does_not_apply_says_why(name, results):
    for result in results[name]:
        assert result.events
        for event in result.events:
            document = event.to_json()
            assert set(document) >= {"pass", "kind", "reason", "location"}
            if isinstance(event, Declined):
                assert event.kind in ("unsafe", "unsupported", "unprofitable")
                assert event.reason == document["declined"] != ""
            else:
                assert isinstance(event, Applied)
                assert event.what == document["applied"] != ""
                assert parse_pipeline(event.resolved)


@each_pass
def test_the_module_is_named_and_documented(name):
    class_ = find_pass(name)
    assert class_.name == name
    assert class_.__module__.split(".")[:3] == ["fusionlab", "passes", name.replace("-", "_")]
    text = inspect.getdoc(importlib.import_module(class_.__module__))
    assert text.startswith(f"{name}: ")
    for part in ("rewrite:", "-->", "requires:", "exact:", "hopes:"):
        assert part in text, f"the docstring of {name} has no {part}"


@each_pass
def test_it_is_a_frozen_value_whose_options_round_trip(name):
    class_ = find_pass(name)
    assert class_.__dataclass_params__.frozen
    assert str(class_()) == name
    assert parse_pipeline(name) == (class_(),)
    for field in dataclasses.fields(class_):
        value = {ByteSize: ByteSize(3 * 2**29), bool: not field.default, int: 7, float: 0.5, str: "text"}[
            type(field.default)
        ]
        changed = dataclasses.replace(class_(), **{field.name: value})
        assert str(changed) != name
        assert parse_pipeline(str(changed)) == (changed,)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(changed, field.name, value)


@each_pass
def test_it_has_a_file_of_tests_and_cases_of_both_kinds(name):
    folder = name.replace("-", "_")
    assert "import test_case" in Path(__file__).with_name(f"test_{folder}.py").read_text()
    kinds = {kind.split()[0] for path in sources(folder) for kind, _ in expectations(path)[2]}
    assert kinds == {"applied", "declined"}


def test_no_golden_file_is_left_over():
    for path in CASES.glob("*/*.after.mlir"):
        source = path.with_name(path.name.replace(".after.mlir", ".mlir"))
        assert source.exists(), f"{path.name} has no case"
        assert any(kind == "applied" for kind, _ in expectations(source)[2]), f"{path.name} belongs to a near miss"
