"""Scopes: paths of names, what repeats by name and by content, and layers without scopes of their own."""

import pytest

from fusionlab.hlo.lowering import lower
from fusionlab.hlo.view import view_of
from fusionlab.report.pictures.scope_tree import scope_tree
from fusionlab.report.pictures.scopes import drawn_once, find_repeats, have_numbers, part_numbers, scope_path
from fusionlab.report.pictures.stages import scope_drawing
from tests.report.networks import chained
from workloads import catalogue


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


def test_three_identical_layers_are_one():
    (found,) = find_repeats({"layer_0": scope(), "layer_1": scope(), "layer_2": scope()})
    assert found.names == ("layer_0", "layer_1", "layer_2")
    assert (found.title, found.identical) == ("layer 0 to 2", True)


def test_a_last_layer_that_does_less_is_alike():
    (found,) = find_repeats({"layer_0": scope(10), "layer_1": scope(6)})
    assert not found.identical


@pytest.mark.parametrize(
    "scopes",
    [
        {"layer_0": scope(), "layer_1": scope(products=0)},  # no product in one of them
        {"layer_0": scope(10), "layer_1": scope(21)},  # more than twice as large
        {"layer_0": scope(), "head_0": scope()},  # other names
        {"layer": scope(), "readout": scope()},
    ],
)
def test_others_are_left_alone(scopes):
    assert find_repeats(scopes) == []


def test_numbers_with_gaps_are_listed():
    (found,) = find_repeats({"block3": scope(), "block1": scope()})
    assert found.title == "block 1, 3"
    assert found.names == ("block1", "block3")


LAYER = [f"op {i}" for i in range(12)]
HEAD, TAIL = ["a", "b", "c"], ["x", "y"]


def test_parts_are_numbered_and_what_is_around_them_is_not():
    assert part_numbers([*HEAD, *3 * LAYER, *TAIL]) == [0] * 3 + [1] * 12 + [2] * 12 + [3] * 12 + [0] * 2


def test_of_all_periods_the_shortest_counts():
    assert max(part_numbers(4 * LAYER)) == 4


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [*HEAD, *TAIL],
        [*LAYER, *HEAD, *LAYER],  # not in a row
        [*2 * LAYER, *HEAD],  # twice: the two spins
        [*3 * LAYER, *(f"more {i}" for i in range(37))],  # less than half of the whole
        9 * HEAD,  # nine of three, or two of twelve and what is left: too short, too few
    ],
)
def test_nothing_else_is(operations):
    assert not any(part_numbers(operations))


def test_numbered_names():
    assert have_numbers(["interaction_0", "interaction_1", "norm"])
    assert not have_numbers(["interaction_0", "norm", "...ij,k...jd->k...id"])


@pytest.mark.slow
@pytest.mark.parametrize(("model", "layers"), [("psiformer", 4), ("orbformer", 4)])
def test_transformer_layers_are_drawn_once(model, layers):
    program = lower(catalogue.build(model, "LiH", walkers=4), "cuda")
    repeated = [block for block in scope_drawing(program).blocks if block.repeats > 1]
    assert [(block.title, block.repeats) for block in repeated if block.role == "primal"] == [
        (f"B: part 1 to {layers}", layers)
    ]
    assert all(f"{layers} times, identical" in block.notes[0] for block in repeated)
    expanded = [block.title for block in scope_drawing(program, expand=True).blocks if block.role == "primal"]
    assert [f"B: part {i}" for i in range(1, layers + 1)] == [title for title in expanded if "part" in title]
    groups = scope_tree(view_of(program.parse())).groups
    (found,) = [group for group in groups if group.kind == "repeat" and group.role == "primal"]
    assert (found.label, found.repeats, found.identical) == (f"part ×{layers}", layers, True)


def test_three_identical_layers_are_one_scope():
    view, side, paths = chained(["net_0", "net_1", "net_2"])
    named, layers = drawn_once(view, side, paths)
    assert set(named.values()) == {("stage_b", "net *")}
    ((depth, layer),) = layers[("stage_b", "net *"), "tangent"].items()
    assert (depth, len(layer.names), layer.identical, layer.sizes) == (1, 3, True, (16, 16, 16))
    assert layer.words == "3 times, identical"


def test_a_layer_that_does_more_is_alike():
    view, side, paths = chained(["net_0", "net_1"])
    for node in list(view)[:6]:
        view.nodes[node]["name"] = "subtract"
    (layer,) = drawn_once(view, side, paths)[1][("stage_b", "net *"), "tangent"].values()
    assert layer.words == "2 times, alike: 16 operations each"
    view, side, paths = chained(["net_0", "net_1", "net_1"])
    (layer,) = drawn_once(view, side, paths)[1][("stage_b", "net *"), "tangent"].values()
    assert layer.words == "2 times, alike: 16 to 32 operations each"


def test_layers_of_one_role_are_compared_with_each_other():
    view, side, paths = chained(["net_0", "net_1"])
    for node in list(view)[16:]:
        side[node] = "tangent-of-cotangent"
    named, layers = drawn_once(view, side, paths)
    assert named == paths
    assert layers == {}


def test_layers_without_scopes_are_found():
    view, side, paths = chained([""] * 3)
    named, layers = drawn_once(view, side, paths)
    assert {scope[1] for scope in named.values()} == {"part *"}  # of 12: shorter ones are no layers
    assert layers[("stage_b", "part *"), "tangent"][1].identical


def test_layers_within_layers_stand_for_all_of_them():
    view, side, paths = chained(["net_0", "net_1", "net_2", "net_3"])
    inner = {"net_0": ("block_0", "mlp_0"), "net_1": ("block_0", "mlp_1"), "net_2": ("block_1", "mlp_0"),
             "net_3": ("block_1", "mlp_1")}  # fmt: skip
    paths = {node: ("stage_b", *inner[path[1]]) for node, path in paths.items()}
    named, layers = drawn_once(view, side, paths)
    (scope,) = set(named.values())
    assert scope == ("stage_b", "block *", "mlp *")
    assert {depth: len(layer.names) for depth, layer in layers[scope, "tangent"].items()} == {1: 2, 2: 2}
