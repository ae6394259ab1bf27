"""``fusionlab kernels``: the verdict, the table, one kernel with its code, and bad input."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.facts.kernel_facts import KernelFacts
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = needs_the_cuda_plugin

HERE = "test_kernels.py"


def scattered(table, at, values):
    with jax.named_scope("histogram"):
        return table.at[at].add(values)


ARGUMENTS = [jax.ShapeDtypeStruct(*each) for each in (((64,), np.float32), ((4096,), np.int32), ((4096,), np.float32))]
LINE = scattered.__code__.co_firstlineno + 2


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "scattered.bin"
    path.write_bytes(jax.export.export(jax.jit(scattered), platforms=["cuda"])(*ARGUMENTS).serialize())
    return path


def test_the_worst_kernel_is_named_first(program, cli):
    result = cli("kernels", program, "--target", "a100", "--quiet", code=0)
    first, *lines = result.stdout.splitlines()
    assert first.startswith("scattered on a100: 1 kernel, 1 with something in excess; worst input_scatter_fusion")
    assert first.endswith(f"a compare-and-swap loop at system scope (b32), from scatter-add at {HERE}:{LINE}")
    assert any("input_scatter_fusi" in line and "compare-and-swap" in line for line in lines)


def test_one_kernel_with_its_code(program, cli, as_json):
    shown = cli("kernels", program, "--kernel", "input_scatter_fusion", "--quiet", code=0).stdout
    assert ".entry input_scatter_fusion(" in shown
    assert "// %values.1, 1 a thread, stride 4 bytes" in shown
    found = as_json("kernels", program, "--kernel", "input_scatter_fusion")
    assert found["scope"] == "histogram"
    assert [one["kind"] for one in found["findings"]] == ["cas"]
    assert found["grid"] == [32, 1, 1]
    assert "atom.relaxed.sys.global.cas.b32" in found["ptx"] or "atom" in found["ptx"]


def test_the_document_is_that_of_python(program, as_json):
    said = as_json("kernels", program)
    assert said["by_kind"] == {"cas": ["input_scatter_fusion"]}
    assert said == json.loads(json.dumps(fusionlab.kernels(scattered, *ARGUMENTS).to_dict()))


FASTER, SAME, SLOWER = "bandwidth_gb_s=15550", "bandwidth_gb_s=1556", "sms=9"


@pytest.mark.parametrize(("given", "order"), [(FASTER, "faster"), (SAME, "not decidable"), (SLOWER, "slower")])
def test_the_same_kernels_at_other_rates(given, order, over_fused, as_json, cli):
    asked = ("kernels", over_fused, "--target", "a100", "--what-if", given)
    found = as_json(*asked)["what_if"]
    assert (found["label"], found["order"], found["needed"]) == (given, order, 0.03)
    assert (found["apart"] < 0.03) == (order == "not decidable")
    said = cli(*asked, "--quiet", code=0).stdout
    assert f"a100 with {given}, the same kernels: " in said
    assert order in said


@pytest.mark.versions
def test_the_rates_of_the_target_itself_are_no_change(over_fused, as_json):
    """Also where the list of kernels has XLA's estimates, as before JAX 0.10."""
    found = as_json("kernels", over_fused, "--target", "a100", "--what-if", SAME)["what_if"]
    assert found["model_us"] == pytest.approx(found["now_us"], rel=1e-3)
    assert found["order"] == "not decidable"
    assert found["apart"] < 1e-3


def test_estimates_of_the_target_s_own_rates_are_on_neither_side(over_fused, monkeypatch, as_json):
    seen, original = [], KernelFacts.of

    def of(compiled, notes=()):
        seen.append(compiled.estimates_are_of_target)
        return original(compiled, notes)

    monkeypatch.setattr(KernelFacts, "of", of)
    as_json("kernels", over_fused, "--target", "a100", "--what-if", FASTER)
    assert seen[1:] == [False, False]


