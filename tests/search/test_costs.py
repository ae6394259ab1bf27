"""The costs of a program, in a process of its own where the GPU is absent; and which of two is better."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.facts.kernel_facts import KernelFacts
from fusionlab.ledger.time.constants import PAIR_ERROR
from fusionlab.search import costs
from fusionlab.search.best import Trial
from fusionlab.search.costs import Costs, TrialFailed, costs_of, front, measure_for
from fusionlab.time_order import ESTIMATED_PAIR_ERROR

pytestmark = pytest.mark.usefixtures("compile_cache")


@pytest.fixture
def program(lowered):
    x = np.ones((2048, 2048), np.float32)  # launching is little of its time
    return lambda platform: lowered(lambda x: (x @ x) * 2.0 + x.sum(), x, platform=platform)


@pytest.mark.parametrize(("name", "platform"), [("a100", "cuda"), ("cpu", "cpu")])
def test_the_costs_are_those_of_a_compile_here(name, platform, program):
    target, cache, program = load_target(name), default_cache(), program(platform)
    found = measure_for(target, cache)(program, 300.0)
    assert found.launches > 0
    if name == "cpu":
        assert found.model_us is None
        return
    compiled = compile_program(program, target, cache=cache)
    assert compiled.from_cache
    assert found == costs_of(compiled)
    assert found.model_us == pytest.approx(KernelFacts.of(compiled).model_us)
    assert found.pair_error == PAIR_ERROR
    estimated = costs_of(dataclasses.replace(compiled, ptx=""))
    assert estimated.model_us != found.model_us
    assert estimated.pair_error == ESTIMATED_PAIR_ERROR


def test_the_time_of_an_attached_gpu_is_that_of_its_code(program, monkeypatch):
    asked = []

    def compiled(program, target, *, cache, ptx=False):
        asked.append(ptx)
        return compile_program(program, load_target("a100"), cache=cache, ptx=ptx)

    monkeypatch.setattr(costs, "compile_program", compiled)
    attached = dataclasses.replace(load_target("a100"), attached=True)
    assert measure_for(attached, default_cache())(program("cuda"), 300.0).pair_error == PAIR_ERROR
    assert asked == [True]


def test_the_time_with_a_factorisation_is_a_lower_bound(lowered):
    def found(function):
        given = lowered(function, np.ones((8192, 32, 32), np.float32), platform="cuda")
        return costs_of(compile_program(given, load_target("a100"), cache=default_cache(), ptx=True))

    bound = found(jnp.linalg.cholesky)
    assert (bound.at_least_us_launches, bound.is_lower_bound, bound.pair_error) == (1, True, ESTIMATED_PAIR_ERROR)
    assert ", >=" in str(Trial("", "measured", bound))
    inverse = found(jnp.linalg.inv)  # LU and triangular solves, as of the tested programs
    assert (inverse.at_least_us_launches, inverse.is_lower_bound, inverse.pair_error) == (0, False, PAIR_ERROR)
    assert ">=" not in str(Trial("", "measured", inverse))


@pytest.mark.parametrize(
    ("name", "platform", "limit_s", "message"),
    [
        ("a100", "cpu", 300.0, r"compiling it: InputError: .*lowered for cpu"),
        ("cpu", "cuda", 300.0, "lowered for cuda"),
        ("a100", "cuda", 0.01, "the time was up"),
    ],
)
def test_what_cannot_be_measured(name, platform, limit_s, message, program):
    with pytest.raises(TrialFailed, match=message) as caught:
        measure_for(load_target(name), default_cache())(program(platform), limit_s)
    assert caught.value.may_do_later == (limit_s < 1)


@pytest.mark.parametrize(
    ("figures", "on_front"),
    [
        ([(1, 2, 3, 4), (1, 2, 3, 5)], [0]),
        ([(1, 2, 3, 4), (1, 2, 3, 4)], [0]),
        ([(1, 2, 3, 4), (0, 9, 9, 9)], [0, 1]),
        ([(1, 2, 3, None), (1, 2, 3, 4)], [1]),
        ([(5, 5, 5, 5), (1, 9, 9, 9), (5, 5, 5, 5), (6, 5, 5, 5), (9, 9, 9, None)], [0, 1]),
        ([], []),
    ],
)
def test_the_front_has_what_no_other_is_better_than_in_one_thing_and_worse_in_none(figures, on_front):
    assert front([Costs(launches, 0, moved, temp, us, 0, 1.0) for launches, moved, temp, us in figures]) == on_front
