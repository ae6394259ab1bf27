"""What is done on the device, with a CPU in a GPU's place where there is only a CPU."""

import dataclasses
import json
import math
import threading
import time

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.bench import compilation, measurement
from fusionlab.bench.measurement import MeasurementPlan, check_on_device, compiled, first_runs, time_all
from fusionlab.bench.prepared import Preparation, sample_for, truth_of
from fusionlab.bench.run import overhead_ratio, variant_record
from fusionlab.bench.variants import Variant
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.measure.nvml import DeviceState
from fusionlab.measure.profiler import Trace

CPU = load_target("cpu")
H200 = Target("gpu", "cuda", attached=True, spec=load_target("h200").spec, sm="9.0", source="NVIDIA H200")
ALWAYS = math.inf


@pytest.fixture
def measured(lowered):
    """``measured(f, g)``: both compiled, as ``original`` and ``fused``; the sample, its truth, failures."""

    def make(*functions, target=CPU):
        x = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(64, 64)
        programs = [lowered(function, x) for function in functions]
        made = [
            Variant(name, name, program, Verdict("equal"))
            for name, program in zip(("original", "fused"), programs, strict=False)
        ]
        failures = []
        sample = sample_for(programs[0], 1)
        found = Preparation(
            {}, "", "cpu", made, failures, None, False, sample, truth=truth_of(programs[0], programs[0], sample, "cpu")
        )
        ready = compiled(found, target, MeasurementPlan(), ALWAYS, failures, lambda line: None)
        return ready.variants, sample, ready.truth, failures

    return make


@pytest.mark.parametrize(("decides", "kept"), [(True, ["original"]), (False, ["original", "fused"])])
def test_a_difference_on_the_device_takes_out_unless_walkers_are_sampled(measured, decides, kept):
    found, sample, truth, failures = measured(lambda x: jnp.sin(x) * 2, lambda x: jnp.sin(x) * 2.001)
    left = check_on_device(found, sample, truth, failures, decides=decides)
    assert [one.variant.name for one in left] == kept
    assert found[1].device_check.verdict == "different"
    assert [(one.name, one.step) for one in failures] == [("fused", "check on the device")]


def test_truth_that_cannot_be_computed_is_said_and_takes_nothing_out(measured):
    found, sample, _, failures = measured(jnp.sin)

    def too_large(*_):
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    (kept,) = check_on_device(found, sample, too_large, failures, decides=True)
    assert kept.device_check is None
    assert failures[0].step == "truth in float64"
    assert "RESOURCE_EXHAUSTED" in failures[0].reason


def test_the_allocators_peak_belongs_to_the_variant_that_raised_it(measured, monkeypatch):
    found, _, _, failures = measured(lambda x: x * 2, lambda x: jnp.tanh(x @ x) @ x)
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

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    found, _, _, failures = measured(lambda x: x @ x, lambda x: jnp.tanh(x @ x), target=H200)
    monkeypatch.setattr(measurement, "_ENERGY_S", 0.01)
    time_all(found, H200, MeasurementPlan(runs=3, repeats=4), ALWAYS, FakeNvml(), failures, lambda line: None)
    assert failures == []
    exactly = ("gpu", dict(measurement.NO_AUTOTUNING))  # of the truth
    assert asked == [*2 * [("gpu", {})], exactly, *2 * [("gpu", {"xla_gpu_enable_command_buffer": ""})]]
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
        if "xla_gpu_enable_command_buffer" in options:
            raise RuntimeError("INVALID_ARGUMENT: no such option")
        return compile_program(program, CPU)

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    found, _, _, failures = measured(jnp.sin, target=H200)
    time_all(found, H200, MeasurementPlan(runs=2, repeats=2), ALWAYS, None, failures, lambda line: None)
    assert [one.step for one in failures] == ["compile without CUDA graphs"]
    record = variant_record(found[0], found[0], H200)
    assert record["samples_without_graphs_us"] is None
    assert record["energy_j"] is None
    assert len(record["samples_us"]) == 2


def test_what_has_not_begun_at_the_time_limit_is_left_out_but_for_wall_times(measured, monkeypatch):
    monkeypatch.setattr(
        compilation, "compile_program", lambda program, target, *, options: compile_program(program, CPU)
    )
    found, _, _, failures = measured(jnp.sin, target=H200)
    time_all(found, H200, MeasurementPlan(runs=2, repeats=2), time.monotonic(), FakeNvml(), failures, lambda line: None)
    assert [one.step for one in failures] == ["compile without CUDA graphs", "energy"]
    assert {one.reason for one in failures} == {compilation.LEFT_OUT}
    record = variant_record(found[0], found[0], H200)
    json.dumps(record, allow_nan=False)
    assert len(record["samples_us"]) == 2


def test_the_reference_is_compiled_whatever_the_time_limit(lowered):
    program = lowered(jnp.sin, np.ones(3, np.float32))
    made = [Variant(name, name, program, Verdict("equal")) for name in ("original", "fused")]
    failures, sample = [], sample_for(program, 1)
    found = Preparation({}, "", "cpu", made, failures, None, False, sample, truth=program)
    ready = compiled(found, CPU, MeasurementPlan(), time.monotonic(), failures, lambda line: None)
    assert [one.variant.name for one in ready.variants] == ["original"]
    assert [(one.name, one.step) for one in failures] == [("fused", "compile"), ("original", "truth in float64")]


