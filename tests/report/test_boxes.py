"""Collapsing a graph into panels and boxes: nothing is lost, and the limit holds."""

import networkx as nx
import pytest

from fusionlab.report.boxes import adopt_constants, collect, flows, panels, scope_path

NODES = [
    # scope, family, bytes; chained, so that each reads the one before
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer/w/dot_general", "gemm", 100),
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer/w/add", "elementwise", 50),
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer/u/tanh", "elementwise", 50),
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer_1/w/dot_general", "gemm", 100),
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer_1/u/reduce", "reduction", 1),
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer_1/u/sort", "sort", 1),
    ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/mul", "elementwise", 10),
]


def chain():
    view = nx.DiGraph()
    for i, (scope, family, size) in enumerate(NODES):
        view.add_node(
            str(i),
            name=scope.rpartition("/")[2],
            type="8xf32",
            scope=scope,
            family=family,
            bytes=size,
            flops=0,
            unmodelled=0,
            order=i,
            stage="B",
            shape_bytes=8,
        )
        if i:
            view.add_edge(str(i - 1), str(i), bytes=8, values=1)
    return view


def test_scopes_without_transformations_loops_and_the_op_itself():
    assert scope_path(NODES[0][0]) == ("net", "layer", "w")
    assert scope_path("jit(f)/vmap(stage_e)/while/body/closed_call/jvp(transpose(jvp(stage_b)))/mul") == ("stage_b",)
    assert scope_path("jit(f)/stage_e/while/closed_call/jit(f)/stage_e/while/body/gather") == ()
    assert scope_path("") == ()


ALL = {("net",), *((("net", layer, part)) for layer in ("layer", "layer_1") for part in "uw")}
SOME = {("net",), ("net", "layer"), ("net", "layer_1", "u"), ("net", "layer_1", "w")}


@pytest.mark.parametrize(("limit", "scopes"), [(1, {("net",)}), (4, {("net",)}), (5, SOME), (60, ALL)])
def test_more_boxes_show_deeper_scopes_and_nothing_is_lost(limit, scopes):
    view = chain()
    found = panels(view, dict.fromkeys(view, "tangent"), limit)
    assert sorted(node for panel in found for node in panel.members) == sorted(view)
    boxes = [box for panel in found for box in panel.boxes]
    assert sum(box.ops for box in boxes) == len(NODES)
    assert sum(box.bytes for box in boxes) == sum(size for *_, size in NODES)
    assert len(boxes) <= limit
    assert {panel.scope for panel in found} == scopes


def test_both_sides_of_a_scope_are_panels_of_their_own():
    view = chain()
    side = {node: "tangent" if int(node) < 4 else "cotangent" for node in view}
    assert [(panel.scope, panel.role) for panel in panels(view, side, 3)] == [
        (("net",), "tangent"),
        (("net",), "cotangent"),
    ]


def test_a_value_counts_once_per_panel_that_reads_it():
    view = chain()
    view.add_edge("2", "4", bytes=8, values=1)
    view.add_edge("2", "5", bytes=8, values=1)
    found = collect(view, dict.fromkeys(view, "tangent"), {node: scope_path(NODES[int(node)][0])[:2] for node in view})
    names = [panel.title for panel in found]
    moved = {(names[flow.source], names[flow.target]): (flow.bytes, flow.values) for flow in flows(view, found)}
    assert moved == {("layer", "layer_1"): (8, 1), ("layer_1", "net"): (8, 1)}


def test_constants_go_where_they_are_read():
    view = chain()
    facts = dict(view.nodes["0"], family="constant", order=-1)
    view.add_node("c", **facts)
    view.add_edge("c", "3", bytes=4, values=1)
    places = {node: scope_path(view.nodes[node]["scope"]) for node in view}
    places["c"] = ()
    adopt_constants(view, places)
    assert places["c"] == ("net", "layer_1", "w")
