"""Inputs scaled by powers of ten: a rewritten program that leaves the range of float32 alone is different."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.scales import can_be_scaled

X = jax.ShapeDtypeStruct((8,), jnp.float32)


def inverse(x):
    return 1 / x


LOST = {
    "overflow": lambda x: (x * x) * (x * x) / (x * x) / (x * x) / x,
    "underflow": lambda x: x * lax.rsqrt((x * x) * x * x),
}


@pytest.mark.parametrize("name", LOST)
def test_a_rewriting_that_leaves_the_range(name, lowered):
    sound = inverse if name == "overflow" else lambda x: inverse(jnp.abs(x)) * jnp.sign(x)
    original, rewritten = lowered(sound, X), lowered(LOST[name], X)
    verdict = check_programs(original, rewritten)
    assert verdict.verdict == "different"
    assert "times 1e" in verdict.worst
    assert "where the original has" in verdict.worst
    found = verdict.counterexample
    assert found.arrays[0].dtype == np.float32
    assert not np.isclose(found.rewritten, found.truth)
    assert check_programs(rewritten, rewritten).passed, "where the original loses it, too, nothing is judged"


def test_float64_has_a_wider_range(lowered):
    with jax.enable_x64(True):
        programs = [
            lowered(function, jax.ShapeDtypeStruct((8,), jnp.float64)) for function in (inverse, LOST["overflow"])
        ]
    assert check_programs(*programs).passed


def test_a_loop_that_data_ends_is_not_run_at_other_magnitudes(lowered):
    def steps(x):
        return lax.while_loop(lambda s: s[1] < 9.0, lambda s: (s[0] + 1, s[1] + 0.5), (0, x[0]))[0]

    assert can_be_scaled(lowered(inverse, X))
    assert not can_be_scaled(lowered(steps, X))
