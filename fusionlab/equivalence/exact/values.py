"""What a value is during an evaluation: known from the program's text alone, or drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusionlab.hlo.flat import Value

Array = np.ndarray[Any, Any]


@dataclass(slots=True, eq=False)
class Known:
    """An array that follows from constants, in the program's own type; ``embedded`` are its residues once asked for."""

    array: Array
    embedded: Array | None = None


@dataclass(slots=True, eq=False)
class Drawn:
    """An array [draws, ...] that depends on the arguments: residues of a float type, integers and booleans as they are.

    ``logarithm`` = (l, v), where a part l of the value is known to be log v: exp(u + l) is exp(u) v.
    """

    array: Array
    logarithm: tuple[Array, Array] | None = None


Held = Known | Drawn
Environment = Mapping[Value, Held]
Step = Callable[[Sequence[Held], Environment], list[Held]]
"""One node, ready to be evaluated: what its attributes say was read once."""


class Uncovered(Exception):
    """A type or form of an op without exact meaning; the message names it and where it is."""

    def __init__(self, reason: str, scope: str = "") -> None:
        super().__init__(reason + (f" at {scope}" if scope else ""))
