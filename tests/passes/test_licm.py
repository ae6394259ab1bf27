"""licm: its cases, and what leaves the loops of small functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes import rewriting
from fusionlab.passes.interface import Setting
from fusionlab.passes.licm import LoopInvariantCodeMotion

from .case_files import test_case  # noqa: F401


def test_the_factorisation_leaves_the_loop(loop_program, rewritten):
    loops = find_loops(view_of(rewritten(loop_program("determinants"), "licm").program.parse()))
    (loop,) = (loop for loop in loops if loop.trips == 4 and loop.body.nodes)
    assert not any("getrf" in str(node.operation.attributes) for node in loop.body.walk())


def test_the_limit_of_rewrites_grows_with_the_loops(lowered, rewritten, monkeypatch):
    def three(x, w):
        for _ in range(3):
            x = jax.lax.fori_loop(0, 5, lambda _, y: jnp.sin(w) + y * y, x)
        return x

    program = lowered(three, np.ones(3), np.ones(3))
    monkeypatch.setattr(rewriting, "_SWEEPS_PER_LOOP", 1)
    assert len(rewritten(program, "licm").applied) == 3
    monkeypatch.setattr(rewriting, "_SWEEPS_PER_LOOP", 0)
    with pytest.raises(AssertionError, match="licm did not converge after 1 rewrites"):
        LoopInvariantCodeMotion().run(program, Setting())


def test_jvp_in_the_loop_recomputes_nothing_after_hoisting(loop_program, rewritten):
    view = view_of(rewritten(loop_program("jvp-in-loop"), "licm").program.parse())
    (loop,) = find_loops(view)
    assert {"stablehlo.tanh", "stablehlo.exponential"}.isdisjoint(node.name for node in loop.body.walk())
    assert {"stablehlo.tanh", "stablehlo.exponential"} <= {node.name for node in view.nodes}


def test_an_invariant_branch_in_the_loop_comes_to_rest(lowered, rewritten):
    """Raising bounds the index of a branch anew, which is invariant again."""

    def branching(x, w, index):
        def trip(_, carried):
            y = jnp.sin(w) + carried
            return jax.lax.switch(index, (jnp.tanh, lambda y: y * w, jnp.exp), y)

        return jax.lax.fori_loop(0, 5, trip, x)

    result = rewritten(lowered(branching, np.ones(3), np.ones(3), np.int32(1)), "licm")
    assert [event.what for event in result.applied if "invariant ops" in event.what] != []
    assert rewritten(result.program, "licm").applied == ()


def test_an_invariant_predicate_of_an_array_leaves_the_loop(lowered, rewritten):
    def masked(x, mask):
        return jax.lax.fori_loop(0, 5, lambda _, y: jax.lax.cond(jnp.any(mask), jnp.sin, jnp.tanh, y), x)

    result = rewritten(lowered(masked, np.ones(3), np.ones(64, bool)), "licm")
    [loop] = find_loops(view_of(result.program.parse()))
    assert "stablehlo.reduce" not in {node.name for node in loop.body.walk()}
    assert rewritten(result.program, "licm").applied == ()
