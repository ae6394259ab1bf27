"""Compiling for the CPU, which is attached, and for GPUs that are not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program, fusion_labels
from fusionlab.codegen.targets import Target, load_target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.program import Program
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.versions


def loop(x):
    return jax.lax.fori_loop(0, 3, lambda _, a: jnp.tanh(a @ a) * 0.5, x)


WITH_METADATA = jax.__version_info__ >= (0, 10)
"""XLA writes the names of thunks; where it does not, launches are counted from the scheduled HLO."""
SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)


@pytest.fixture(scope="module")
def loop_on_a100(lowered):
    return compile_program(lowered(loop, SQUARE, platform="cuda"), load_target("a100"))


@pytest.fixture(scope="module")
def loop_on_cpu(lowered):
    return compile_program(lowered(loop, SQUARE), load_target("cpu"))


@needs_the_cuda_plugin
@pytest.mark.parametrize("name", ["a100", "a5000", "h200"])
def test_every_absent_target_compiles(name, lowered):
    target = load_target(name)
    compiled = compile_program(lowered(jnp.tanh, SQUARE, platform="cuda"), target)
    assert "wrapped_tanh" in compiled.thunk_sequence
    assert (compiled.memory.argument_bytes, compiled.memory.output_bytes) == (1024, 1024)
    assert compiled.executable is None


@needs_the_cuda_plugin
def test_an_absent_gpu_gives_hlo_thunks_and_memory(loop_on_a100):
    assert "kWhile" in loop_on_a100.thunk_sequence
    assert ("kWhile" in loop_on_a100.thunk_metadata) == WITH_METADATA
    assert '"known_trip_count":{"n":"3"}' in loop_on_a100.optimized_hlo
    assert loop_on_a100.memory.temp_bytes > 0
    assert loop_on_a100.options == {
        "xla_gpu_enable_triton_gemm": False,
        "xla_gpu_autotune_level": 0,
        "xla_gpu_collect_cost_model_stats": True,
        "xla_gpu_enable_analytical_sol_latency_estimator": False,
    }
    assert "jaxlib" in loop_on_a100.versions
    assert loop_on_a100.artifacts == {}


@needs_the_cuda_plugin
def test_an_absent_gpu_cannot_run(loop_on_a100):
    with pytest.raises(InputError, match="a100 is not attached"):
        loop_on_a100.run(np.zeros((16, 16), np.float32))


@needs_the_cuda_plugin
def test_a_dump_keeps_the_refusals_and_the_buffers(lowered):
    compiled = compile_program(lowered(loop, SQUARE, platform="cuda"), load_target("a100"), dump=True)
    assert "fusion_steps" in compiled.priority_fusion
    endings = set(compiled.artifacts)
    assert {"thunk_sequence.txt", "before_optimizations.txt"} <= endings
    assert ("thunk_metadata.txt" in endings) == WITH_METADATA
    assert not any(ending.endswith(".ll") for ending in endings)


def test_the_cpu_runs(loop_on_cpu):
    x = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    (result,) = loop_on_cpu.run(x)
    np.testing.assert_allclose(result, loop(x), rtol=2e-5, atol=1e-5)
    with_ynn = jax.__version_info__ >= (0, 8, 1)
    assert loop_on_cpu.options == ({"xla_cpu_experimental_ynn_fusion_type": ""} if with_ynn else {})


def test_results_stay_on_the_device_until_asked_for(loop_on_cpu):
    executable = loop_on_cpu.executable
    placed = executable.place([np.eye(16, dtype=np.float32)])
    first, second = executable(placed), executable(placed)
    np.testing.assert_array_equal(first[0], second[0])
    assert isinstance(first[0], jax.Array)


def test_float64_and_booleans_keep_their_types(lowered):
    with jax.enable_x64(True):
        given = np.full(3, 1 / 3), np.array([True, False, True]), np.int64(2**40)
        program = lowered(lambda x, keep, n: (jnp.where(keep, x, 0.0), n + 1), *given)
    kept, n = compile_program(program, load_target("cpu")).run(*given)
    np.testing.assert_array_equal(kept, [1 / 3, 0, 1 / 3])
    assert kept.dtype == np.float64
    assert n == 2**40 + 1


def test_an_edited_module_compiles(lowered):
    program = lowered(lambda x: x + x, SQUARE)
    module = program.parse()
    (add,) = [op for op in module.body.operations[0].body.blocks[0].operations if op.operation.name == "stablehlo.add"]
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with module.context, ir.Location.unknown(), ir.InsertionPoint(add.operation):
        product = stablehlo.multiply(add.operands[0], add.operands[1])
    add.results[0].replace_all_uses_with(product)
    add.operation.erase()
    edited = Program.from_module(module, name="edited", provenance="a test")
    x = np.full((16, 16), 3, np.float32)
    assert compile_program(program, load_target("cpu")).run(x)[0][0, 0] == 6
    assert compile_program(edited, load_target("cpu")).run(x)[0][0, 0] == 9


def test_a_factorisation_from_a_file_runs(lowered, program_of_text):
    program = program_of_text(lowered(lambda x: jnp.linalg.slogdet(x)[1], SQUARE).text)
    compiled = compile_program(program, load_target("cpu"))
    assert compiled.run(2 * np.eye(16, dtype=np.float32))[0] == pytest.approx(16 * np.log(2), rel=1e-6)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "has 1 arguments, 0 were given"),
        ([np.zeros((16, 15), np.float32)], r"argument 0: expected 16x16xf32, got float32\[16, 15\]"),
        ([np.zeros((16, 16))], r"argument 0: expected 16x16xf32, got float64\[16, 16\]"),
    ],
)
def test_wrong_arguments_are_named(loop_on_cpu, arrays, message):
    with pytest.raises(ValueError, match=message):
        loop_on_cpu.run(*arrays)


def test_a_program_of_another_platform_is_refused(lowered):
    with pytest.raises(InputError, match="small was lowered for cuda, but target cpu needs cpu"):
        compile_program(lowered(loop, SQUARE, platform="cuda"), load_target("cpu"))


def test_an_xla_failure_is_one_line(program_of_text):
    bad = program_of_text(
        "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %0 = stablehlo.custom_call @no_such_target(%x) {api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>\n"
        "  return %0 : tensor<2xf32>\n}\n"
    )
    with pytest.raises(CompileError, match=r"^module for cpu: .*no_such_target.*$") as caught:
        compile_program(bad, load_target("cpu"))
    assert "\n" not in str(caught.value)


@needs_the_cuda_plugin
def test_a_spec_that_xla_rejects_names_the_file_and_the_field(lowered):
    spec = load_target("a100").spec.replace("threads_per_warp: 32", "threads_per_warp: 32\n  no_such_field: 1")
    target = Target("mine", "cuda", attached=False, spec=spec, source="mine.txtpb")
    cause = 'no field named "no_such_field"|Failed to parse GpuTargetConfigProto'  # the latter when logs are off
    with pytest.raises(InputError, match=rf"mine\.txtpb: not a usable GPU spec: .*({cause})"):
        compile_program(lowered(jnp.tanh, SQUARE, platform="cuda"), target)


def test_a_missing_plugin_says_what_to_install(lowered, monkeypatch):
    from jax.experimental import topologies

    def absent(*_, **__):
        raise NotImplementedError("topology not implemented for cuda")

    monkeypatch.setattr(topologies, "get_topology_desc", absent)
    target = Target("other", "cuda", attached=False, spec=load_target("a100").spec + "# another\n")
    with pytest.raises(InputError, match=r"pip install 'fusionlab\[targets\]'"):
        compile_program(lowered(jnp.tanh, SQUARE, platform="cuda"), target)


@pytest.mark.parametrize(("op", "by"), [("divide", "[0, 7]"), ("remainder", "0")])
def test_a_division_of_constants_by_zero_is_refused_before_it_ends_the_process(op, by, program_of_text):
    body = f"""
  %a = stablehlo.constant dense<[7, -8]> : tensor<2xi32>
  %b = stablehlo.constant dense<{by}> : tensor<2xi32>
  %0 = stablehlo.{op} %a, %b : tensor<2xi32>
  return %0 : tensor<2xi32>"""
    program = program_of_text(f"func.func public @main() -> tensor<2xi32> {{{body}\n}}")
    with pytest.raises(CompileError, match=f"divided by 0: stablehlo.{op}"):
        compile_program(program, load_target("cpu"))


@pytest.mark.parametrize("page", ["const dots = [];\n", "const frames = [[0, 1];\n", "const frames = [[0]];\n"])
def test_a_record_of_fusions_in_another_form_is_an_error(page, tmp_path):
    good = 'const frames = [[0, "Not fusing |a| into |b| as it isn\'t", ""], [1, "Fused |c| into |d| inside", ""]];\n'
    (tmp_path / "main.1.module_0001.f._fusion.html").write_text(good)
    assert fusion_labels(tmp_path) == "Not fusing |a| into |b| as it isn't\nFused |c| into |d| inside"
    (tmp_path / "region.module_0001.f._fusion.html").write_text(page)
    with pytest.raises(CompileError, match="in another form"):
        fusion_labels(tmp_path)
