"""Records read into tables: clocks, ratios, the newest of several, and where time goes."""

import json

import pytest

from fusionlab.measure.comparison import RATES, compare_record, latest, measured_by
from fusionlab.measure.device_time import MeasuredKernel, kernel_table
from fusionlab.measure.records import FORMAT


def kernel(name, family, us, stage="B", **changes):
    figures = {"dynamic_launches": 2, "measured_launches": 2.0, "flops": 100, "bytes": 50, "model_us": None} | changes
    return MeasuredKernel(name, "laplacian", stage, "tangent", family, measured_us=us, **figures)


def variant(name, wall, device, **changes):
    return {
        "name": name,
        "verdict": "within-bound",
        "samples_us": wall,
        "device_time": {"sum_us": device},
        "kernels": kernel_table([kernel("a", "gemm", 3.0), kernel("b", "elementwise", 1.0, stage="")]),
        "dynamic_launches": 7,
        "peak_bytes": None,
        "assigned_bytes": 4096,
        **dict.fromkeys(RATES),
        **changes,
    }


def record(platform="cpu", started="2026-01-01T00:00:00+00:00", **changes):
    return {
        "format": FORMAT,
        "started_utc": started,
        "workload": {"title": "ferminet-LiH-local-energy-w4", "name": "ferminet"},
        "device": {"name": "a device", "platform": platform},
        "versions": {"jax": "jax 1"},
        "commit": "abc",
        "variants": [variant("replay", [10.0, 12.0], [8.0, 8.0]), variant("fused", [5.0, 6.0], [2.0, 2.0])],
        "failures": [{"name": "jet", "step": "lower", "reason": "why"}],
        **changes,
    }


def test_the_clock_is_the_devices_on_a_gpu_and_the_walls_on_a_cpu():
    on_gpu, on_cpu = (compare_record(record(platform)) for platform in ("cuda", "cpu"))
    assert (on_gpu.clock, on_gpu.ratios["replay"].value) == ("device", 0.25)
    assert (on_cpu.clock, on_cpu.ratios["replay"].value) == ("wall", 0.5)
    assert compare_record(record("cuda"), "wall").ratios["replay"].value == 0.5


def test_ratios_are_of_the_rewritten_program_or_of_the_first():
    assert compare_record(record()).of == "fused"
    assert compare_record(record(), of="replay").ratios["fused"].value == 2.0
    assert compare_record(record(variants=[variant("replay", [1.0], [1.0])])).of == "replay"


def test_the_newest_of_each_kind():
    old, new = record(), record(started="2026-01-02T00:00:00+00:00")
    other = record(device={"name": "another", "platform": "cpu"})
    assert latest([new, old, other, record(variants=[])]) == ([new, other], 1)


def test_measured_time_by_origin():
    kernels = [kernel("a", "gemm", 3.0), kernel("b", "gemm", 1.0, stage=""), kernel("c", "sort", 5.0)]
    assert measured_by(kernels, ("family",)) == {("sort",): 5.0, ("gemm",): 4.0}
    assert measured_by(kernels, ("stage", "family"))[("-", "gemm")] == 1.0


@pytest.fixture
def folder(tmp_path):
    for at, one in enumerate((record(), record(started="2026-01-02T00:00:00+00:00"))):
        (tmp_path / f"{at}.json").write_text(json.dumps(one))
    return tmp_path


def test_the_command_prints_the_newest_with_what_was_not_measured(cli, folder):
    result = cli("compare", folder, "--by", "family")
    assert result.exit_code == 0, result.stderr
    assert "0.50 [" in result.stdout
    assert "jet (lower): why" in result.stdout
    assert "0.003 (75%)" in result.stdout
    assert "1 older records" in result.stdout


def test_what_the_device_achieved(cli, tmp_path):
    figures = {"flops_per_s": 2e12, "flops_of_peak": 0.25, "compile_s": 3.0, "kernels_joined": 0.999}
    one = record(variants=[variant("replay", [1.0], [1.0], **figures)])
    (tmp_path / "a.json").write_text(json.dumps(one))
    (line,) = [line for line in cli("compare", tmp_path, "--rates").stdout.splitlines() if "25.0%" in line]
    assert line.split()[1:] == ["replay", "2,000.0", "25.0%", "-", "-", "-", "-", "3.0", "99.9%"]


def test_the_command_as_json_and_markdown(cli, folder):
    document = json.loads(cli("compare", folder, "--json", "--by", "stage").stdout)
    (found,) = document["comparisons"]
    assert {one["name"]: one["ratio"] and one["ratio"]["value"] for one in found["variants"]} == {
        "replay": 0.5,
        "fused": None,
    }
    assert document["older_records"] == 1
    assert {share["variant"] for share in document["shares"]} == {"replay", "fused"}
    text = cli("compare", folder, "--markdown").stdout
    assert "| wall ms | replay | fused |" in text
    assert "| ferminet-LiH-local-energy-w4 | 0.01 | 0.01 |" in text
    assert "| fused / it | replay |" in text
    assert "| ferminet-LiH-local-energy-w4 | 0.50 [" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "colour"), "unknown column"),
        (("--what-if", "a100"), "say nothing about a100"),
        (("--what-if", "sms=3"), "give tflops"),
        (("--what-if", ""), "needs figures"),
        (("no-such-folder",), "cannot be read"),
        ((), "no variant has samples"),
    ],
)
def test_bad_input(cli, tmp_path, words, message):
    one = record(variants=[variant("replay", [], [])])
    (tmp_path / "a.json").write_text(json.dumps(record() if words else one))
    result = cli("compare", tmp_path, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
