"""Collapsing a graph into panels and boxes: nothing is lost, the limit holds, and alike layers are one panel."""

import networkx as nx
import pytest

from fusionlab.report.pictures.dot import panel_height, panel_label
from fusionlab.report.pictures.panels import collect, flows, panels
from fusionlab.report.pictures.scopes import adopt_constants, scope_path
from tests.report.networks import chained

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


ALL = {("net",), *((("net", layer, part)) for layer in ("layer", "layer_1") for part in "uw")}
SOME = {("net",), ("net", "layer"), ("net", "layer_1", "u"), ("net", "layer_1", "w")}


@pytest.mark.parametrize(("limit", "scopes"), [(1, {("net",)}), (4, {("net",)}), (5, SOME), (60, ALL)])
def test_more_boxes_show_deeper_scopes_and_nothing_is_lost(limit, scopes):
    view = chain()
    found = panels(view, dict.fromkeys(view, "tangent"), limit)
    assert sorted(node for panel in found for node in panel.members) == sorted(view)
    boxes = [box for panel in found for box in panel.boxes]
    assert sum(box.count for box in boxes) == len(NODES)
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


@pytest.mark.parametrize("expand", [False, True])
def test_a_panel_says_how_often_and_loses_nothing(expand):
    view, side, _ = chained(["net_0", "net_1", "net_2"])
    found = panels(view, side, 60, expand=expand)
    assert sorted(node for panel in found for node in panel.members) == sorted(view)
    assert sum(box.bytes for panel in found for box in panel.boxes) == 10 * len(view)
    labels = [panel_label(panel, 100) for panel in found]
    if expand:
        assert [panel.title for panel in found] == ["net_0", "net_1", "net_2"]
        assert not any("times" in label or "×" in label for label in labels)
        return
    (panel,) = found
    assert panel.title == "net 0 to 2 ×3"
    assert "net 0 to 2 ×3" in labels[0]
    assert "3 times, identical; figures are of all" in labels[0]
    assert panel_height(panel, noted=False) == 18 * labels[0].count("</TR><TR>") + 18


def test_layers_of_both_roles_have_one_name_and_constants_follow_their_reader():
    view, side, _ = chained(["net_0", "net_1", "net_2", "net_0", "net_1", "hij,jhd->ihd"])
    for node in list(view)[48:]:
        side[node] = "tangent-of-cotangent"
    view.add_node("c", **{**view.nodes["50"], "family": "constant", "order": -1})
    view.add_edge("c", "50", bytes=8, values=1)
    side["c"] = "tangent"
    found = {(panel.scope, panel.role): panel for panel in panels(view, side, 60)}
    assert set(found) == {
        (("stage_b", "net *"), "tangent"),
        (("stage_b", "net *"), "tangent-of-cotangent"),
        (("stage_b",), "tangent-of-cotangent"),
    }
    assert "c" in found[("stage_b", "net *"), "tangent-of-cotangent"].members
    assert {panel.title for panel in found.values()} == {"net 0 to 2 ×3", "net 0 to 1 ×2", "stage_b"}
