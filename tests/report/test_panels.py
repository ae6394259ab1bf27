"""Collapsing a graph into panels and boxes: nothing is lost, the limit holds, and alike layers are one panel."""

import pytest

from fusionlab.report.pictures.panels import Fold, flows
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
TOP, DEEP = ("net",), [("net", layer, part) for layer in ("layer", "layer_1") for part in "uw"]


@pytest.mark.parametrize(
    ("most", "scopes"), [(1, {TOP}), (3, {TOP, ("net", "layer"), ("net", "layer_1")}), (5, {TOP, *DEEP})]
)
def test_more_panels_show_deeper_scopes_and_nothing_is_lost(most, scopes):
    view = chained(NODES)
    found = Fold(view, dict.fromkeys(view, "tangent"))
    panels = found.panels(found.largest(most))
    assert {panel.scope for panel in panels} == scopes
    assert sorted(node for panel in panels for node in panel.members) == sorted(view)
    boxes = [box for panel in panels for box in panel.block(view, "tangent", "a title").rows]
    assert sum(box.count for box in boxes) == len(NODES)
    assert sum(box.bytes for box in boxes) == sum(size for *_, size in NODES)


def test_a_negligible_scope_is_part_of_its_parent():
    view = chained(NODES)
    found = Fold(view, dict.fromkeys(view, "tangent"))
    sizes = [
        {panel.scope: len(panel.members) for panel in found.panels(found.down_to(2), share)} for share in (0.3, 0.4)
    ]
    assert sizes == [{("net", "layer"): 3, ("net", "layer_1"): 3, TOP: 1}, {("net", "layer"): 3, TOP: 4}]


def test_both_roles_of_a_scope_are_panels_of_their_own():
    view = chained(NODES)
    roles = {node: "tangent" if int(node) < 4 else "cotangent" for node in view}
    found = Fold(view, roles).panels({(), TOP})
    assert [(panel.scope, panel.group) for panel in found] == [(TOP, "tangent"), (TOP, "cotangent")]


def test_a_value_counts_once_per_panel_that_reads_it():
    view = chained(NODES)
    view.add_edge("2", "4", bytes=8, values=1)
    view.add_edge("2", "5", bytes=8, values=1)
    found = Fold(view, dict.fromkeys(view, "tangent"))
    moved = flows(view, found.panels(found.down_to(2)))
    assert [(flow.source, flow.target, flow.bytes, flow.values) for flow in moved] == [(0, 1, 8, 1), (1, 2, 8, 1)]


@pytest.mark.parametrize(("expand", "scopes"), [(False, ["net *"]), (True, ["net_0", "net_1", "net_2"])])
def test_alike_layers_are_one_panel_that_says_so(expand, scopes):
    view, roles, _ = layered("net_0", "net_1", "net_2")
    fold = Fold(view, roles, expand=expand)
    found = fold.panels(fold.largest(16))
    assert [panel.scope[-1] for panel in found] == scopes
    assert sorted(node for panel in found for node in panel.members) == sorted(view)
    blocks = [panel.block(view, "tangent", "a title", runs=2) for panel in found]
    assert sum(box.bytes for block in blocks for box in block.rows) == 20 * len(view)
    said = [(block.repeats, block.notes) for block in blocks]
    assert said == ([(1, ())] * 3 if expand else [(3, ("3 times, identical; figures are of all",))])


def test_layers_of_both_roles_have_one_name_and_constants_follow_their_reader():
    view, roles, _ = layered("net_0", "net_1", "net_2", "net_0", "net_1", "hij,jhd->ihd")
    roles |= dict.fromkeys(list(view)[48:], "tangent-of-cotangent")
    view.add_node("c", **{**view.nodes["50"], "family": "constant", "order": -1})
    view.add_edge("c", "50", bytes=8, values=1)
    fold = Fold(view, roles | {"c": "tangent"})
    found = {(panel.scope[1:], panel.group): panel for panel in fold.panels(fold.largest(16))}
    assert set(found) == {(("net *",), "tangent"), (("net *",), "tangent-of-cotangent"), ((), "tangent-of-cotangent")}
    assert "c" in found[("net *",), "tangent-of-cotangent"].members
    assert [len(panel.repeats[1].names) for panel in found.values() if panel.repeats] == [3, 2]
