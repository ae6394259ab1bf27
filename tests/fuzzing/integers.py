"""Random derivative rules that depend on integers made of data: refused, or right at all sizes of the data.

    F = sum_i u(r_i),   u' by hand = slope (1 - gate),   gate = steps of integers of r, bits, orders, counts, arguments

Half of the values have the integers of the gate too, and some the gate itself, whose rewriting is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from tests.fuzzing import properties

PIPELINES = ("fuse-jvp-replay", "transpose-replay")
WALKERS, ELECTRONS = 4, 3
_SIZES = 24
"""The samples at which a rewritten program is compared, at lengths from 1e-3 to 1e4."""


def _trips(r: Any) -> Any:
    start = (jnp.zeros(r.shape, jnp.int32), lax.stop_gradient(r))
    return lax.while_loop(lambda s: jnp.any(s[1] < 1e3), lambda s: (s[0] + 1, s[1] * 1.3 + 0.1), start)[0]


SOURCES: dict[str, Callable[[Any, Any], Any]] = {
    "cells": lambda r, n: (r / 0.005).astype(jnp.int32),
    "wide cells": lambda r, n: (r * 3).astype(jnp.int64),
    "unsigned cells": lambda r, n: (r * 40).astype(jnp.uint32),
    "rounded": lambda r, n: jnp.round(r).astype(jnp.int32),
    "exponents": lambda r, n: jnp.frexp(r)[1],
    "bits": lambda r, n: lax.bitcast_convert_type(r, jnp.int64) >> 48,
    "order": lambda r, n: jnp.argsort(r),
    "largest": lambda r, n: jnp.argmax(r) + jnp.zeros(r.shape, int),
    "top": lambda r, n: lax.top_k(r, 1)[1] + jnp.zeros(r.shape, int),
    "count": lambda r, n: (r > 2.0).sum() + jnp.zeros(r.shape, int),
    "trips": lambda r, n: _trips(r),
    "argument": lambda r, n: n + jnp.zeros(r.shape, int),
    "cells and argument": lambda r, n: (r * 7).astype(jnp.int32) + n,
}
_NUMBERS = (2, 3, 5, 7, 16, 31, 100, 255, 700, 1023, 1600, 2047, 4096, 12345)
STEPS: dict[str, Callable[[Any, int], Any]] = {
    "clip": lambda i, c: jnp.clip(i - c, 0, 1),
    "smaller": lambda i, c: jnp.minimum(i, c),
    "larger": lambda i, c: jnp.maximum(i, c),
    "less": lambda i, c: (i < c).astype(int),
    "equal": lambda i, c: (i == c).astype(int),
    "remainder": lambda i, c: i % c,
    "quotient": lambda i, c: i // c,
    "shift": lambda i, c: i >> c.bit_length(),
    "mask": lambda i, c: i & ~c,
    "xor": lambda i, c: i ^ c,
    "product": lambda i, c: i * c,
    "narrow": lambda i, c: i.astype(jnp.int8).astype(int),
    "unsigned": lambda i, c: i.astype(jnp.uint32) >> 4,
    "ones": lambda i, c: lax.population_count(i),
    "table": lambda i, c: jnp.asarray((np.arange(4096) > c).astype(int))[i],
    "parity": lambda i, c: i % 2,
}
ENDS: dict[str, Callable[[Any], Any]] = {
    "indicator": lambda i: jnp.clip(i, 0, 1),
    "some": lambda i: (i != 0).astype(int),
    "product": lambda i: jnp.prod(jnp.clip(i, 0, 1)),
    "wave": jnp.sin,
}


@dataclass(frozen=True)
class RandomRule:
    """``value`` says what of the gate the value has: nothing, its integers, or all."""

    source: str
    steps: tuple[tuple[str, int], ...]
    end: str
    value: str
    batched: bool
    seed: int

    def integers(self, r: Any, n: Any) -> Any:
        return SOURCES[self.source](lax.stop_gradient(r), n)

    def gate(self, r: Any, n: Any) -> Any:
        found = self.integers(r, n)
        for step, number in self.steps:
            found = STEPS[step](found, number)
        return ENDS[self.end](found)

    def _factor(self, r: Any, n: Any) -> Any:
        if self.value == "all":
            return 1 - self.gate(r, n)
        return 1 + 1e-2 * jnp.cos(self.integers(r, n) / 7.0) if self.value == "integers" else 1.0

    def function(self, x: Any, n: Any) -> Any:
        """Values and sums of second derivatives of walkers [W, electrons, 3]."""
        u = jax.custom_jvp(lambda r: -0.3 * r * r * self._factor(r, n))

        def rule(primals: Any, tangents: Any) -> Any:
            [r] = primals
            own = 1.0 if self.value == "all" else 1 - self.gate(r, n)
            return u(r), -0.6 * r * self._factor(r, n) * own * tangents[0]

        u.defjvp(rule)

        def one(x: Any) -> Any:
            f = lambda y: u(jnp.sqrt((y.reshape(-1, 3) ** 2).sum(-1))).sum()  # noqa: E731
            y = x.reshape(-1)
            hessian, eye = jax.linearize(jax.grad(f), y)[1], jnp.eye(y.size, dtype=y.dtype)
            if self.batched:
                return f(y), jnp.trace(jax.vmap(hessian)(eye))
            return f(y), lax.fori_loop(0, y.size, lambda k, s: s + hessian(eye[k])[k], jnp.zeros((), y.dtype))

        return jax.vmap(one)(x)

    def samples(self) -> Sequence[list[np.ndarray]]:
        """Walkers of all sizes, with arguments of all sizes."""
        random = np.random.default_rng(self.seed)
        found = []
        for at in range(_SIZES):
            x = random.standard_normal((WALKERS, ELECTRONS, 3))
            lengths = 10 ** random.uniform(-3, 4, (WALKERS, ELECTRONS, 1)) if at else np.ones((1, 1, 1))
            x *= lengths / np.linalg.norm(x, axis=-1, keepdims=True)
            found.append([x, np.asarray(int(10 ** random.uniform(0, 6)) if at else 3)])
        return found


@st.composite
def rules(draw: st.DrawFn) -> RandomRule:
    """One to three steps."""
    step = st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(_NUMBERS))
    return RandomRule(
        source=draw(st.sampled_from(sorted(SOURCES))),
        steps=tuple(draw(st.lists(step, min_size=1, max_size=3))),
        end=draw(st.sampled_from(sorted(ENDS))),
        value=draw(st.sampled_from(["nothing", "integers", "integers", "all"])),
        batched=draw(st.sampled_from([False, False, True])),
        seed=draw(st.integers(0, 2**16)),
    )


def check_rule(random: RandomRule) -> None:
    """The passes leave ``random`` alone or keep its numbers, at all sizes of the data."""
    samples = random.samples()
    program = properties.lowered(random.function, samples[0])
    properties.tally[f"rules, of the gate in the value {random.value}"] += 1
    for pipeline in PIPELINES:
        result = properties.rewritten(program, pipeline)
        if not result.applied:
            continue
        properties.tally[f"{pipeline} of a value with {random.value}"] += 1
        with jax.enable_x64(True):
            before = jax.jit(lambda *given: random.function(*given))
            after = jax.jit(properties.raise_program(result.program))
            for sample in samples:
                expected = [np.asarray(one) for one in jax.tree.leaves(before(*sample))]
                properties.require_same([np.asarray(one) for one in after(*sample)], expected, pipeline)
