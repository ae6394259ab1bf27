"""What a loop carries unchanged: inside it, the value that it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.constants import fold
from fusionlab.hlo.flat import FlatFunction, Value, constant_array


@dataclass(frozen=True)
class Carried:
    """``origin``: region argument to the value outside of it; ``integers``: arguments whose array is known."""

    origin: Mapping[Value, Value]
    integers: Mapping[Value, np.ndarray]

    @staticmethod
    def of(flat: FlatFunction) -> Carried:
        """For all loops of ``flat``, outer ones first."""
        origin: dict[Value, Value] = {}
        integers: dict[Value, np.ndarray] = {}
        for node in flat.walk():
            if node.op is not ops.WHILE:
                continue
            body = node.regions[1]
            for at, given in enumerate(node.operands):
                if body.returns[at] is not body.arguments[at]:
                    continue
                known = fold(given, integers)
                for region in node.regions:
                    origin[region.arguments[at]] = given
                    if known is not None:
                        integers[region.arguments[at]] = known
        return Carried(origin, integers)

    def array(self, value: Value) -> np.ndarray | None:
        """The integers that ``value`` holds, if they follow from constants."""
        return fold(value, self.integers)

    def splat(self, value: Value) -> float | None:
        """The one number that every element of ``value`` is, if it is known."""
        while True:
            node = value.producer
            if value in self.origin:
                value = self.origin[value]
            elif node is not None and node.op.strided:
                value = node.operands[0]
            elif node is not None and node.op is ops.CONSTANT:
                array = constant_array(node)
                first = array.flat[0] if array.size else None
                return float(first) if first is not None and bool(np.all(array == first)) else None
            else:
                return None
