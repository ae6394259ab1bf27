"""Rewritten programs compute what the untouched function computes."""

import jax
import numpy as np
import pytest

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .loop_functions import FUNCTIONS, WEIGHTS, X

PIPELINES = ("batch-replay", "batch-replay{chunk=2}", "fuse-jvp-replay{chunk=3}", "licm")
NOT_SUMMED = ("shared", "halves")
"""Functions whose only loop is not a sum over its trips: a near miss, left alone."""


@pytest.fixture(scope="module")
def programs(lowered):
    made = {}

    def get(name, dtype="float32"):
        if (name, dtype) not in made:
            with jax.enable_x64(dtype == "float64"):
                made[name, dtype] = lowered(FUNCTIONS[name], WEIGHTS.astype(dtype), X.astype(dtype))
        return made[name, dtype]

    return get


@pytest.fixture(scope="module")
def expected(run_directly):
    made = {}

    def get(name):
        if name not in made:
            with jax.enable_x64(True):
                made[name] = run_directly(FUNCTIONS[name], WEIGHTS.astype(float), X.astype(float))
        return made[name]

    return get


def run(program, pipeline):
    return run_pipeline(program, parse_pipeline(pipeline), Setting())


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_numbers_in_float64(name, pipeline, programs, expected, run_raised):
    """In float64 a mistake has no rounding to hide in; counters stay what they are."""
    result = run(programs(name, "float64"), pipeline)
    if pipeline != "licm":
        assert bool(result.applied) == (name not in NOT_SUMMED), result.events
    values = run_raised(result.program, (WEIGHTS.astype(float), X.astype(float)))
    for value, wanted in zip(values, expected(name), strict=True):
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_numbers_in_float64_from_the_layout_preset(name, programs, expected, run_raised):
    result = run(programs(name, "float64"), "layout")
    if name == "pairs":
        assert {event.pass_name for event in result.applied} >= {"scatter-to-gather", "expand-small-dots"}
    values = run_raised(result.program, (WEIGHTS.astype(float), X.astype(float)))
    for value, wanted in zip(values, expected(name), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["replay", "stacked", "nested-sums"])
def test_the_same_types_in_float32(name, programs, expected, run_raised):
    program = programs(name)
    result = run(program, "fuse-jvp-replay")
    assert result.program.inputs == program.inputs
    assert result.program.outputs == program.outputs
    assert "f64" not in str(result.program.parse())
    for value, wanted in zip(run_raised(result.program, (WEIGHTS, X)), expected(name), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize(
    "name", ["replay", "scan", "jvp-in-loop", "stacked", "subtracting", "two-sums", "called-twice"]
)
def test_no_loop_is_left(name, programs):
    result = run(programs(name), "fuse-jvp-replay")
    assert find_loops(view_of(result.program.parse())) == []


@pytest.mark.parametrize(("chunk", "trips"), [(2, [3]), (4, []), (5, []), (6, []), (99, [])])
def test_a_chunk_leaves_a_loop_over_chunks_and_the_rest(chunk, trips, programs):
    """Six directions: three pairs in a loop; one chunk of four or five and a rest, unrolled; all at once."""
    result = run(programs("replay"), f"batch-replay{{chunk={chunk}}}")
    assert [loop.trips for loop in find_loops(view_of(result.program.parse()))] == trips


def test_the_factorisation_leaves_the_loop(programs):
    result = run(programs("determinants"), "licm")
    loops = [loop for loop in find_loops(view_of(result.program.parse())) if loop.trips == 4]
    (loop,) = (loop for loop in loops if loop.node.regions[1].nodes)
    assert not any("getrf" in str(node.operation.attributes) for node in loop.body.walk())


def test_merged_layers_leave_one_contraction_in_the_loop(programs):
    result = run(programs("layers"), "merge-dots,licm")
    (loop,) = find_loops(view_of(result.program.parse()))
    names = [node.name for node in loop.body.walk()]
    assert names.count("stablehlo.dot_general") == 1
    assert "stablehlo.concatenate" not in names


def test_jvp_in_the_loop_recomputes_nothing_after_hoisting(programs):
    result = run(programs("jvp-in-loop"), "licm")
    (loop,) = find_loops(view_of(result.program.parse()))
    assert {"stablehlo.tanh", "stablehlo.exponential"}.isdisjoint(node.name for node in loop.body.walk())
    assert {"stablehlo.tanh", "stablehlo.exponential"} <= {node.name for node in view_of(result.program.parse()).nodes}


def test_a_function_called_twice_is_rewritten_once(programs):
    result = run(programs("called-twice"), "batch-replay")
    assert len(result.applied) == 1


def test_scopes_of_the_body_survive(programs):
    before = {node.scope.rpartition("/")[0] for node in view_of(programs("replay").parse()).walk()}
    result = run(programs("replay"), "batch-replay")
    after = {node.scope.rpartition("/")[0] for node in view_of(result.program.parse()).walk()}
    assert all("@<" not in scope for scope in after)
    inside = {scope for scope in before if "while/body" in scope}
    assert inside & after
