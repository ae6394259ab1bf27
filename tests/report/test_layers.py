"""Alike layers are one scope of a picture, and what the picture says of them is true."""

import networkx as nx
import pytest

from fusionlab.report.boxes import panels
from fusionlab.report.layers import drawn_once
from fusionlab.report.panel_label import panel_height, panel_label


def network(layers, names=("dot_general", "add", "tanh", "multiply")):
    """A chain of operations: in each of ``layers`` (scopes below a stage) one of every name, times 4."""
    view = nx.DiGraph()
    paths = {}
    for layer in layers:
        for name in names * 4:
            node = str(len(view))
            scope = (
                f"jit(f)/while/body/jvp(stage_b)/{layer}/{name}" if layer else f"jit(f)/while/body/jvp(stage_b)/{name}"
            )
            family = "gemm" if name == "dot_general" else "elementwise"
            view.add_node(
                node, kind="op", name=name, type="8xf32", scope=scope, family=family, bytes=10, flops=3, unmodelled=0,
                order=len(view), stage="B", shape_bytes=8,
            )  # fmt: skip
            paths[node] = ("stage_b", *([layer] if layer else []))
            if len(view) > 1:
                view.add_edge(str(len(view) - 2), node, bytes=8, values=1)
    return view, dict.fromkeys(view, "tangent"), paths


def test_three_identical_layers_are_one_scope():
    view, side, paths = network(["net_0", "net_1", "net_2"])
    named, layers = drawn_once(view, side, paths)
    assert set(named.values()) == {("stage_b", "net *")}
    (layer,) = layers[("stage_b", "net *"), "tangent"]
    assert (layer.depth, layer.count, layer.identical, layer.sizes) == (1, 3, True, (16, 16))
    assert layer.words == "3 times, identical"


def test_a_layer_that_does_more_is_alike():
    view, side, paths = network(["net_0", "net_1"])
    for node in list(view)[:6]:
        view.nodes[node]["name"] = "subtract"
    (layer,) = drawn_once(view, side, paths)[1][("stage_b", "net *"), "tangent"]
    assert layer.words == "2 times, alike: 16 operations each"
    view, side, paths = network(["net_0", "net_1", "net_1"])
    (layer,) = drawn_once(view, side, paths)[1][("stage_b", "net *"), "tangent"]
    assert layer.words == "2 times, alike: 16 to 32 operations each"


def test_layers_of_one_role_are_compared_with_each_other():
    view, side, paths = network(["net_0", "net_1"])
    for node in list(view)[16:]:
        side[node] = "tangent-of-cotangent"
    named, layers = drawn_once(view, side, paths)
    assert named == paths
    assert layers == {}


def test_layers_without_scopes_are_found():
    view, side, paths = network([""] * 3)
    named, layers = drawn_once(view, side, paths)
    assert {scope[1] for scope in named.values()} == {"part *"}  # of 12: shorter ones are no layers
    assert layers[("stage_b", "part *"), "tangent"][0].identical


def test_layers_within_layers_stand_for_all_of_them():
    view, side, paths = network(["net_0", "net_1", "net_2", "net_3"])
    inner = {"net_0": ("block_0", "mlp_0"), "net_1": ("block_0", "mlp_1"), "net_2": ("block_1", "mlp_0"),
             "net_3": ("block_1", "mlp_1")}  # fmt: skip
    paths = {node: ("stage_b", *inner[path[1]]) for node, path in paths.items()}
    named, layers = drawn_once(view, side, paths)
    (scope,) = set(named.values())
    assert scope == ("stage_b", "block *", "mlp *")
    assert [layer.count for layer in layers[scope, "tangent"]] == [2, 2]


@pytest.mark.parametrize("expand", [False, True])
def test_a_panel_says_how_often_and_loses_nothing(expand):
    view, side, _ = network(["net_0", "net_1", "net_2"])
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
    view, side, _ = network(["net_0", "net_1", "net_2", "net_0", "net_1", "hij,jhd->ihd"])
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
