"""Traces of both shapes: one of a GPU written by hand after JAX's, and a real one of the CPU."""

from dataclasses import replace
from types import SimpleNamespace as Some

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.measure.comparison import kernels_of
from fusionlab.measure.device_time import condensed, device_time, join, kernel_table, union_us
from fusionlab.measure.profiler import Event, device_events, run_windows, split_runs, trace_runs

pytestmark = pytest.mark.versions


def event(name, start_us, duration_us, *stats):
    """An event, a line or a plane has what is read of those of ``jax.profiler.ProfileData``, and no more."""
    return Some(name=name, start_ns=1e3 * start_us, duration_ns=1e3 * duration_us, stats=stats)


def kernel(op, start_us, duration_us, module="jit_f"):
    return event(f"void {op}_kernel", start_us, duration_us, ("hlo_op", op), ("hlo_module", module), ("id", 7))


def gpu_profile(*extra):
    """Two runs on two streams that overlap, a copy, a derived line, another module; 100 us between runs."""
    compute, other, host = [], [], []
    for run in range(2):
        at = 100.0 * run
        copy = event("MemcpyD2D", at + 40, 5, ("memcpy_details", "kind:D2D size:8"))
        compute += [kernel("loop_add_fusion", at, 10), kernel("gemm.1", at + 12, 20), copy]
        other += [kernel("loop_multiply_fusion", at + 20, 20)]
        host += [event(f"fusionlab run {run}", at - 2, 60)]
    compute += [kernel("warm_up", 1000, 1, module="jit_g"), *extra]
    lines = {
        "Stream #13(Compute)": compute,
        "Stream #14(Compute)": other,
        "XLA Ops": [kernel("loop_add_fusion", 0, 500)],
    }
    device = [Some(name=name, events=events) for name, events in lines.items()]
    cpu = Some(name="/host:CPU", lines=[Some(name="python", events=host)])
    return Some(planes=[cpu, Some(name="/device:GPU:0", lines=device)])


def test_kernels_of_a_gpu_are_those_of_its_streams_and_of_the_module():
    events = device_events(gpu_profile(), "jit_f")
    assert len(events) == 8
    assert [event.hlo_op for event in events[:4]] == ["loop_add_fusion", "gemm.1", "loop_multiply_fusion", ""]
    assert [event.is_copy for event in events[:4]] == [False, False, False, True]
    assert not any(event.is_container for event in events)


def test_what_overlaps_counts_once_in_the_union_and_twice_in_the_sum():
    profile = gpu_profile()
    trace = split_runs(device_events(profile, "jit_f"), run_windows(profile), 2)
    kernels = [event for event in trace.runs[0] if not event.is_copy]
    assert sum(event.self_us for event in kernels) == pytest.approx(50)
    assert union_us(kernels) == pytest.approx(38)


def test_runs_that_are_not_alike_are_told_apart_by_the_marks_on_the_host():
    profile = gpu_profile(kernel("once", 130, 2))
    trace = split_runs(device_events(profile, "jit_f"), run_windows(profile), 2)
    assert [len(run) for run in trace.runs] == [4, 5]


def test_what_cannot_be_told_apart_is_a_problem_and_not_a_number():
    profile = gpu_profile(kernel("once", 130, 2))
    assert "cannot be told apart into 2 runs" in split_runs(device_events(profile, "jit_f"), [], 2).problem
    assert "no event of a device" in split_runs([], [], 2).problem


def test_a_name_of_nested_annotations_is_its_innermost():
    profile = gpu_profile(kernel("while.3::loop_tanh_fusion", 150, 2))
    assert "loop_tanh_fusion" in {event.hlo_op for event in device_events(profile, "jit_f")}


@pytest.fixture(scope="module")
def traced(lowered):
    """A loop with a product in it, compiled for the CPU and traced five times."""

    def f(x):
        return jax.lax.fori_loop(0, 4, lambda k, s: s + jnp.tanh(s @ x), x)

    x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    compiled = compile_program(lowered(f, x), load_target("cpu"))
    placed = compiled.executable.place([x])
    return compiled, trace_runs(lambda: jax.block_until_ready(compiled.executable(placed)), 5, compiled.module.name)


def test_a_real_trace_of_the_cpu_holds_every_launch_of_the_ledger(traced):
    compiled, trace = traced
    assert trace.problem == ""
    assert len(trace.runs) == 5
    known = {row.name: row.dynamic_launches for row in launch_rows(compiled) if row.dynamic_launches}
    for run in trace.runs:
        counted = {name: sum(event.hlo_op == name for event in run) for name in known}
        assert counted == known
        assert any(event.is_container and event.hlo_op.startswith("while") for event in run)


def test_measured_kernels_add_up_and_carry_the_ledger(traced):
    compiled, trace = traced
    found = device_time(trace, compiled)
    assert len(found.sum_us) == len(found.union_us) == 4
    assert found.mean_us == pytest.approx(sum(one.measured_us for one in found.kernels))
    gemm = [one for one in found.kernels if one.family == "gemm"]
    assert gemm
    assert all(one.measured_us > 0 and one.measured_launches == one.dynamic_launches == 4 for one in gemm)
    assert kernels_of({"kernels": kernel_table(found.kernels)})[0].name == found.kernels[0].name


def test_condensed_kernels_keep_the_sums_of_every_family(traced):
    compiled, trace = traced
    # Which of them took longest is the machine's; here it is the product.
    found = [
        replace(one, measured_us=10.0 if one.family == "gemm" else 1.0) for one in device_time(trace, compiled).kernels
    ]
    kernels = sorted(found, key=lambda one: -one.measured_us)
    short = condensed(kernels, least_share=0.5)
    assert len(short) < len(kernels)
    for figure in ("measured_us", "flops", "bytes", "dynamic_launches"):
        of = [{}, {}]
        for sums, every in zip(of, (kernels, short), strict=True):
            for one in every:
                sums[one.family] = sums.get(one.family, 0) + getattr(one, figure)
        assert of[0] == pytest.approx(of[1])


def test_a_kernel_that_names_no_instruction_is_found_by_its_own_name(traced):
    compiled, _ = traced
    row = next(row for row in launch_rows(compiled) if row.dynamic_launches and "." in row.name)
    events = [Event("", row.name.replace(".", "_"), 0.0, 2.0, 2.0)]
    assert join([row], [events])[0].measured_us == 2.0


def test_what_ran_and_is_in_no_ledger_is_kept_as_unknown():
    (found,) = join([], [[Event("", "mystery", 0.0, 3.0, 3.0)]])
    assert (found.name, found.family, found.measured_us, found.dynamic_launches) == ("mystery", "unknown", 3.0, 0)


def test_a_module_under_another_name_is_not_left_out():
    assert len(device_events(gpu_profile(), "jit_something")) == 9
