"""The record of a finding: which value of a program a sum over directions is the Laplacian of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.raising import Raising
from fusionlab.hlo.view import Value


@dataclass(frozen=True)
class Laplacian:
    """``target`` = ``scale`` times the Laplacian of ``output`` with respect to ``x``, plus ``squares`` times the square
    of its gradient.

    ``gradients`` are values of the program that hold the gradient of ``output``, electron by electron. ``axes`` are
    the axes of values that count walkers; ``one`` raises the program with one walker. Derivatives through ``still``
    cancel. ``ties`` are the slopes of its maxima and minima where two values are equal (``laplacian_ties``).
    """

    x: Value
    coordinates: Coordinates
    walker_axes: int
    output: Value
    target: Value
    scale: float
    gradients: tuple[Value, ...]
    axes: dict[Value, set[int]]
    one: Raising
    still: tuple[Value, ...] = ()
    ties: Mapping[Value, int] = field(default_factory=dict)
    squares: float = 0.0