def test_lower_bounds_at_other_rates_have_no_order(tmp_path, as_json, cli):
    path = tmp_path / "factor.bin"
    symmetric = jax.ShapeDtypeStruct((64, 64), np.float32)
    path.write_bytes(jax.export.export(jax.jit(jnp.linalg.cholesky), platforms=["cuda"])(symmetric).serialize())
    asked = ("kernels", path, "--target", "a100", "--what-if", "bandwidth_gb_s=100")
    assert as_json(*asked)["what_if"]["order"] == "not decidable"
    said = cli(*asked, "--quiet", code=0).stdout
    assert "the same kernels: >=" in said
    assert "not decidable by the model: both are lower bounds" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("h200", "another GPU has other code; compile for it: --target h200"),
        ("launch_us=3", "the rates of kernels are bandwidth_gb_s, sms and clock_ghz"),
        ("sms=0", "sms must be from 1 to 100,000, not 0"),
    ],
)
def test_other_rates_than_those_of_kernels_are_refused(given, said, over_fused, cli):
    assert said in cli("kernels", over_fused, "--what-if", given, code=2).stderr


def recomputing(h):
    """In one kernel, where each of 14 elements adds up all of them again."""
    total = h.sum(1, keepdims=True)
    return jnp.tanh(h - total)


@pytest.fixture
def over_fused(tmp_path):
    path = tmp_path / "over_fused.bin"
    h = jax.ShapeDtypeStruct((8192, 14, 64), np.float32)
    path.write_bytes(jax.export.export(jax.jit(recomputing), platforms=["cuda"])(h).serialize())
    return path


def test_the_limit_and_the_kernels_that_are_far_from_it(over_fused, cli, as_json):
    _, limit, *_ = cli("kernels", over_fused, "--quiet", code=0).stdout.splitlines()
    assert "± 14% by model" in limit
    assert "half of the distance: 1 kernel (" in limit
    found = as_json("kernels", over_fused)
    assert found["model_us"] == pytest.approx(sum(one["model_us"] for one in found["kernels"]))
    assert found["model_us"] > found["floor_us"] >= found["program_floor_us"] > 0
    assert all(one["model_source"] == "code" for one in found["kernels"])


def test_launches_with_their_code_have_the_times_of_kernels(over_fused, cli, as_json):
    said = as_json("launches", over_fused, "--kernels")
    assert said["totals"]["model_us"] == pytest.approx(as_json("kernels", over_fused)["model_us"])
    assert {row["model_source"] for row in said["rows"]} == {"code"}
    assert "± 14% (model)" in cli("launches", over_fused, "--kernels", "--quiet", code=0).stdout


def test_over_fusion_names_op_line_and_cost(over_fused, cli, as_json):
    line = recomputing.__code__.co_firstlineno + 2
    said = cli("explain", over_fused, "--over-fused", "--quiet", code=0).stdout
    assert "fused at a loss of at most" in said
    assert f"reduce_sum at {HERE}:{line} computed" in said
    (first, *_) = as_json("explain", over_fused, "--over-fused")["over_fusions"]
    assert first["lost_us"] == pytest.approx(first["us"] - first["rest_us"] - first["parts_us"])
    assert first["lost_us"] > 0
    assert first["parts"][0]["times"] > 1.5


def test_split_fusions_takes_it(over_fused, cli, as_json, tmp_path):
    out = tmp_path / "split.bin"
    cli("apply", over_fused, "--pass", "split-fusions", "--unchecked", "--out", out, "--quiet", code=0)
    before, after = (as_json("kernels", path) for path in (over_fused, out))
    assert after["model_us"] < before["model_us"]
    assert len(after["kernels"]) == len(before["kernels"]) + 1
    assert after["over_fusions"] == []


def test_a_call_around_the_op_gets_no_barrier(cli, as_json, tmp_path):
    path, out = tmp_path / "inner.bin", tmp_path / "split.bin"
    given = [jax.ShapeDtypeStruct((8192, 14, 64), np.float32)] * 2
    function = jax.jit(lambda h, g: jnp.sin(jax.jit(recomputing)(h)) * g)
    path.write_bytes(jax.export.export(function, platforms=["cuda"])(*given).serialize())
    said = cli("apply", path, "--pass", "split-fusions", "--unchecked", "--out", out, "--quiet", code=0).stdout
    assert "1 value is computed once" in said
    before, after = (as_json("kernels", each)["model_us"] for each in (path, out))
    assert after < 0.9 * before


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_no_floor_is_above_the_time(dtype, tmp_path, as_json):
    with jax.enable_x64(True):
        a = jax.ShapeDtypeStruct((2048, 512), dtype)
        b = jax.ShapeDtypeStruct((512, 512), dtype)
        path = tmp_path / "product.bin"
        path.write_bytes(jax.export.export(jax.jit(lambda a, b: jnp.tanh(a @ b)), platforms=["cuda"])(a, b).serialize())
    found = as_json("kernels", path)
    assert 0 < found["floor_us"] <= found["model_us"]


