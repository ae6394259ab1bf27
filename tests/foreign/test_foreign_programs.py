"""Programs that others bring: every form is read, what is said of arguments survives, and what cannot is named.

Shapes that only look dynamic become static on reading; what has an effect is never moved, repeated or dropped.
"""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.cli.sources import load_program
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program, bytecode_of
from fusionlab.hlo.view import view_of
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
SETTING = Setting(platform="cpu")


def loop(x):
    return lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x * k), x)


def applied(program, pipeline="batch-replay"):
    return run_pipeline(program, parse_pipeline(pipeline), SETTING)


@pytest.fixture(scope="module")
def program(lowered):
    return lowered(loop, X)


def as_text(program):
    return program.text.encode()


def without_locations(program):
    return str(program.parse()).encode()


def as_portable(program, version=None):
    module = program.parse()
    with module.context:
        return stablehlo.serialize_portable_artifact(module, version or stablehlo.get_current_version())


def as_oldest_portable(program):
    return as_portable(program, stablehlo.get_minimum_version())


def as_export(program):
    return bytes(export.export(jax.jit(loop), platforms=["cpu"])(jax.ShapeDtypeStruct(X.shape, X.dtype)).serialize())


FORMS = {
    "text": as_text,
    "text without locations": without_locations,
    "bytecode": lambda program: program.bytecode,
    "portable artifact": as_portable,
    "portable artifact of the oldest version": as_oldest_portable,
    "jax.export": as_export,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_and_rewritten(form, program, tmp_path, run_raised):
    path = tmp_path / "program"
    path.write_bytes(FORMS[form](program))
    read = load_program(str(path))
    assert (read.inputs, read.outputs) == (program.inputs, program.outputs)
    result = applied(read)
    assert result.applied
    np.testing.assert_allclose(run_raised(result.program, (X,))[0], loop(jnp.asarray(X)), rtol=1e-5)


def test_half_an_artifact_is_named(program, tmp_path):
    path = tmp_path / "program"
    content = as_portable(program)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="program: not a valid StableHLO module"):
        Program.from_file(path)


PIPELINES = ("batch-replay", "licm", "sparsify-directions")


def entry_of(program):
    text = str(program.parse())
    return next(line for line in text.splitlines() if "func.func public @main" in line)


DONATED = """module attributes {mhlo.num_partitions = 1 : i32} {
func.func public @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32> {jax.buffer_donor = true},
    %unused: tensor<7xf32>) -> (tensor<4xf32> {jax.result_info = "r"}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%k = %zero, %s = %x) : tensor<i32>, tensor<4xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %q = BODY
    %s1 = stablehlo.add %s, %q : tensor<4xf32>
    stablehlo.return %k1, %s1 : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
OTHER
}
"""
SINE = "stablehlo.sine %y : tensor<4xf32>"
TUPLE = """stablehlo.sine %y : tensor<4xf32>
    %t = stablehlo.tuple %q, %y : tuple<tensor<4xf32>, tensor<4xf32>>
    %u = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>"""
GSPMD = 'stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>'
ANNOTATED = 'stablehlo.sine %y {mhlo.sharding = "{replicated}"} : tensor<4xf32>'
SECOND = """func.func public @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.cosine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def written(program_of_text, body=SINE, other=""):
    return program_of_text(DONATED.replace("BODY", body).replace("OTHER", other))


def test_donations_and_unused_arguments_survive(program_of_text):
    program = written(program_of_text)
    result = applied(program)
    assert result.applied
    entry = entry_of(result.program)
    assert entry == entry_of(program)
    for part in ("tf.aliasing_output = 0", "jax.buffer_donor = true", "%arg2: tensor<7xf32>", "jax.result_info"):
        assert part in entry
    assert "mhlo.num_partitions = 1" in str(result.program.parse())


def test_a_second_function_is_left_alone(program_of_text):
    program = written(program_of_text, other=SECOND)
    result = applied(program)
    assert result.applied
    second = str(result.program.parse()).partition("func.func public @second")[2]
    assert "stablehlo.cosine" in second


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (TUPLE, "stablehlo.tuple in the body cannot be raised"),
        (GSPMD, "stablehlo.custom_call would lose its mhlo.sharding"),
        (ANNOTATED, "stablehlo.sine would lose its mhlo.sharding"),
    ],
    ids=["tuple", "sharding call", "sharding attribute"],
)
def test_what_cannot_be_kept_is_passed_through_and_named(body, reason, program_of_text):
    program = written(program_of_text, body)
    for pipeline in PIPELINES:
        result = applied(program, pipeline)
        assert result.program is program, pipeline
    (event,) = applied(program).events
    assert reason in event.reason
    assert event.kind == "unsupported"


def test_tuples_outside_of_what_is_rewritten_stay(program_of_text):
    text = DONATED.replace("BODY", SINE).replace("OTHER", "")
    text = text.replace(
        "  return %r#1",
        "  %t = stablehlo.tuple %r#1, %y : tuple<tensor<4xf32>, tensor<4xf32>>\n"
        "  %u = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>\n"
        "  return %u",
    )
    result = applied(program_of_text(text))
    assert result.applied
    assert "stablehlo.tuple" in str(result.program.parse())


def test_a_tuple_argument_is_refused_by_name(program_of_text):
    with pytest.raises(InputError, match="argument 0 of @main has type tuple<tensor<f32>>"):
        program_of_text(
            "func.func public @main(%x: tuple<tensor<f32>>) -> tensor<f32> {\n"
            "%0 = stablehlo.get_tuple_element %x[0] : (tuple<tensor<f32>>) -> tensor<f32>\nreturn %0 : tensor<f32>\n}"
        )


@pytest.mark.slow
def test_shardings_survive_on_four_devices():
    """In a process with four virtual devices: see ``on_four_devices``."""
    script = Path(__file__).with_name("on_four_devices.py")
    root = str(script.parents[2])
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=root, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["jit: 3 rewritten", "shard_map: 2 rewritten"]


def test_bytecode_of_a_module_reads_back(program):
    assert bytecode_of(program.parse()) == program.bytecode


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
    program = written(program_of_text, body)
    reasons = []
    for name in PASSES:
        result = run_pipeline(program, parse_pipeline(name), Setting())
        assert result.program is program, name
        reasons += [event.reason for event in result.events]
    assert any(named in reason for reason in reasons), reasons
