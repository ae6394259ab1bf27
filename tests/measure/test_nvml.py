"""NVML through a library that stands in for the driver's."""

import ctypes

from fusionlab.bench.measurement import energy_per_run
from fusionlab.measure.nvml import DeviceState, open_nvml


class FakeLibrary:
    """Answers as NVML does: through pointers, 0 for success. 250 W; the energy counter moves 5 J at every reading."""

    def __init__(self, works=True, energy=True):
        self.works, self.has_energy, self.energy_mj = works, energy, 1_000_000

    def nvmlInit_v2(self):
        return 0 if self.works else 9

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        return 0 if index.value == 0 else 2

    def nvmlDeviceGetClockInfo(self, handle, kind, result):
        return self._give(result, {1: 1980, 2: 3201}[kind.value])

    def nvmlDeviceGetTemperature(self, handle, sensor, result):
        return self._give(result, 41)

    def nvmlDeviceGetPowerUsage(self, handle, result):
        return self._give(result, 250_000)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, result):
        if not self.has_energy:
            return 3
        self.energy_mj += 5_000
        return self._give(result, self.energy_mj)

    @staticmethod
    def _give(result, value):
        ctypes.cast(result, ctypes.POINTER(ctypes.c_uint)).contents.value = value
        return 0


def test_units_are_those_of_the_field_names(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert open_nvml(FakeLibrary()).state() == DeviceState(1980, 3201, 41, 250.0, 1005.0)


def test_what_a_card_does_not_give_is_unknown(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    nvml = open_nvml(FakeLibrary(energy=False))
    assert nvml.state().energy_j is None
    assert energy_per_run(lambda: None, 1e6, nvml) is None


def test_energy_is_of_one_run(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    ran = []
    assert energy_per_run(lambda: ran.append(1), 0.5e6, open_nvml(FakeLibrary()), seconds=2.0) == 5.0 / 4
    assert len(ran) == 4


def test_without_a_driver_or_a_device_there_is_none(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert open_nvml(FakeLibrary(works=False)) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert open_nvml(FakeLibrary()) is None
