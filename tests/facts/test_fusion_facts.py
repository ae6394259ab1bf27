"""The StableHLO op of a refused fusion."""

import jax.numpy as jnp
from jax import lax

from fusionlab.facts.fusion_facts import ops_by_scope


def test_the_op_of_a_primitive_is_neither_its_constant_nor_its_combiner(lowered):
    def function(x):
        return (
            jnp.sum(x, 1),
            lax.cummax(x),
            lax.sort(x),
            lax.fori_loop(0, 3, lambda _, s: jnp.cos(s), x),
            lax.iota(int, 4),
        )

    ops = {scope.rpartition("/")[2]: op for scope, op in ops_by_scope(lowered(function, jnp.ones((4, 4)))).items()}
    assert ops["reduce_sum"] == "stablehlo.reduce"
    assert ops["reduce_window_max"] == "stablehlo.reduce_window"
    assert ops["sort"] == "stablehlo.sort"
    assert ops["cos"] == "stablehlo.cosine"
    assert ops["iota"] == "stablehlo.iota"
    assert not {"stablehlo.constant", "stablehlo.maximum"} & set(ops.values())


def test_without_a_program_there_are_no_ops():
    assert ops_by_scope(None) == {}
