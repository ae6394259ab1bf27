"""Programs around a replay: one walker without ``vmap``, a step of sampling and energy, a step of training."""

import jax
import numpy as np
import pytest

from fusionlab.hlo import lowering
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads.catalogue import build

from .laplacian_functions import LOOPS, WEIGHTS, X, exact, smooth


@pytest.mark.parametrize("form", ["scan"])
def test_one_walker(form, lowered, run_raised):
    def function(weights, x):
        return smooth(weights, x), LOOPS[form](smooth, weights, x)

    with jax.enable_x64(True):
        program = lowered(function, WEIGHTS, X[0], platform="cuda")
        expected = exact(smooth, WEIGHTS, X[0])
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert len(result.applied) == 1, result.events
    _, laplacian = run_raised(result.program, jax.tree.leaves((WEIGHTS, X[0])))
    np.testing.assert_allclose(laplacian, expected, rtol=1e-9)


STEPS = [pytest.param("train-step", marks=pytest.mark.slow), pytest.param("inference-step", marks=pytest.mark.full)]


@pytest.mark.parametrize("step", STEPS)
def test_the_replay_of_a_step(step):
    workload = build("ferminet", "LiH", program=step, walkers=4, size="tiny", laplacian="replay")
    program = lowering.lower(workload, "cuda")
    assert find_replays(view_of(program.parse()))
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting(platform="cuda"))
    assert any("12 trips are the Laplacian of" in event.what for event in result.applied), result.events
    assert find_replays(view_of(result.program.parse())) == []