def test_programs_compiled_at_a_time_and_their_failures_keep_their_order(lowered, monkeypatch):
    meeting = threading.Barrier(3, timeout=60)

    def compile_for(program, target, *, options):
        meeting.wait()
        if program.name != "sin":
            raise RuntimeError(f"INTERNAL: {program.name}")
        return compile_program(program, CPU)

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    x, failures = np.ones(3, np.float32), []
    programs = [dataclasses.replace(lowered(jnp.sin, x), name=name) for name in ("sin", "b", "a")]
    made = [Variant(one.name, one.name, one, Verdict("equal")) for one in programs]
    found = Preparation({}, "", "cpu", made, failures, None, False, sample_for(programs[0], 1))
    ready = compiled(found, CPU, MeasurementPlan(jobs=3), ALWAYS, failures, lambda line: None)
    assert [one.variant.name for one in ready.variants] == ["sin"]
    assert [one.name for one in failures] == ["b", "a"]


def test_kernels_are_traced_where_each_is_launched_by_itself(measured, monkeypatch):
    """Of a CUDA graph the trace of JAX 0.11 has one event."""
    alone = []

    def compile_for(program, target, *, options):
        made = compile_program(program, CPU)
        if "xla_gpu_enable_command_buffer" in options:
            alone.append(made)
        return made

    traced = []

    def trace(run, runs, module):
        traced.append(run.__self__.compiled)
        return Trace((), "not asked")

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    monkeypatch.setattr(measurement, "trace_runs", trace)
    found, _, _, failures = measured(jnp.sin, target=H200)
    time_all(found, H200, MeasurementPlan(runs=2, repeats=2), ALWAYS, None, failures, lambda line: None)
    assert traced == alone
    found[0].device = dataclasses.replace(found[0].device, union_us=(1.0,))
    found[0].wall_without_graphs_us = None
    assert overhead_ratio(found[0], H200) is None  # a run with graphs is another program


def test_an_executable_without_graphs_that_cannot_run_costs_no_other_time(measured, monkeypatch):
    def compile_for(program, target, *, options):
        made = compile_program(program, CPU)
        if "xla_gpu_enable_command_buffer" not in options:
            return made

        def run(_):
            raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

        return dataclasses.replace(made, executable=run)

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    found, _, _, failures = measured(jnp.sin, target=H200)
    time_all(found, H200, MeasurementPlan(runs=2, repeats=2), ALWAYS, None, failures, lambda line: None)
    assert [one.step for one in failures] == ["compile without CUDA graphs"]
    assert len(found[0].wall_us) == 2


def test_counters_of_the_fewest_launches_come_first_and_end_at_the_time_limit(measured, monkeypatch):
    asked = []

    def counted(program, arrays, target, limit_s, *, compile_options):
        asked.append((program, limit_s))
        return []

    monkeypatch.setattr(measurement, "counters_of", counted)
    monkeypatch.setattr(measurement, "trace_runs", lambda run, runs, module: Trace((), "not asked"))
    found, _, _, failures = measured(lambda x: jnp.tanh(x @ x) @ x, jnp.sin)
    plan, until = MeasurementPlan(runs=2, repeats=2, counters=True), time.monotonic() + 100
    time_all(found, CPU, plan, until, None, failures, lambda line: None)
    assert [program for program, _ in asked] == [found[1].variant.program, found[0].variant.program]
    assert all(0 < limit_s <= 100 for _, limit_s in asked)
    assert [one.counters for one in found] == [[], []]


@pytest.mark.parametrize(("jobs", "rounds"), [(1, [3, 2]), (4, [5])])
def test_several_compiles_at_a_time_are_one_round_with_and_without_graphs(lowered, monkeypatch, jobs, rounds):
    asked, at_once = [], compilation.compile_all

    def compile_for(program, target, *, options):
        return compile_program(program, CPU)

    def compile_all(programs, *rest):
        asked.append([each.step for each in programs])
        return at_once(programs, *rest)

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    monkeypatch.setattr(measurement, "compile_all", compile_all)
    monkeypatch.setattr(measurement, "trace_runs", lambda run, runs, module: Trace((), "not asked"))
    x, failures, plan = np.ones(3, np.float32), [], MeasurementPlan(runs=2, repeats=2, jobs=jobs)
    programs = [lowered(jnp.sin, x), lowered(jnp.cos, x)]
    made = [Variant(one.name, one.name, one, Verdict("equal")) for one in programs]
    sample = sample_for(programs[0], 1)
    found = Preparation({}, "", "cpu", made, failures, None, False, sample, truth=programs[0])
    ready = compiled(found, H200, plan, ALWAYS, failures, lambda line: None)
    time_all(ready.variants, H200, plan, ALWAYS, None, failures, lambda line: None, ready)
    assert [len(steps) for steps in asked if steps] == rounds
    assert [step for steps in asked for step in steps][3:] == 2 * [compilation.ALONE]
    assert all(one.wall_without_graphs_us for one in ready.variants)


def test_what_failed_to_compile_without_graphs_beside_the_others_is_not_tried_again(lowered, monkeypatch):
    def compile_for(program, target, *, options):
        if "xla_gpu_enable_command_buffer" in options:
            raise RuntimeError("INVALID_ARGUMENT: no such option")
        return compile_program(program, CPU)

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    program, failures, plan = lowered(jnp.sin, np.ones(3, np.float32)), [], MeasurementPlan(runs=2, repeats=2, jobs=2)
    made = [Variant("original", "original", program, Verdict("equal"))]
    found = Preparation({}, "", "cpu", made, failures, None, False, sample_for(program, 1))
    ready = compiled(found, H200, plan, ALWAYS, failures, lambda line: None)
    time_all(ready.variants, H200, plan, ALWAYS, None, failures, lambda line: None, ready)
    assert [one.step for one in failures] == [compilation.ALONE]
