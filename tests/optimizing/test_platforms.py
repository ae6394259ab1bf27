"""A function that is lowered for several platforms has a program, and a verdict, for each."""

import jax
import pytest

from fusionlab.errors import NotOptimizedWarning
from tests.optimizing.functions import hoisting, repeated


def judged(function):
    """(platform, verdict, what it was compared on) of every decision."""
    return [(one.platform, one.verdict.verdict, one.compared_on) for one in function.fusionlab.decisions]


def test_always_checks_the_program_of_every_platform():
    function = hoisting(repeated, check="always")
    traced = function._alone.trace(1.0, 0.5)
    for platform in ("cpu", "cuda"):
        traced.lower(lowering_platforms=(platform,))
    assert [(platform, verdict) for platform, verdict, _ in judged(function)] == [("cpu", "equal"), ("cuda", "equal")]
    assert function(2.0, 0.25) == jax.jit(repeated)(2.0, 0.25)
    given = [one for one in judged(function) if "given" in one[2]]
    assert [platform for platform, *_ in given] == ["cpu", "cuda"]


def test_one_module_for_several_platforms_is_left_alone():
    function = hoisting(repeated, check="always")
    with pytest.warns(NotOptimizedWarning, match="platform several"):
        jax.jit(function).trace(1.0, 0.5).lower(lowering_platforms=("cpu", "cuda"))
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is None
    assert decision.reason.startswith("platform several: only cpu and cuda are rewritten; cause: platform; instead: ")
