"""The kernels of the report: the same figures as the command's, the farthest from their floor first."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.facts.kernel_facts import KernelFacts
from fusionlab.hlo.program import Program
from fusionlab.report.kernels import kernels_document
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = needs_the_cuda_plugin


def recomputing(h, w):
    return jnp.tanh(h - h.sum(1, keepdims=True)), w @ w


@pytest.fixture(scope="module")
def compiled():
    given = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((8192, 14, 64), (256, 256))]
    return compile_program(Program.from_function(recomputing, *given), load_target("a100"), ptx=True)


def test_the_figures_are_those_of_the_command(compiled):
    found, facts = kernels_document(compiled), KernelFacts.of(compiled)
    assert found["model_us"] == pytest.approx(facts.model_us)
    assert (found["model_error"], found["at_least"]) == (facts.model_error, False) == (0.14, False)
    assert found["distance_us"] == pytest.approx(facts.distance_us)
    assert [one["name"] for one in found["rows"]] == [one.name for one, _ in facts.distances]
    assert found["floor_us"] + found["distance_us"] == pytest.approx(found["model_us"])
    fused, product = found["rows"]
    assert (fused["op"], fused["over_fused"]["op"], found["half"]) == ("reduce_sum", "reduce_sum", 1)
    assert fused["over_fused"]["apart_us"] < fused["model_us"]
    assert fused["reads_per_needed"] > 1.5
    assert (product["op"], product["registers"], product["over_fused"]) == ("dot_general", None, None)


def test_a_lower_bound_has_no_error():
    given = jax.ShapeDtypeStruct((8, 64, 64), np.float32)
    compiled = compile_program(Program.from_function(jnp.linalg.eigh, given), load_target("a100"), ptx=True)
    found = kernels_document(compiled)
    assert (found["model_error"], found["at_least"]) == (None, True)
    assert [one["at_least"] for one in found["rows"]].count(True) == 1


@pytest.mark.parametrize("changes", [{"ptx": ""}, {"target": load_target("cpu")}])
def test_without_code_there_is_a_reason(changes, compiled):
    found = kernels_document(dataclasses.replace(compiled, **changes))
    assert list(found) == ["reason"]
    assert found["reason"].endswith(".")
