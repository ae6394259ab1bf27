"""What a structural diff calls changed, and that it says nothing of the rest."""

import dataclasses
import json

import pytest

from fusionlab.hlo.diff.hunks import common_scope, diff_programs
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline

CHAIN = """
module {{
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
{body}
  }}
}}
"""
MEANT = """
    %0 = stablehlo.sine %x : tensor<4xf32>
    %1 = stablehlo.cosine %x : tensor<4xf32>
    %2 = stablehlo.add %0, %1 : tensor<4xf32>
    %3 = stablehlo.tanh %2 : tensor<4xf32>
    return %3 : tensor<4xf32>"""
SAME_IN_ANOTHER_ORDER = """
    %unread = stablehlo.negate %x : tensor<4xf32>
    %c = stablehlo.cosine %x : tensor<4xf32>
    %s = call @sine(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %a = stablehlo.add %s, %c : tensor<4xf32>
    %t = stablehlo.tanh %a : tensor<4xf32>
    return %t : tensor<4xf32>
  }
  func.func private @sine(%y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %y : tensor<4xf32>
    return %0 : tensor<4xf32>"""


@pytest.fixture
def chain(program_of_text):
    return lambda body: program_of_text(CHAIN.format(body=body))


@pytest.fixture
def diff_of(chain):
    return lambda before, after: diff_programs([chain(before), chain(after)])[0]


def texts(lines):
    return [line.text for line in lines]


def test_a_program_and_itself(chain):
    program = chain(MEANT)
    (diff,) = diff_programs([program, program])
    assert diff.hunks == ()
    assert diff.unchanged == 4


def test_no_programs_have_no_diffs():
    assert diff_programs([]) == ()


def test_order_names_and_calls_are_no_change(chain, diff_of):
    """Only the op that nothing reads is new, and it does not count for what the program computes."""
    diff = diff_of(MEANT, SAME_IN_ANOTHER_ORDER)
    (hunk,) = diff.hunks
    assert texts(hunk.added) == ["%9 = negate %arg0 : 4xf32"]
    assert (hunk.removed, hunk.moved, hunk.rewired) == ((), (), ())
    assert content_digest(chain(MEANT)) == content_digest(chain(SAME_IN_ANOTHER_ORDER))


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


def test_a_long_chain_with_one_change_in_front():
    """Ten thousand ops behind it stay what they are."""
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    from fusionlab.hlo.program import Program

    def program(first):
        ops = "\n".join(f"%{k + 1} = stablehlo.tanh %{k} : tensor<4xf32>" for k in range(10_000))
        body = f"%0 = stablehlo.{first} %x : tensor<4xf32>\n{ops}\nreturn %10000 : tensor<4xf32>"
        with make_ir_context():
            return Program.from_module(ir.Module.parse(CHAIN.format(body=body)), name="chain", provenance="a test")

    (diff,) = diff_programs([program("sine"), program("cosine")])
    counts = {what: diff.count(what) for what in ("removed", "added", "moved", "rewired")}
    assert counts == {"removed": 1, "added": 1, "moved": 0, "rewired": 1}
    assert diff.unchanged == 9_999


REDUCTION = """
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>"""


def test_what_a_reduction_applies_is_part_of_it(chain, diff_of):
    other = REDUCTION.replace("applies stablehlo.add", "applies stablehlo.maximum")
    (hunk,) = diff_of(REDUCTION, other).hunks
    assert texts(hunk.removed) == ["%4 = reduce[add] %arg0, 0 {dimensions=[0]} : f32"]
    assert [line.applies for line in hunk.added] == [("maximum",)]
    assert content_digest(chain(REDUCTION)) != content_digest(chain(other))


NESTED = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %most = stablehlo.constant dense<3> : tensor<i32>
    %outer:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %going = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %going : tensor<i1>
    } do {
      %inner:2 = stablehlo.while(%j = %zero, %b = %x) : tensor<i32>, tensor<4xf32>
      cond {
        %on = stablehlo.compare LT, %j, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %on : tensor<i1>
      } do {
        %c = stablehlo.add %b, READ : tensor<4xf32>
        %k = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %k, %c : tensor<i32>, tensor<4xf32>
      }
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %inner#1 : tensor<i32>, tensor<4xf32>
    }
    return %outer#1 : tensor<4xf32>"""


def test_values_of_two_loops_that_start_alike_are_told_apart(chain, diff_of):
    inner, outer = NESTED.replace("READ", "%b"), NESTED.replace("READ", "%a")
    assert content_digest(chain(inner)) != content_digest(chain(outer))
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
