"""The picture of the replay: what it says, that it loses nothing, and what it says when there is no replay."""

import re
import shutil
import subprocess

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.report.pictures.dot import flops_text
from fusionlab.report.pictures.grid import ordered
from fusionlab.report.pictures.replay import replay_dot
from workloads import catalogue


def as_program(function, *arguments):
    lowered = jax.jit(function, keep_unused=True).trace(*arguments).lower(lowering_platforms=("cpu",))
    return Program.from_module(lowered.compiler_ir("stablehlo"), name="small", provenance="test")


@pytest.fixture(scope="module")
def program():
    return lower(catalogue.build("paulinet", "LiH", walkers=4, size="tiny"), "cuda")


@pytest.fixture(scope="module")
def picture(program):
    return replay_dot(program)


def test_the_loop_its_seed_and_its_ends_are_named(picture):
    assert "stablehlo.while: 12 trips. In each: direction = row k of the 12 x 12 identity" in picture
    assert "sum of all trips: 4xf32" in picture
    assert "Carried through every trip, unchanged" in picture


@pytest.mark.parametrize("expand", [False, True])
def test_every_operation_is_in_a_box(program, expand):
    picture = replay_dot(program, expand=expand)
    replay = find_replays(view_of(program.parse()))[0]
    assert sum(int(n.replace(",", "")) for n in re.findall(r">([\d,]+) ops?<", picture)) == replay.body_ops
    assert flops_text(program_cost(replay.loop.body).flops) in picture


def test_alike_layers_are_drawn_once(program, picture):
    heads = re.findall(r"correlation update<.B> &#183; ([^&]*?) &#183;", picture)
    assert [re.sub(r"\d", "#", head) for head in heads] == ["interaction # to # ×#"] * 2
    assert picture.count("figures are of all") == 2
    assert replay_dot(program, expand=True).count("correlation update</B> &#183; interaction ") > 2


def test_there_are_few_boxes(program, picture):
    assert 20 < len(re.findall(r">[\d,]+ ops?<", picture)) <= 60
    assert len(re.findall(r">[\d,]+ ops?<", replay_dot(program, most_boxes=25))) <= 25


def test_stages_stand_in_two_columns_in_reading_order(picture):
    places = {}
    panel = r'^ *(p\d+) \[label=<.*?<B>(.*?)</B>.*pos="([-\d.]+),([-\d.]+)!"'
    for name, head, x, y in re.findall(panel, picture, re.MULTILINE):
        places.setdefault(float(x), []).append((-float(y), head[0], name))
    # An ansatz's interactions are panels of their own within stage B.
    columns = [[stage for _, stage, _ in sorted(places[x])] for x in sorted(places)]
    assert [list(dict.fromkeys(column)) for column in columns] == [list("EABCD"), list("EABCD")]
    assert [sorted(column, key="EABCD".index) for column in columns] == columns
    left, right = (places[x] for x in sorted(places))
    for _, _, name in left:
        assert "tangents, forward pass" in _line(picture, name)
    for _, _, name in right:
        assert "tangents, reverse pass" in _line(picture, name)


def _line(picture, name):
    return next(line for line in picture.splitlines() if line.strip().startswith(f"{name} ["))


def test_the_same_program_gives_the_same_text(program, picture):
    assert replay_dot(program) == picture


def test_graphviz_accepts_it(picture):
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    done = subprocess.run(["dot", "-Tsvg"], input=picture.encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert b"</svg>" in done.stdout


def test_a_program_without_a_loop_says_so_and_shows_its_stages():
    def log_psi(x):
        with jax.named_scope("stage_a"):
            features = jnp.tanh(x)
        with jax.named_scope("stage_d"):
            return jnp.log((features**2).sum())

    picture = replay_dot(as_program(log_psi, jnp.ones(5)))
    assert "There is no replay to show: the program has no loop." in picture
    assert "A  wavefunction: features" in picture
    assert "D  wavefunction: determinants, log|psi|" in picture


def test_a_loop_that_is_no_replay_is_explained():
    def recur(x):
        return jax.lax.fori_loop(0, 5, lambda _, y: jnp.tanh(y), x)

    picture = replay_dot(as_program(recur, jnp.ones(5)))
    words = re.sub(r"<[^<>]*>", " ", picture)
    assert "Not a replay: a loop of 5 trips, " in words
    assert "(tensor&lt;5xf32&gt;) links one trip to the next" in re.sub(r"\s+", " ", words)


def test_rows_are_ordered_so_that_flows_go_down():
    assert ordered(4, {(2, 0): 1.0, (0, 3): 1.0, (3, 1): 1.0}) == [2, 0, 3, 1]
    assert ordered(3, {(2, 0): 1.0, (0, 1): 1.0}, fixed=1) == [0, 2, 1]
