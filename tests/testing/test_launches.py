"""Assertions about launches: for an absent GPU, with numbers that are XLA's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.testing import assert_fused, assert_launches, assert_no_layout_copies, ledger

pytestmark = [pytest.mark.versions, pytest.mark.usefixtures("module_cache")]

X = jax.ShapeDtypeStruct((64, 6), np.float32)
W = jax.ShapeDtypeStruct((6, 32), np.float32)


def energy(w, x):
    """A Laplacian by a replay: six trips."""

    def local(x):
        with jax.named_scope("stage_e"):
            _, hessian_times = jax.linearize(jax.grad(lambda x: jnp.sum(jnp.tanh(x @ w))), x)
            return jax.lax.fori_loop(0, 6, lambda k, total: total + hessian_times(jnp.eye(6)[k])[k], 0.0)

    return jax.vmap(local)(x)


def forward(w, x):
    with jax.named_scope("stage_e"):
        y = jnp.tanh(x @ w)
        return jnp.sum(-2 * y * (1 - y * y) * jnp.sum(w * w, axis=0), axis=1)


def elementwise(x):
    return jnp.exp(-jnp.tanh(x) * 2)


def endless(x):
    return jax.lax.while_loop(lambda x: x[0, 0] < 3, lambda x: x + 1, x)


def turned(x):
    with jax.named_scope("turn"):
        return jnp.concatenate([x.T, x.T[::-1]], 1)


def exchanged(x, y):
    return y, x


@pytest.mark.parametrize("fn", [elementwise, jax.jit(elementwise), jax.jit(elementwise).trace(X)])
def test_elementwise_ops_are_one_launch(fn):
    args = () if isinstance(fn, jax.stages.Traced) else (X,)
    made = assert_launches(fn, args, at_most=1)
    assert (made.dynamic_launches, made.counts.static_launches, made.counts.dynamic_copies) == (1, 1, 0)
    assert made.compiled.target.name == "a100"
    with pytest.raises(AssertionError, match=r"elementwise on a100: 1 launch, at most 0 allowed\n +1  \w+"):
        assert_launches(fn, args, at_most=0)


def test_what_is_within_the_bounds():
    made = ledger(energy, (W, X))
    assert made.dynamic_launches >= 6 > assert_launches(forward, (W, X), at_most=5).dynamic_launches
    made = assert_fused(forward, (W, X), scope="stage_e", at_most=2)
    assert any(row.family == "gemm" for row in made.rows), "a library's launch is there, and not counted"
    assert_no_layout_copies(elementwise, (X,))
    assert_no_layout_copies(turned, (X,), at_most=1)
    assert assert_launches(elementwise, (X,), at_most=1, target="cpu").compiled.target.name == "cpu"


def test_launches_are_grouped_by_their_origin_and_failures_name_it():
    made = ledger(turned, (X,))
    assert made.launches_by() == made.launches_by("scope") == {("turn",): 1}
    ((source,),) = made.launches_by("source")
    assert source.startswith("test_launches.py:")
    with pytest.raises(InputError, match="unknown view 'scoop'; did you mean: scope"):
        made.launches_by("scoop")
    with pytest.raises(AssertionError, match=rf"1  \w+ \(\w+, turn/\w+, primal, {source}\)") as caught:
        assert_launches(turned, (X,), at_most=0)
    assert "stages:" not in str(caught.value)
    staged = ledger(forward, (W, X))
    assert "by phase, stage, role:" in staged.text()
    assert "stages: A features;" in staged.text()


@pytest.mark.parametrize(
    ("check", "function", "args", "options", "message"),
    [
        (assert_launches, energy, (W, X), {"at_most": 5}, r" 6  .* in while"),
        (assert_launches, endless, (X,), {"at_most": 1000}, "a loop has no known trip count"),
        (assert_fused, energy, (W, X), {"at_most": 2}, r"scope stage_e is \d+ launches .*, at most 2 allowed"),
        (assert_fused, energy, (W, X), {"at_most": 0}, r"XLA kept .* apart: "),
        (assert_no_layout_copies, turned, (X,), {}, "1 kernels and copies only move data, at most 0 allowed"),
        (assert_no_layout_copies, turned, (X,), {"scope": "turn"}, "in scope turn only move data"),
        (assert_no_layout_copies, exchanged, (X, X), {}, r"2 kernels and copies(.|\n)*  copy "),
    ],
)
def test_what_is_beyond_is_told(check, function, args, options, message):
    with pytest.raises(AssertionError, match=message):
        check(function, args, **options)


@pytest.mark.parametrize(
    ("check", "given", "options", "message"),
    [
        (assert_fused, (forward, (W, X)), {"scope": "stage_f"}, "unknown scope of a launch 'stage_f'; .*stage_e"),
        (assert_no_layout_copies, (forward, (W, X)), {"scope": "stage_f"}, "unknown scope .*; did you mean: .*stage_e"),
        (ledger, (elementwise, X), {}, r"as \(x,\), and not one ShapeDtypeStruct"),
        (ledger, (3,), {}, "not int"),
        (ledger, (jax.jit(elementwise).trace(X), (X,)), {}, "give no args"),
        (ledger, (elementwise, (X,)), {"target": "b100"}, "unknown target 'b100'"),
    ],
)
def test_what_cannot_be_looked_at_is_said(check, given, options, message):
    with pytest.raises(InputError, match=message):
        check(*given, **options)
