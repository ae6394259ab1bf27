"""Programs that others bring: every form is read, what is said of arguments survives, and what cannot is named."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo.program import Program, bytecode_of
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
    from fusionlab.cli.sources import load_program

    path = tmp_path / "program"
    path.write_bytes(FORMS[form](program))
    read = load_program(str(path))
    assert (read.inputs, read.outputs) == (program.inputs, program.outputs)
    result = applied(read)
    assert result.applied
    np.testing.assert_allclose(run_raised(result.program, (X,))[0], loop(jnp.asarray(X)), rtol=1e-5)


def test_half_an_artifact_is_named(program, tmp_path):
    from fusionlab.errors import InputError

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
TUPLE = """stablehlo.sine %y : tensor<4xf32>
    %t = stablehlo.tuple %q, %y : tuple<tensor<4xf32>, tensor<4xf32>>
    %u = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>"""
GSPMD = 'stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>'
ANNOTATED = 'stablehlo.sine %y {mhlo.sharding = "{replicated}"} : tensor<4xf32>'
SECOND = """func.func public @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.cosine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def written(program_of_text, body="stablehlo.sine %y : tensor<4xf32>", other=""):
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
    text = DONATED.replace("BODY", "stablehlo.sine %y : tensor<4xf32>").replace("OTHER", "")
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
    from fusionlab.errors import InputError

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
