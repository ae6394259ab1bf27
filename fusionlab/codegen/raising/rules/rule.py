"""Raising rules: functions from one StableHLO node and its operands' arrays to its results' arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusionlab.hlo.view import Node

Rule = Callable[[Node, list[Any], Any, Any], Sequence[Any]]
"""``rule(node, operands, raising, environment) -> results``; ``environment`` serves regions that capture values."""


class RaiseError(Exception):
    """The region cannot be expressed in JAX; the message names the op and its source."""

    def __init__(self, reason: str, node: Node | None = None) -> None:
        self.reason = reason
        place = f" at {node.scope or node.name} in @{node.function}" if node is not None else ""
        super().__init__(f"{reason}{place}")


class JaxRefusal(RaiseError):
    """JAX's counterpart rejects the operands of an op: StableHLO allows more element types, and a region raised at
    another number of walkers can have shapes that do not fit."""


class RaisingFault(Exception):
    """A raising rule failed by itself: a fault of fusionlab, whatever the program."""


def in_jax(node: Node, function: Callable[..., Any], *given: Any, **parameters: Any) -> Any:
    """``function(*given, **parameters)``, a function of JAX or NumPy; JaxRefusal where it rejects these.

    Rules call both through this alone, so that a TypeError or ValueError of a rule itself stays one.
    """
    try:
        return function(*given, **parameters)
    except (TypeError, ValueError) as error:
        cause = (str(error).splitlines() or [""])[0]
        raise JaxRefusal(f"{node.name} cannot be expressed in JAX: {cause}", node) from error


def integers(attribute: Any) -> tuple[int, ...]:
    """The elements of an integer array attribute (dense array or dense elements)."""
    return tuple(int(element) for element in attribute)
