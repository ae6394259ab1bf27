"""What a structural diff calls changed, and that it says nothing of the rest."""

import dataclasses
import json
from pathlib import Path

import pytest

from fusionlab.hlo.diff.hunks import common_scope, diff_programs
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline

MEANT, REORDERED, REDUCTION, TWO_LOOPS = (
    (Path(__file__).parent / "diff" / f"{name}.mlir").read_text()
    for name in ("chain", "chain_in_another_order", "reduction", "two_loops")
)


@pytest.fixture
def diff_of(program_of_text):
    return lambda before, after: diff_programs([program_of_text(before), program_of_text(after)])[0]


def texts(lines):
    return [line.text for line in lines]


def test_a_program_and_itself(program_of_text):
    program = program_of_text(MEANT)
    (diff,) = diff_programs([program, program])
    assert diff.hunks == ()
    assert diff.unchanged == 4


def test_no_programs_have_no_diffs():
    assert diff_programs([]) == ()


def test_order_names_and_calls_are_no_change(program_of_text, diff_of):
    """Only the op that nothing reads is new, and it does not count for what the program computes."""
    diff = diff_of(MEANT, REORDERED)
    (hunk,) = diff.hunks
    assert texts(hunk.added) == ["%9 = negate %arg0 : 4xf32"]
    assert (hunk.removed, hunk.moved, hunk.rewired) == ((), (), ())
    assert content_digest(program_of_text(MEANT)) == content_digest(program_of_text(REORDERED))


def test_what_reads_a_replaced_value_is_not_replaced_itself(diff_of):
    diff = diff_of(MEANT, MEANT.replace("cosine", "logistic"))
    (hunk,) = diff.hunks
    assert texts(hunk.removed) == ["%4 = cosine %arg0 : 4xf32"]
    assert texts(hunk.added) == ["%9 = logistic %arg0 : 4xf32"]
    assert texts(hunk.rewired) == ["%6 = add %2, %4→%9 : 4xf32"]
    assert diff.unchanged == 2  # the sine, and the tanh of the same add


def test_other_operands_of_the_same_op(diff_of):
    diff = diff_of(MEANT, MEANT.replace("add %0, %1", "add %0, %0"))
    (hunk,) = diff.hunks
    assert (hunk.removed, hunk.added) == ((), ())  # the cosine is still there, if nothing reads it
    assert texts(hunk.rewired) == ["%6 = add %2, %4→%2 : 4xf32"]


def test_a_long_chain_with_one_change_in_front(program_of_text):
    """Ten thousand ops behind it stay what they are."""
    links = "\n".join(f"%{k + 1} = stablehlo.tanh %{k} : tensor<4xf32>" for k in range(10_000))

    def program(first):
        body = f"%0 = stablehlo.{first} %x : tensor<4xf32>\n{links}\nreturn %10000 : tensor<4xf32>"
        return program_of_text(f"func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} }}")

    (diff,) = diff_programs([program("sine"), program("cosine")])
    counts = {what: diff.count(what) for what in ("removed", "added", "moved", "rewired")}
    assert counts == {"removed": 1, "added": 1, "moved": 0, "rewired": 1}
    assert diff.unchanged == 9_999


def test_what_a_reduction_applies_is_part_of_it(program_of_text, diff_of):
    other = REDUCTION.replace("applies stablehlo.add", "applies stablehlo.maximum")
    (hunk,) = diff_of(REDUCTION, other).hunks
    assert texts(hunk.removed) == ["%4 = reduce[add] %arg0, 0 {dimensions=[0]} : f32"]
    assert [line.applies for line in hunk.added] == [("maximum",)]
    assert content_digest(program_of_text(REDUCTION)) != content_digest(program_of_text(other))


WITH_A_KERNEL = """module { func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @tanh_kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32> }
  func.func private @tanh_kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {twin = @tanh_kernel_twin} {
    %0 = stablehlo.custom_call @a_kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32> }
  func.func private @tanh_kernel_twin(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %x : tensor<4xf32>
    return %0 : tensor<4xf32> } }"""


