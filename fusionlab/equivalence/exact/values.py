"""Values of an evaluation: known from the program alone, or drawn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.executable import numpy_dtype
from fusionlab.hlo.view import Value

Array = np.ndarray[Any, Any]
NONE: Mapping[str, Array] = MappingProxyType({})


class Known:
    """An array ``constant`` that follows from constants, in the program's own type."""

    parts = NONE

    def __init__(self, constant: Array, arithmetic: Any) -> None:
        self.constant, self._arithmetic = constant, arithmetic

    @cached_property
    def array(self) -> Array:
        """[1, ...]: residues where the constant is of a float type."""
        return self._arithmetic.embedded(self.constant) if is_float(self.constant.dtype) else self.constant[None]


class Drawn:
    """An array [draws or 1, ...] that depends on the arguments: residues of a float type, others as they are.

    ``parts`` are arrays that are carried along with it through every op that moves elements:
    ``logarithm`` l and ``argument`` v, where a part l of the value is log v: exp(u + l) is exp(u) v;
    ``difference`` d, ``no`` and ``yes`` of a value of predicates alone (steering.py).
    """

    __slots__ = ("array", "parts")

    def __init__(self, array: Array, parts: Mapping[str, Array] = NONE) -> None:
        self.array, self.parts = array, parts


Held = Known | Drawn
Environment = Mapping[Value, Held]
Step = Callable[[Sequence[Held], Environment], list[Held]]
"""One node, ready to be evaluated, its attributes read once."""
_NEUTRAL = {"logarithm": 0.0, "argument": 1.0, "difference": 0.0}


def part(held: Held, name: str) -> Array:
    """The part ``name`` of a value; without one, its default where nothing is known or decided."""
    if name in held.parts:
        return held.parts[name]
    return np.broadcast_to(np.float64(_NEUTRAL[name]), held.array.shape) if name in _NEUTRAL else held.array


def carried(operands: Sequence[Held]) -> set[str]:
    """The names of the parts of a combination: those of predicates only if all drawn operands have them."""
    if not any(operand.parts for operand in operands):
        return set()
    names = {name for operand in operands for name in operand.parts}
    if "difference" in names and any(isinstance(o, Drawn) and "difference" not in o.parts for o in operands):
        names -= {"difference", "no", "yes"}
    return names


@functools.cache
def is_float(dtype: np.dtype[Any]) -> bool:
    """True for floating-point and complex types."""
    return bool(jnp.issubdtype(dtype, jnp.inexact))


class Uncovered(Exception):
    """A type or form of an op without exact meaning; the message names it and where it is."""

    def __init__(self, reason: str, scope: str = "") -> None:
        super().__init__(reason + (f" at {scope}" if scope else ""))


def dtype_of(value: Value) -> np.dtype[Any]:
    """The NumPy type of ``value``; Uncovered where it has none here (quantised and narrow numbers, tuples, tokens)."""
    try:
        return numpy_dtype(value.type)
    except ValueError as error:
        scope = value.producer.scope if value.producer else ""
        what = f"the element type {value.dtype}" if value.is_array else f"the type {value.type_text}"
        raise Uncovered(what, scope) from error


def same_draws(arrays: Sequence[Array]) -> list[Array]:
    """``arrays`` with as many draws each: those of one draw are repeated."""
    draws = max(map(len, arrays), default=1)
    return [array if len(array) == draws else np.broadcast_to(array, (draws, *array.shape[1:])) for array in arrays]


def aligned(*arrays: Array) -> Sequence[Array]:
    """Scalars [draws] beside arrays [draws, ...] get axes of extent 1."""
    rank = max(array.ndim for array in arrays)
    return [a if a.ndim == rank else a.reshape(*a.shape, *(1,) * (rank - a.ndim)) for a in arrays]
