"""Programs put together at random: their jets are those of brute force, whatever is composed with what."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from .jet_cases import F, N, V, W, X

_CHUNK = np.arange(N)


def _pairs(kind: str, reduce: str, axis: int) -> Any:
    def function(a: Any, b: Any) -> Any:
        left, right = a[:, :, None], b[:, None]
        joined = {
            "difference": lambda: jnp.tanh(left - right),
            "product": lambda: left * right,
            "quotient": lambda: left / (2 + right**2),
            "norm": lambda: jnp.linalg.norm(left - right + 1, axis=-1, keepdims=True) * right,
            "features": lambda: jnp.tanh(
                jnp.concatenate([jnp.broadcast_to(left, (*left.shape[:2], N, F)), left * right], -1)
                @ np.concatenate([V, -V.T])
            ),
        }[kind]()
        return getattr(jnp, reduce)(joined, axis)

    return function


def _moved(order: tuple[int, ...]) -> Any:
    return lambda a: jnp.concatenate([a[:, list(order)], jnp.sin(a[:, :1])], 1)[:, 1:] if order else a


ONE = {
    "tanh": jnp.tanh,
    "gaussian": lambda a: jnp.exp(-(a**2)),
    "root": lambda a: jnp.sqrt(1 + a**2),
    "abs": abs,
    "cube": lambda a: 0.3 * a**3,
    "layer": lambda a: jnp.tanh(a @ V),
    "linear": lambda a: a @ V + 0.2,
    "mean-field": lambda a: a - a.mean(1, keepdims=True),
    "spins": lambda a: jnp.concatenate([a[:, :2] * 2, jnp.repeat(a[:, :2].sum(1, keepdims=True), N - 2, 1)], 1),
    "softmax": lambda a: jax.nn.softmax(a, -1),
    "flattened": lambda a: (a.reshape(-1, N * F)[:, ::-1]).reshape(-1, F, N).swapaxes(1, 2),
    "padded": lambda a: jnp.pad(a, ((0, 0), (1, 0), (0, 0)), constant_values=0.5)[:, :N],
    "constant-part": lambda a: jnp.concatenate([a[:, :3], jnp.ones((a.shape[0], 1, F))], 1),
    "self-pairs": lambda a: (a[:, :, None] * a[:, None] - a[:, None])[:, _CHUNK, _CHUNK],
    "cumulative": lambda a: jnp.cumsum(a, 1),
    "determinant": lambda a: a + jnp.linalg.slogdet(jnp.sin(a[..., :N]) + 3 * jnp.eye(N))[1][:, None, None],
}  # fmt: skip
TWO = {
    "add": lambda a, b: a + 0.5 * b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / (2 + b**2),
    "where": lambda a, b: jnp.where(a > b, jnp.sin(a), b),
    "maximum": jnp.maximum,
    "side-by-side": lambda a, b: jnp.concatenate([a, b], -1) @ np.concatenate([V, V.T]),
    "one-after-another": lambda a, b: jnp.concatenate([a, b], 1)[:, 1 : N + 1],
    "attention": lambda a, b: jnp.einsum("bnm,bmf->bnf", jnp.tanh(jnp.einsum("bnf,bmf->bnm", a, b)), b),
    "diagonal": lambda a, b: jnp.einsum("bnf,bnf->bn", a, b)[..., None] * a,
    "power": lambda a, b: (1.5 + a**2) ** (0.3 * b),
}
BACK = st.integers(0, 3)
"""How many values before the last the other operand is."""
KINDS = st.sampled_from(["difference", "product", "quotient", "norm", "features"])
PAIRS = st.tuples(KINDS, st.sampled_from(["sum", "mean", "max"]), st.integers(1, 2))
ops = st.one_of(
    st.tuples(st.just("one"), st.sampled_from(sorted(ONE)), BACK),
    st.tuples(st.just("two"), st.sampled_from(sorted(TWO)), BACK),
    st.tuples(st.just("pairs"), PAIRS, BACK),
    st.tuples(st.just("moved"), st.permutations(range(N)).map(tuple), BACK),
)
quick = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}
programs = st.lists(ops, min_size=3, max_size=7)


@settings(max_examples=6, derandomize=True, **quick)
@given(programs)
def test_jets_of_random_programs(check_jets, steps):
    check_random_jets(check_jets, steps)


@pytest.mark.full
@seed(79)
@settings(max_examples=100, **quick)
@given(programs)
def test_jets_of_more_random_programs(check_jets, steps):
    check_random_jets(check_jets, steps)


def check_random_jets(check_jets, steps):
    """Each step makes a value [B, N, F] from the last one and an earlier one."""

    def function(x: Any) -> Any:
        values = [jnp.tanh(x @ W) + 0.3 * (x @ W)]
        for kind, what, back in steps:
            last, other = values[-1], values[max(len(values) - 1 - back, 0)]
            if kind == "one":
                value = ONE[what](last)
            elif kind == "moved":
                value = _moved(what)(last)
            else:
                value = (TWO[what] if kind == "two" else _pairs(*what))(last, other)
            values.append(value)
        return values[-1], values[-1].sum((1, 2)) * values[-2][:, 0, 0]

    check_jets(function, X, tolerance=1e-8)
