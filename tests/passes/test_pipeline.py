"""Pipelines as text, budgets, and what is repeated at another number of walkers."""

import pytest

from fusionlab.bytesize import ByteSize
from fusionlab.errors import InputError
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.fuse_jvp_replay.choose import FuseJvpReplay
from fusionlab.passes.interface import Declined, Setting, VerificationError, verify
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.pipeline import parse_pipeline, print_pipeline, resolved_pipeline, run_pipeline

from .loop_functions import FUNCTIONS, WEIGHTS, X


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
        ("batch-replay{chunk=many}", "'many' is not a whole number"),
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


@pytest.fixture(scope="module")
def replay(lowered):
    return lowered(FUNCTIONS["jvp-in-loop"], WEIGHTS, X)


def chunk_of(program):
    """The chunk that temp bytes are proportional to in these tests: six directions, or as many as the loop takes."""
    loops = find_loops(view_of(program.parse()))
    return 6 // loops[0].trips if loops else 6


def run_within(replay, budget, per_trip=100, fixed=0):
    tried = []

    def temp_bytes(program):
        untouched = program.digest == replay.digest
        tried.append(0 if untouched else chunk_of(program))
        return fixed + per_trip * (1 if untouched else chunk_of(program))

    return BatchReplay(memory_budget=ByteSize(budget)).run(replay, Setting(temp_bytes)), tried


@pytest.mark.parametrize(("budget", "chunk"), [(600, 6), (599, 3), (300, 3), (299, 2), (150, 1)])
def test_the_largest_chunk_that_fits_is_chosen(budget, chunk, replay):
    result, _ = run_within(replay, budget)
    assert chunk_of(result.program) == chunk
    (event,) = result.applied
    assert "budget" in event.what
    assert event.resolved == ("batch-replay" if chunk == 6 else f"batch-replay{{chunk={chunk}}}")


def test_a_budget_that_nothing_fits_is_declined_with_the_figure(replay):
    result, _ = run_within(replay, 50)
    assert result.program is replay
    (event,) = result.events
    assert isinstance(event, Declined)
    assert event.kind == "unprofitable"
    assert "too small" in event.reason
    assert "chunk 1" in event.reason


def test_hopeless_chunks_are_not_compiled(replay):
    _, tried = run_within(replay, 250)
    assert tried == [6, 0, 2]


def test_a_budget_needs_a_target(replay):
    with pytest.raises(InputError, match="needs a target"):
        BatchReplay(memory_budget=ByteSize(100)).run(replay, Setting())


def test_the_observer_sees_every_pass_and_its_time(replay):
    seen = []
    passes = parse_pipeline("licm,batch-replay")
    result = run_pipeline(replay, passes, Setting(), lambda pass_, made, seconds: seen.append((pass_, made, seconds)))
    assert [pass_ for pass_, _, _ in seen] == list(passes)
    assert seen[-1][1].program is result.program
    assert all(seconds >= 0 for _, _, seconds in seen)


def test_choices_are_repeated_exactly(replay):
    result = run_pipeline(replay, parse_pipeline("fuse-jvp-replay{chunk=2}"), Setting())
    text = resolved_pipeline(result.events)
    assert text == "licm,batch-replay{chunk=2}"
    again = run_pipeline(replay, parse_pipeline(text), Setting())
    assert again.program.text == result.program.text


def test_a_chunk_that_some_loops_exceed_is_repeated_for_the_others(lowered):
    """One loop runs 3 trips and one 6: with chunks of 3 the first is batched whole, and the second is not."""

    def function(weights, x):
        import jax

        first = jax.lax.fori_loop(0, 3, lambda k, s: s + (x * k) @ weights, x)
        return jax.lax.fori_loop(0, 6, lambda k, s: s + (first * k) @ weights, x)

    program = lowered(function, WEIGHTS, X)
    result = run_pipeline(program, parse_pipeline("batch-replay{chunk=3}"), Setting())
    assert [loop.trips for loop in find_loops(view_of(result.program.parse()))] == [2]
    again = run_pipeline(program, parse_pipeline(resolved_pipeline(result.events)), Setting())
    assert again.program.text == result.program.text


def test_chunks_stay_chunks_whatever_pass_comes_between(replay):
    result = run_pipeline(replay, parse_pipeline("batch-replay{chunk=2},licm,batch-replay"), Setting())
    (loop,) = find_loops(view_of(result.program.parse()))
    assert loop.trips == 3


def test_nothing_is_hoisted_for_a_loop_that_is_not_batched(lowered):
    import jax
    import jax.numpy as jnp

    def recurrence(weights, x):
        return jax.lax.fori_loop(0, 4, lambda k, y: jnp.tanh(y + jnp.sin(x) @ weights), x)

    program = lowered(recurrence, WEIGHTS, X)
    assert LoopInvariantCodeMotion().run(program, Setting()).applied
    assert FuseJvpReplay().run(program, Setting()).program is program


def test_an_invalid_module_names_the_pass(replay):
    module = replay.parse()
    verify(module, "some-pass")
    with module.context:
        del module.body.operations[0].operation.attributes["function_type"]
    with pytest.raises(VerificationError, match="pass some-pass produced an invalid module"):
        verify(module, "some-pass")
