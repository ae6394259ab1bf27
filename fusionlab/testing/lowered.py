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
from fusionlab.workload import Workload


def program_of(given: Any, args: Sequence[Any], platform: str) -> Program:
    """``given`` lowered for ``platform`` (``cpu`` or ``cuda``); arguments may be ``jax.ShapeDtypeStruct``.

    ``given`` is a function (jitted or not) of ``args``, a ``jax.stages.Traced``, a Workload or a Program; the last
    three need no ``args``. InputError for arguments that do not fit, for any other type, and for a Program of another
    platform.
    """
    _require_tuple(args)
    if isinstance(given, Program | Workload | jax.stages.Traced):
        if args:
            raise InputError("a Program, a Workload and a jax.stages.Traced have their arguments in them: give no args")
    elif not callable(given):
        raise InputError(
            f"a function, a jax.stages.Traced, a Workload or a Program is needed, not {type(given).__name__}"
        )
    if isinstance(given, Workload):
        return lowering.lower(given, platform)
    if isinstance(given, Program):
        if given.platform not in ("any", platform):
            raise InputError(f"{given.name} was lowered for {given.platform}, and {platform} is asked for")
        return given
    with lowering.tracing_for(platform):
        if isinstance(given, jax.stages.Traced):
            traced = given
        else:
            jitted = given if callable(getattr(given, "trace", None)) else jax.jit(given)
            traced = jitted.trace(*args)
    module = lowering.lower_traced(traced, platform, source_lines=1)
    name = str(getattr(traced, "fun_name", "") or getattr(given, "__name__", "function")).strip("<>")
    return Program.from_module(module, name=name, provenance=f"{name}, JAX {jax.__version__}", platform=platform)


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
