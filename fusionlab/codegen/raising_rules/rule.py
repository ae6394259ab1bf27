"""What a raising rule is: a function from one StableHLO node and its operands' arrays to its results' arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusionlab.hlo.flat import Node

Rule = Callable[[Node, list[Any], Any, Any], Sequence[Any]]
"""``rule(node, operands, raising, environment) -> results``; ``environment`` serves regions that capture values."""


class RaiseError(Exception):
    """The region cannot be expressed in JAX; the message says which op and where it came from."""

    def __init__(self, reason: str, node: Node | None = None) -> None:
        self.reason = reason
        place = f" at {node.scope or node.name} in @{node.function}" if node is not None else ""
        super().__init__(f"{reason}{place}")


def integers(attribute: Any) -> tuple[int, ...]:
    """The elements of an integer array attribute (dense array or dense elements)."""
    return tuple(int(element) for element in attribute)
