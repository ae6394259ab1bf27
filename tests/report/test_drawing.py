"""Views by scope, cluster, kernel, dataflow and replay lose nothing, say what they draw, and Graphviz takes them."""

import contextlib
import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.report.pictures.dataflow import dataflow_drawing, dataflow_graph
from fusionlab.report.pictures.dot import bytes_text, drawing_dot, flops_text, quoted, text
from fusionlab.report.pictures.drawing import side_by_side
from fusionlab.report.pictures.launches import cluster_drawing, kernel_drawing, launch_graph
from fusionlab.report.pictures.replay import replay_dot
from fusionlab.report.pictures.stages import scope_drawing
from fusionlab.workloads import catalogue


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (bytes_text(0), "0"),
        (bytes_text(1), "1 B"),
        (bytes_text(999), "999 B"),
        (bytes_text(1023), "1.00 KiB"),
        (bytes_text(12_800), "12.5 KiB"),
        (bytes_text(880 * 2**20), "880 MiB"),
        (flops_text(7), "7 FLOP"),
        (flops_text(999_600), "1.00 MFLOP"),
        (flops_text(11.4e9), "11.4 GFLOP"),
        (text('<b> & "x"'), "&lt;b&gt; &amp; &quot;x&quot;"),
        (quoted('a "b"\\'), '"a \\"b\\"\\\\"'),
    ],
)
def test_figures_have_three_digits_and_names_cannot_break_the_syntax(shown, words):
    assert shown == words


def rows_of(drawing):
    return [row for block in drawing.blocks for row in block.rows]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("expand", [False, True])
def test_every_operation_is_in_a_block_with_all_its_work(ferminet, depth, expand):
    rows = rows_of(scope_drawing(ferminet, depth, expand=expand, constants=True))
    ops = [facts for _, facts in graph(ferminet).nodes(data=True) if facts["kind"] == "op"]
    assert sum(row.count for row in rows) == sum(facts["family"] != "control" for facts in ops)
    assert sum(row.flops for row in rows) == program_cost(ferminet).flops


def test_constants_and_broadcasts_are_drawn_on_request(ferminet):
    drawing, whole = scope_drawing(ferminet), scope_drawing(ferminet, constants=True)
    ops = [facts for _, facts in graph(ferminet).nodes(data=True) if facts["kind"] == "op"]
    hidden = [facts for facts in ops if facts["family"] == "constant" or "broadcast" in facts["name"]]
    assert sum(row.count for row in rows_of(whole)) - sum(row.count for row in rows_of(drawing)) == len(hidden) > 0
    assert f"not drawn: {len(hidden):,} constants and broadcasts (--constants draws them)" in drawing.notes
    assert not [note for note in whole.notes if "constants" in note]
    assert drawing.lines == whole.lines  # the totals are those of the whole program
    assert sum(row.flops for row in rows_of(drawing)) == program_cost(ferminet).flops


def step(layers, *, scoped=False):
    """A gradient descent step of a network of equal layers, unrolled, with scopes of their own or none."""

    def loss(weights, x):
        for i in range(layers):
            with jax.named_scope(f"layer_{i}") if scoped else contextlib.nullcontext():
                x = x + jnp.tanh(x @ weights[i]) / (1 + jnp.exp(-x))
        return jnp.mean(x**2)

    return lambda weights, x: weights - jax.grad(loss)(weights, x)


@pytest.mark.parametrize(("scoped", "title"), [(False, "part"), (True, "layer")])
def test_a_program_without_stages_is_drawn_by_transformation_and_scope(scoped, title, lowered):
    program = lowered(step(12, scoped=scoped), np.ones((12, 8, 8), np.float32), np.ones((4, 8), np.float32))
    drawing = scope_drawing(program)
    assert len(drawing.blocks) <= 24
    roles = {"jvp (forward pass)", "transpose (reverse pass)"}
    assert roles <= {block.role for block in drawing.blocks}
    assert roles <= {block.role for block in drawing.blocks if block.title.startswith(title)}
    picture = drawing_dot(drawing)
    assert "stage" not in picture
    assert "laplacian" not in picture.lower()
    deeper = scope_drawing(program, 4, expand=True)
    assert len(deeper.blocks) > len(drawing.blocks)


