"""Programs that others bring: every form is read, what is said of arguments survives, and what cannot is named.

Shapes that only look dynamic become static on reading; what has an effect is never moved, repeated or dropped.
"""

import re
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
from fusionlab.equivalence.exact.identity import compare_exactly
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


def as_portable(program, version=None):
    module = program.parse()
    with module.context:
        return stablehlo.serialize_portable_artifact(module, version or stablehlo.get_current_version())


def as_export(_):
    return bytes(export.export(jax.jit(loop), platforms=["cpu"])(jax.ShapeDtypeStruct(X.shape, X.dtype)).serialize())


FORMS = {
    "text": lambda program: program.text.encode(),
    "text without locations": lambda program: str(program.parse()).encode(),
    "bytecode": lambda program: program.bytecode,
    "portable artifact": as_portable,
    "portable artifact of the oldest version": lambda it: as_portable(it, stablehlo.get_minimum_version()),
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


HERE = Path(__file__).parent
DONATED = (HERE / "donated.mlir").read_text()
BODIES = {}
"""Name -> (a body of the loop that no pass can keep, what the reason says)."""
for case in (HERE / "loop_bodies.mlir").read_text().split("// -----\n")[1:]:
    head, _, body = case.strip().partition("\n")
    name, _, reason = head.removeprefix("// ").partition(": ")
    BODIES[name] = body, reason
SINE = "stablehlo.sine %y : tensor<4xf32>"
SECOND = """func.func public @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.cosine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def module_text(body=SINE, other=""):
    return DONATED.replace("BODY", body).replace("OTHER", other)


def test_donations_unused_arguments_and_a_second_function_survive(program_of_text):
    program = program_of_text(module_text(other=SECOND))
    result = applied(program)
    assert result.applied
    before, after = (str(one.parse()) for one in (program, result.program))
    entry = next(line for line in after.splitlines() if "func.func public @main" in line)
    assert entry in before.splitlines()
    for part in ("tf.aliasing_output = 0", "jax.buffer_donor = true", "%arg2: tensor<7xf32>", "jax.result_info"):
        assert part in entry
    assert "mhlo.num_partitions = 1" in after
    assert "stablehlo.cosine" in after.partition("func.func public @second")[2]


@pytest.mark.parametrize("body", BODIES)
def test_a_loop_that_cannot_be_kept_is_left_alone_by_every_pass_and_named(body, program_of_text):
    text, reason = BODIES[body]
    program = program_of_text(module_text(text))
    for name in PASSES:
        if (name, body.partition("_")[0]) == ("unroll-loops", "sharding"):  # each trip is a copy, with its shardings
            assert applied(program, name).program.text.lower().count("sharding") >= program.text.lower().count(
                "sharding"
            )
        else:
            assert applied(program, name).program is program, name
    (event,) = applied(program).events
    assert event.kind == "unsupported"
    assert reason in event.reason


def test_a_tuple_in_a_loop_is_taken_apart(program_of_text):
    """Only the element that is read counts, so that the loop is one without a tuple."""
    types = "tensor<4xf32>, tensor<4xf32>"
    tuple_ = f"%t = stablehlo.tuple %q, %y : tuple<{types}>"
    element = f"%u = stablehlo.get_tuple_element %t[0] : (tuple<{types}>) -> tensor<4xf32>"
    program = program_of_text(module_text("\n".join((SINE, tuple_, element))))
    result = applied(program)
    assert result.applied
    assert compare_exactly(program, result.program).result == "identical"


def test_tuples_outside_of_what_is_rewritten_stay(program_of_text):
    text = module_text().replace(
        "  return %r#1",
        "  %t = stablehlo.tuple %r#1, %y : tuple<tensor<4xf32>, tensor<4xf32>>\n"
        "  %u = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>\n"
        "  return %u",
    )
    result = applied(program_of_text(text))
    assert result.applied
    assert "stablehlo.tuple" in str(result.program.parse())


@pytest.mark.parametrize("path", sorted(HERE.glob("refused_*.mlir")), ids=lambda path: path.stem)
def test_arguments_that_are_no_static_tensors_are_refused_by_name(path):
    with pytest.raises(InputError, match=re.escape(path.read_text().partition("\n")[0].removeprefix("// "))):
        Program.from_file(path)


@pytest.mark.slow
def test_shardings_survive_on_four_devices():
    """In a process with four virtual devices: see ``on_four_devices``."""
    command = [sys.executable, str(HERE / "on_four_devices.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parents[1], timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["jit: 3 rewritten", "shard_map: 3 rewritten"]


def test_bytecode_of_a_module_reads_back(program):
    assert bytecode_of(program.parse()) == program.bytecode


Y = np.array([1.0, -2.0, 3.0, 0.5], np.float32)


def test_shapes_that_only_look_dynamic(run_raised):
    program = Program.from_file(HERE / "computed_shapes.mlir")
    assert not [node.name for node in view_of(program.parse()).walk() if "dynamic" in node.name]
    expected = (
        np.full(4, 2.0), Y.reshape(2, 2), 4, Y[1:3], np.concatenate([[2.0], Y, [2.0]]), np.arange(4.0),
        np.full(4, np.sin(np.float32(2.0))),
    )  # fmt: skip
    for ours, theirs in zip(run_raised(program, (Y,)), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
