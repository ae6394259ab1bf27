"""batch-replay: its cases, chunks, memory budgets, and what is repeated at another number of walkers."""

import jax
import pytest

from fusionlab.bytesize import ByteSize
from fusionlab.errors import InputError
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.interface import Declined, Setting
from fusionlab.passes.pipeline import resolved_pipeline

from .case_files import test_case  # noqa: F401
from .loop_functions import WEIGHTS, X


def trips(program):
    return [loop.trips for loop in find_loops(view_of(program.parse()))]


@pytest.mark.parametrize(("chunk", "left"), [(2, [3]), (4, []), (5, []), (6, []), (99, [])])
def test_a_chunk_leaves_a_loop_over_chunks_and_the_rest(chunk, left, loop_program, rewritten):
    """Six directions: three pairs in a loop; one chunk of four or five and a rest, unrolled; all at once."""
    assert trips(rewritten(loop_program("replay"), f"batch-replay{{chunk={chunk}}}").program) == left


def test_a_function_called_twice_is_rewritten_once(loop_program, rewritten):
    assert len(rewritten(loop_program("called-twice"), "batch-replay").applied) == 1


def test_scopes_of_the_body_survive(loop_program, rewritten):
    program = loop_program("replay")
    before, after = (
        {node.scope.rpartition("/")[0] for node in view_of(one.parse()).walk()}
        for one in (program, rewritten(program, "batch-replay").program)
    )
    assert all("@<" not in scope for scope in after)
    assert {scope for scope in before if "while/body" in scope} & after


def chunk_of(program):
    """The chunk that temp bytes are proportional to in these tests: six directions, or as many as the loop takes."""
    left = trips(program)
    return 6 // left[0] if left else 6


def within(program, budget):
    """The result where each trip takes 100 bytes, and the chunks that were compiled (0: the program as it is)."""
    tried = []

    def temp_bytes(candidate):
        untouched = candidate.digest == program.digest
        tried.append(0 if untouched else chunk_of(candidate))
        return 100 * (1 if untouched else chunk_of(candidate))

    return BatchReplay(memory_budget=ByteSize(budget)).run(program, Setting(temp_bytes)), tried


@pytest.mark.parametrize(("budget", "chunk"), [(600, 6), (599, 3), (300, 3), (299, 2), (150, 1)])
def test_the_largest_chunk_that_fits_is_chosen(budget, chunk, loop_program):
    result, _ = within(loop_program("jvp-in-loop"), budget)
    assert chunk_of(result.program) == chunk
    (event,) = result.applied
    assert "budget" in event.what
    assert event.resolved == ("batch-replay" if chunk == 6 else f"batch-replay{{chunk={chunk}}}")


def test_a_budget_that_nothing_fits_is_declined_with_the_figure(loop_program):
    program = loop_program("jvp-in-loop")
    result, _ = within(program, 50)
    assert result.program is program
    (event,) = result.events
    assert isinstance(event, Declined)
    assert event.kind == "unprofitable"
    assert "too small" in event.reason
    assert "chunk 1" in event.reason


def test_hopeless_chunks_are_not_compiled(loop_program):
    assert within(loop_program("jvp-in-loop"), 250)[1] == [6, 0, 2]


def test_a_budget_needs_a_target(loop_program):
    with pytest.raises(InputError, match="needs a target"):
        BatchReplay(memory_budget=ByteSize(100)).run(loop_program("jvp-in-loop"), Setting())


def test_a_chunk_that_some_loops_exceed_is_repeated_for_the_others(lowered, rewritten):
    """One loop runs 3 trips and one 6: with chunks of 3 the first is batched whole, and the second is not."""

    def function(weights, x):
        first = jax.lax.fori_loop(0, 3, lambda k, s: s + (x * k) @ weights, x)
        return jax.lax.fori_loop(0, 6, lambda k, s: s + (first * k) @ weights, x)

    program = lowered(function, WEIGHTS, X)
    result = rewritten(program, "batch-replay{chunk=3}")
    assert trips(result.program) == [2]
    assert rewritten(program, resolved_pipeline(result.events)).program.text == result.program.text


def test_chunks_stay_chunks_whatever_pass_comes_between(loop_program, rewritten):
    assert trips(rewritten(loop_program("jvp-in-loop"), "batch-replay{chunk=2},licm,batch-replay").program) == [3]
