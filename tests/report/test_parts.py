"""Layers without scopes: a sequence that comes several times in a row is found, and little else."""

import pytest

from fusionlab.hlo.lowering import lower
from fusionlab.hlo.view import view_of
from fusionlab.report.parts import have_numbers, part_numbers
from fusionlab.report.scope_tree import scope_tree
from fusionlab.report.scope_view import scope_drawing
from workloads import catalogue

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
