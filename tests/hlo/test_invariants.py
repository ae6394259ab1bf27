"""What a loop computes again in every trip: one definition, for the inventory and for the pass that hoists it."""

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.invariants import invariant_nodes
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.replay import inventory
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Applied, Setting
from fusionlab.passes.licm import LoopInvariantCodeMotion

from .conftest import as_program, laplacian_program


def first_loop(program):
    return find_loops(view_of(program.parse()))[0]


def test_work_on_invariants_and_the_views_it_needs():
    def function(w, x):
        def body(k, total):
            repeated = jnp.tanh(w.reshape(4, 2)).sum(axis=1)  # reshape, tanh, sum: computed again in every trip
            return total + repeated[:, None] * x + k

        return jax.lax.fori_loop(0, 3, body, jnp.zeros((4, 5)))

    found = [node.name for node in invariant_nodes(first_loop(as_program(function, jnp.ones(8), jnp.ones((4, 5)))))]
    assert {"stablehlo.reshape", "stablehlo.tanh", "stablehlo.reduce"} <= set(found)
    assert "stablehlo.multiply" in found  # of two invariants
    assert found.count("stablehlo.add") == 0


def test_views_and_constants_alone_are_no_work():
    def function(x):
        return jax.lax.fori_loop(0, 3, lambda k, s: s + x.T * k * jnp.sin(jnp.arange(4.0)), jnp.zeros((5, 4)))

    assert invariant_nodes(first_loop(as_program(function, jnp.ones((4, 5))))) == []


@pytest.mark.parametrize("method", ["replay", "scan", "jvp-in-loop", "one-hot"])
def test_the_inventory_and_the_pass_agree(method):
    program = laplacian_program(method)
    (replay,) = inventory(view_of(program.parse()))
    (event,) = LoopInvariantCodeMotion().run(program, Setting()).events
    if isinstance(event, Applied):
        assert event.what == f"{len(replay.recomputed)} invariant ops hoisted out of the loop"
    else:
        assert (event.kind, replay.recomputed) == ("unprofitable", ())


def test_the_inventory_and_the_pass_agree_on_paulinet(paulinet):
    (replay,) = [loop for loop in inventory(view_of(paulinet.parse())) if not loop.blockers]
    applied = LoopInvariantCodeMotion().run(paulinet, Setting()).applied
    assert f"{len(replay.recomputed)} invariant ops hoisted out of the loop" in {event.what for event in applied}
    assert replay.recomputed
