"""The model fitted to measured kernels: numbers that it must find again, errors, and predictions."""

import json
from dataclasses import replace

import pytest

from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.measure.calibration import calibrate, changed, parse_what_if, predicted_us
from fusionlab.measure.comparison import kernels_of
from tests.measure import made

PEAKS = load_target("h200").peaks
OVERHEAD_US, EFFICIENCY = 3.0, 0.5


def kernel(at, slower=1.0, in_tf32=False):
    """A kernel of 10 launches that takes 3 us a launch and reaches half of the H200's roof."""
    flops, moved = 10**9 * (at + 1), 10**6 * (at % 3 + 1)
    peak = PEAKS.tf32_flops_per_s if in_tf32 else PEAKS.fp32_flops_per_s
    us = slower * (10 * OVERHEAD_US + 1e6 * max(flops / peak, moved / PEAKS.memory_bytes_per_s) / EFFICIENCY)
    figures = {"flops": flops, "bytes": moved, "tf32_flops": flops if in_tf32 else 0}
    return made.kernel(f"k{at}", "gemm", us, dynamic_launches=10, measured_launches=10.0, **figures)


def record(model="ferminet", spec="h200", slower=1.0):
    device = {"name": "NVIDIA H200" if spec else "a CPU", "platform": "cuda" if spec else "cpu", "spec": spec}
    return made.record(made.variant(kernels=[kernel(at, slower) for at in range(8)]), model=model, device=device)


def test_the_fit_finds_what_the_kernels_were_made_with():
    found = calibrate([record(), record("paulinet")])
    fit = found.fits["gemm"]
    assert fit.overhead_us == pytest.approx(OVERHEAD_US, rel=1e-3)
    assert fit.efficiency == pytest.approx(EFFICIENCY, rel=1e-3)
    assert fit.kernel_error < 1e-3
    assert found.held_out
    assert found.error < 1e-3


def test_products_in_tf32_reach_their_own_roof_and_older_records_say_nothing_of_them():
    kernels = [kernel(at, in_tf32=at % 2 == 0) for at in range(8)]
    both = made.variant(kernels=kernels)
    found = calibrate([{**record(), "variants": [both]}])
    assert found.fits["gemm"].efficiency == pytest.approx(EFFICIENCY, rel=1e-3)
    assert found.fits["gemm"].kernel_error < 1e-3
    column = both["kernels"]["columns"].index("tf32_flops")
    for row in (both["kernels"]["columns"], *both["kernels"]["rows"]):
        del row[column]
    assert kernels_of(both)[0] == replace(kernels_of(made.variant(kernels=kernels))[0], tf32_flops=0)


def test_a_record_says_that_its_products_were_not_in_tf32():
    record_without = {**record(), "flags": {"NVIDIA_TF32_OVERRIDE": "0"}}
    found = calibrate([record_without])
    assert found.ceilings.tf32_flops_per_s == found.ceilings.flops_per_s
    assert changed(found.ceilings, parse_what_if("a100")).tf32_flops_per_s == load_target("a100").peaks.fp32_flops_per_s
    assert calibrate([record()]).ceilings.tf32_flops_per_s == PEAKS.tf32_flops_per_s


def test_the_error_is_that_of_programs_that_were_not_fitted():
    found = calibrate([record(), record("paulinet", slower=2.0)])
    assert found.error > 0.4
    alone = calibrate([record(slower=2.0)])
    assert not alone.held_out
    assert alone.error < 1e-3


def test_a_prediction_changes_the_roofs_and_keeps_the_rest():
    found = calibrate([record()])
    kernels = kernels_of(record()["variants"][0])
    same, _ = predicted_us(found, kernels, parse_what_if("h200"))
    assert same == pytest.approx(sum(one.measured_us for one in kernels), rel=1e-3)
    half, wall = predicted_us(found, kernels, parse_what_if("sms=66,launch_us=2"))
    launches_us = 8 * 10 * OVERHEAD_US
    assert half - launches_us == pytest.approx(2 * (same - launches_us), rel=0.01)
    assert wall == pytest.approx(half + 80 * 2)
    a100, _ = predicted_us(found, kernels, parse_what_if("a100"))
    assert a100 > same


