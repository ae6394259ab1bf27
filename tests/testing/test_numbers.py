"""The assertion that two functions are equal: by the check of the passes, on the arguments given and near them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.raising import RaisingFault
from fusionlab.errors import InputError
from fusionlab.testing import assert_equivalent, numbers

pytestmark = pytest.mark.versions

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = {"w": np.linspace(1, 2, 6, dtype=np.float32).reshape(3, 2), "scale": 0.5}


def network(parameters, x, power=2):
    return jnp.tanh(x @ parameters["w"]) * parameters["scale"], jnp.sum(x**power)


def in_another_order(parameters, x, power=2):
    y = sum(x[:, k, None] * parameters["w"][k] for k in (2, 0, 1))
    return parameters["scale"] * jnp.tanh(y), jnp.sum(x**power)


def test_the_same_numbers_in_another_order():
    verdict = assert_equivalent(network, jax.jit(in_another_order), (W, X))
    assert verdict.verdict == "within-bound"
    assert [output.name for output in verdict.outputs] == ["output 0", "output 1"]
    assert assert_equivalent(network, network, (W, X)).verdict == "equal"


def test_a_setting_is_no_argument():
    assert_equivalent(jax.jit(network, static_argnums=2), network, (W, X, 3))


@pytest.mark.parametrize(
    "other",
    [
        lambda p, x: (network(p, x)[0] * (1 + 1e-5), network(p, x)[1]),
        lambda p, x: (network(p, x)[0], jnp.sum(jnp.abs(x) ** 3)),
        lambda p, x: (jnp.where(x[0, 0] == X[0, 0], network(p, x)[0], 0), network(p, x)[1]),
    ],
    ids=["a factor", "another power", "right only at the arguments given"],
)
def test_what_is_different_is_said_with_its_worst_place(other):
    with pytest.raises(AssertionError, match=r"are different: the arguments .*, output [01]: error .* \(tolerance "):
        assert_equivalent(network, other, (W, X))


def test_other_types_are_shown():
    with pytest.raises(AssertionError, match=r"4x2xf32, f32\) against .* -> \(2x4xf32, f32\)"):
        assert_equivalent(network, lambda p, x: (network(p, x)[0].T, network(p, x)[1]), (W, X))


def test_what_cannot_be_judged_is_a_failure():
    with pytest.raises(AssertionError, match="not-checked"):
        assert_equivalent(lambda x: x / 0 * 0, lambda x: x / 0 * 0, (X,))
    with pytest.raises(AssertionError, match="not-checked"):
        assert_equivalent(jax.lax.linalg.hessenberg, jax.lax.linalg.hessenberg, (X.T @ X,))


def test_abstract_arguments_have_no_numbers():
    with pytest.raises(InputError, match=r"as \(x,\), and not one"):
        assert_equivalent(jnp.sin, jnp.sin, jnp.ones(3))
    with pytest.raises(InputError, match="give arrays"):
        assert_equivalent(network, network, (W, jax.ShapeDtypeStruct((4, 3), "float32")))


def test_a_fault_of_the_raising_is_no_verdict(monkeypatch):
    def faulty(*given):
        raise RaisingFault("TypeError: a bug")

    monkeypatch.setattr(numbers, "check_programs", faulty)
    with pytest.raises(AssertionError, match="not-checked: TypeError: a bug"):
        assert_equivalent(jnp.sin, jnp.sin, (X,))
