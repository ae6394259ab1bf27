"""Scopes: paths of names, what repeats, and collapsing a graph into panels without losing anything."""

import networkx as nx
import pytest

from fusionlab.hlo.lowering import lower
from fusionlab.hlo.view import view_of
from fusionlab.report.pictures.panels import Fold, flows
from fusionlab.report.pictures.scope_tree import scope_tree
from fusionlab.report.pictures.scopes import (
    drawn_once,
    find_repeats,
    have_numbers,
    named_scopes,
    part_numbers,
    scope_path,
    scope_title,
    with_parts,
)
from fusionlab.report.pictures.stages import scope_drawing
from fusionlab.workloads import catalogue

OPS_OF_A_LAYER = ("dot_general", "add", "tanh", "multiply") * 4


def chained(nodes):
    """A chain of operations, each (name stack, family, bytes) and a reader of the one before."""
    view = nx.DiGraph()
    for i, (scope, family, size) in enumerate(nodes):
        view.add_node(
            str(i), kind="op", name=scope.rpartition("/")[2], type="8xf32", scope=scope, family=family, bytes=size,
            flops=0, unmodelled=0, order=i, stage="B", shape_bytes=8,
        )  # fmt: skip
        if i:
            view.add_edge(str(i - 1), str(i), bytes=8, values=1)
    return view


def layered(*layers):
    """Layers of 16 operations with these scopes below stage B, all of one role: graph, roles and paths."""
    stacks = [
        f"jit(f)/while/body/jvp(stage_b)/{layer}{'/' if layer else ''}{op}" for layer in layers for op in OPS_OF_A_LAYER
    ]
    view = chained((stack, "gemm" if stack.endswith("dot_general") else "elementwise", 10) for stack in stacks)
    return view, dict.fromkeys(view, "tangent"), {node: named_scopes(view.nodes[node]["scope"]) for node in view}


@pytest.mark.parametrize(
    ("stack", "path"),
    [
        ("jit(f)/vmap()/while/body/closed_call/jvp(jvp(net))/layer/w/dot_general", ("net", "layer", "w")),
        ("jit(f)/vmap(stage_e)/while/body/closed_call/jvp(transpose(jvp(stage_b)))/mul", ("stage_b",)),
        ("jit(f)/stage_e/while/closed_call/jit(f)/stage_e/while/body/gather", ()),
        ("", ()),
    ],
)
def test_scopes_without_transformations_loops_and_the_op_itself(stack, path):
    assert scope_path(stack) == path


def scope(ops=10, products=2):
    return [{"name": "add", "type": "8xf32", "family": "gemm" if i < products else "elementwise"} for i in range(ops)]


@pytest.mark.parametrize(
    ("scopes", "title", "identical"),
    [
        ({"layer_0": scope(), "layer_1": scope(), "layer_2": scope()}, "layer 0 to 2", True),
        ({"layer_0": scope(10), "layer_1": scope(6)}, "layer 0 to 1", False),
        ({"block3": scope(), "block1": scope()}, "block 1, 3", True),
        ({"layer_0": scope(), "layer_1": scope(products=0)}, None, None),  # no product in one of them
        ({"layer_0": scope(10), "layer_1": scope(21)}, None, None),  # more than twice as large
        ({"layer_0": scope(), "head_0": scope()}, None, None),  # other names
        ({"layer": scope(), "readout": scope()}, None, None),
    ],
)
def test_alike_siblings_are_a_repeat(scopes, title, identical):
    found = [(one.names, one.title, one.identical) for one in find_repeats(scopes)]
    assert found == ([(tuple(sorted(scopes)), title, identical)] if title else [])


LAYER = [f"op {i}" for i in range(12)]
HEAD, TAIL = ["a", "b", "c"], ["x", "y"]


@pytest.mark.parametrize(
    ("operations", "parts"),
    [
        ([*HEAD, *3 * LAYER, *TAIL], [0] * 3 + [1] * 12 + [2] * 12 + [3] * 12 + [0] * 2),
        (4 * LAYER, [part for part in (1, 2, 3, 4) for _ in LAYER]),  # of all periods the shortest
        ([], []),
        ([*HEAD, *TAIL], 5 * [0]),
        ([*LAYER, *HEAD, *LAYER], 27 * [0]),  # not in a row
        ([*2 * LAYER, *HEAD], 27 * [0]),  # twice: the two spins
        ([*3 * LAYER, *(f"more {i}" for i in range(37))], 73 * [0]),  # less than half of the whole
        (9 * HEAD, 27 * [0]),  # nine of three, or two of twelve and what is left: too short, too few
    ],
)
def test_parts_are_numbered_and_what_is_around_them_is_not(operations, parts):
    assert part_numbers(operations) == parts


def test_numbered_names():
    assert have_numbers(["interaction_0", "interaction_1", "norm"])
    assert not have_numbers(["interaction_0", "norm", "...ij,k...jd->k...id"])


def words_of(view, roles, paths):
    """What is drawn once: scope to the words of its innermost repeat."""
    _, layers = drawn_once(view, roles, paths)
    return {path: repeats[max(repeats)].words for (path, _), repeats in layers.items()}


