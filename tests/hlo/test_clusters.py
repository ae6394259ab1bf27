"""Clusters: what is grouped, what never is, and the criteria as numbers."""

import jax
import jax.numpy as jnp

from fusionlab.hlo.clusters import Unit, find_clusters, op_clusters

from .conftest import as_program

KIB = 1024


def unit(name, reads, *, family="elementwise", stage="B", region="body", converts=False):
    """A unit of three runs that writes a value of its own name; every value has 1 KiB."""
    moved = KIB * (len(reads) + 1)
    return Unit(name, family, stage, region, 3, 256, moved, 2.0, converts, dict.fromkeys(reads, KIB), {name: KIB})


def clusters(*units, **options):
    return find_clusters(units, {value: KIB for one in units for value in (*one.reads, *one.writes)}, **options)


def test_a_chain_is_one_cluster_with_its_criteria():
    (found,) = clusters(
        unit("a", ["x", "y"]),
        unit("t", ["a"], family="layout", converts=True),
        unit("b", ["t", "x"]),
        unit("next", ["b"], family="gemm", stage="C"),
    )
    assert found.units == ("a", "t", "b")
    assert (found.runs, found.invocations, found.us, found.flops) == (3, 9, 18.0, 3 * 3 * 256)
    assert found.bytes == 3 * KIB * (3 + 2 + 3)
    assert found.least_bytes == 3 * KIB * 3  # x and y in, b out
    assert found.saved_bytes == found.bytes - found.least_bytes
    assert (found.boundary_values, found.us_per_invocation) == (3, 2.0)
    assert found.boundary_conversions == 0  # the layout change is between two ops of stage B


def test_a_conversion_next_to_another_stage_is_counted_per_run():
    units = [unit("a", ["x"], stage="A"), unit("t", ["a"], family="layout", converts=True), unit("b", ["t"])]
    (found,) = clusters(*units, escaping=["b"])
    assert found.boundary_conversions == 3
    assert found.stages == {"B": 2, "A": 1}


def test_nothing_is_grouped_across_other_work():
    found = clusters(
        unit("a", ["x"]),
        unit("b", ["a"]),
        unit("dot", ["b"], family="gemm"),
        unit("c", ["dot", "a"]),  # reads a directly, but also what the product made of it: one kernel is impossible
        unit("d", ["c"]),
    )
    assert {one.units for one in found} == {("a", "b"), ("c", "d")}


def test_regions_are_kept_apart_and_constants_are_no_barrier():
    zero, elsewhere = unit("zero", [], family="constant"), unit("elsewhere", ["b"], region="other")
    units = [zero, unit("a", ["x"]), unit("b", ["a", "zero"]), elsewhere]
    assert [found.units for found in clusters(*units)] == [("a", "b")]
    assert clusters(*units, least=3) == []


def test_a_value_that_is_read_in_parts_is_not_larger_than_whole():
    parts = [f"part{i}" for i in range(4)]
    units = [*(unit(part, ["x"], family="layout") for part in parts), unit("sum", parts)]
    (found,) = clusters(*units, escaping=["sum"])
    assert found.least_bytes == 3 * 2 * KIB  # x once, sum once


def test_clusters_of_a_program_stop_at_matrix_products():
    def function(x, w):
        def body(_, a):
            with jax.named_scope("stage_b"):
                h = jnp.tanh(a) * 2.0 + 1.0
                return jnp.exp(h @ w) * h

        return jax.lax.fori_loop(0, 5, body, x)

    found = op_clusters(as_program(function, jnp.ones((8, 8)), jnp.ones((8, 8))))
    assert len(found) == 2
    assert {one.runs for one in found} == {5}
    assert all("dot_general" not in name for one in found for name in one.units)
    assert all(one.least_bytes < one.bytes for one in found)
    assert {tuple(one.stages) for one in found} == {("B",)}
