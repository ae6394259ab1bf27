"""Pipelines as text, names of passes, what is observed of pipelines, and what is repeated."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.bytesize import ByteSize
from fusionlab.errors import InputError
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.catalogue import ALIASES, PASSES, present_names
from fusionlab.passes.fuse_jvp_replay.choose import FuseJvpReplay
from fusionlab.passes.interface import Setting, VerificationError, verify
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.pipeline import (
    parse_pipeline,
    print_pipeline,
    resolved_pipeline,
    run_pipeline,
    why_nothing_applied,
)

from .laplacian_functions import WEIGHTS, X, determinants, pushed


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("batch-replay", (BatchReplay(),)),
        (" licm , batch-replay{chunk=3} ", (LoopInvariantCodeMotion(), BatchReplay(chunk=3))),
        ("batch-replay{ memory-budget = 2GiB }", (BatchReplay(0, ByteSize(2**31)),)),
        ("batch-replay{chunk=3,}", (BatchReplay(3),)),
        ("batch-replay{}", (BatchReplay(),)),
        ("fuse-jvp-replay{memory_budget=2GB}", (FuseJvpReplay(memory_budget=ByteSize(2_000_000_000)),)),
    ],
)
def test_text_to_passes_and_back(text, passes):
    assert parse_pipeline(text) == passes
    assert parse_pipeline(print_pipeline(passes)) == passes


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "is empty"),
        ("batch-replay,", "ends with a comma"),
        (",batch-replay", "cannot read"),
        ("batch-replay{chunk=3", "cannot read"),
        ("batch-replay chunk=3", "cannot read"),
        ("batch-replays", "unknown pass 'batch-replays'; did you mean: batch-replay"),
        ("batch-replay{chunks=3}", "unknown option of batch-replay 'chunks'; did you mean: chunk?"),
        ("licm{chunk=3}", "licm has no options"),
        ("batch-replay{chunk}", "option chunk needs a value"),
        ("batch-replay{chunk=many}", "'many' is not an integer"),
        ("batch-replay{chunk=-1}", "chunk must be at least 1"),
        ("fuse-jvp-replay{chunk=-1}", "chunk must be at least 1"),
        ("batch-replay{memory_budget=2 apples}", "is not a size"),
        ("batch-replay{memory_budget=0GiB}", "must be positive"),
    ],
)
def test_bad_text_is_an_input_error(text, cause):
    with pytest.raises(InputError) as caught:
        parse_pipeline(text)
    assert cause in str(caught.value)


def test_the_observer_sees_every_pass_and_its_time(loop_program):
    seen = []
    passes = parse_pipeline("licm,batch-replay")
    result = run_pipeline(loop_program("jvp-in-loop"), passes, Setting(), lambda *one: seen.append(one))
    assert [pass_ for pass_, _, _ in seen] == list(passes)
    assert seen[-1][1].program is result.program
    assert all(seconds >= 0 for _, _, seconds in seen)


def test_choices_are_repeated_exactly(loop_program, rewritten):
    result = rewritten(loop_program("jvp-in-loop"), "fuse-jvp-replay{chunk=2}")
    text = resolved_pipeline(result.events)
    assert text == "licm,batch-replay{chunk=2}"
    assert rewritten(loop_program("jvp-in-loop"), text).program.text == result.program.text


def test_an_invalid_module_names_the_pass(loop_program):
    module = loop_program("jvp-in-loop").parse()
    verify(module, "some-pass")
    with module.context:
        del module.body.operations[0].operation.attributes["function_type"]
    with pytest.raises(VerificationError, match="pass some-pass produced an invalid module"):
        verify(module, "some-pass")


@pytest.mark.slow
def test_the_reason_told_first_is_that_of_the_loop_that_resembles_a_replay_most(lowered):
    """Of an LU on the CPU the pivots are loops before it. Its sum is bounded in every trip, so that it is no
    replay; what its trips repeat is hoisted."""

    def of_one(x):
        hessian, eye = pushed(determinants(1), WEIGHTS, x)
        return lax.fori_loop(0, len(eye), lambda k, s: jnp.tanh(s) + hessian(eye[k])[k], 0.0)

    program = lowered(jax.vmap(of_one), X.astype("float32"))
    result = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting())
    assert {event.pass_name for event in result.applied} == {"licm"}
    for pass_name, why in (("sparsify-directions", "links one trip"), ("batch-replay", "is neither a sum nor stacked")):
        first, *others = (event for event in result.events if event.pass_name == pass_name)
        assert why in first.reason
        assert "slogdet" not in first.location
        assert len(others) > 1
        assert all("slogdet" in event.location or "solve" in event.location for event in others)
        told = why_nothing_applied(result.events, program)
        assert f"{pass_name}: {first.reason}, at {first.location} (and {len(others)} more)" in told


@pytest.mark.parametrize(("old", "new"), ALIASES.items())
def test_a_former_name_resolves_to_the_present_one(old, new, cli):
    assert old not in PASSES
    text = f"batch-replay{{chunk=3}},{old}"
    assert print_pipeline(parse_pipeline(text)) == present_names(text) == f"batch-replay{{chunk=3}},{new}"
    [listed] = json.loads(cli("passes", old, "--json").stdout)
    assert listed["name"] == new


def test_a_path_keeps_the_former_name_of_a_pass():
    path = "/home/fuse-layers/my.py:Mine{x=1}"
    assert present_names(f"{path},fuse-layers") == f"{path},dot-epilogue-kernels"
