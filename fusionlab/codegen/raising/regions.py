"""A region of a program raised as another function, and everything around it as it is.

while (...) { ... replay ... }     -->     while (...) { rewritten(arguments, captured values) }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fusionlab.codegen.raising import Raising
from fusionlab.hlo.view import Region, Value


@dataclass(frozen=True)
class RaisingWithRegion(Raising):
    """Raises ``region`` as ``function`` of the arrays for ``arguments``, and everything else as it is."""

    replaced: Region | None = None
    arguments: tuple[Value, ...] = ()
    function: Callable[..., tuple[Any, ...]] | None = field(default=None)

    def region(self, region: Region, environment: Mapping[Value, Any]) -> Callable[..., tuple[Any, ...]]:
        """As Raising's, for other regions."""
        function = self.function
        if region is not self.replaced or function is None:
            return super().region(region, environment)
        captured = [environment[value] for value in self.arguments[len(region.arguments) :]]
        return lambda *arguments: function(*arguments, *captured)
