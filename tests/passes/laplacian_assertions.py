"""Functions lowered, rewritten, and found to compute the same numbers, or to be left alone."""

import jax
import numpy as np

from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline


def lower(function, *arrays, keep_unused=False):
    """By default without what nothing reads, as the value that is differentiated where it is not returned."""
    traced = jax.jit(lambda *given: function(*given), keep_unused=keep_unused).trace(*arrays)
    module = traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    return Program.from_module(module, name="near", provenance="test", platform="cuda")


def in_their_precision(arrays):
    """The context of functions of these arrays: with float64 where one of them is."""
    return jax.enable_x64(any(np.asarray(leaf).dtype == np.float64 for leaf in jax.tree.leaves(arrays)))


def rewritten(function, *arrays, passes="sparsify-directions", keep_unused=False):
    """The program of the function, and what the passes make of it."""
    with in_their_precision(arrays):
        program = lower(function, *arrays, keep_unused=keep_unused)
    return program, run_pipeline(program, parse_pipeline(passes), Setting())


def assert_refused(function, *arrays, why="", passes="sparsify-directions"):
    """Nothing is applied; ``why`` is part of a reason."""
    _, result = rewritten(function, *arrays, passes=passes)
    assert not result.applied, result.events
    assert any(why in event.reason for event in result.events), result.events


def assert_refused_or_identical(function, *arrays, why="", passes="sparsify-directions"):
    """Nothing is applied, and ``why`` is part of a reason, or what is applied is shown identical."""
    program, result = rewritten(function, *arrays, passes=passes)
    if result.applied:
        assert compare_exactly(program, result.program).result == "identical", result.events
    else:
        assert any(why in event.reason for event in result.events), result.events


def assert_rewritten(run, function, *arrays, expected=None, at=None, passes="sparsify-directions", rtol=1e-9):
    """Something is applied, and the numbers at ``at`` (by default ``arrays``) are those of ``expected``, a function of
    the same arguments, or of the program before."""
    program, result = rewritten(function, *arrays, passes=passes, keep_unused=True)
    assert result.applied, result.events
    given = arrays if at is None else at
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(given)]
    with in_their_precision(given):
        wanted = run(program, leaves) if expected is None else jax.tree.leaves(expected(*given))
    for value, right in zip(run(result.program, leaves), wanted, strict=True):
        assert value.dtype == right.dtype
        np.testing.assert_allclose(value, right, rtol=rtol)
    return result
