"""The devices of a ``shard_map``: the mesh of a ``sdy.manual_computation``, and which part of an array each holds.

    in_shardings=[<@mesh, [{"walkers"}, {}]>]  on  sdy.mesh @mesh = <["walkers"=4, "k"=2]>

splits the first axis of an array over the axis ``walkers`` of the mesh: device d = (walkers, k), in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from fusionlab.hlo.ops import ACROSS, CONSTRAINT, MANUAL
from fusionlab.hlo.view import inner_operations, public_function

SHARDINGS = ("mhlo.sharding", "sdy.sharding")
"""Attributes of operations, and of a function's arguments and results, that say on which devices arrays lie."""

Split = tuple[tuple[str, ...], ...]
"""Of each axis of an array the axes of the mesh over which it is split, the major one first."""


@dataclass(frozen=True)
class Mesh:
    """Names and extents of the axes of a mesh; ``in_order`` unless its devices are numbered in another way."""

    axes: tuple[tuple[str, int], ...]
    in_order: bool = True

    @property
    def devices(self) -> int:
        """The number of devices."""
        return math.prod(size for _, size in self.axes)

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of its axes."""
        return tuple(size for _, size in self.axes)

    def index(self, name: str) -> int:
        """The position of the axis ``name``."""
        return [axis for axis, _ in self.axes].index(name)


def has_collectives(module: ir.Module) -> bool:
    """True if ``module`` has an op of ``ops.ACROSS``."""
    return any(inner.name in ACROSS for inner in inner_operations(module.operation))


def devices_of(module: ir.Module) -> int:
    """The devices for which ``module`` has a program of each one (``shard_map``); 1 where it has none."""
    if not any(inner.name == MANUAL for inner in inner_operations(module.operation)):
        return 1
    return max((mesh.devices for mesh in _meshes(module.operation).values()), default=1)


def mesh_and_splits(module: ir.Module, attributes: Any) -> tuple[Mesh, list[Split], list[Split]]:
    """The mesh of a ``sdy.manual_computation``, and how its operands and its results are split over its manual axes.

    ValueError for what is not supported: several meshes, devices in another order, parts of axes.
    """
    manual = {str(name).strip('"') for name in sdy.ManualAxesAttr(attributes["manual_axes"])}
    sides = [
        list(map(sdy.TensorShardingAttr, sdy.TensorShardingPerValueAttr(attributes[name]).shardings))
        for name in ("in_shardings", "out_shardings")
    ]
    meshes = {str(sharding.mesh_or_ref) for side in sides for sharding in side}
    if len(meshes) != 1 or not (name := meshes.pop()).startswith("@"):
        raise ValueError("its shardings are not of one mesh of the module")
    mesh = _meshes(module.operation)[name[1:]]
    if not mesh.in_order:
        raise ValueError("the devices of its mesh are in an order of their own")
    inside, outside = ([_split(sharding, manual) for sharding in side] for side in sides)
    return mesh, inside, outside


def hold_everywhere(module: ir.Module) -> None:
    """Let every device have the whole of all arguments and results of the public function of ``module``, in place."""
    largest = max(_meshes(module.operation).items(), key=lambda pair: pair[1].devices)[0]
    entry = public_function(module)
    attributes = entry.operation.attributes
    with module.context:
        for name, types in (("arg_attrs", entry.type.inputs), ("res_attrs", entry.type.results)):
            given = list(attributes[name]) if name in attributes else [{}] * len(types)
            changed = []
            for each, type_ in zip(given, types, strict=True):
                whole = sdy.DimensionShardingAttr.get([], is_closed=True)
                sharding = sdy.TensorShardingAttr.get(largest, [whole] * ir.RankedTensorType(type_).rank)
                others = {at.name: at.attr for at in each if at.name not in SHARDINGS}
                changed.append(ir.DictAttr.get({**others, "sdy.sharding": sharding}))
            attributes[name] = ir.ArrayAttr.get(changed)


def drop_open_constraints(module: ir.Module) -> None:
    """Remove constraints that leave every axis of an array to the partitioner, in place: JAX writes one after every
    operation of a ``shard_map`` over some of the axes of a mesh."""
    for operation in list(inner_operations(module.operation)):
        if operation.name == CONSTRAINT:
            sharding = sdy.TensorShardingAttr(operation.attributes["sharding"])
            axes = list(map(sdy.DimensionShardingAttr, sharding.dimension_shardings))
            fixed = len(sharding.replicated_axes) or any(axis.is_closed or len(axis.axes) for axis in axes)
            if not fixed and not _is_unreduced(sharding):
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()


def constrains_nothing(operation: ir.Operation) -> bool:
    """True for a ``sdy.sharding_constraint`` over an empty mesh, as JAX writes for typed keys, or one of one device."""
    if operation.name != CONSTRAINT:
        return False
    top = operation
    while top.parent is not None:
        top = top.parent.operation
    name = str(sdy.TensorShardingAttr(operation.attributes["sharding"]).mesh_or_ref)
    mesh = _meshes(top).get(name.removeprefix("@"))
    return mesh is not None and mesh.devices == 1 and (bool(mesh.axes) or mesh.in_order)  # else it names one device


def _is_unreduced(sharding: Any) -> bool:
    """True of an array whose parts are summands along an axis of the mesh; not before Shardy knew of them."""
    return len(getattr(sharding, "unreduced_axes", ())) > 0


def _split(sharding: Any, manual: set[str]) -> Split:
    if _is_unreduced(sharding):
        raise ValueError("an array is unreduced over an axis of the mesh")
    split = []
    for axis in map(sdy.DimensionShardingAttr, sharding.dimension_shardings):
        references = list(map(sdy.AxisRefAttr, axis.axes))
        if any(reference.sub_axis_info is not None for reference in references):
            raise ValueError("an array is split over a part of an axis of the mesh")
        split.append(tuple(reference.name for reference in references if reference.name in manual))
    return tuple(split)


def _meshes(module: ir.Operation) -> dict[str, Mesh]:
    found = {}
    for top in module.regions[0].blocks[0].operations:
        if top.operation.name == "sdy.mesh":
            mesh = sdy.MeshAttr(top.operation.attributes["mesh"])
            axes = tuple((axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes))
            found[str(top.operation.attributes["sym_name"].value)] = Mesh(axes, not len(mesh.device_ids))
    return found


def parts_of_devices(array: Any, mesh: Mesh, split: Split, broadcast: Any) -> Any:
    """The part of ``array`` of each device [devices, ...]; ``broadcast`` is ``broadcast_to`` of its library."""
    shape: list[int] = []
    places: dict[str, int] = {}
    own: list[int] = []
    for extent, names in zip(array.shape, split, strict=True):
        for name in names:
            places[name] = len(shape)
            shape.append(mesh.extents[mesh.index(name)])
        own.append(len(shape))
        shape.append(extent // math.prod(mesh.extents[mesh.index(name)] for name in names))
    over = [name for name, _ in mesh.axes if name in places]
    moved = array.reshape(shape).transpose([*(places[name] for name in over), *own])
    local = tuple(shape[axis] for axis in own)
    kept = moved.reshape(tuple(size if name in places else 1 for name, size in mesh.axes) + local)
    return broadcast(kept, mesh.extents + local).reshape((mesh.devices, *local))


def whole_of_parts(parts: Any, mesh: Mesh, split: Split) -> Any:
    """The array of which ``parts`` [devices, ...] are the parts; of equal ones that of the first device."""
    local = parts.shape[1:]
    used = [name for names in split for name in names]
    at = tuple(slice(None) if name in used else 0 for name, _ in mesh.axes)
    kept = parts.reshape(mesh.extents + tuple(local))[at]
    over = [name for name, _ in mesh.axes if name in used]
    order: list[int] = []
    shape: list[int] = []
    for axis, names in enumerate(split):
        order += [over.index(name) for name in names] + [len(over) + axis]
        shape.append(local[axis] * math.prod(mesh.extents[mesh.index(name)] for name in names))
    return kept.transpose(order).reshape(shape)


def groups_of(module: ir.Module, attribute: Any) -> list[list[int]]:
    """The groups of devices in ``replica_groups`` of a collective: a table, or, as JAX 0.11 writes them, the axes of a
    mesh over which it goes, the major one first. ValueError for what is not supported."""
    if isinstance(attribute, ir.DenseElementsAttr):
        table: list[list[int]] = np.array(attribute).tolist()
        return table
    along = stablehlo.ReplicaGroupMeshAxesAttr(attribute)
    mesh = _meshes(module.operation)[along.mesh.value]
    axes = list(map(stablehlo.AxisRefAttr, along.axes))
    if not mesh.in_order or any(axis.sub_axis_info is not None for axis in axes):
        raise ValueError("it goes over parts of axes, or over a mesh in an order of its own")
    over = [mesh.index(axis.name) for axis in axes]
    others = [axis for axis in range(len(mesh.axes)) if axis not in over]
    numbers = np.arange(mesh.devices).reshape(mesh.extents).transpose([*others, *over])
    groups: list[list[int]] = numbers.reshape(-1, math.prod(mesh.extents[axis] for axis in over)).tolist()
    return groups


def members_of(groups: Sequence[Sequence[int]], devices: int) -> list[list[int]]:
    """The members of each device's group, in order; ValueError unless every device is in one, of one size."""
    of = {member: list(group) for group in groups for member in group}
    if (
        sorted(member for group in groups for member in group) != list(range(devices))
        or len({len(group) for group in groups}) != 1
    ):
        raise ValueError("its groups are of different sizes, or not of all devices")
    return [of[device] for device in range(devices)]
