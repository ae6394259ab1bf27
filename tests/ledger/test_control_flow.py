"""Facts about control flow: each on a program that has it, and on one that nearly does."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import fusionlab
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.control_flow import (
    BRANCHES,
    COPY_PER_TRIP,
    EVERY_BRANCH,
    HOST_TRIP,
    IN_PLACE,
    ONE_KERNEL,
    control_facts,
)
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.ledger.ledger import launches
from fusionlab.ledger.origins import Origins
from fusionlab.ledger.saved import read_ledger
from fusionlab.ledger.thunks import captured_control
from fusionlab.report.tables.control_flow import control_lines
from tests.ledger.by_hand import compiled_of, text_of
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.usefixtures("compile_cache")

SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)
TARGETS = ["cpu", pytest.param("a100", marks=needs_the_cuda_plugin)]


def one_branch(x):
    return lax.cond(x[0, 0] > 0, lambda a: a * 2, lambda a: jnp.sin(a @ a) @ a, x)


def switched(x):
    return lax.switch(jnp.int32(x[0, 0]), [lambda a: a, lambda a: jnp.sin(a @ a), lambda a: a + 1], x)


def until(x):
    return lax.while_loop(lambda s: jnp.sum(s) < 10, lambda s: s @ s + 1, x)


def counted_loop(x):
    return lax.fori_loop(0, 5, lambda _, s: jnp.tanh(s @ s), x)


def batched(x):
    return jax.vmap(lambda v: lax.cond(v[0] > 0, lambda a: jnp.sin(a), lambda a: jnp.cumsum(a), v))(x)


def where(x):
    return jnp.where(x > 0, jnp.sin(x), jnp.cumsum(x, 1))


def updates(x):
    return lax.fori_loop(0, 8, lambda i, s: s.at[i].set(jnp.tanh(s[i] @ x)), x)


def small_loop(x):
    return lax.fori_loop(0, 8, lambda i, s: s.at[i].set(jnp.tanh(s[i])), x)


def exchange(x):
    return lax.fori_loop(0, 8, lambda _, s: (s[1], jnp.sort(s[0])), (x, x + 1))


@pytest.fixture
def facts(lowered):
    def of(function, target):
        kind = load_target(target).kind
        compiled = compile_program(lowered(function, SQUARE, platform=kind), load_target(target))
        return compiled, control_facts(compiled, Origins(compiled.module))

    return of


def of_kind(found, kind):
    return [one for one in found if one.kind == kind]


@needs_the_cuda_plugin
def test_a_gpu_copies_what_decides_to_the_host(facts):
    (loop,) = of_kind(facts(until, "a100")[1], HOST_TRIP)
    assert (loop.runs, loop.bytes) == (1, 1)
    assert "its predicate goes to the host before each trip" in loop.words
    assert loop.source.startswith("test_control_flow.py:")
    (index,) = of_kind(facts(switched, "a100")[1], HOST_TRIP)
    assert (index.bytes, "its branch index goes to the host once" in index.words) == (4, True)
    assert of_kind(facts(counted_loop, "a100")[1], HOST_TRIP) == []


def test_a_cpu_has_no_round_trip(facts):
    for function in (until, switched):
        assert of_kind(facts(function, "cpu")[1], HOST_TRIP) == []


@needs_the_cuda_plugin
def test_a_conditional_in_a_loop_goes_to_the_host_in_each_trip(facts):
    def function(x):
        return lax.fori_loop(0, 7, lambda _, s: one_branch(s), x)

    (found,) = of_kind(facts(function, "a100")[1], HOST_TRIP)
    assert (found.runs, "to the host in each of 7 trips of while" in found.words) == (7, True)


@needs_the_cuda_plugin
def test_a_conditional_in_a_loop_of_unknown_trip_count_goes_to_the_host_in_each_trip(facts):
    def function(x):
        return lax.while_loop(lambda s: jnp.sum(s) < 10, one_branch, x)

    (found,) = (one for one in of_kind(facts(function, "a100")[1], HOST_TRIP) if one.loop)
    assert found.name.startswith("cond")
    assert "to the host in each trip of while" in found.words


@needs_the_cuda_plugin
def test_a_round_trip_is_certain_only_where_xla_says_what_a_cuda_graph_holds(facts):
    compiled, _ = facts(until, "a100")

    def words(captured):
        found = dataclasses.replace(compiled, captured_thunks=captured)
        return [one.words for one in control_facts(found, Origins(found.module)) if one.kind == HOST_TRIP]

    (unknown,) = words("")
    assert unknown.endswith("the host waits for it, unless a CUDA graph holds it")
    (alone,) = words(compiled.thunk_sequence)
    assert alone.endswith("the host waits for it")
    inside = "".join(f"    {line}\n" for line in compiled.thunk_sequence.splitlines())
    assert words(f"900: kCommandBuffer [x]\n{inside}") == []
    (of_another,) = words("000: kCopy [x] kCopy\n")
    assert of_another == unknown


def test_what_a_cuda_graph_holds_is_unknown_without_a_list_that_can_be_read():
    assert captured_control(compiled_of("")) is None
    assert captured_control(compiled_of("", captured_thunks="not a thunk")) is None
    assert captured_control(compiled_of("", captured_thunks="000: kCopy [x] kCopy\n")) == ()


@pytest.mark.parametrize("target", TARGETS)
def test_the_counted_branch_is_named_as_jax_names_it(facts, target):
    compiled, found = facts(one_branch, target)
    (fact,) = of_kind(found, BRANCHES)
    counted = {one.path for one in launches(compiled) if one.path and one.dynamic}
    inside = [row.op_name for row in launch_rows(compiled) if row.loop and row.dynamic_launches]
    assert len(counted) == 1
    assert all("/branch_0_fun/" in name for name in inside)
    assert f": branch_0_fun, the longest, with {len(inside)} launches; branch_1_fun has 1" in fact.words


@pytest.mark.parametrize("target", TARGETS)
def test_a_branch_without_a_kernel_has_its_name_from_the_others(facts, target):
    (fact,) = of_kind(facts(switched, target)[1], BRANCHES)
    assert ": branch_1_fun, the longest, with " in fact.words
    assert {one.split(" has ")[0] for one in fact.words.split("; ")[1:]} == {"branch_0_fun", "branch_2_fun"}


@pytest.mark.parametrize("target", TARGETS)
def test_branches_without_named_ops_have_names_in_the_order_of_jax(facts, target):
    def function(x):
        return lax.cond(x[0, 0] > 0, lambda a: a, lambda a: a.T, x)

    (fact,) = of_kind(facts(function, target)[1], BRANCHES)
    assert all(name in fact.words for name in ("branch_0_fun", "branch_1_fun"))
    assert not any(label in fact.words for label in ("true_branch", "false_branch"))


@needs_the_cuda_plugin
def test_the_ops_of_a_branch_name_it_before_its_order_does(facts):
    compiled, found = facts(one_branch, "a100")
    swapped = compiled.optimized_hlo.replace("branch_0_fun", "-").replace("branch_1_fun", "branch_0_fun")
    swapped = dataclasses.replace(compiled, optimized_hlo=swapped.replace("-/", "branch_1_fun/"))
    (fact,) = of_kind(found, BRANCHES)
    (other,) = of_kind(control_facts(swapped, Origins(swapped.module)), BRANCHES)
    assert other.words.replace("_0_", "_?_").replace("_1_", "_0_").replace("_?_", "_1_") == fact.words


@needs_the_cuda_plugin
def test_branches_of_text_and_of_the_thunk_list_have_the_same_labels(facts):
    compiled, _ = facts(one_branch, "a100")
    of_text = dataclasses.replace(compiled, thunk_sequence="")
    assert {one.path for one in launches(compiled)} == {one.path for one in launches(of_text)}
    assert {one.path for one in launches(compiled) if one.dynamic} == {
        one.path for one in launches(of_text) if one.dynamic
    }


@pytest.mark.parametrize("target", TARGETS)
def test_a_batched_cond_runs_every_branch_and_a_where_is_none(facts, target):
    (fact,) = of_kind(facts(batched, target)[1], EVERY_BRANCH)
    assert fact.source.startswith("test_control_flow.py:")
    assert of_kind(facts(where, target)[1], EVERY_BRANCH) == []
    assert of_kind(facts(one_branch, target)[1], EVERY_BRANCH) == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_selection_of_the_program_itself_is_no_batched_cond(facts, target):
    def select(x):
        return jnp.select([x > 0, x < -1], [jnp.sin(x), jnp.cumsum(x, 1)], 0.0)

    def select_n(x):
        return lax.select_n(jnp.int32(jnp.abs(x)) % 3, jnp.sin(x), jnp.tanh(x), x)

    for function in (select, select_n):
        assert of_kind(facts(function, target)[1], EVERY_BRANCH) == []


@pytest.mark.parametrize("target", TARGETS)
def test_a_batched_switch_of_two_branches_runs_both(facts, target):
    def function(x):
        return jax.vmap(lambda v: lax.switch((v[0] > 0).astype(int), [jnp.sin, jnp.tanh], v))(x)

    (fact,) = of_kind(facts(function, target)[1], EVERY_BRANCH)
    assert "a batched cond or switch" in fact.words


@pytest.mark.parametrize("target", TARGETS)
def test_an_update_in_place_has_its_true_size(facts, target):
    compiled, found = facts(updates, target)
    (fact,) = of_kind(found, IN_PLACE)
    row = next(one for one in launch_rows(compiled) if one.name == fact.name)
    assert (fact.bytes, fact.array_bytes, fact.runs) == (16 * 4, 16 * 16 * 4, 8)
    assert "writes 64 B of 1.0 KiB in place in each of 8 trips of while" in fact.words
    assert row.bytes < 8 * 2 * fact.array_bytes  # a GPU's kernel reads x, too
    assert of_kind(facts(counted_loop, target)[1], IN_PLACE) == []


@pytest.mark.parametrize("target", TARGETS)
def test_copies_per_trip_are_those_inside_of_loops(facts, target):
    compiled, found = facts(exchange, target)
    inside = [one for one in launches(compiled) if one.is_copy and one.path and one.dynamic]
    copies = of_kind(found, COPY_PER_TRIP)
    assert sorted(one.name for one in copies) == sorted(one.hlo_name for one in inside)
    assert {one.runs for one in copies} == {8}
    assert any("1.0 KiB copied in each of 8 trips of while" in one.words for one in copies)
    assert of_kind(facts(lambda x: jnp.sort(x), target)[1], COPY_PER_TRIP) == []


def test_an_update_is_the_cause_of_the_copy_that_it_updates_alone():
    compiled = compiled_of(text_of("copy_and_update.hlo"))
    copies = of_kind(control_facts(compiled, Origins(compiled.module)), COPY_PER_TRIP)
    assert {one.name: one.words.partition(" in each of 8 trips of loop")[2] for one in copies} == {
        "copy.updated": ": update updates it in place (from the loop's state)",
        "copy.read": "",
        "copy.index": "",
    }


def test_a_small_loop_of_the_cpu_is_one_kernel(facts):
    compiled, found = facts(small_loop, "cpu")
    (fact,) = of_kind(found, ONE_KERNEL)
    assert [one.hlo_name for one in launches(compiled) if not one.is_copy] == [fact.name]
    assert "runs inside this kernel" in fact.words
    assert of_kind(facts(counted_loop, "cpu")[1], ONE_KERNEL) == []


def test_they_are_in_notes_and_in_the_saved_ledger():
    found = fusionlab.launches(one_branch, SQUARE, target="cpu")
    (line,) = (note for note in found.notes if note.startswith("counted branch: "))
    assert "test_control_flow.py:" in line
    document = found.to_dict()
    assert [one["kind"] for one in document["control_flow"]] == [BRANCHES]
    assert read_ledger(json.dumps(document).encode(), "saved.json") == found.record
    del document["control_flow"]  # a ledger that an earlier version saved
    assert read_ledger(json.dumps(document).encode(), "saved.json").control_flow == ()


def test_three_lines_of_a_kind_are_printed_the_most_bytes_first(facts):
    (one,) = of_kind(facts(updates, "cpu")[1], IN_PLACE)
    lines = list(control_lines([dataclasses.replace(one, words=f"size {at}", bytes=at) for at in range(5)]))
    assert [line.split(" (")[0] for line in lines] == [
        "update in place: size 4",
        "update in place: size 3",
        "update in place: size 2",
        "update in place: 2 more",
    ]
