"""Tracking predicates leaves every value as it is; every reduction of them is steered to be all true, and none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.steering import _FEW, ELEMENTWISE, Tracker, first_wishes
from fusionlab.hlo.view import view_of

MATRIX = jax.ShapeDtypeStruct((2, 3), np.float32)
CONSTANT = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
OPS = {
    "abs": lambda p, f, n: (jnp.abs(f - 2), jnp.abs(n - 2)),
    "add": lambda p, f, n: (f + f.T.reshape(2, 3), f + CONSTANT, n + 3),
    "and": lambda p, f, n: (p & p[::-1], n & 1, p & (CONSTANT > 3)),
    "clamp": lambda p, f, n: (jax.lax.clamp(np.float32(0.5), f, np.float32(3)), jax.lax.clamp(f, 2 * f, 3 * f)),
    "compare": lambda p, f, n: (f > 0.5, n == 1, f < f[::-1]),
    "convert": lambda p, f, n: (f.astype(jnp.int32), n.astype(jnp.float32), n.astype(bool), f.astype(jnp.complex64)),
    "divide": lambda p, f, n: (f / 3, 3 / (f + 1), n // 2),
    "maximum": lambda p, f, n: (jnp.maximum(f, 0.5), jnp.maximum(n, n[::-1])),
    "minimum": lambda p, f, n: (jnp.minimum(f, f[::-1]), jnp.minimum(n, 0)),
    "multiply": lambda p, f, n: (f * f[::-1], 3 * f, n * n),
    "negate": lambda p, f, n: (-f, -n),
    "not": lambda p, f, n: (~p, ~n),
    "or": lambda p, f, n: (p | p[::-1], n | 2),
    "power": lambda p, f, n: (
        *(jax.lax.pow(f + 1, np.float32(c)) for c in (0.5, 3, np.inf)),
        jax.lax.pow(f + 1, CONSTANT),
        jax.lax.pow(CONSTANT, f),
        jax.lax.pow(jax.lax.complex(f, f), np.complex64(2 + 1j)),
    ),
    "select": lambda p, f, n: (jnp.where(p, f, 2), jnp.where(CONSTANT > 0, f, 2), jnp.where(CONSTANT > 3, f, f[::-1])),
    "sign": lambda p, f, n: (jnp.sign(f - 1), jnp.sign(n)),
    "subtract": lambda p, f, n: (f - f[::-1], 1 - f, n - 1),
    "xor": lambda p, f, n: (p ^ p[::-1], n ^ 1),
}


def test_every_elementwise_op_has_a_case():
    assert {f"stablehlo.{name}" for name in OPS} == ELEMENTWISE


@pytest.mark.parametrize("name", OPS)
def test_tracked_predicates_are_those_of_a_plain_evaluation(name, lowered):
    def outputs(x):
        predicate = x > 0.4
        return OPS[name](predicate, jnp.where(predicate, np.float32(3), 1), predicate.astype(jnp.int32))

    module = lowered(outputs, MATRIX).parse()
    view, field = view_of(module), PrimeField(primes(1)[0], range(2))
    tracker, plain = Tracker(field, (1.0, 0.0)), Evaluator(field)
    found, expected = (each.outputs(view, each.drawn_arguments(view)) for each in (tracker, plain))
    for ours, theirs in zip(found, expected, strict=True):
        assert np.array_equal(np.broadcast_to(ours, theirs.shape), theirs)


def test_each_of_many_reductions_is_all_true_in_a_steered_draw_and_none_in_another(lowered):
    """By chance alone one in fourteen was never all true, and a term there was not seen."""

    def outputs(x):
        predicates = x > np.linspace(0.1, 3, 12, dtype=np.float32)
        return jnp.all(predicates, -1), jnp.any(predicates, -1)

    view = view_of(lowered(outputs, jax.ShapeDtypeStruct((20, 12), np.float32)).parse())
    field = PrimeField(primes(1)[0], range(3))
    tracker = Tracker(field, (1.0, 0.0, 0.75))
    tracker.outputs(view, tracker.drawn_arguments(view))
    steered = Evaluator(field.steered(tracker.wishes))
    every, some = steered.outputs(view, steered.drawn_arguments(view))
    assert every.any(0).all()
    assert not some.all(0).any()


@pytest.mark.parametrize("size", [0, 10, _FEW - 1, _FEW + 1, 4 * _FEW])
def test_the_first_wish_for_a_difference_holds(size):
    random = np.random.default_rng(0)
    wishes = (random.integers(1, 1 + max(size // 3, 1), size) * random.choice([-1, 1], size)).astype(np.int32)
    first = {}
    for one in wishes.tolist():
        first.setdefault(abs(one), one)
    assert sorted(first_wishes(np.array_split(wishes, 3)).tolist()) == sorted(first.values())