def test_alike_layers_are_one_scope_with_its_words():
    assert words_of(*layered("net_0", "net_1", "net_2")) == {("stage_b", "net *"): "3 times, identical"}
    assert words_of(*layered("net_0", "net_1", "net_1")) == {
        ("stage_b", "net *"): "2 times, alike: 16 to 32 operations each"
    }
    view, roles, paths = layered("net_0", "net_1")
    for node in list(view)[:6]:
        view.nodes[node]["name"] = "subtract"
    assert words_of(view, roles, paths) == {("stage_b", "net *"): "2 times, alike: 16 operations each"}
    roles |= dict.fromkeys(list(view)[16:], "tangent-of-cotangent")
    assert drawn_once(view, roles, paths) == (paths, {})  # layers of one role are compared with each other


def test_layers_without_scopes_are_found():
    view, roles, paths = layered("", "", "")
    divided = with_parts(view, roles, paths)
    assert {scope[1] for scope in divided.values()} == {f"part_{i}" for i in (1, 2, 3, 4)}  # of 12 operations each
    assert words_of(view, roles, divided) == {("stage_b", "part *"): "4 times, identical"}


def test_layers_within_layers_stand_for_all_of_them():
    view, roles, paths = layered("net_0", "net_1", "net_2", "net_3")
    inner = {"net_0": ("block_0", "mlp_0"), "net_1": ("block_0", "mlp_1"), "net_2": ("block_1", "mlp_0"),
             "net_3": ("block_1", "mlp_1")}  # fmt: skip
    named, layers = drawn_once(view, roles, {node: ("stage_b", *inner[path[1]]) for node, path in paths.items()})
    (scope,) = set(named.values())
    assert scope == ("stage_b", "block *", "mlp *")
    repeats = layers[scope, "tangent"]
    assert {depth: len(layer.names) for depth, layer in repeats.items()} == {1: 2, 2: 2}
    assert scope_title(scope, repeats, "B") == "B: block 0 to 1 ×2, mlp 0 to 1"


@pytest.mark.parametrize(
    ("scope", "stage", "inner", "title"),
    [
        (("stage_b", "interaction_1"), "B", False, "B: interaction 1"),
        (("stage_a",), "A", True, "A: features"),
        (("potential",), "", False, "potential"),
        (("net", "layer_1", "edges"), "B", False, "B: net, layer 1, edges"),
        (("net", "layer_1", "edges"), "B", True, "B: edges"),
    ],
)
def test_titles_name_stage_and_scopes(scope, stage, inner, title):
    assert scope_title(scope, {}, stage, inner=inner) == title


@pytest.mark.slow
@pytest.mark.parametrize("model", ["psiformer", "orbformer"])
def test_transformer_layers_are_drawn_once(model):
    program = lower(catalogue.build(model, "LiH", walkers=4), "cuda")
    repeated = [block for block in scope_drawing(program).blocks if block.repeats > 1]
    assert [(block.title, block.repeats) for block in repeated if block.role == "primal"] == [("B: part 1 to 4", 4)]
    assert all("4 times, identical" in block.notes[0] for block in repeated)
    expanded = [block.title for block in scope_drawing(program, expand=True).blocks if block.role == "primal"]
    assert [f"B: part {i}" for i in range(1, 5)] == [title for title in expanded if "part" in title]
    groups = scope_tree(view_of(program.parse())).groups
    (found,) = [group for group in groups if group.kind == "repeat" and group.role == "primal"]
    assert (found.label, found.repeats, found.identical) == ("part ×4", 4, True)


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


def folded(*more):
    view = chained(NODES)
    view.add_edges_from(more, bytes=8, values=1)
    return view, Fold(view, dict.fromkeys(view, "tangent"))


@pytest.mark.parametrize(
    ("most", "scopes"), [(1, {TOP}), (3, {TOP, ("net", "layer"), ("net", "layer_1")}), (5, {TOP, *DEEP})]
)
def test_more_panels_show_deeper_scopes_and_nothing_is_lost(most, scopes):
    view, found = folded()
    panels = found.panels(found.largest(most))
    assert {panel.scope for panel in panels} == scopes
    assert sorted(node for panel in panels for node in panel.members) == sorted(view)
    boxes = [box for panel in panels for box in panel.block(view, "tangent", "a title").rows]
    assert sum(box.count for box in boxes) == len(NODES)
    assert sum(box.bytes for box in boxes) == sum(size for *_, size in NODES)


def test_a_negligible_scope_is_part_of_its_parent():
    _, found = folded()
    small, large = (found.panels(found.down_to(2), share) for share in (0.3, 0.4))
    assert {panel.scope: len(panel.members) for panel in small} == {("net", "layer"): 3, ("net", "layer_1"): 3, TOP: 1}
    assert {panel.scope: len(panel.members) for panel in large} == {("net", "layer"): 3, TOP: 4}


def test_both_roles_of_a_scope_are_panels_of_their_own():
    view = chained(NODES)
    roles = {node: "tangent" if int(node) < 4 else "cotangent" for node in view}
    found = Fold(view, roles).panels({(), TOP})
    assert [(panel.scope, panel.group) for panel in found] == [(TOP, "tangent"), (TOP, "cotangent")]


def test_a_value_counts_once_per_panel_that_reads_it():
    view, found = folded(("2", "4"), ("2", "5"))
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
