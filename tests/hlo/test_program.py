"""Program: what may be a file, what may not, and that it is a value."""

import copy
import os
import pickle
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.interpreter import evaluate
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program, program_view, without_view
from fusionlab.hlo.view import TensorType, public_function

pytestmark = pytest.mark.versions

ADD = """func.func public @main(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.add %x, %x : tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
"""


@pytest.fixture
def small(lowered):
    return lowered(lambda x, n: (jnp.sin(x) * n, n + 1), np.ones((3, 2), np.float32), np.int32(2))


def written(tmp_path, content, name="module.mlir"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_text_and_bytecode_files_give_equal_programs(small, tmp_path):
    text = Program.from_file(written(tmp_path, small.text))
    bytecode = Program.from_file(written(tmp_path, small.bytecode, "module.mlirbc"))
    assert text.name == bytecode.name == "module"
    assert text.provenance == str(tmp_path / "module.mlir")
    assert str(text.parse()) == str(bytecode.parse()) == str(small.parse())
    assert bytecode.digest == small.digest
    assert text.inputs == bytecode.inputs == (TensorType((3, 2), "f32"), TensorType((), "i32"))
    assert text.outputs == (TensorType((3, 2), "f32"), TensorType((), "i32"))
    assert text.ops == small.ops == 6


def test_the_digest_is_the_content(small, tmp_path):
    again = Program.from_module(small.parse(), name="other", provenance="elsewhere")
    assert again.digest == small.digest
    assert len(small.digest) == 64
    assert Program.from_file(written(tmp_path, ADD)).digest != small.digest
    assert Program.from_file(written(tmp_path, ADD)).digest == Program.from_file(written(tmp_path, ADD)).digest


def test_an_analysed_program_can_be_copied(small):
    view = program_view(small)
    assert program_view(small) is view
    for copied in (pickle.loads(pickle.dumps(small)), copy.deepcopy(small), without_view(small)):
        assert copied == small
        assert program_view(copied) is not view


def test_editing_a_parsed_module_leaves_the_program_alone(small):
    before = small.text
    module = small.parse()
    with module.context:
        public_function(module).operation.erase()
    assert small.text == before


def test_the_platform_follows_from_the_library_calls(lowered, tmp_path):
    square = np.eye(3, dtype=np.float32)
    for platform, expected in (("cpu", "cpu"), ("cuda", "cuda")):
        program = lowered(lambda a: jnp.linalg.slogdet(a), square, platform=platform)
        assert Program.from_file(written(tmp_path, program.bytecode)).platform == expected
    assert Program.from_file(written(tmp_path, ADD)).platform == "any"


FORWARD = ADD.replace("public @main", "@forward")
OWN_MAIN = """func.func public @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("text", [FORWARD, OWN_MAIN], ids=["alone", "beside-a-private-main"])
def test_the_only_public_function_is_the_entry_whatever_its_name(text, tmp_path, caplog):
    program = Program.from_file(written(tmp_path, text))
    assert "no @main: the entry is @forward, the only public function" in caplog.text
    module = program.parse()  # held: a function does not keep its module alive
    assert public_function(module).name.value == "forward"
    compiled = compile_program(program, load_target("cpu"))
    arrays = [np.full(type_.shape, 0.5, np.float32) for type_ in program.inputs]
    expected = np.sin(arrays[0]) if text is OWN_MAIN else arrays[0] + arrays[-1]
    np.testing.assert_allclose(compiled.run(*arrays)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(evaluate(program, tuple(arrays))[0], expected, rtol=1e-6)


def test_of_several_public_functions_one_has_to_be_main(tmp_path):
    two = FORWARD + FORWARD.replace("@forward", "@backward")
    with pytest.raises(InputError, match="several public functions and no @main: @forward, @backward; name one main"):
        Program.from_file(written(tmp_path, two))
    assert Program.from_file(written(tmp_path, two.replace("@backward", "@main"))).ops == 2


DYNAMIC = "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}\n"
NEWER = b"ML\xefR\rStableHLO_v99.18.0\x00" + bytes(range(99))
TOKEN = "func.func public @main(%t: !stablehlo.token) -> !stablehlo.token {\n  return %t : !stablehlo.token\n}\n"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("", "the file is empty"),
        (" \n\n", "the file is empty"),
        ("hello, world\n", "not a valid StableHLO module"),
        ("HloModule jit_f, entry_computation_layout={()->f32[]}\n\nENTRY main {\n}\n", "not a valid StableHLO module"),
        (bytes(range(128, 256)) * 9, "neither StableHLO text nor MLIR bytecode"),
        (b"\x00\x01\x02\x03" * 64, "a NUL byte in line 1"),
        (b"ML\xefR", "not a valid StableHLO module"),
        (b"ML\xefR" + bytes(range(256)), "not a valid StableHLO module"),
        (ADD[:70], "not a valid StableHLO module"),
        (ADD.replace("tensor<3x2xf32>\n  return", "tensor<2x3xf32>\n  return"), "not a valid StableHLO module"),
        (ADD.replace("stablehlo.add", "theirs.add"), "not a valid StableHLO module"),
        (ADD.replace("public", "private"), "no public function"),
        ("module {}\n", "no public function"),
        ("func.func private @main(tensor<f32>) -> tensor<f32>\n", "no public function"),
        ("func.func @main(tensor<f32>) -> tensor<f32>\n", "not a valid StableHLO module"),
        (NEWER, "a portable artifact of StableHLO 99.18.0, and jaxlib "),
        (NEWER.replace(b"_v99", b"_v0"), "not a valid StableHLO module"),
        (DYNAMIC, "argument 0 of @main has type tensor<?xf32>"),
        (TOKEN, "argument 0 of @main has type !stablehlo.token"),
    ],
    ids=["empty", "blank", "prose", "hlo", "binary", "zeros", "magic-only", "magic-then-junk", "cut-text", "ill-typed",
         "unknown-dialect", "private", "no-function", "declared", "declared-public", "newer-artifact",
         "damaged-artifact", "dynamic", "token"],
)  # fmt: skip
def test_a_bad_file_is_one_line_that_names_it_and_the_cause(content, cause, tmp_path):
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        Program.from_file(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert cause in message
    assert "\n" not in message
    assert len(message) < 300 + len(str(path))


def test_a_dynamic_shape_inside_is_found(tmp_path):
    body = "  %0 = stablehlo.convert %x : (tensor<?xf32>) -> tensor<?xf64>\n  return %0 : tensor<?xf64>\n"
    inner = f"func.func private @inner(%x: tensor<?xf32>) -> tensor<?xf64> {{\n{body}}}\n"
    with pytest.raises(InputError, match=r"tensor<\?xf32> in @inner; only tensors of static shape"):
        Program.from_file(written(tmp_path, ADD + inner))


def test_bytecode_cut_anywhere_is_an_input_error(small, tmp_path):
    for kept in range(5, len(small.bytecode), max(1, len(small.bytecode) // 40)):
        path = written(tmp_path, small.bytecode[:kept])
        with pytest.raises(InputError, match=r"module\.mlir: "):
            Program.from_file(path)


def test_a_file_that_is_not_there_or_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"absent\.mlir: cannot be read: No such file"):
        Program.from_file(tmp_path / "absent.mlir")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        Program.from_file(tmp_path)


def test_main_is_preferred_and_any_public_function_will_do(tmp_path):
    both = ADD.replace("@main", "@first") + ADD
    only = ADD.replace("@main", "@first").replace("public ", "")
    for text, name in ((both, "main"), (only, "first")):
        module = Program.from_file(written(tmp_path, text)).parse()  # held while its function is read
        assert public_function(module).name.value == name


def test_the_types_of_the_entry_outlive_the_module_they_are_read_from(small, tmp_path):
    path = written(tmp_path, small.bytecode, "module.mlirbc")
    read = (
        "import sys\n"
        "from fusionlab.hlo.program import Program\n"
        "program = Program.from_own_file(sys.argv[1])\n"
        "print(*program.inputs, *program.outputs)\n"
    )
    # glibc's: what is freed is written over, small pieces too
    overwritten = {**os.environ, "MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    found = subprocess.run(
        [sys.executable, "-c", read, str(path)], env=overwritten, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [str(type_) for type_ in (*small.inputs, *small.outputs)]
    assert len(small.inputs) == len(small.outputs) == 2
