"""The views by scope, cluster, kernel and dataflow lose nothing, and say what they draw."""

import shutil
import subprocess

import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.report.pictures.dataflow import dataflow_drawing, dataflow_graph
from fusionlab.report.pictures.dot import bytes_text, drawing_dot
from fusionlab.report.pictures.drawing import side_by_side
from fusionlab.report.pictures.launches import cluster_drawing, kernel_drawing, launch_graph
from fusionlab.report.pictures.looks import family_colour
from fusionlab.report.pictures.stages import scope_drawing
from workloads import catalogue


@pytest.fixture(scope="module")
def program():
    return lower(catalogue.build("ferminet", "LiH", walkers=4, size="tiny"), "cuda")


@pytest.fixture(scope="module")
def compiled(program):
    return compile_program(program, load_target("a100"))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("expand", [False, True])
def test_every_operation_is_in_a_block_with_all_its_work(program, depth, expand):
    drawing = scope_drawing(program, depth, expand=expand)
    ops = [facts for _, facts in graph(program).nodes(data=True) if facts["kind"] == "op"]
    assert sum(row.count for block in drawing.blocks for row in block.rows) == sum(
        facts["family"] != "control" for facts in ops
    )
    whole = program_cost(program)
    assert sum(row.flops for block in drawing.blocks for row in block.rows) == whole.flops


def test_deeper_is_finer_and_repeats_are_drawn_once(program):
    sizes = [len(scope_drawing(program, depth).blocks) for depth in (1, 2)]
    assert sizes[0] < sizes[1]
    collapsed, expanded = scope_drawing(program, 2), scope_drawing(program, 2, expand=True)
    repeated = [block for block in collapsed.blocks if block.repeats > 1]
    assert repeated
    assert all("interaction" in block.title for block in repeated)
    assert len(expanded.blocks) > len(collapsed.blocks)
    assert not [block for block in expanded.blocks if block.repeats > 1]


def test_the_replay_is_a_frame_and_its_residuals_are_drawn(program):
    drawing = scope_drawing(program, 2)
    replay = find_replays(view_of(program.parse()))[0]
    (loop,) = [group for group in drawing.groups.values() if group.look == "loop"]
    assert loop.title == "the Laplacian's replay: stablehlo.while, 12 trips"
    (entry,) = [i for i, block in enumerate(drawing.blocks) if block.title == "into the loop"]
    assert f"{len(replay.residuals)} residuals per walker: {bytes_text(replay.residual_bytes)}" in "".join(
        drawing.blocks[entry].notes
    )
    carried = sum(flow.bytes for flow in drawing.flows if flow.target == entry)
    assert carried >= 0.9 * replay.residual_bytes
    assert any(flow.source == entry for flow in drawing.flows)


def test_arrows_are_as_wide_as_their_bytes_and_families_have_colours(program):
    drawing = scope_drawing(program, 2)
    text = drawing_dot(drawing)
    widths = [float(part.split(",")[0]) for part in text.split("penwidth=")[1:] if "label=" in part.split("]")[0]]
    assert max(widths) > 3 * min(widths)
    assert family_colour("gemm") in text
    assert "◆ gemm" in text  # told by a mark as well


def test_clusters_hold_every_launch(compiled):
    drawing = cluster_drawing(compiled, most=4)
    found = totals(launch_rows(compiled))
    assert sum(row.count for block in drawing.blocks for row in block.rows) == found.dynamic_launches
    assert sum(row.bytes for block in drawing.blocks for row in block.rows) == found.bytes
    assert [block.title for block in drawing.blocks if block.title.startswith("cluster ")]


def test_a_kernel_shows_what_is_in_it_and_who_is_around_it(compiled):
    view = launch_graph(compiled)
    name = next(n for n in view if n.startswith("loop_") and view.in_degree(n) and view.out_degree(n))
    drawing = kernel_drawing(compiled, name)
    inside = [block for block in drawing.blocks if block.groups]
    assert len(inside) > 1
    assert {block.title for block in drawing.blocks if not block.groups} == {
        *view.predecessors(name),
        *view.successors(name),
    }
    with pytest.raises(InputError, match="unknown kernel 'loop_nothing'"):
        kernel_drawing(compiled, "loop_nothing")


def test_dataflow_is_found_by_id_and_by_scope(program):
    view = graph(program)
    node = next(n for n, facts in view.nodes(data=True) if facts["name"] == "stablehlo.dot_general")
    found = dataflow_graph(program, node, 1)
    assert set(found) == {node, *view.predecessors(node), *view.successors(node)}
    drawing = dataflow_drawing(program, node, 1)
    assert "asked for" in drawing_dot(drawing)
    ends = [(flow.source, flow.target) for flow in drawing.flows]
    assert ends == sorted(ends)  # that the same program has the same text, whatever the order of a set
    with pytest.raises(InputError, match=r"operations have a scope that ends with 'dot_general'; name one by its id"):
        dataflow_graph(program, "dot_general")
    with pytest.raises(InputError, match="unknown value"):
        dataflow_graph(program, "main/99999")


def test_graphviz_takes_every_view(program, compiled):
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    stages = scope_drawing(program, 1)
    kernel = next(name for name in launch_graph(compiled) if name.startswith("loop_"))
    for drawing in (
        side_by_side(stages, stages, "nothing <&>"),
        cluster_drawing(compiled),
        kernel_drawing(compiled, kernel),
        dataflow_drawing(program, "main/20"),
    ):
        done = subprocess.run(["dot", "-Tsvg"], input=drawing_dot(drawing), capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "<svg" in done.stdout


def test_side_by_side_keeps_both(program):
    one, two = scope_drawing(program, 1), scope_drawing(program, 2)
    both = side_by_side(one, two, "a pass")
    assert len(both.blocks) == len(one.blocks) + len(two.blocks)
    assert len(both.flows) == len(one.flows) + len(two.flows)
    assert {block.groups[0] for block in both.blocks} == {"before", "after"}
    assert all(flow.source < len(one.blocks) for flow in both.flows[: len(one.flows)])
    assert all(flow.source >= len(one.blocks) for flow in both.flows[len(one.flows) :])
