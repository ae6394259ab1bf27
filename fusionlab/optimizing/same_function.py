"""Equality of two jaxprs as functions, up to the layout of their arrays on a mesh.

A function traced without its surrounding mesh may compute something else: divide by the number of devices, say.
Equations that only move their operand (``reshard``, ``pvary``) and parameters that name shardings are ignored, as is
whether a scan reads an invariant as an operand or as a literal; all else has to be the same, equation by equation. What
cannot be compared counts as different.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core as extended

_OF_A_MESH = frozenset(("mesh_cast", "pcast", "pvary", "reshard", "sharding_constraint"))
_NO_PART_OF_IT = frozenset(("ctx_mesh", "mesh", "in_layouts", "out_layouts", "name"))
"""Parameters of equations, besides those with ``shard`` in their names, that do not affect the computation."""


def same_function(one: Any, other: Any) -> bool:
    """True if two closed jaxprs compute the same from the same arguments."""
    return bool(_told(one) == _told(other))


def _told(closed: Any) -> Any:
    constants = [("constant", *_array(value)) for value in closed.consts]
    return _of_jaxpr(closed.jaxpr, constants)


def _of_jaxpr(jaxpr: Any, constants: list[Any], given: Sequence[Any] = ()) -> Any:
    """The jaxpr as nested tuples: its variables are identified by their definitions, the first arguments by those that
    are ``given``."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
    known.update(zip(jaxpr.invars, given, strict=False))
    rest = jaxpr.invars[len(given) :]
    known.update((variable, ("argument", i)) for i, variable in enumerate(rest))

    def told(atom: Any) -> Any:
        if isinstance(atom, extended.Literal):
            return ("literal", *_array(atom.val))
        return known[atom]

    equations = []
    for equation in jaxpr.eqns:
        read = tuple(told(atom) for atom in equation.invars)
        if equation.primitive.name in _OF_A_MESH:
            known.update(zip(equation.outvars, read, strict=True))
            continue
        if equation.primitive.name == "scan":
            equations.append(_of_scan(read, equation.params))
        else:
            equations.append((equation.primitive.name, read, tuple(_parameters(equation.params))))
        known.update((variable, ("made", len(equations), i)) for i, variable in enumerate(equation.outvars))
    types = tuple((variable.aval.shape, str(variable.aval.dtype)) for variable in rest)
    return types, tuple(equations), tuple(told(atom) for atom in jaxpr.outvars)


def _of_scan(read: Sequence[Any], parameters: dict[str, Any]) -> Any:
    """A scan whose body reads its invariants where they are defined."""
    body, (count, _) = parameters["jaxpr"], scan_counts(parameters)
    invariants = [one if one[0] in ("literal", "constant") else ("outside", one) for one in read[:count]]
    others = {name: one for name, one in parameters.items() if name not in ("jaxpr", "num_consts", "linear", "ft_in")}
    constants = [("constant", *_array(value)) for value in body.consts]
    return "scan", read[count:], _of_jaxpr(body.jaxpr, constants, invariants), tuple(_parameters(others))


def scan_counts(parameters: dict[str, Any]) -> tuple[int, int]:
    """The numbers of invariants and of carried values of a scan, from its parameters."""
    if "ft_in" in parameters:  # since JAX 0.11
        invariants, carried, _ = parameters["ft_in"].unpack()
        return len(invariants), len(carried)
    return parameters["num_consts"], parameters["num_carry"]


def _parameters(parameters: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(parameters.items()):
        if "shard" not in name and name not in _NO_PART_OF_IT:
            yield name, _parameter(value)


def _parameter(value: Any) -> Any:
    if isinstance(value, extended.ClosedJaxpr):
        return _told(value)
    if isinstance(value, extended.Jaxpr):
        return _of_jaxpr(value, [("constant", i) for i in range(len(value.constvars))])
    if isinstance(value, tuple | list):
        return tuple(map(_parameter, value))
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return _array(value)
    if isinstance(value, jax.core.AbstractValue):
        return getattr(value, "shape", None), str(getattr(value, "dtype", ""))
    if callable(value) and not isinstance(value, type):
        return type(value).__name__  # derivative rules: nothing is differentiated here
    return repr(value)


def _array(value: Any) -> tuple[Any, ...]:
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return (str(value.dtype), *_array(jax.random.key_data(value)))
    array = np.asarray(value)
    return str(array.dtype), array.shape, array.tobytes()
