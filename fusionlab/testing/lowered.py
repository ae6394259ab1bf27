"""The argument of an assertion as a Program: a function with its arguments, a JAX stage, a workload, a Program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fusionlab.errors import InputError
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program


def program_of(given: Any, args: Sequence[Any], platform: str) -> Program:
    """``lowering.program_of``, whose ``args`` are one tuple. InputError where they are the only argument instead."""
    _require_tuple(args)
    return lowering.program_of(given, args, platform=platform)


def flat_program(given: Any, args: Sequence[Any]) -> Program:
    """``given`` for the CPU with one argument per array of ``args``, used or not; results flat.

    Numbers that are no floats, strings and the like are not arguments of the program but constants of it.
    """
    if isinstance(given, Program):
        return program_of(given, (), "cpu")
    leaves, structure = jax.tree.flatten(tuple(args))

    @functools.wraps(given)
    def run(*arrays: Any) -> Any:
        rest = iter(arrays)
        whole = [next(rest) if _is_array(leaf) else leaf for leaf in leaves]
        return jax.tree.leaves(given(*jax.tree.unflatten(structure, whole)))

    return program_of(jax.jit(run, keep_unused=True), list(filter(_is_array, leaves)), "cpu")


def arrays_of(args: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """The arrays of ``args`` in pytree order, as ``flat_program`` takes them. InputError for abstract ones."""
    _require_tuple(args)
    leaves = [leaf for leaf in jax.tree.leaves(tuple(args)) if _is_array(leaf)]
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise InputError("numbers are compared: give arrays, not jax.ShapeDtypeStruct")
    return tuple(np.asarray(jax.numpy.asarray(leaf)) for leaf in leaves)


def _require_tuple(args: Any) -> None:
    """InputError where the only argument is passed instead of the tuple of arguments."""
    if not isinstance(args, tuple | list):
        raise InputError(f"args is the tuple of the function's arguments, as (x,), and not one {type(args).__name__}")


def _is_array(leaf: Any) -> bool:
    """True if a leaf of the arguments is an array (or a float) and not a setting."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | float | complex | jax.ShapeDtypeStruct)
