"""Run a compiled program on the device it was compiled for: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.view import TensorType


def numpy_dtype(type_: TensorType) -> np.dtype[Any]:
    """The NumPy dtype of an MLIR element type; ValueError for one that NumPy and ml_dtypes do not have."""
    if type_.dtype not in NUMPY:
        raise ValueError(f"no array of element type {type_.dtype} can be made here")
    return NUMPY[type_.dtype]


@dataclass(frozen=True, eq=False)
class Executable:
    """A loaded XLA executable with the types of the program's arguments. ``devices`` are those it runs on; each of
    several has the whole of all arguments and results."""

    loaded: Any
    devices: tuple[Any, ...]
    inputs: tuple[TensorType, ...]

    def place(self, arrays: Sequence[Any]) -> list[Any]:
        """Copy host arrays to the devices. ValueError names an argument whose shape or dtype is not the program's."""
        if len(arrays) != len(self.inputs):
            raise ValueError(f"the program has {len(self.inputs)} arguments, {len(arrays)} were given")
        placed = []
        everywhere = self.devices[0]
        if len(self.devices) > 1:
            mesh = jax.sharding.Mesh(np.array(self.devices, dtype=object), ("devices",))
            everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        with jax.enable_x64(True):
            for index, (array, type_) in enumerate(zip(arrays, self.inputs, strict=True)):
                host = array if isinstance(array, jax.Array) else np.asarray(array)
                if host.shape != type_.shape or host.dtype != numpy_dtype(type_):
                    given = f"{host.dtype}{list(host.shape)}"
                    raise ValueError(f"argument {index}: expected {type_}, got {given}")
                placed.append(jax.device_put(host, everywhere))
        return placed

    def __call__(self, placed: Sequence[Any]) -> list[Any]:
        """Run on device arrays; returns the results on the first device, without waiting for them."""
        results = self.loaded.execute_sharded(list(placed)).disassemble_into_single_device_arrays()
        return [shards[0] for shards in results]
