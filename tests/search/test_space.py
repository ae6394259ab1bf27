"""What is searched."""

import pytest

from fusionlab.passes.catalogue import PASSES, PIPELINES
from fusionlab.passes.pipeline import parse_pipeline, print_pipeline
from fusionlab.search import space


def test_every_pass_is_tried_but_the_one_that_chooses_among_others():
    assert {move.name for move in space.moves()} == set(PASSES) - {"fuse-jvp-replay"}
    assert len(set(map(str, space.moves()))) == len(space.moves())
    named = {*space.VARIANTS, *space.MOST_USES, *(name for names in space.ONE_OF for name in names)}
    assert named <= set(PASSES)


def test_the_presets_come_first():
    texts = [print_pipeline(pipeline) for pipeline in space.beginnings()]
    assert texts[: len(PIPELINES)] == list(PIPELINES.values())
    assert f"sparsify-directions,{PIPELINES['layout']}" in texts


@pytest.mark.parametrize(
    ("pipeline", "move", "may_follow"),
    [
        ("scatter-to-gather", "expand-small-dots", True),
        ("scatter-to-gather", "scatter-to-gather", False),
        ("sparsify-directions{chunks=2}", "collapse-replay", False),
        ("sparsify-directions{chunks=2}", "sparsify-directions", False),
        ("licm,batch-replay", "licm", True),
        ("licm,batch-replay,licm", "licm", False),
    ],
)
def test_what_may_follow(pipeline, move, may_follow):
    (pass_,) = parse_pipeline(move)
    assert space.allowed(parse_pipeline(pipeline), pass_) is may_follow
