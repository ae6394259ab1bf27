"""StableHLO's enumerations, by the keywords of their members."""

from __future__ import annotations

from typing import Any

from fusionlab.hlo.flat import Node


def keyword(attribute: Any) -> str:
    """The keyword of an enum attribute: ``LT`` of ``#stablehlo<comparison_direction LT>``."""
    return str(attribute).rsplit(" ", 1)[-1].rstrip(">")


def direction_of(node: Node) -> str:
    """What a ``compare`` asks: ``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE``."""
    return keyword(node.attributes["comparison_direction"])
