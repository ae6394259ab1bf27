"""The networkx view: stable ids, inlined calls, nested regions, edges with bytes, and no trace left in the module."""

from pathlib import Path

import jax.numpy as jnp
import networkx as nx

from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of

from .conftest import as_program, laplacian_program


def ops_of(view):
    return [node for node, kind in view.nodes(data="kind") if kind == "op"]


def test_nodes_and_edges_of_a_small_program():
    view = graph(as_program(lambda x, w: jnp.tanh(x @ w), jnp.ones((2, 3)), jnp.ones((3, 4))))
    (dot,) = [node for node, name in view.nodes(data="name") if name == "stablehlo.dot_general"]
    assert view.nodes[dot] | {"order": 0} == {
        "kind": "op", "name": "stablehlo.dot_general", "type": "2x4xf32", "shape_bytes": 32,
        "scope": "jit(<lambda>)/dot_general", "phase": "", "stage": "", "role": "primal", "family": "gemm",
        "flops": 48, "transcendentals": 0, "bytes": 4 * (6 + 12 + 8), "unmodelled": 0,
        "region": "main", "parent": "", "order": 0,
    }  # fmt: skip
    assert view.edges["main/argument.0", dot] == {"bytes": 24, "values": 1}
    assert view.edges["main/argument.1", dot] == {"bytes": 48, "values": 1}
    assert "main/return" in nx.descendants(view, dot)


def test_ids_depend_on_the_module_alone(replay_program):
    first, second = graph(replay_program), graph(laplacian_program())
    assert list(first.nodes(data=True)) == list(second.nodes(data=True))
    assert list(first.edges(data=True)) == list(second.edges(data=True))


def test_the_view_is_acyclic_and_complete(paulinet):
    view = graph(paulinet)
    assert nx.is_directed_acyclic_graph(view)
    assert len(ops_of(view)) == sum(1 for _ in program_view(paulinet).operations())
    top = [node for node in ops_of(view) if not view.nodes[node]["parent"]]
    assert sum(view.nodes[node]["flops"] for node in top) == program_cost(paulinet).flops


def test_loop_regions_are_nested_under_the_loop(replay_program):
    view = graph(replay_program)
    (loop,) = [node for node, name in view.nodes(data="name") if name == "stablehlo.while"]
    inside = [node for node, parent in view.nodes(data="parent") if parent == loop]
    assert {view.nodes[node]["region"] for node in inside} == {f"{loop}/condition", f"{loop}/body"}
    assert all(node.startswith(f"{loop}/") for node in inside)
    assert {f"{loop}/body/argument.0", f"{loop}/body/return"} <= set(inside)


def test_a_region_alone(replay_program):
    flat = program_view(replay_program)
    body = find_replays(flat)[0].loop.body
    view, whole = graph(flat, body), graph(flat)
    ops = ops_of(view)
    assert len(ops) == sum(1 for _ in body.operations())
    assert {node: whole.nodes[node]["name"] for node in ops} == {node: view.nodes[node]["name"] for node in ops}
    assert {view.nodes[node]["stage"] for node in ops} == {"A", "B", "C", "E"}


def test_captured_values_reach_the_ops_that_read_them():
    view = graph(Program.from_file(Path(__file__).with_name("captures.mlir")))
    for made, read in (
        ("main/0", "main/1/true/0"),
        ("main/argument.0", "main/1/true/0"),
        ("main/argument.2", "main/1/false/return"),
    ):
        assert view.edges[made, read] == {"bytes": 4, "values": 1}


def test_the_module_is_untouched(replay_program):
    module = replay_program.parse()
    text = str(module)
    graph(view_of(module))
    assert str(module) == text
