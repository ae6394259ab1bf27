"""A program of several devices as a function on one: the function of a device, mapped over all devices.

    sdy.manual_computation(%x) { f }       -->       vmap(f)(parts of x)   with collectives over the mapped axis

Elsewhere a collective has one member, the only device. It is the float64 truth of such a program, and says what its
collectives mean; it is never lowered to take its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.codegen.raising.rules.collectives import COLLECTIVES, DEVICES
from fusionlab.codegen.raising.rules.rule import RaisedOp
from fusionlab.hlo.meshes import mesh_and_splits, parts_of_devices, whole_of_parts
from fusionlab.hlo.ops import MANUAL
from fusionlab.hlo.view import Node, Value


@dataclass(frozen=True)
class RaisingOfAllDevices(Raising):
    """Raises manual computations (``shard_map``) and collectives, besides what Raising does; ``mapped`` inside one."""

    mapped: bool = False

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """As Raising's, for other operations."""
        if node.name == MANUAL:
            return self._of_all_devices(node, environment)
        if node.name in COLLECTIVES:
            return self._collective(node, environment)
        return super().node(node, environment)

    def _collective(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        def of_one(*arrays: Any) -> Sequence[Any]:
            return COLLECTIVES[node.name](RaisedOp(node, arrays, self, environment))

        operands = [environment[value] for value in node.operands]
        if self.mapped:
            return of_one(*operands)
        mapped = jax.vmap(of_one, axis_name=DEVICES, axis_size=1)
        return [result[0] for result in mapped(*(jnp.expand_dims(array, 0) for array in operands))]

    def _of_all_devices(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        if any(inner.name == MANUAL for inner in node.regions[0].walk()):
            raise RaiseError("a shard_map inside another one", node)
        try:
            mesh, inside, outside = mesh_and_splits(node.module, node.attributes)
        except ValueError as reason:
            raise RaiseError(f"{node.name}: {reason}", node) from None
        given = [
            parts_of_devices(jnp.asarray(environment[value]), mesh, split, jnp.broadcast_to)
            for value, split in zip(node.operands, inside, strict=True)
        ]
        function = replace(self, mapped=True).region(node.regions[0], environment)
        found = jax.vmap(function, axis_name=DEVICES, axis_size=mesh.devices)(*given)
        return [whole_of_parts(parts, mesh, split) for parts, split in zip(found, outside, strict=True)]
