"""Collapsing a graph into panels and boxes: nothing is lost, the limit holds, and alike layers are one panel."""

import pytest

from fusionlab.report.pictures.panels import flows, panels
from tests.report.networks import chained, layered

ROOT = "jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))"
NODES = [
    (f"{ROOT}/layer/w/dot_general", "gemm", 100),
    (f"{ROOT}/layer/w/add", "elementwise", 50),
    (f"{ROOT}/layer/u/tanh", "elementwise", 50),
    (f"{ROOT}/layer_1/w/dot_general", "gemm", 100),
    (f"{ROOT}/layer_1/u/reduce", "reduction", 1),
    (f"{ROOT}/layer_1/u/sort", "sort", 1),
    (f"{ROOT}/mul", "elementwise", 10),
]
ALL = {("net",), *((("net", layer, part)) for layer in ("layer", "layer_1") for part in "uw")}
SOME = {("net",), ("net", "layer"), ("net", "layer_1", "u"), ("net", "layer_1", "w")}


@pytest.mark.parametrize(("limit", "scopes"), [(1, {("net",)}), (4, {("net",)}), (5, SOME), (60, ALL)])
def test_more_boxes_show_deeper_scopes_and_nothing_is_lost(limit, scopes):
    view = chained(NODES)
    found = panels(view, dict.fromkeys(view, "tangent"), limit)
    assert sorted(node for panel in found for node in panel.members) == sorted(view)
    boxes = [box for panel in found for box in panel.boxes]
    assert sum(box.count for box in boxes) == len(NODES)
    assert sum(box.bytes for box in boxes) == sum(size for *_, size in NODES)
    assert len(boxes) <= limit
    assert {panel.scope for panel in found} == scopes


def test_both_roles_of_a_scope_are_panels_of_their_own():
    view = chained(NODES)
    roles = {node: "tangent" if int(node) < 4 else "cotangent" for node in view}
    found = [(panel.scope, panel.role) for panel in panels(view, roles, 3)]
    assert found == [(("net",), "tangent"), (("net",), "cotangent")]


def test_a_value_counts_once_per_group_that_reads_it():
    view = chained(NODES)
    view.add_edge("2", "4", bytes=8, values=1)
    view.add_edge("2", "5", bytes=8, values=1)
    found = flows(view, [["0", "1", "2"], ["3", "4", "5"], ["6"]])
    assert [(flow.source, flow.target, flow.bytes, flow.values) for flow in found] == [(0, 1, 8, 1), (1, 2, 8, 1)]


@pytest.mark.parametrize(("expand", "scopes"), [(False, ["net *"]), (True, ["net_0", "net_1", "net_2"])])
def test_alike_layers_are_one_panel_and_lose_nothing(expand, scopes):
    view, roles, _ = layered("net_0", "net_1", "net_2")
    found = panels(view, roles, 60, expand=expand)
    assert sorted(node for panel in found for node in panel.members) == sorted(view)
    assert sum(box.bytes for panel in found for box in panel.boxes) == 10 * len(view)
    assert [panel.scope[-1] for panel in found] == scopes
    assert [list(panel.repeats) for panel in found] == [[] if expand else [1]] * len(scopes)


def test_layers_of_both_roles_have_one_name_and_constants_follow_their_reader():
    view, roles, _ = layered("net_0", "net_1", "net_2", "net_0", "net_1", "hij,jhd->ihd")
    roles |= dict.fromkeys(list(view)[48:], "tangent-of-cotangent")
    view.add_node("c", **{**view.nodes["50"], "family": "constant", "order": -1})
    view.add_edge("c", "50", bytes=8, values=1)
    found = {(panel.scope, panel.role): panel for panel in panels(view, roles | {"c": "tangent"}, 60)}
    forward, reverse, rest = (
        (("stage_b", "net *"), "tangent"),
        (("stage_b", "net *"), "tangent-of-cotangent"),
        (("stage_b",), "tangent-of-cotangent"),
    )
    assert set(found) == {forward, reverse, rest}
    assert "c" in found[reverse].members
    assert [len(found[key].repeats[1].names) for key in (forward, reverse)] == [3, 2]
