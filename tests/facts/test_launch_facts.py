"""Facts of launches on the CPU: figures that are not known have no column, and nothing is called the most of equals."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.facts.kernel_facts import KernelFacts
from fusionlab.facts.launch_facts import LaunchFacts
from fusionlab.hlo.program import Program
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [pytest.mark.usefixtures("module_cache"), pytest.mark.versions]

X = jax.ShapeDtypeStruct((64, 64), np.float32)


def sorted_twice(x):
    with jax.named_scope("first"):
        x = jnp.sort(x)
    with jax.named_scope("second"):
        return jnp.sort(x, axis=0)


def test_without_a_model_no_time_is_promised():
    found = fusionlab.launches(sorted_twice, X, target="cpu")
    groups, sites = found.tables()
    assert sites.title == f"launch sites, {len(found.rows)} of {len(found.rows)}"
    assert not any("ms" in column or "us" in column for table in (groups, sites) for column in table.columns)
    assert not any("cost model" in line for line in found.notes)
    assert any("no modelled time" in line for line in found.notes)


def test_a_program_without_launches_has_no_sites(cli, tmp_path):
    found = fusionlab.launches(lambda x: x, X, target="cpu")
    assert (len(found.rows), len(found.tables())) == (0, 1)
    (tmp_path / "model.py").write_text("def f(x):\n    return x\n")
    said = cli("launches", tmp_path / "model.py:f", "--args", "f32[8]", "--target", "cpu", code=0).stdout
    assert "launch sites" not in said


def test_the_most_of_equal_groups_is_not_named():
    def sines(x):
        return jnp.sin(jnp.sort(x))

    tied = fusionlab.launches(sines, X, target="cpu", by="op")
    assert sorted(group.dynamic_launches for group in tied.groups.values())[-2:] == [1, 1]
    assert "most in" not in tied.verdict
    first = fusionlab.launches(lambda x: jnp.sort(sines(x)), X, target="cpu", by="op")
    assert first.verdict.endswith("; most in sort (2 of 3)")


def test_a_loop_of_unknown_trip_count_is_in_the_first_line():
    def halved(x):
        return jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: jnp.sort(y, axis=0) / 2, x)

    found = fusionlab.launches(halved, X, target="cpu")
    assert f"{found.dynamic_launches} launches at one trip of 1 loop of unknown trip count, " in found.verdict
    assert not any("unknown trip" in note for note in found.notes)


def test_one_is_singular():
    found = fusionlab.launches(lambda x: jnp.tanh(x), X, target="cpu")
    assert found.dynamic_launches == 1
    assert "1 launch has no modelled time" in found.notes


@needs_the_cuda_plugin
def test_products_in_tf32_are_noted_and_differ_in_time():
    def product(x):
        return x @ x

    def precise(x):
        return jax.numpy.dot(x, x, precision="highest")

    x = jax.ShapeDtypeStruct((1024, 1024), np.float32)
    found, exact = fusionlab.launches(product, x), fusionlab.launches(precise, x)
    (note,) = [line for line in found.qualifications if "TF32" in line]
    assert note.startswith("TF32 on tensor cores: 1 launch with all of the FLOPs")
    assert not any("TF32" in line for line in exact.notes)
    assert not any("CUDA graph" in line for line in found.qualifications)
    assert any("CUDA graph" in line for line in found.notes)
    verdict = fusionlab.diff(found, exact).verdict
    assert re.fullmatch(r"product -> precise on a100: 1 launch on both sides; .* us become .* us \(model\)", verdict)
    assert "costliest" not in fusionlab.explain(product, x).verdict


def test_flops_that_are_not_known_are_no_zero():
    def both(x):
        return jnp.fft.fft(x).real, x @ x

    found = fusionlab.launches(both, X, target="cpu", by="op")
    cells = {row[0]: dict(zip(found.table(0).columns, row, strict=True)) for row in found.table(0).rows}
    flops = next(column for column in found.table(0).columns if column.endswith("FLOP"))
    assert cells["fft"][flops] == "-"
    assert cells["all"][flops].startswith(">=")
    assert not cells["dot_general"][flops].startswith(">=")


@needs_the_cuda_plugin
def test_sites_have_columns_of_their_code(cli, as_json, tmp_path):
    (tmp_path / "model.py").write_text(
        "import jax, jax.numpy as jnp\ndef f(x):\n    y = jax.lax.fori_loop(0, 3, lambda i, s: s @ x, x)\n"
        "    return jnp.tanh(y), jnp.sin(x).sum(0)\n"
    )
    given = ("launches", tmp_path / "model.py:f", "--args", "f32[2048,2048]")
    head = next(line for line in cli(*given, "--kernels", code=0).stdout.splitlines() if line.startswith(" launch "))
    assert head.split()[-3:] == ["reads/need", "sectors", "registers"]
    found = as_json(*given, "--kernels")
    assert {one["name"] for one in found["kernels"]} < {row["name"] for row in found["rows"]}  # a library call has none
    assert "kernels" not in as_json(*given)
    several = as_json(*given, "--kernels", "--target", "a100,h100")["targets"]
    sources = [{row["model_source"] for row in one["rows"] if row["dynamic_launches"]} for one in several]
    by_code = sources == [{"code", "product"}] * 2
    assert by_code or (jax.__version_info__ < (0, 10) and sources == [{"xla", "product"}] * 2)
    said = cli(*given, "--kernels", "--quiet", code=0).stdout
    assert ("± 14% (model)" in said) == by_code == ("XLA's estimate of time" not in said)
    assert "no kernel code" in cli(*given, "--kernels", "--target", "cpu", "--quiet", code=2).stderr


@needs_the_cuda_plugin
def test_a_lower_bound_is_one_in_every_sum_and_has_no_error():
    def eigenvalues(x):
        with jax.named_scope("product"):
            y = jnp.tanh(x) @ x
        with jax.named_scope("eigenvalues"):
            return jnp.linalg.eigh(y, symmetrize_input=True)

    program = Program.from_function(eigenvalues, jax.ShapeDtypeStruct((8, 64, 64), np.float32))
    compiled = compile_program(program, load_target("a100"), ptx=True)
    found, kernels = LaunchFacts.of(compiled, program, by=["scope:1"], kernels=True), KernelFacts.of(compiled)
    assert re.search(r", >=[\d.]+ us \(model\)", found.verdict)
    table = found.table(0)
    column = next(at for at, name in enumerate(table.columns) if name.startswith("model"))
    cells = {row[0]: row[column].startswith(">=") for row in table.rows}
    assert cells == {"eigenvalues": True, "product": False, "all": True}
    assert found.to_dict()["totals"]["at_least_us_launches"] == 1
    assert {group["scope:1"]: group["at_least_us_launches"] for group in found.to_dict()["groups"]} == {
        "eigenvalues": 1, "product": 0,
    }  # fmt: skip
    assert (kernels.model_error, kernels.fields()["at_least_us_launches"]) == (None, 1)
    assert re.match(r">=[\d.]+ us by model; ", kernels.limit)
    assert not any("±" in note for note in kernels.notes)
    assert any("XLA's estimate" in note for note in kernels.notes) == (jax.__version_info__ < (0, 10))
