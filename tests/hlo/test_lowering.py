"""Workload -> Program: platform, dtype, unused arguments, scopes and locations."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.lowering import jaxpr_text, lower
from fusionlab.workload import Workload

pytestmark = pytest.mark.versions


def _log_psi(params, positions):
    with jax.named_scope("features"):
        hidden = jnp.tanh(positions @ params["used"])
    with jax.named_scope("determinants"):
        return jnp.linalg.slogdet(hidden)[1]


def _tiny(dtype="float32"):
    def inputs(seed):
        key = jax.random.key(seed)
        params = {"unused": jnp.zeros(3, dtype), "used": jnp.ones((3, 4), dtype)}
        return params, jax.random.normal(key, (8, 4, 3), dtype)

    return Workload(
        name="tiny:one",
        molecule="LiH",
        electrons=4,
        program="log-psi",
        laplacian="none",
        walkers=8,
        dtype=dtype,
        function=_log_psi,
        inputs=inputs,
        argument_names=("params", "positions"),
        rebuild=lambda **changes: dataclasses.replace(_tiny(), **changes),
    )


def test_every_leaf_is_an_argument_in_pytree_order():
    program = lower(_tiny(), "cpu")
    assert [str(argument) for argument in program.inputs] == ["3xf32", "3x4xf32", "8x4x3xf32"]
    assert [str(result) for result in program.outputs] == ["8xf32"]


def test_float64_lowers_to_f64_and_leaves_the_setting_alone():
    before = jax.config.jax_enable_x64
    assert {t.dtype for t in lower(_tiny("float64"), "cpu").inputs} == {"f64"}
    assert jax.config.jax_enable_x64 == before


def test_the_platform_decides_the_custom_calls_without_a_device():
    cpu, cuda = lower(_tiny(), "cpu"), lower(_tiny(), "cuda")
    assert (cpu.platform, cuda.platform) == ("cpu", "cuda")
    assert "lapack_sgetrf_ffi" in cpu.text
    assert "cusolver_getrf_ffi" in cuda.text


def test_scopes_and_source_lines_survive_serialisation():
    text = lower(_tiny(), "cuda").text
    assert "jit(log_psi)/features/tanh" in text
    assert "jit(log_psi)/determinants/" in text
    assert "test_lowering.py" in text


def test_name_and_provenance():
    program = lower(_tiny(), "cpu")
    assert program.name == "tiny-one-LiH-log-psi-w8"
    assert program.provenance.startswith("tiny:one log-psi of LiH (4 electrons), 8 walkers, float32, laplacian none")


def test_lowering_twice_gives_the_same_bytes():
    assert lower(_tiny(), "cuda").digest == lower(_tiny(), "cuda").digest


def test_an_unknown_platform_is_refused():
    with pytest.raises(InputError, match="unknown platform 'cud'; did you mean: cuda"):
        lower(_tiny(), "cud")


def test_jaxpr_text_shows_the_primitives():
    text = jaxpr_text(_tiny("float64"))
    assert "tanh" in text
    assert "f64[8,4,3]" in text
