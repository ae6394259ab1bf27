"""Random functions of batched matrices, with a stream of them, for the kernels of dot chains."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

EXTENTS = {"b": 2, "h": 3, "s": 5, "i": 4, "j": 4, "d": 3}
"""Batch, heads, stream, and three axes of matrices; rows and columns may be exchanged."""
START = ("bhid", "bihd", "sbhid", "sbhjd", "bhjd", "bjhd", "shbij", "sbihd")
UNARY: tuple[Callable[[Any], Any], ...] = (jnp.tanh, lambda x: -x, lambda x: x * np.float32(0.5), jnp.abs)
BINARY: tuple[Callable[[Any, Any], Any], ...] = (jnp.add, jnp.subtract, jnp.multiply, jnp.maximum)
WORDS = ("bhij", "bhid", "bhjd", "sbhij", "sbhid", "sbhjd", "bshid", "bihd", "hbij", "sbhji")


def random_chain(seed: int, steps: int = 18) -> tuple[Callable[..., tuple[Any, ...]], list[np.ndarray]]:
    """A function of ``steps`` random steps, the same whenever it is called, and arrays for it."""
    choices = np.random.default_rng(seed)
    shapes = [choices.choice(START) for _ in range(4)]
    arrays = [choices.standard_normal([EXTENTS[axis] for axis in shape]).astype("f4") for shape in shapes]

    def function(*arrays: Any) -> tuple[Any, ...]:
        numbers = np.random.default_rng(seed + 1)
        pool = [*zip(shapes, arrays, strict=True)]
        for _ in range(steps):
            pool.append(_step(numbers, pool))
        last = [array for _, array in pool[-3:]]
        return tuple(last)

    return function, arrays


def _step(numbers: np.random.Generator, pool: list[tuple[str, Any]]) -> tuple[str, Any]:
    word, array = pool[_recent(numbers, len(pool))]
    kind = numbers.choice(
        ["dot"] * 5 + ["stream"] * 3 + ["binary"] * 2 + ["unary", "sum", "most", "merged", "merged", "exchanged"]
    )
    if kind == "unary":
        return word, UNARY[numbers.integers(len(UNARY))](array)
    if kind == "binary":
        other_word, other = pool[_recent(numbers, len(pool))]
        wanted = word if len(word) >= len(other_word) else other_word
        if set(word) | set(other_word) <= set(wanted):
            op = BINARY[numbers.integers(len(BINARY))]
            return wanted, op(_spread(word, array, wanted), _spread(other_word, other, wanted))
    if kind == "sum" and (axes := [axis for axis in word if axis in "sijd"]) and len(word) > 3:
        axis = axes[numbers.integers(len(axes))]
        return word.replace(axis, ""), array.sum(word.index(axis))
    if kind == "most" and (axes := [axis for axis in word if axis in "ijd"]) and len(word) > 3:
        axis = axes[numbers.integers(len(axes))]
        return word.replace(axis, ""), array.max(word.index(axis))
    if kind == "merged":
        return word, _merged(numbers, array)
    if kind == "exchanged" and {"i", "j"} <= set(word):
        return word, array + jnp.swapaxes(array, word.index("i"), word.index("j"))
    if kind == "stream" and "s" in word:
        return _along_the_stream(numbers, word, array)
    if kind == "dot" and (product := _contracted(numbers, word, array, pool)) is not None:
        return product
    return word, jnp.tanh(array)


def _contracted(
    numbers: np.random.Generator, word: str, array: Any, pool: list[tuple[str, Any]]
) -> tuple[str, Any] | None:
    """The array contracted with another; None if they have no product of one of the shapes."""
    other_word, other = pool[_recent(numbers, len(pool))]
    if not numbers.integers(3):  # the same array in another role
        other_word = other_word.translate(str.maketrans("ij", "ji"))
    union = "".join(dict.fromkeys(word + other_word))
    targets = [
        target
        for target in WORDS
        if set("bh") <= set(target) <= set(union) and set(union) - set(target) <= set(word) & set(other_word)
    ]
    if not targets:
        return None
    target = targets[numbers.integers(len(targets))]
    return target, jnp.einsum(f"{word},{other_word}->{target}", array, other) * np.float32(0.4)


def _recent(numbers: np.random.Generator, count: int) -> int:
    return int(count - 1 - min(count - 1, numbers.geometric(0.3) - 1))


def _spread(word: str, array: Any, wanted: str) -> Any:
    order = [axis for axis in wanted if axis in word]
    array = jnp.transpose(array, [word.index(axis) for axis in order])
    shape = [EXTENTS[axis] for axis in wanted]
    return lax.broadcast_in_dim(array, shape, [wanted.index(axis) for axis in order])


def _merged(numbers: np.random.Generator, array: Any) -> Any:
    """Two neighbouring axes as one, along which a constant may vary."""
    at = int(numbers.integers(array.ndim - 1))
    merged = jnp.tanh(array).reshape(*array.shape[:at], -1, *array.shape[at + 2 :])
    if numbers.integers(2):
        constant = numbers.choice([0.0, 1.0, 2.0], merged.shape[at]).astype("f4")
        merged = merged * constant.reshape([-1 if axis == at else 1 for axis in range(merged.ndim)])
    return merged.reshape(array.shape)


def _along_the_stream(numbers: np.random.Generator, word: str, array: Any) -> tuple[str, Any]:
    """A slice put back, an updated element, a pad, a selection, a row: what forward Laplacians do to stacks."""
    at, count = word.index("s"), EXTENTS["s"]
    start = int(numbers.integers(1, count - 1))
    tail = lax.slice_in_dim(array, start, count, axis=at)
    match int(numbers.integers(7)):
        case 0:
            frame = [(start if axis == at else 0, 0, 0) for axis in range(len(word))]
            return word, lax.pad(tail, np.float32(numbers.choice([0.0, 0.0, 1.5])), frame)
        case 1:
            head = lax.slice_in_dim(array, 0, start, axis=at)
            return word, jnp.concatenate([head * head, tail], at)
        case 2:
            starts = [start if axis == at else 0 for axis in range(len(word))]
            return word, lax.dynamic_update_slice(array, jnp.tanh(tail), starts)
        case 3:
            mask = np.arange(count) < start
            shape = [count if axis == at else 1 for axis in range(len(word))]
            return word, lax.select(jnp.broadcast_to(mask.reshape(shape), array.shape), -array, array)
        case 4:
            middle = lax.slice_in_dim(array, start, start + 1, axis=at)
            starts = [start if axis == at else 0 for axis in range(len(word))]
            return word, lax.dynamic_update_slice(array, middle * middle, starts)
        case 5:
            row = lax.index_in_dim(array, start, at, keepdims=False)
            return word.replace("s", ""), row
        case _:
            return word.replace("s", ""), (tail * tail).sum(at)
