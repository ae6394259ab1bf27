"""Where elements go: the owners of a moved value, by moving the owners the same way, one walker wide.

Moving an array of integers is the only thing done here at compile time; the op's own raising rule says how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.forward_laplacian.jet import Owner, minimal
from fusionlab.codegen.raising import RULES, Raising
from fusionlab.codegen.raising_rules.rule import integers
from fusionlab.hlo.view import Node, Value

NOBODY = -1


class Mover:
    """Moves integer arrays as a node moves its operands; ``one`` raises with one walker."""

    def __init__(self, one: Raising) -> None:
        self.one = one

    def move(self, node: Node, moved: Mapping[Value, Owner], environment: Mapping[Value, Any]) -> Owner | None:
        """The owners of the node's result; operands not in ``moved`` that hold numbers belong to nobody.

        None when the indices that the node moves by are not known at compile time.
        """
        operands: list[Any] = []
        for value in node.operands:
            if value in moved:
                operands.append(np.broadcast_to(moved[value], self.one.shape(value)))
            elif value.type.dtype.startswith(("f", "bf")):
                operands.append(np.full(self.one.shape(value), NOBODY, np.int32))
            elif isinstance(environment[value], np.ndarray) and value not in self.one.shapes:
                operands.append(environment[value])
            else:
                shrunk = self._known_indices(node, environment[value], value)
                if shrunk is None:
                    return None
                operands.append(shrunk)
        return minimal(np.asarray(self._apply(node, operands, environment)))

    def _known_indices(self, node: Node, array: Any, value: Value) -> Any:
        """The indices of one walker; None unless they are known and those of all walkers."""
        if not isinstance(array, np.ndarray):
            return None
        shape = self.one.shape(value)
        if any(extent not in (1, whole) for extent, whole in zip(shape, array.shape, strict=True)):
            return None
        first = array[tuple(map(slice, shape))]
        differs = (array != first).any(axis=tuple(range(array.ndim - 1))) if array.ndim else np.False_
        differing = np.logical_and(differs, np.logical_not(self._finds_walker(node)))
        return None if np.any(differing) else first

    def _finds_walker(self, node: Node) -> Any:
        """For each component of a gather's indices, whether it finds the walker itself."""
        if node.name != "stablehlo.gather":
            return np.False_
        source = node.operands[0]
        walkers = [n != m for n, m in zip(self.one.shape(source), source.type.shape, strict=True)]
        numbers = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
        return np.array([walkers[axis] for axis in numbers.start_index_map], np.bool_)

    def _apply(self, node: Node, operands: Sequence[Any], environment: Mapping[Value, Any]) -> Any:
        shape = self.one.shape(node.results[0])
        match node.name:
            case "stablehlo.reshape":
                return operands[0].reshape(shape)
            case "stablehlo.transpose":
                return operands[0].transpose(integers(node.attributes["permutation"]))
            case "stablehlo.broadcast_in_dim":
                inner = [1] * len(shape)
                for axis, to in enumerate(integers(node.attributes["broadcast_dimensions"])):
                    inner[to] = operands[0].shape[axis]
                return np.broadcast_to(operands[0].reshape(inner), shape)
            case "stablehlo.concatenate":
                return np.concatenate(operands, node.attributes["dimension"].value)
            case "stablehlo.slice":
                start, limit, strides = (
                    integers(node.attributes[name]) for name in ("start_indices", "limit_indices", "strides")
                )
                limit = self.one.resized(node.operands[0], limit)
                return operands[0][tuple(map(slice, start, limit, strides))]
            case _:
                with jax.ensure_compile_time_eval():
                    return RULES[node.name](node, [jax.numpy.asarray(o) for o in operands], _Integers(self.one), {})[0]


class _Integers:
    """The one-walker raising for a node whose floats have been replaced by integers."""

    def __init__(self, one: Raising) -> None:
        self.shape, self.resized = one.shape, one.resized
