"""Shared by the workload tests: float64 and quick compilation."""

from typing import Any

import jax
import pytest


@pytest.fixture
def x64():
    """The test runs with 64-bit types enabled."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def quickly():
    """``quickly(function, *arguments)``: the function compiled for such arguments, with little optimisation.

    The programs here run once or twice on few walkers, so compiling is all that costs: a third of plain ``jax.jit``.
    """
    options: dict[str, Any] = {"xla_backend_optimization_level": 0}
    if jax.__version_info__ < (0, 11):  # the option is gone from JAX 0.11
        options["xla_cpu_use_fusion_emitters"] = False
    return lambda function, *arguments: jax.jit(function).lower(*arguments).compile(compiler_options=options)
