"""Programs for a GPU that is not there are compiled in a process of their own."""

import numpy as np
import pytest

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.search.costs import TrialFailed, costs_of, measure_for


@pytest.fixture
def program(lowered):
    x = np.ones((8, 8), np.float32)
    return lowered(lambda x: (x @ x) * 2.0 + x.sum(), x, platform="cuda")


def test_the_costs_are_those_of_a_compile_here(program, compile_cache):
    target, cache = load_target("a100"), default_cache()
    found = measure_for(target, cache)(program, 300.0)
    compiled = compile_program(program, target, cache=cache)
    assert compiled.from_cache
    assert found == costs_of(compiled)
    assert found.launches > 0
    assert found.model_us > 0


def test_a_program_that_cannot_be_compiled(lowered, compile_cache):
    wrong = lowered(lambda x: np.float32(2) * x, np.ones(4, np.float32), platform="cpu")
    with pytest.raises(TrialFailed, match=r"compiling it: InputError: .*lowered for cpu") as caught:
        measure_for(load_target("a100"), default_cache())(wrong, 300.0)
    assert not caught.value.may_do_later


def test_a_compile_that_takes_too_long(program, compile_cache):
    with pytest.raises(TrialFailed, match="the time was up") as caught:
        measure_for(load_target("a100"), default_cache())(program, 0.01)
    assert caught.value.may_do_later


def test_on_an_attached_device(lowered, compile_cache):
    program = lowered(lambda x: x.sum() * 2, np.ones((4, 4), np.float32))
    found = measure_for(load_target("cpu"), default_cache())(program, 300.0)
    assert found.launches > 0
    assert found.model_us is None
    with pytest.raises(TrialFailed, match="lowered for cuda"):
        measure_for(load_target("cpu"), None)(lowered(lambda x: x * 2, np.ones(4, np.float32), platform="cuda"), 300.0)
