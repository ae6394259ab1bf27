"""Shapes that only look dynamic become static on reading; what has an effect is never moved, repeated or dropped."""

import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.view import view_of
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .test_foreign_programs import DONATED

Y = np.array([1.0, -2.0, 3.0, 0.5], np.float32)
COMPUTED = """func.func public @main(%y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<2xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>) {
  %four = stablehlo.constant dense<4> : tensor<1xi64>
  %two = stablehlo.constant dense<2> : tensor<2xi64>
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.dynamic_broadcast_in_dim %c, %four, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  %1 = stablehlo.dynamic_reshape %y, %two : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %2 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %end = stablehlo.constant dense<3> : tensor<1xi64>
  %3 = stablehlo.real_dynamic_slice %y, %one, %end, %one
    : (tensor<4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %4 = stablehlo.dynamic_pad %y, %c, %one, %one, %zero
    : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xf32>
  %5 = stablehlo.dynamic_iota %four, dim = 0 : (tensor<1xi64>) -> tensor<4xf32>
  %n = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
  %any = stablehlo.dynamic_broadcast_in_dim %c, %n, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  %sine = stablehlo.sine %any : tensor<?xf32>
  %6 = stablehlo.dynamic_reshape %sine, %four : (tensor<?xf32>, tensor<1xi64>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5, %6
    : tensor<4xf32>, tensor<2x2xf32>, tensor<i32>, tensor<2xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>
}
"""


def test_shapes_that_only_look_dynamic(program_of_text, run_raised):
    program = program_of_text(COMPUTED)
    assert not [node.name for node in view_of(program.parse()).walk() if "dynamic" in node.name]
    expected = (
        np.full(4, 2.0), Y.reshape(2, 2), 4, Y[1:3], np.concatenate([[2.0], Y, [2.0]]), np.arange(4.0),
        np.full(4, np.sin(np.float32(2.0))),
    )  # fmt: skip
    for ours, theirs in zip(run_raised(program, (Y,)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_shapes_that_are_dynamic_are_refused_by_name(program_of_text):
    with pytest.raises(InputError, match=r"argument 0 of @main has type tensor<\?xf32>; only tensors of static shape"):
        program_of_text(COMPUTED.replace("%y: tensor<4xf32>", "%y: tensor<?xf32>").replace(
            "(tensor<4xf32>, tensor<2xi64>)", "(tensor<?xf32>, tensor<2xi64>)"
        ).replace("dim = 0 : (tensor<4xf32>)", "dim = 0 : (tensor<?xf32>)").replace(
            "(tensor<4xf32>, tensor<1xi64>, tensor<1xi64>", "(tensor<?xf32>, tensor<1xi64>, tensor<1xi64>"
        ).replace("(tensor<4xf32>, tensor<f32>", "(tensor<?xf32>, tensor<f32>"))  # fmt: skip


AFTER_ALL = "stablehlo.sine %y : tensor<4xf32>\n    %t = stablehlo.after_all : !stablehlo.token\n    "
EFFECTS = {
    "custom call": (
        "stablehlo.custom_call @write_it(%y) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>",
        "custom call @write_it",
    ),
    "outfeed": (
        AFTER_ALL + '%u = "stablehlo.outfeed"(%q, %t) {outfeed_config = ""} '
        ": (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token",
        "stablehlo.after_all",
    ),
    "infeed": (
        AFTER_ALL + '%u:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]]} '
        ": (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)",
        "stablehlo.after_all",
    ),
    "all_reduce": (
        '"stablehlo.all_reduce"(%y) ({\n^bb0(%l: tensor<f32>, %m: tensor<f32>):\n'
        "%a = stablehlo.add %l, %m : tensor<f32>\nstablehlo.return %a : tensor<f32>\n"
        "}) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.all_reduce",
    ),
    "partition": (
        "stablehlo.sine %y : tensor<4xf32>\n    %p = stablehlo.partition_id : tensor<ui32>",
        "stablehlo.partition_id",
    ),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_loop_with_an_effect_is_left_alone_by_every_pass(effect, program_of_text):
    body, named = EFFECTS[effect]
    program = program_of_text(DONATED.replace("BODY", body).replace("OTHER", ""))
    reasons = []
    for name in PASSES:
        result = run_pipeline(program, parse_pipeline(name), Setting())
        assert result.program is program, name
        reasons += [event.reason for event in result.events]
    assert any(named in reason for reason in reasons), reasons