def test_more_blocks_than_can_be_read_are_refused(lowered):
    program = lowered(step(160, scoped=True), np.ones((160, 4, 4), np.float32), np.ones((2, 4), np.float32))
    assert len(scope_drawing(program).blocks) <= 24
    with pytest.raises(InputError, match=r"\d+ blocks at this --depth, .*; leave out --expand or ask for fewer levels"):
        scope_drawing(program, 3, expand=True)


def test_deeper_is_finer_and_repeats_are_drawn_once(ferminet):
    stages, collapsed = scope_drawing(ferminet, 1), scope_drawing(ferminet, 2)
    assert len(stages.blocks) < len(collapsed.blocks)
    repeated = [block for block in collapsed.blocks if block.repeats > 1]
    assert repeated
    assert all("interaction" in block.title and "2 times, alike" in block.notes[0] for block in repeated)
    expanded = scope_drawing(ferminet, 2, expand=True)
    assert len(expanded.blocks) > len(collapsed.blocks)
    assert not [block for block in expanded.blocks if block.repeats > 1]


def test_the_replay_is_a_frame_and_its_residuals_are_drawn(ferminet):
    drawing = scope_drawing(ferminet, 2)
    (replay,) = find_replays(view_of(ferminet.parse()))
    (loop,) = [group for group in drawing.groups.values() if group.look == "loop"]
    assert loop.title == "the Laplacian's replay: stablehlo.while, 12 trips"
    (entry,) = [i for i, block in enumerate(drawing.blocks) if block.title == "into the loop"]
    carried = f"{len(replay.residuals)} residuals per walker: {bytes_text(replay.residual_bytes)}"
    assert carried in "".join(drawing.blocks[entry].notes)
    assert sum(flow.bytes for flow in drawing.flows if flow.target == entry) >= 0.9 * replay.residual_bytes
    assert any(flow.source == entry for flow in drawing.flows)


def test_arrows_are_as_wide_as_their_bytes(ferminet):
    widths = [float(width) for width in re.findall(r"penwidth=([\d.]+), label=", drawing_dot(scope_drawing(ferminet)))]
    assert max(widths) > 3 * min(widths)


@pytest.mark.slow
def test_clusters_hold_every_launch(compiled):
    drawing = cluster_drawing(compiled, most=4)
    found = totals(launch_rows(compiled))
    assert sum(row.count for row in rows_of(drawing)) == found.dynamic_launches
    assert sum(row.bytes for row in rows_of(drawing)) == found.bytes
    assert [block.title for block in drawing.blocks if block.title.startswith("cluster ")]


def test_a_kernel_shows_what_is_in_it_and_who_is_around_it(compiled):
    view = launch_graph(compiled)
    name = next(n for n in view if n.startswith("loop_") and view.in_degree(n) and view.out_degree(n))
    drawing = kernel_drawing(compiled, name)
    assert len([block for block in drawing.blocks if block.groups]) > 1
    around = {block.title for block in drawing.blocks if not block.groups}
    assert around == {*view.predecessors(name), *view.successors(name)}
    with pytest.raises(InputError, match="unknown kernel 'loop_nothing'"):
        kernel_drawing(compiled, "loop_nothing")


def test_dataflow_is_found_by_id_and_by_scope(ferminet):
    view = graph(ferminet)
    node = next(n for n, facts in view.nodes(data=True) if facts["name"] == "stablehlo.dot_general")
    found = dataflow_graph(ferminet, node, 1)
    assert set(found) == {node, *view.predecessors(node), *view.successors(node)}
    drawing = dataflow_drawing(ferminet, node, 1)
    assert "asked for" in drawing_dot(drawing)
    ends = [(flow.source, flow.target) for flow in drawing.flows]
    assert ends == sorted(ends)  # that the same program has the same text, whatever the order of a set
    with pytest.raises(InputError, match=r"operations have a scope that ends with 'dot_general'; name one by its id"):
        dataflow_graph(ferminet, "dot_general")
    with pytest.raises(InputError, match="unknown value"):
        dataflow_graph(ferminet, "main/99999")


