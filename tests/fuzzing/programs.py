"""Random programs: a few arguments, steps that each make a value of earlier ones, loops and branches around steps.

``programs()`` is a hypothesis strategy of ``RandomProgram``, whose ``function`` is plain JAX of any floating dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from tests.fuzzing import steps
from tests.fuzzing.steps import Draw, Shape, Step

_PLAIN = (
    steps.unary, steps.unary, steps.binary, steps.binary, steps.reduction, steps.movement, steps.movement, steps.joined,
    steps.indexing, steps.contraction, steps.contraction,
)  # fmt: skip
_BODIES = (steps.unary, steps.binary, steps.contraction, steps.movement, steps.indexing)


@dataclass(repr=False)
class RandomProgram:
    """``shapes`` of the arguments, the ``steps`` in order, and what is returned beside the last two values."""

    shapes: list[Shape]
    steps: list[Step] = field(default_factory=list)
    also: str = ""
    platform: str = "cpu"
    seed: int = 0

    def __repr__(self) -> str:
        lines = [
            f"%{len(self.shapes) + n} = {words} of {operands}" for n, (words, operands, _) in enumerate(self.steps)
        ]
        head = f"arguments {self.shapes}, seed {self.seed}, also {self.also or 'nothing'}, for {self.platform}"
        return "\n".join([head, *lines])

    def arrays(self, dtype: str = "float64") -> list[np.ndarray]:
        """Arguments for it."""
        random = np.random.default_rng(self.seed)
        return [random.standard_normal(shape).astype(dtype) for shape in self.shapes]

    def function(self, *arrays: Any) -> tuple[Any, ...]:
        """The last two values, and a gradient or a tangent of the last one."""
        last = tuple(_values(self.steps, arrays)[-2:])
        if self.also == "gradient":
            return *last, jax.grad(lambda *given: jnp.sum(_values(self.steps, given)[-1]))(*arrays)
        if self.also == "tangent":
            return *last, jax.jvp(lambda *given: _values(self.steps, given)[-1], arrays, tuple(map(jnp.sin, arrays)))[1]
        return last


def _values(steps: Sequence[Step], arrays: Sequence[Any]) -> list[Any]:
    values = list(arrays)
    for _, operands, function in steps:
        values.append(function(*[values[index] for index in operands]))
    return values


def _drawn_steps(draw: Draw, kinds: Sequence[Any], count: int, known: list[Shape]) -> list[Step]:
    """Up to ``count`` steps of ``kinds`` that JAX accepts; the shapes of their values are added to those ``known``."""
    taken: list[Step] = []
    for _ in range(count):
        step = draw(st.sampled_from(kinds))(draw, known)
        if step is None:
            continue
        _, operands, function = step
        made = jax.eval_shape(function, *[jax.ShapeDtypeStruct(known[index], np.float32) for index in operands]).shape
        if 0 < np.prod(made) <= steps.MOST_ELEMENTS:
            taken.append(step)
            known.append(made)
    return taken


@st.composite
def programs(draw: Draw) -> RandomProgram:
    """A program of three to nine steps that JAX accepts."""
    extents = st.integers(1, 4)
    shapes: list[Shape] = [tuple(draw(st.lists(extents, max_size=3))) for _ in range(draw(st.integers(1, 3)))]
    program = RandomProgram(shapes, seed=draw(st.integers(0, 2**16)), platform=draw(st.sampled_from(["cpu", "cuda"])))
    program.steps += _drawn_steps(draw, _STEPS, draw(st.integers(3, 9)), list(shapes))
    differentiable = not any(words.startswith("while") for words, _, _ in program.steps)
    program.also = draw(st.sampled_from(["", "", "tangent", *(["gradient"] if differentiable else [])]))
    return program


def _body(draw: Draw, shape: Shape, extra: Sequence[Shape] = ()) -> Callable[..., Any]:
    """Some steps from arrays of ``shape`` and ``extra`` to one of ``shape``."""
    taken = _drawn_steps(draw, _BODIES, draw(st.integers(1, 3)), [shape, *extra])

    def call(*arrays: Any) -> Any:
        last = _values(taken, arrays)[-1]
        return jnp.tanh(arrays[0] + (last if last.shape == shape else jnp.sum(last)))

    return call


def _loop(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """A sum over trips, a recurrence, a scan, a loop in a loop, or a while whose end depends on data."""
    index = draw(st.integers(0, len(shapes) - 1))
    other = draw(st.integers(0, len(shapes) - 1))
    shape = shapes[index]
    body = _body(draw, shape, [shapes[other]])
    trips = draw(st.integers(0, 5))
    kind = draw(st.sampled_from(["sum", "sum", "recurrence", "scan", "stacked", "nested", "while", "invariant"]))

    def scanned(x: Any, y: Any) -> Any:
        rows = jnp.stack([jnp.sin(x * n) for n in range(1, 4)])
        carried, made = lax.scan(lambda c, row: (body(c, y), c * row), x, rows)
        return carried + made.sum(0)

    def stacked(x: Any, y: Any) -> Any:
        rows = jnp.zeros((max(trips, 1), *x.shape), x.dtype)
        return lax.fori_loop(0, trips, lambda k, r: lax.dynamic_update_index_in_dim(r, body(x + k, y), k, 0), rows)

    def nested(x: Any, y: Any) -> Any:
        inner = lambda s: lax.fori_loop(0, 2, lambda j, t: t + body(s * j, y), s)  # noqa: E731
        return lax.fori_loop(0, min(trips, 3), lambda k, s: jnp.tanh(inner(s) + k), x)

    def until(x: Any, y: Any) -> Any:
        going = lambda c: (c[0] < 7) & (jnp.abs(c[1]).sum() < 3.137)  # noqa: E731
        return lax.while_loop(going, lambda c: (c[0] + 1, c[1] + jnp.abs(body(x, y)) + 0.41), (0, jnp.zeros_like(x)))[1]

    functions = {
        "sum": lambda x, y: lax.fori_loop(0, trips, lambda k, s: s + body(x * k, y), x),
        "invariant": lambda x, y: lax.fori_loop(
            0, trips, lambda k, s: 0.5 * s + body(x, y) * jnp.cos(y).sum() + k, x
        ),
        "recurrence": lambda x, y: lax.fori_loop(1, trips + 1, lambda k, c: body(c + 0.1 * k, y), x),
        "scan": scanned, "stacked": stacked, "nested": nested, "while": until,
    }  # fmt: skip
    return f"{kind} of {trips} trips", (index, other), functions[kind]


def _branch(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    index = draw(st.integers(0, len(shapes) - 1))
    bodies = [_body(draw, shapes[index]) for _ in range(draw(st.integers(2, 3)))]

    def function(x: Any) -> Any:
        which = jnp.floor(1.9 * jnp.tanh(x.sum()) + 1.217).astype(np.int32)
        return lax.switch(which, bodies, x)

    return f"switch of {len(bodies)}", (index,), function


def _mapped(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """A loop or a branch under ``vmap``, or in a function of its own."""
    candidates = [n for n, shape in enumerate(shapes) if shape]
    if not candidates:
        return None
    index = draw(st.sampled_from(candidates))
    step = draw(st.sampled_from([_loop, _branch, steps.linear_algebra]))(draw, [shapes[index][1:]])
    if step is None:
        return None
    words, operands, function = step
    mapped = jax.vmap(jax.jit(lambda x: function(*[x for _ in operands])))
    return f"{words} under vmap", (index,), mapped


_STEPS = (*_PLAIN, _loop, _loop, _loop, _loop, _branch, steps.linear_algebra, _mapped)
