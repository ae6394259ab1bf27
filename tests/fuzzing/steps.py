"""Steps of random programs: each draws what it does to arrays of known shapes, or says that it cannot be taken.

``step(draw, shapes)`` gives (words, indices of the operands among ``shapes``, function of the operands) or None. All
arrays are of one floating dtype; sizes stay small, and functions stay away from poles and from ties, so that two
correct evaluations agree to a small multiple of the machine epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

Shape = tuple[int, ...]
Step = tuple[str, tuple[int, ...], Callable[..., Any]]
Draw = Callable[[Any], Any]
MOST_ELEMENTS = 96

UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin, "cos": jnp.cos, "tanh": jnp.tanh, "atan": jnp.arctan, "logistic": jax.nn.sigmoid,
    "neg": jnp.negative,
    "square": lambda x: jnp.tanh(x) ** 2, "cube": lambda x: jnp.sin(x) ** 3, "exp": lambda x: jnp.exp(-jnp.abs(x)),
    "log": lambda x: jnp.log(1.3 + x**2), "log1p": lambda x: jnp.log1p(x**2), "sqrt": lambda x: jnp.sqrt(0.3 + x**2),
    "rsqrt": lambda x: lax.rsqrt(1.1 + x**2), "softplus": lambda x: jnp.logaddexp(x, 0.0), "erf": lax.erf,
    "expm1": lambda x: jnp.expm1(jnp.tanh(x)), "cbrt": lambda x: jnp.cbrt(1.5 + x**2), "abs": jnp.abs,
    "sinh": lambda x: jnp.sinh(jnp.tanh(x)), "tan": lambda x: jnp.tan(jnp.sin(x)),
    "power": lambda x: (1.2 + x**2) ** 0.7, "floor": lambda x: jnp.floor(2.3 * jnp.tanh(x) + 0.317),
    "softmax": lambda x: jax.nn.softmax(x.reshape(-1)),
    "convert": lambda x: (2.7 * jnp.tanh(x) + 0.213).astype(np.int32).astype(x.dtype) + x,
    "stop": lambda x: lax.stop_gradient(x) * x, "sorted": lambda x: jnp.sort(x.reshape(-1)),
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "max": jnp.maximum, "min": jnp.minimum,
    "div": lambda x, y: x / (1.1 + y**2), "atan2": lambda x, y: jnp.arctan2(x + 0.123, 1.7 + y**2),
    "select": lambda x, y: jnp.where(x > y + 0.0371, x * y, y - 0.5), "logaddexp": jnp.logaddexp,
    "clamp": lambda x, y: jnp.clip(x, -jnp.abs(y) - 0.1, 0.6), "pow": lambda x, y: (1.2 + x**2) ** jnp.tanh(y),
}  # fmt: skip


def _one(draw: Draw, shapes: Sequence[Shape]) -> tuple[int, Shape]:
    index = draw(st.integers(0, len(shapes) - 1))
    return index, shapes[index]


def _axis(draw: Draw, shape: Shape) -> int:
    return int(draw(st.integers(0, len(shape) - 1)))


def unary(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    index, _ = _one(draw, shapes)
    name = draw(st.sampled_from(sorted(UNARY)))
    return name, (index,), UNARY[name]


def binary(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """Of two arrays, where needed the smaller one's sum over all axes, or with axes of one added."""
    (i, left), (j, right) = _one(draw, shapes), _one(draw, shapes)
    name = draw(st.sampled_from(sorted(BINARY)))
    f = BINARY[name]
    try:
        if np.prod(np.broadcast_shapes(left, right)) <= MOST_ELEMENTS:
            return name, (i, j), f
    except ValueError:
        pass
    return f"{name} with a sum", (i, j), lambda x, y: f(x, y.sum())


def reduction(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    index, shape = _one(draw, shapes)
    if not shape:
        return None
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))))
    name = draw(st.sampled_from(["sum", "max", "min", "mean", "prod", "var", "logsumexp", "cumsum", "argmax"]))
    keep = draw(st.booleans())
    functions: dict[str, Callable[[Any], Any]] = {
        "logsumexp": lambda x: jax.nn.logsumexp(x, axes, keepdims=keep),
        "cumsum": lambda x: jnp.cumsum(x, axes[0]),
        "argmax": lambda x: jnp.argmax(x, axes[0]).astype(x.dtype) + 0.1,
        "prod": lambda x: jnp.prod(jnp.cos(x), axes, keepdims=keep),
    }
    if name in functions:
        return name, (index,), functions[name]
    return f"{name} over {axes}", (index,), lambda x: getattr(jnp, name)(x, axes, keepdims=keep)


