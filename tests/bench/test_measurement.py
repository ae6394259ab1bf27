"""What is done on the device, with a CPU in a GPU's place where there is only a CPU."""

import json
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.bench import measurement
from fusionlab.bench.measurement import (
    MeasurementPlan,
    check_on_device,
    compile_all,
    first_runs,
    sample_for,
    time_all,
    truth_on_device,
)  # fmt: skip
from fusionlab.bench.run import variant_record
from fusionlab.bench.variants import Variant
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.measure.nvml import DeviceState

CPU = load_target("cpu")
H200 = Target("gpu", "cuda", attached=True, spec=load_target("h200").spec, sm="9.0", source="NVIDIA H200")


@pytest.fixture
def measured(lowered):
    """``measured(f, g)``: both compiled for the CPU, as ``original`` and ``fused``; sample, failures, first program."""

    def make(*functions, target=CPU):
        x = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64)
        programs = [lowered(function, x) for function in functions]
        made = [
            Variant(name, name, program, Verdict("equal"))
            for name, program in zip(("original", "fused"), programs, strict=False)
        ]
        failures = []
        sample = sample_for(programs[0], 1)
        return compile_all(made, target, sample, failures, lambda line: None), sample, failures, programs[0]

    return make


@pytest.mark.parametrize(
    ("program", "kept"),
    [(None, ["original"]), ("local-energy", ["original"]), ("inference-step", ["original", "fused"])],
)
def test_a_difference_on_the_device_takes_out_unless_walkers_are_sampled(measured, program, kept):
    found, sample, failures, source = measured(lambda x: jnp.sin(x) * 2, lambda x: jnp.sin(x) * 2.001)
    truth = truth_on_device(source, source, CPU, sample)
    if program:  # else a file
        source = SimpleNamespace(program=program)
    left = check_on_device(source, found, sample, truth, failures)
    assert [one.variant.name for one in left] == kept
    assert found[1].device_check.verdict == "different"
    assert [(one.name, one.step) for one in failures] == [("fused", "check on the device")]


def test_truth_that_cannot_be_computed_is_said_and_takes_nothing_out(measured):
    found, sample, failures, source = measured(jnp.sin)

    def too_large(*_):
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    (kept,) = check_on_device(source, found, sample, too_large, failures)
    assert kept.device_check is None
    assert failures[0].step == "truth in float64"
    assert "RESOURCE_EXHAUSTED" in failures[0].reason


def test_the_allocators_peak_belongs_to_the_variant_that_raised_it(measured, monkeypatch):
    found, _, failures, _ = measured(lambda x: x * 2, lambda x: jnp.tanh(x @ x) @ x)
    # (in use, peak) before and after each: the smaller one raises the peak, the larger one does not
    readings = iter([(100, 500), (110, 900), (100, 900), (110, 900)])
    monkeypatch.setattr(measurement, "allocator_bytes", lambda device: next(readings))
    ready = first_runs(found, failures)
    assert [one.variant.name for one in ready] == ["original", "fused"]
    argument_bytes = 64 * 64 * 4
    assert [one.allocator_peak_bytes for one in ready] == [900 - 100 + argument_bytes, None]


class FakeNvml:
    """Ten joules more at every reading."""

    energy_j = 0.0

    def state(self):
        self.energy_j += 10.0
        return DeviceState(1980, 3201, 40, 300.0, self.energy_j)


def test_on_a_gpu_there_are_times_without_graphs_energy_and_shares_of_the_peaks(measured, monkeypatch):
    asked = []

    def compile_for(program, target, *, options):
        asked.append((target.name, dict(options)))
        return compile_program(program, CPU)

    monkeypatch.setattr(measurement, "compile_program", compile_for)
    found, _, failures, _ = measured(lambda x: x @ x, lambda x: jnp.tanh(x @ x), target=H200)
    monkeypatch.setattr(measurement, "_ENERGY_S", 0.01)
    time_all(found, H200, MeasurementPlan(runs=3, repeats=4), FakeNvml(), failures, lambda line: None)
    assert failures == []
    assert sorted(asked, key=str) == sorted(2 * [("gpu", {}), ("gpu", {"xla_gpu_enable_command_buffer": ""})], key=str)
    records = [variant_record(one, found[0], H200) for one in found]
    json.dumps(records, allow_nan=False)
    for one in records:
        assert len(one["samples_us"]) == len(one["samples_without_graphs_us"]) == 4
        assert len(one["device_time"]["sum_us"]) == 2
        assert one["energy_j"] > 0
        assert one["energy_delay_js"] == pytest.approx(one["energy_j"] * one["median_us"] * 1e-6)
        assert 0 < one["flops_of_peak"] < 1
        assert 0 < one["bandwidth_of_peak"] < 1
        assert one["state_before"]["sm_clock_mhz"] == 1980
    assert records[0]["ratio_to_first"] == records[0]["device_time"]["ratio_to_first"] == 1.0


def test_a_program_that_cannot_be_compiled_without_graphs_keeps_its_other_times(measured, monkeypatch):
    def compile_for(program, target, *, options):
        if options:
            raise RuntimeError("INVALID_ARGUMENT: no such option")
        return compile_program(program, CPU)

    monkeypatch.setattr(measurement, "compile_program", compile_for)
    found, _, failures, _ = measured(jnp.sin, target=H200)
    time_all(found, H200, MeasurementPlan(runs=2, repeats=2), None, failures, lambda line: None)
    assert [one.step for one in failures] == ["compile without CUDA graphs"]
    record = variant_record(found[0], found[0], H200)
    assert record["samples_without_graphs_us"] is None
    assert record["energy_j"] is None
    assert len(record["samples_us"]) == 2