def test_a_kernel_is_not_what_it_computes(program_of_text, diff_of):
    plain = WITH_A_KERNEL.replace(" attributes {twin = @tanh_kernel_twin}", "").replace(
        "stablehlo.custom_call @a_kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>", "stablehlo.tanh %x : tensor<4xf32>"
    )
    assert not diff_of(WITH_A_KERNEL, plain).hunks  # the view shows the twin
    assert content_digest(program_of_text(WITH_A_KERNEL)) != content_digest(program_of_text(plain))
    assert content_digest(program_of_text(WITH_A_KERNEL)) == content_digest(program_of_text(WITH_A_KERNEL))


def test_values_of_two_loops_that_start_alike_are_told_apart(program_of_text, diff_of):
    inner, outer = TWO_LOOPS, TWO_LOOPS.replace("add %b, %b", "add %b, %a")
    assert content_digest(program_of_text(inner)) != content_digest(program_of_text(outer))
    (hunk,) = diff_of(inner, outer).hunks
    assert (hunk.removed, hunk.added) == ((), ())
    assert len(hunk.rewired) == 1
    assert "(3 trips)" in hunk.loop


@pytest.fixture(scope="module")
def hoisted(lowered):
    """A loop with an invariant product in it, before and after it is hoisted and the loop is batched."""
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    def function(x, w):
        return lax.fori_loop(0, 5, lambda k, s: s + jnp.sin(x @ w) * k, x)

    x = np.ones((3, 3), np.float32)
    programs = [lowered(function, x, x)]
    for pass_ in parse_pipeline("licm,batch-replay"):
        programs.append(pass_.run(programs[-1], Setting()).program)
    return programs


def test_a_hoisted_op_has_moved(hoisted):
    hunks = diff_programs(hoisted[:2])[0].hunks
    moved = [one for hunk in hunks for one in hunk.moved]
    assert {one.op.op for one in moved} == {"dot_general", "sine"}
    assert all("(5 trips)" in one.op.loop and one.to == "" for one in moved)
    assert not any(hunk.removed or hunk.added or hunk.rewired for hunk in hunks)


def test_a_value_keeps_its_name_through_all_programs(hoisted):
    first, second = diff_programs(hoisted)
    (sine,) = (one.op.results[0] for hunk in first.hunks for one in hunk.moved if one.op.op == "sine")
    read = {name for hunk in second.hunks for line in (*hunk.removed, *hunk.added) for name in line.operands}
    assert sine in read
    made = {name for hunk in second.hunks for line in hunk.added for name in line.results}
    gone = {name for hunk in second.hunks for line in hunk.removed for name in line.results}
    assert made.isdisjoint(gone)


def test_a_removed_loop_is_one_change(hoisted):
    second = diff_programs(hoisted)[1]
    with_the_loop = [hunk for hunk in second.hunks if any(line.op == "while" for line in hunk.removed)]
    assert len(with_the_loop) == 1
    assert {line.loop for line in with_the_loop[0].removed} >= {""}
    assert any("(5 trips)" in line.loop for line in with_the_loop[0].removed)


def test_every_op_is_counted_once(hoisted):
    before, after = hoisted[1:]
    (diff,) = diff_programs([before, after])
    (back,) = diff_programs([after, before])
    stay = diff.unchanged + diff.count("rewired") + diff.count("moved")
    assert stay == back.unchanged + back.count("rewired") + back.count("moved")
    assert diff.count("removed") == back.count("added")


def test_it_is_data(hoisted):
    document = json.loads(json.dumps(diff_programs(hoisted)[0].to_json()))
    assert set(document) == {"removed", "added", "moved", "rewired", "unchanged", "hunks"}
    assert set(document["hunks"][0]) == {f.name for f in dataclasses.fields(diff_programs(hoisted)[0].hunks[0])}


def test_common_scopes():
    assert common_scope(["jit(f)/vmap(a)/add", "jit(f)/vmap(a)/b/multiply", ""]) == "jit(f)/vmap(a)"
    assert common_scope(["jit(f)/a/add", "jit(g)/a/add"]) == ""
    assert common_scope([]) == ""
