"""Raising rules: functions from one StableHLO op and its operands' arrays to its results' arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.hlo.view import Node, Value


class RaiseError(Exception):
    """The region cannot be expressed in JAX; the message names the op and its source."""

    def __init__(self, reason: str, node: Node | None = None) -> None:
        self.reason, self.node = reason, node
        place = f" at {node.scope or node.name} in @{node.function}" if node is not None else ""
        super().__init__(f"{reason}{place}")


class OpaqueCall(RaiseError):
    """A custom call without a rule."""


class ShardingLost(RaiseError):
    """An annotation of how arrays lie on several devices would be lost."""


class UnnamedAlgorithm(RaiseError):
    """A ``dot_general`` has an algorithm that JAX does not name."""


class JaxRefusal(RaiseError):
    """JAX's counterpart rejects the operands of an op: StableHLO allows more element types, and a region raised at
    another number of walkers can have shapes that do not fit."""


class RaisingFault(Exception):
    """A raising rule failed by itself: a fault of fusionlab, whatever the program."""


@dataclass(frozen=True)
class RaisedOp:
    """A node to be raised as ``raising`` says, the arrays of its operands, and those that its regions may capture."""

    node: Node
    operands: Sequence[Any]
    raising: Any
    environment: Mapping[Value, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result in the raised program."""
        shape: tuple[int, ...] = self.raising.shape(self.node.results[0])
        return shape

    @property
    def dtype(self) -> Any:
        """The dtype of the first result in the raised program."""
        return self.raising.dtype(self.node.results[0].type)

    def jax(self, function: Callable[..., Any], *given: Any, **parameters: Any) -> Any:
        """``function(*given, **parameters)``, a function of JAX or NumPy; JaxRefusal where it rejects these.

        Rules call both through this alone, so that a TypeError or ValueError of a rule itself stays one.
        """
        try:
            return function(*given, **parameters)
        except (TypeError, ValueError) as error:
            cause = (str(error).splitlines() or [""])[0]
            raise JaxRefusal(f"{self.node.name} cannot be expressed in JAX: {cause}", self.node) from error

    def region(self, number: int = 0) -> Callable[..., tuple[Any, ...]]:
        """A region of the node as a callable of its arguments."""
        function: Callable[..., tuple[Any, ...]] = self.raising.region(self.node.regions[number], self.environment)
        return function

    def integers(self, *names: str) -> list[tuple[int, ...]]:
        """The elements of the integer array attributes of these names."""
        return [integers(self.node.attributes[name]) for name in names]

    def sizes(self, name: str) -> tuple[int, ...]:
        """The extents in attribute ``name`` along the axes of the first operand: full ones stay full when resized."""
        sizes: tuple[int, ...] = self.raising.resized(self.node.operands[0], integers(self.node.attributes[name]))
        return sizes

    def flag(self, name: str) -> bool:
        """The boolean attribute ``name``, False if there is none."""
        return name in self.node.attributes and bool(self.node.attributes[name].value)


Rule = Callable[[RaisedOp], Sequence[Any]]
"""``rule(op)``: the arrays of the results of ``op``."""


def plain(function: Callable[..., Any]) -> Rule:
    """The rule of an op with one result that is ``function`` of its operands."""
    return lambda op: [op.jax(function, *op.operands)]


def integers(attribute: Any) -> tuple[int, ...]:
    """The elements of an integer array attribute (dense array or dense elements)."""
    return tuple(int(element) for element in attribute)