def test_a_program_of_library_calls_alone_has_a_time(tmp_path, cli, as_json):
    (tmp_path / "model.py").write_text("def product(x, w):\n    return x @ w\n")
    given = (tmp_path / "model.py:product", "--args", "f32[512,512] f32[512,512]")
    assert as_json("kernels", *given)["model_us"] > 0
    assert {row["model_source"] for row in as_json("launches", *given, "--kernels")["rows"]} == {"product"}


def test_the_table_is_of_the_distance_from_the_floor_with_library_calls(tmp_path, cli, as_json):
    (tmp_path / "model.py").write_text(
        "import jax.numpy as jnp\n\n\ndef f(x, w, h):\n    return jnp.tanh(x @ w) @ w, jnp.tanh(h.T) * 2\n"
    )
    given = ("kernels", tmp_path / "model.py:f", "--args", "f32[4096,4096] f32[4096,4096] f32[64,64]")
    found = as_json(*given)
    (first, *_), (_, _, *table) = found["distances"], cli(*given, "--quiet", code=0).stdout.splitlines()
    assert first["name"] in found["without_code"]
    beyond = [one["distance_us"] for one in found["distances"]]
    assert beyond == sorted(beyond, reverse=True)
    assert sum(beyond) == pytest.approx(found["model_us"] - found["floor_us"])
    rows = [line for line in table if "%" in line]
    assert first["name"] in rows[0]
    assert "dot_general at model.py:5" in rows[0]


@pytest.mark.parametrize(("work", "bounded"), [("cholesky(x)", True), ("eigh(x)[0]", True), ("slogdet(x)[1]", False)])
def test_a_factorisation_without_a_model_has_a_least_time(work, bounded, tmp_path, cli, as_json):
    (tmp_path / "model.py").write_text(f"import jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.linalg.{work}\n")
    given = (tmp_path / "model.py:f", "--args", "f32[64,64]")
    sources = {row["model_source"] for row in as_json("launches", *given)["rows"]}
    assert ("at-least" in sources) == bounded
    said = [cli(command, *given, code=0).stdout for command in ("launches", "kernels")]
    assert ["at least the roofline's" in one for one in said] == [bounded] * 2
    assert (">=" in said[1]) == bounded


def test_without_over_fusion_it_is_said(program, cli):
    said = cli("explain", program, "--over-fused", "--quiet", code=0).stdout
    assert "XLA fused no sum or product at a loss" in said


def test_over_fusion_needs_code(program, cli):
    assert "no kernel code" in cli("explain", program, "--over-fused", "--target", "cpu", "--quiet", code=2).stderr


def test_bad_input_is_told(program, cli, tmp_path):
    unknown = cli("kernels", program, "--kernel", "input_scater_fusion", "--quiet", code=2).stderr
    assert "input_scatter_fusion" in unknown
    exported = jax.export.export(jax.jit(jnp.sin), platforms=["cpu"])(jax.ShapeDtypeStruct((4,), np.float32))
    path = tmp_path / "of_cpu.bin"
    path.write_bytes(exported.serialize())
    for command in (("kernels",), ("launches", "--kernels")):
        assert "there is no kernel code here; name a GPU target" in cli(*command, path, "--quiet", code=2).stderr


def test_a_library_call_has_no_code(tmp_path, cli):
    a = jax.ShapeDtypeStruct((256, 256), np.float32)
    path = tmp_path / "product.bin"
    path.write_bytes(jax.export.export(jax.jit(lambda a, b: jnp.tanh(a @ b)), platforms=["cuda"])(a, a).serialize())
    result = cli("kernels", path, "--quiet", code=0)
    assert "1 launch without PTX (library calls)" in result.stdout
