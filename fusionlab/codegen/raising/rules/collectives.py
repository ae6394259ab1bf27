"""Raising rules for collectives, where one function is mapped over all devices (``codegen.raising.devices``).

A collective gathers its operand of every device, and each device takes from these what its group has.
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.reduction import combination
from fusionlab.codegen.raising.rules.rule import RaisedOp, RaiseError, Rule
from fusionlab.hlo.meshes import groups_of, members_of

DEVICES = "devices"
"""The name of the mapped axis."""

_OF_REPLICAS_TOO = ("stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.reduce_scatter")
"""Collectives whose groups are of replicas unless they have ``use_global_device_ids``."""


def _of_group(op: RaisedOp, array: Any) -> tuple[Any, Any]:
    """``array`` of each member of this device's group [members, ...], and this device's position among them."""
    _require_devices(op)
    try:
        groups = groups_of(op.node.module, op.node.attributes["replica_groups"])
        members = np.asarray(members_of(groups, lax.axis_size(DEVICES)))
    except ValueError as reason:
        raise RaiseError(f"{op.node.name}: {reason}", op.node) from None
    own = jnp.asarray(members)[lax.axis_index(DEVICES)]
    return lax.all_gather(array, DEVICES)[own], jnp.argmax(own == lax.axis_index(DEVICES))


def _require_devices(op: RaisedOp) -> None:
    """RaiseError for a collective whose groups are not of the devices of a mesh alone: of replicas, or of replicas with
    all of their devices (StableHLO's specification of ``channel_id`` and ``use_global_device_ids``)."""
    attributes = op.node.attributes
    has_channel = "channel_handle" in attributes and stablehlo.ChannelHandle(attributes["channel_handle"]).handle > 0
    if not has_channel or (op.node.name in _OF_REPLICAS_TOO and "use_global_device_ids" not in attributes):
        raise RaiseError(f"{op.node.name} over replicas, not over the devices of a mesh", op.node)


def _all_reduce(op: RaisedOp) -> list[Any]:
    combine = combination(op)
    return [functools.reduce(combine, _of_group(op, array)[0]) for array in op.operands]


def _all_gather(op: RaisedOp) -> list[Any]:
    axis = int(op.node.attributes["all_gather_dim"].value)
    return [jnp.concatenate(list(_of_group(op, array)[0]), axis) for array in op.operands]


def _reduce_scatter(op: RaisedOp) -> list[Any]:
    axis = int(op.node.attributes["scatter_dimension"].value)
    [array] = op.operands
    members, at = _of_group(op, array)
    whole = functools.reduce(combination(op), members)
    size = op.shape[axis]
    return [lax.dynamic_slice_in_dim(whole, at * size, size, axis)]


def _all_to_all(op: RaisedOp) -> list[Any]:
    split, join = (int(op.node.attributes[name].value) for name in ("split_dimension", "concat_dimension"))
    count = int(op.node.attributes["split_count"].value)

    def exchanged(array: Any) -> Any:
        members, at = _of_group(op, array)
        size = array.shape[split] // count
        return jnp.concatenate([lax.dynamic_slice_in_dim(one, at * size, size, split) for one in members], join)

    return [exchanged(array) for array in op.operands]


def _collective_permute(op: RaisedOp) -> list[Any]:
    """A device to which none sends receives zeros."""
    _require_devices(op)
    sources = np.full(lax.axis_size(DEVICES), -1)
    for source, target in np.asarray(op.node.attributes["source_target_pairs"]).tolist():
        sources[target] = source
    at = jnp.asarray(sources)[lax.axis_index(DEVICES)]
    received = [(lax.all_gather(array, DEVICES)[at], array) for array in op.operands]
    return [jnp.where(at < 0, jnp.zeros_like(own), other) for other, own in received]


def _partition_id(op: RaisedOp) -> list[Any]:
    return [lax.axis_index(DEVICES).astype(op.dtype)]


COLLECTIVES: dict[str, Rule] = {
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_permute": _collective_permute,
    "stablehlo.partition_id": _partition_id,
    "stablehlo.reduce_scatter": _reduce_scatter,
}
