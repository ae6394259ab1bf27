"""The picture of the replay: what it says, that it loses nothing, and what it says when there is no replay."""

import re

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.report.pictures.dot import flops_text
from fusionlab.report.pictures.replay import replay_dot
from workloads import catalogue

COUNT = r'<TD ALIGN="RIGHT" WIDTH="40" HEIGHT="18">([\d,]+)</TD>'
PANEL = r'^ *p\d+ \[label=<.*?<B>(.*?)</B> &#183; (.*?)(?:&#160;)*</TD>.*pos="([-\d.]+),([-\d.]+)!"'


@pytest.fixture(scope="module")
def program():
    return lower(catalogue.build("paulinet", "LiH", walkers=4, size="tiny"), "cuda")


@pytest.fixture(scope="module")
def picture(program):
    return replay_dot(program)


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