def _broadcast(draw: Draw, index: int, shape: Shape) -> Step | None:
    extent, at = draw(st.integers(1, 3)), draw(st.integers(0, len(shape)))
    if np.prod(shape) * extent > MOST_ELEMENTS:
        return None
    target = (*shape[:at], extent, *shape[at:])
    kept = tuple(axis for axis in range(len(target)) if axis != at)
    return "broadcast", (index,), lambda x: lax.broadcast_in_dim(x, target, kept)


def _pad(draw: Draw, index: int, shape: Shape) -> Step | None:
    """With any of edges and elements between; edges may be cut."""
    how = [draw(st.tuples(st.integers(-1, 1), st.integers(0, 2), st.integers(0, 1))) for _ in shape]
    new = [n + low + high + max(n - 1, 0) * inner for n, (low, high, inner) in zip(shape, how, strict=True)]
    if min(new) < 1 or np.prod(new) > MOST_ELEMENTS:
        return None
    return f"pad {how}", (index,), lambda x: lax.pad(x, jnp.asarray(0.4, x.dtype), how)


def movement(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    index, shape = _one(draw, shapes)
    name = draw(st.sampled_from(["transpose", "reshape", "broadcast", "reverse", "pad", "slice", "split", "diagonal"]))
    if name == "broadcast":
        return _broadcast(draw, index, shape)
    if not shape:
        return None
    if name == "transpose":
        order = tuple(draw(st.permutations(range(len(shape)))))
        return f"{name} {order}", (index,), lambda x: x.transpose(order)
    if name == "reverse":
        axis = _axis(draw, shape)
        return name, (index,), lambda x: lax.rev(x, (axis,))
    if name == "diagonal":
        square = len(shape) >= 2 and shape[-1] == shape[-2]
        return (name, (index,), lambda x: jnp.diagonal(x, axis1=-2, axis2=-1)) if square else None
    if name == "pad":
        return _pad(draw, index, shape)
    if name == "slice":
        starts = [draw(st.integers(0, n - 1)) for n in shape]
        strides = [draw(st.integers(1, 2)) for _ in shape]
        return f"slice from {starts}", (index,), lambda x: lax.slice(x, starts, shape, strides)
    if name == "split":
        axis = _axis(draw, shape)
        at = max(1, shape[axis] // 2)
        return name, (index,), lambda x: jnp.concatenate(jnp.split(x, [at], axis)[::-1], axis)
    size = int(np.prod(shape))
    front = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    target = draw(st.sampled_from([(front, size // front), (size,), (1, front, size // front)]))
    return f"reshape to {target}", (index,), lambda x: x.reshape(target)


def joined(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    (i, left), (j, right) = _one(draw, shapes), _one(draw, shapes)
    if not left or len(left) != len(right) or np.prod(left) + np.prod(right) > MOST_ELEMENTS:
        return None
    fitting = [a for a in range(len(left)) if left[:a] + left[a + 1 :] == right[:a] + right[a + 1 :]]
    if not fitting:
        return None
    axis = draw(st.sampled_from(fitting))
    return f"concatenate along {axis}", (i, j), lambda x, y: jnp.concatenate([x, y, x], axis)


def indexing(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """Gathers and scatters at known and at computed places, in range, repeated and beyond; dynamic slices."""
    index, shape = _one(draw, shapes)
    if not shape:
        return None
    axis = _axis(draw, shape)
    places = np.array(draw(st.lists(st.integers(-shape[axis], shape[axis] + 1), min_size=1, max_size=4)), np.int32)
    mode = draw(st.sampled_from(["clip", "fill", "drop"]))
    name = draw(st.sampled_from(["take", "add", "set", "mul", "computed", "dynamic_slice", "update", "along"]))
    start = draw(st.integers(-2, shape[axis] + 1))

    def at(x: Any) -> Any:
        return jnp.moveaxis(x, axis, 0).at[places]

    def computed(x: Any) -> Any:
        there = jnp.clip(jnp.floor(1.7 * jnp.tanh(x.reshape(-1)[:3]) + 1.213), 0, shape[axis] - 1).astype(np.int32)
        return jnp.take(x, there, axis)

    functions: dict[str, Callable[[Any], Any]] = {
        "take": lambda x: at(x).get(mode="fill" if mode == "drop" else mode, fill_value=0.7),
        "add": lambda x: at(x).add(jnp.sin(jnp.moveaxis(x, axis, 0)[:1]), mode=mode),
        "mul": lambda x: at(lax.stop_gradient(x)).multiply(0.7, mode=mode),  # JAX cannot differentiate it
        "set": lambda x: at(x).set(0.3, mode=mode),
        "computed": computed,
        "along": lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis), axis),
        "dynamic_slice": lambda x: lax.dynamic_slice_in_dim(x, start + x.size, max(1, shape[axis] - 1), axis),
        "update": lambda x: lax.dynamic_update_slice_in_dim(x, lax.slice_in_dim(-x, 0, 1, axis=axis), start, axis),
    }  # fmt: skip
    return f"{name} at {places.tolist()} or {start} of axis {axis}, {mode}", (index,), functions[name]


def contraction(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    """``dot_general`` with drawn batch and contracted axes, or a layer with known weights."""
    (i, left), (j, right) = _one(draw, shapes), _one(draw, shapes)
    pairs = [(a, b) for a in range(len(left)) for b in range(len(right)) if left[a] == right[b]]
    chosen: list[tuple[int, int]] = []
    for pair in draw(st.permutations(pairs)):
        if all(pair[0] != a and pair[1] != b for a, b in chosen):
            chosen.append(pair)
    chosen = chosen[: draw(st.integers(0, 3))]
    if left and (not chosen or draw(st.integers(0, 2)) == 0):
        weights = np.random.default_rng(draw(st.integers(0, 999))).standard_normal((left[-1], draw(st.integers(1, 4))))
        return f"layer {weights.shape}", (i,), lambda x: x @ jnp.asarray(weights, x.dtype)
    batch = draw(st.integers(0, len(chosen)))
    free = [n for a, n in enumerate(left) if a not in [p for p, _ in chosen]]
    free += [n for b, n in enumerate(right) if b not in [p for _, p in chosen]]
    if np.prod([*free, *[left[a] for a, _ in chosen[:batch]]]) > MOST_ELEMENTS:
        return None
    axes = [tuple(zip(*part, strict=True)) or ((), ()) for part in (chosen[batch:], chosen[:batch])]
    return f"dot_general {axes}", (i, j), lambda x, y: lax.dot_general(x, y, tuple(axes))


def _matrices(x: Any, n: int) -> Any:
    """Well-conditioned matrices [.., n, n] of ``x``."""
    flat = jnp.tanh(x.reshape(-1))
    count = max(1, flat.size // (n * n))
    a = jnp.resize(flat, (count, n, n))
    return a + (1.5 * n) * jnp.eye(n, dtype=x.dtype)


def linear_algebra(draw: Draw, shapes: Sequence[Shape]) -> Step | None:
    index, _ = _one(draw, shapes)
    n = draw(st.integers(1, 4))
    lower, transposed, unit, left = (draw(st.booleans()) for _ in range(4))
    name = draw(st.sampled_from(["slogdet", "solve", "inverse", "triangular", "lu", "det"]))

    def triangular(x: Any) -> Any:
        a = _matrices(x, n)
        b = jnp.sin(a)[..., : max(1, n - 1)]
        b = b if left else jnp.swapaxes(b, -1, -2)
        return lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit
        )

    functions: dict[str, Callable[[Any], Any]] = {
        "slogdet": lambda x: (lambda sign, log: sign + log)(*jnp.linalg.slogdet(_matrices(x, n)[..., ::-1, :])),
        "det": lambda x: jnp.linalg.det(_matrices(x, n) / (2 * n)),
        "solve": lambda x: jnp.linalg.solve(_matrices(x, n), jnp.cos(_matrices(x, n))[..., :1]),
        "inverse": lambda x: jnp.linalg.inv(_matrices(x, n)),
        "lu": lambda x: lax.linalg.lu(_matrices(x, n))[0],
        "triangular": triangular,
    }
    return f"{name} of {n} by {n}", (index,), functions[name]
