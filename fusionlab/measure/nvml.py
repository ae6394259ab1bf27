"""Clock, temperature, power and energy of an NVIDIA GPU: the driver's own library (NVML), where there is one.

NVML is called through ctypes: it comes with the driver, and nothing needs to be installed. Names and units are those of
NVIDIA's NVML API Reference: clocks in MHz, temperature in degrees C, power in mW, energy since the driver was loaded in
mJ (Volta and newer). A value that the library or the card does not report is None.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

_SM, _MEMORY = 1, 2  # nvmlClockType_t
_DIE = 0  # nvmlTemperatureSensors_t


@dataclass(frozen=True)
class DeviceState:
    """A snapshot of the GPU's state; None for values it does not report."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    energy_j: float | None = None


class Nvml:
    """The first GPU that JAX sees, queried through NVML. ``open_nvml`` makes one."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library, self._handle = library, handle

    def state(self) -> DeviceState:
        """The GPU's current state."""
        power = self._ask("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        energy = self._ask("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)
        return DeviceState(
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", ctypes.c_uint, _SM),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", ctypes.c_uint, _MEMORY),
            temperature_c=self._ask("nvmlDeviceGetTemperature", ctypes.c_uint, _DIE),
            power_w=None if power is None else power / 1e3,
            energy_j=None if energy is None else energy / 1e3,
        )

    def driver(self) -> str | None:
        """The driver's version."""
        text = ctypes.create_string_buffer(96)
        if self._library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text))) != 0:
            return None
        return text.value.decode()

    def _ask(self, name: str, kind: Any, *arguments: int) -> int | None:
        result = kind()
        function = getattr(self._library, name, None)
        if function is None:
            return None
        code = function(self._handle, *(ctypes.c_uint(one) for one in arguments), ctypes.byref(result))
        return int(result.value) if code == 0 else None


def open_nvml(library: Any = None) -> Nvml | None:
    """NVML for the first visible GPU; None where there is no driver. ``library`` stands in for it in tests."""
    if library is None:
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return None
    if library.nvmlInit_v2() != 0:
        return None
    handle = ctypes.c_void_p()
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    if first and not first.isdigit():  # a UUID (GPU-..., MIG-...)
        code = library.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(handle))
    else:
        code = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(first or 0)), ctypes.byref(handle))
    return Nvml(library, handle) if code == 0 else None
