"""Attribution of name stacks and of nodes: phase, stage, role."""

from pathlib import Path

import pytest

from fusionlab.hlo.name_stacks import Frame, frames
from fusionlab.hlo.program import program_view
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.stages import Attribution, attribute, attribute_nodes

from .conftest import laplacian_program

TABLE = [
    ["" if field == "-" else field for field in line.split()]
    for line in (Path(__file__).parent / "name_stacks.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("phase", "stage", "role", "name_stack"), TABLE)
def test_attribution_of_a_name(phase, stage, role, name_stack):
    assert attribute(name_stack) == Attribution(phase, stage, role)


def test_names_are_read_as_nested_calls():
    assert frames("jit(f)/vmap(a/b)/while/jvp(transpose(jvp()))") == (
        Frame(("jit",), "f"),
        Frame(("vmap",), "a/b"),
        Frame((), "while"),
        Frame(("jvp", "transpose", "jvp"), ""),
    )


def test_the_loop_body_of_a_replay_is_all_tangents(paulinet):
    flat = program_view(paulinet)
    (replay,) = find_replays(flat)
    found = attribute_nodes(flat, [replay])
    body = set(replay.loop.body.operations())
    assert {found[node].role for node in body} == {"tangent", "tangent-of-cotangent"}
    assert {found[node].stage for node in body} == set("ABCDE")
    assert {found[node].phase for node in body} == {"laplacian"}
    outside = [node for node in flat.operations() if node not in body]
    assert {found[node].role for node in outside} - {"tangent"} == {"primal", "cotangent"}
    tangents = {node.name for node in outside if found[node].role == "tangent"}
    assert tangents <= {"stablehlo.while", "stablehlo.compare", "stablehlo.constant"}  # the loop and its condition


def test_dataflow_finds_what_a_jvp_in_the_loop_recomputes():
    flat = program_view(laplacian_program("jvp-in-loop"))
    (replay,) = find_replays(flat)
    found = attribute_nodes(flat, [replay])
    tanh = [node for node in replay.loop.body.operations() if node.name == "stablehlo.tanh"]
    assert tanh
    assert {(found[node].stage, found[node].role) for node in tanh} == {("B", "primal")}
    assert {attribute(node.scope).role for node in tanh} == {"tangent"}  # all that the name alone says
    dots = {found[node].role for node in replay.loop.body.operations() if node.name == "stablehlo.dot_general"}
    assert dots == {"primal", "tangent", "cotangent", "tangent-of-cotangent"}