def test_a_device_without_a_spec_is_set_against_its_own_best():
    found = calibrate([record(spec=None)])
    assert found.ceilings.measured
    assert found.error < 0.05
    with pytest.raises(InputError, match="say nothing about h200"):
        predicted_us(found, kernels_of(record()["variants"][0]), parse_what_if("h200"))
    with pytest.raises(InputError, match="give tflops"):
        changed(found.ceilings, parse_what_if("sms=3"))
    faster = changed(found.ceilings, parse_what_if("tflops=1000,bandwidth_gb_s=9000"))
    assert (faster.flops_per_s, faster.bytes_per_s) == (1e15, 9e12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs figures"),
        ("b300", "unknown target"),
        ("cpu", "has no spec"),
        ("colour=3", "unknown figure"),
        ("sms=many", "is not a number"),
        ("launch_us=-1", "launch_us must be from 0.001 to 1,000,000,000, not -1"),
        ("bandwidth_gb_s=inf", "bandwidth_gb_s must be from 1 to 1,000,000, not inf"),
        ("bandwidth_gb_s=nan", "bandwidth_gb_s must be from 1"),
        ("bandwidth_gb_s=1e-12", "bandwidth_gb_s must be from 1"),
        ("bandwidth_gb_s=1e305", "bandwidth_gb_s must be from 1"),
        ("clock_ghz=1e-320", "clock_ghz must be from 0.01 to 100,"),
        (f"sms=1{400 * '0'}", "sms must be from 1 to 100,000,"),
        ("sms=9,sms=10", "sms=9,sms=10: there are two of sms"),
        ("a100,h200", "there are two of target"),
    ],
)
def test_what_if_says_what_it_does_not_know(text, message):
    with pytest.raises(InputError, match=message):
        parse_what_if(text)


def test_no_kernels_no_calibration():
    nothing = made.record(made.variant(kernels=[]), made.variant(kernels=[made.kernel("a", "gemm", 0.0)]))
    with pytest.raises(InputError, match="nothing to calibrate"):
        calibrate([nothing])
    good = record()
    assert calibrate([{**good, "variants": [*nothing["variants"], *good["variants"]]}]).programs == 1


@pytest.mark.parametrize(
    ("slower", "orders"),
    [
        ((1.0,), [""]),
        ((1.0, 1.1), ["not decidable"] * 2),
        ((1.0, 1.3), ["fastest", "slower"]),
        ((1.3, 1.0, 1.1), ["slower", "not decidable", "not decidable"]),
        ((1.0, 1.0), ["not decidable"] * 2),
        ((None, 1.0), ["", ""]),
        ((1.0, None, 1.3), ["fastest", "", "slower"]),
    ],
)
def test_the_fastest_is_named_where_all_others_are_slower(slower, orders, as_json, tmp_path):
    # of kernels that are almost all work: a prediction for the same device is what was measured
    rows = [[] if one is None else [kernel(at, one) for at in range(8)] for one in slower]
    families = [[replace(one, family=f"gemm-{at}") for one in each] for at, each in enumerate(rows)]
    variants = [made.variant(f"v{at}", kernels=each) for at, each in enumerate(families)]
    (tmp_path / "a.json").write_text(json.dumps({**record(), "variants": variants}))
    (found,) = as_json("compare", tmp_path, "--of", "v0", "--what-if", "h200")["calibrations"]
    assert [one["order"] for one in found["predicted"]] == orders


def test_the_command_labels_predictions(cli, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(record()))
    result = cli("compare", tmp_path, "--what-if", "a100,launch_us=2")
    assert result.exit_code == 0, result.stderr
    assert "the model against NVIDIA H200" in result.stdout
    assert "PREDICTED for a100,launch_us=2, not measured" in result.stdout
    document = json.loads(cli("compare", tmp_path, "--what-if", "a100", "--json").stdout)
    (found,) = document["calibrations"]
    assert found["predicted"][0]["predicted_wall_us"] is None
    assert found["fits"]["gemm"]["efficiency"] == pytest.approx(EFFICIENCY, rel=1e-3)
