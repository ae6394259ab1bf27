"""Every pass on the tiny form of all four ansätze: a second run changes nothing, and the numbers stay.

Adding a pass adds no line here. The slow tier has each pass on one of the four, ``make full`` on all.
"""

import jax
import numpy as np
import pytest

from fusionlab.hlo import lowering
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline
from workloads.catalogue import build

NARROW = {name: f"{name}{{fewest=4}}" for name in ("sink-broadcast-through-dot", "hoist-reduce-through-dot")}
"""Passes over wide layers, asked for the narrow ones of the tiny forms too."""
ANSATZE = ("ferminet", "psiformer", "paulinet", "orbformer")


def the_pass(name):
    [found] = parse_pipeline(NARROW.get(name, name))
    return found


@pytest.fixture(scope="module")
def workload():
    """``workload(ansatz)``: sampling and local energy of three walkers, in float64, where a mistake cannot hide."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = build(name, "LiH", program="inference-step", walkers=3, size="tiny", dtype="float64")
        return made[name]

    return get


@pytest.fixture(scope="module")
def rewritten(workload):
    """``rewritten(ansatz, pass)``: what the pass gives for the ansatz, once."""
    programs, results = {}, {}

    def get(name, pass_name):
        if name not in programs:
            programs[name] = lowering.lower(workload(name), "cuda")
        if (name, pass_name) not in results:
            results[name, pass_name] = the_pass(pass_name).run(programs[name], Setting(platform="cuda"))
        return results[name, pass_name]

    return get


@pytest.fixture(scope="module")
def expected(workload, run_directly):
    """``expected(ansatz)``: its inputs, and what the untouched function gives for them."""
    made = {}

    def get(name):
        if name not in made:
            with jax.enable_x64(True):
                inputs = workload(name).inputs(0)
                values = run_directly(workload(name).function, *inputs)
            made[name] = [np.asarray(leaf) for leaf in jax.tree.leaves(inputs)], values
        return made[name]

    return get


def assert_nothing_is_left_to_do(pass_name, result):
    again = the_pass(pass_name).run(result.program, Setting(platform="cuda"))
    assert again.applied == ()
    assert again.program is result.program


@pytest.mark.slow
@pytest.mark.parametrize("pass_name", PASSES)
def test_the_numbers_stay_and_a_second_run_changes_nothing(pass_name, rewritten, expected, run_raised):
    """On the first ansatz to which it applies; there is one for every pass."""
    name = next(name for name in ANSATZE if rewritten(name, pass_name).applied)
    result = rewritten(name, pass_name)
    assert_nothing_is_left_to_do(pass_name, result)
    arrays, values = expected(name)
    found = run_raised(result.program, arrays)
    assert len(found) == len(values)
    for value, wanted in zip(found, values, strict=True):
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(value, wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("name", ANSATZE)
@pytest.mark.parametrize("pass_name", PASSES)
def test_a_second_run_changes_nothing(pass_name, name, rewritten):
    assert_nothing_is_left_to_do(pass_name, rewritten(name, pass_name))