@pytest.mark.slow
def test_graphviz_takes_every_view(ferminet, compiled):
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    stages = scope_drawing(ferminet, 1)
    kernel = next(name for name in launch_graph(compiled) if name.startswith("loop_"))
    drawings = (
        side_by_side(stages, stages, "nothing <&>"),
        cluster_drawing(compiled),
        kernel_drawing(compiled, kernel),
        dataflow_drawing(ferminet, "main/20"),
    )
    for picture in (replay_dot(ferminet), *map(drawing_dot, drawings)):
        done = subprocess.run(["dot", "-Tsvg"], input=picture, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "<svg" in done.stdout


def test_side_by_side_keeps_both(ferminet):
    one, two = scope_drawing(ferminet, 1), scope_drawing(ferminet, 2)
    both = side_by_side(one, two, "a pass")
    assert len(both.blocks) == len(one.blocks) + len(two.blocks)
    assert len(both.flows) == len(one.flows) + len(two.flows)
    assert {block.groups[0] for block in both.blocks} == {"before", "after"}
    assert all(flow.source < len(one.blocks) for flow in both.flows[: len(one.flows)])
    assert all(flow.source >= len(one.blocks) for flow in both.flows[len(one.flows) :])


COUNT = r'<TD ALIGN="RIGHT" WIDTH="40" HEIGHT="18">([\d,]+)</TD>'
PANEL = r'^ *p\d+ \[label=<.*?<B>(.*?)</B> &#183; (.*?)(?:&#160;)*</TD>.*pos="([-\d.]+),([-\d.]+)!"'


@pytest.fixture(scope="module")
def program():
    return lower(catalogue.build("paulinet", "LiH", walkers=4, size="tiny"), "cuda")


@pytest.fixture(scope="module")
def picture(program):
    return replay_dot(program)


@pytest.mark.slow
def test_the_loop_its_seed_and_its_ends_are_named(program, picture):
    assert "stablehlo.while: 12 trips. In each: direction = row k of the 12 x 12 identity" in picture
    assert "sum of all trips: 4xf32" in picture
    assert "Carried through every trip, unchanged" in picture
    assert replay_dot(program) == picture


@pytest.mark.parametrize("expand", [False, True])
def test_every_operation_is_in_a_box(program, expand):
    picture = replay_dot(program, expand=expand)
    (replay,) = find_replays(view_of(program.parse()))
    assert sum(int(count.replace(",", "")) for count in re.findall(COUNT, picture)) == replay.body_ops
    assert flops_text(program_cost(replay.loop.body).flops) in picture


def test_alike_layers_are_drawn_once(program, picture):
    heads = re.findall(r"<B>B: (interaction .*?)</B>", picture)
    assert [re.sub(r"\d+", "#", head) for head in heads] == ["interaction # to #  &##;#"] * 2
    assert picture.count("figures are of all") == 2
    assert len(re.findall(r"<B>B: interaction \d</B>", replay_dot(program, expand=True))) > 2


def test_stages_stand_in_two_columns_in_reading_order(picture):
    panels = [(float(x), -float(y), head[0], role) for head, role, x, y in re.findall(PANEL, picture, re.MULTILINE)]
    columns = sorted({x for x, *_ in panels})
    assert len(columns) == 2
    for column, words in zip(columns, ("tangents, forward pass", "tangents, reverse pass"), strict=True):
        inside = sorted(panel[1:] for panel in panels if panel[0] == column)
        assert [stage for _, stage, _ in inside] == list("EABCD")
        assert {role for *_, role in inside} == {words}


def test_a_program_without_a_loop_says_so_and_shows_its_stages(lowered):
    def log_psi(x):
        with jax.named_scope("stage_a"):
            features = jnp.tanh(x)
        with jax.named_scope("stage_d"):
            return jnp.log((features**2).sum())

    picture = replay_dot(lowered(log_psi, jnp.ones(5)))
    assert "There is no replay to show: the program has no loop." in picture
    assert "<B>A: features</B>" in picture
    assert "<B>D: determinants, log|psi|</B>" in picture


def test_a_loop_that_is_no_replay_is_explained(lowered):
    picture = replay_dot(lowered(lambda x: jax.lax.fori_loop(0, 5, lambda _, y: jnp.tanh(y), x), jnp.ones(5)))
    words = re.sub(r"<[^<>]*>", " ", picture)
    assert "Not a replay: a loop of 5 trips, " in words
    assert "(tensor&lt;5xf32&gt;) links one trip to the next" in re.sub(r"\s+", " ", words)
