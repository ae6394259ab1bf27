"""Records read into tables: clocks, ratios with their intervals, the newest of several, and where time goes."""

import json

import numpy as np
import pytest

from fusionlab.measure.comparison import compare_record, latest, measured_by
from fusionlab.measure.intervals import Interval, median, ratio_of_medians
from tests.measure.made import kernel, record, variant

TITLE = "ferminet-LiH-local-energy-w4"
REPLAY, FUSED = variant("replay", [10.0, 12.0], [8.0, 8.0]), variant("fused", [5.0, 6.0], [2.0, 2.0])
BOTH = record(REPLAY, FUSED, failures=[{"name": "jet", "step": "lower", "reason": "why"}])
LATER = {**BOTH, "started_utc": "2026-01-03T00:00:00+00:00"}


@pytest.mark.parametrize(
    ("platform", "asked", "clock", "ratio"),
    [("cuda", None, "device", 0.25), ("cpu", None, "wall", 0.5), ("cuda", "wall", "wall", 0.5)],
)
def test_the_clock_is_the_devices_on_a_gpu_and_the_walls_on_a_cpu(platform, asked, clock, ratio):
    found = compare_record(record(REPLAY, FUSED, platform=platform), asked)
    assert (found.clock, found.ratios["replay"].value) == (clock, ratio)


def test_ratios_are_of_the_rewritten_program_or_of_the_first():
    assert compare_record(BOTH).of == "fused"
    assert compare_record(BOTH, of="replay").ratios["fused"].value == 2.0
    assert compare_record(record(REPLAY)).of == "replay"


def test_the_newest_of_each_kind():
    other = {**BOTH, "device": {"name": "another", "platform": "cpu"}}
    assert latest([LATER, BOTH, other, {**BOTH, "variants": []}]) == ([LATER, other], 1)


def test_measured_time_by_origin():
    kernels = [kernel("a", "gemm", 3.0), kernel("b", "gemm", 1.0, stage=""), kernel("c", "sort", 5.0)]
    assert measured_by(kernels, ("family",)) == {("sort",): 5.0, ("gemm",): 4.0}
    assert measured_by(kernels, ("stage", "family"))[("-", "gemm")] == 1.0


@pytest.fixture
def folder(tmp_path):
    for at, one in enumerate((BOTH, LATER)):
        (tmp_path / f"{at}.json").write_text(json.dumps(one))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--by", "family"), ["0.50 [", "jet (lower): why", "0.003 (75%)", "1 older records"]),
        (("--markdown",), ["| wall ms | replay | fused |", f"| {TITLE} | 0.01 | 0.01 |"]),
        (("--markdown",), ["| fused / it | replay |", f"| {TITLE} | 0.50 ["]),
    ],
)
def test_the_command_shows_the_newest_with_what_was_not_measured(cli, folder, words, shown):
    result = cli("compare", folder, *words)
    assert result.exit_code == 0, result.stderr
    assert [text for text in shown if text not in result.stdout] == []


def test_what_the_device_achieved(cli, tmp_path):
    figures = {"flops_per_s": 2e12, "flops_of_peak": 0.25, "compile_s": 3.0, "kernels_joined": 0.999}
    (tmp_path / "a.json").write_text(json.dumps(record(variant("replay", [1.0], [1.0], **figures))))
    (line,) = [line for line in cli("compare", tmp_path, "--rates").stdout.splitlines() if "25.0%" in line]
    assert line.split()[1:] == ["replay", "2,000.0", "25.0%", "-", "-", "-", "-", "3.0", "99.9%"]


def test_the_command_as_json(cli, folder):
    document = json.loads(cli("compare", folder, "--json", "--by", "stage").stdout)
    (found,) = document["comparisons"]
    ratios = {one["name"]: one["ratio"] and one["ratio"]["value"] for one in found["variants"]}
    assert ratios == {"replay": 0.5, "fused": None}
    assert document["older_records"] == 1
    assert {share["variant"] for share in document["shares"]} == {"replay", "fused"}


def test_a_record_that_was_cut_short_is_compared_on_the_clock_that_it_has(cli, tmp_path):
    cut = [{"name": name, "step": "trace", "reason": "left out"} for name in ("replay", "fused")]
    walls = record(variant("replay", [4.0], []), variant("fused", [1.0], []), platform="cuda", failures=cut)
    walls["workload"] = {**walls["workload"], "title": "cut-short"}
    for name, one in {"whole": record(REPLAY, FUSED, platform="cuda"), "cut": walls}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
    result = cli("compare", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "cut-short: not measured: replay; fused (trace): left out" in result.stdout
    found = json.loads(cli("compare", tmp_path, "--json").stdout)["comparisons"]
    assert {one["workload"]["title"]: one["clock"] for one in found} == {TITLE: "device", "cut-short": "wall"}
    assert "cut-short: no samples of device time" in cli("compare", tmp_path, "--time", "device").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "colour"), "unknown column"),
        (("--what-if", "a100"), "say nothing about a100"),
        (("no-such-folder",), "cannot be read"),
        ((), "no variant has samples"),
        (("--time", "device"), "no variant of these records has samples of device time"),
    ],
)
def test_bad_input(cli, tmp_path, words, message):
    untimed = not words or "--time" in words
    (tmp_path / "a.json").write_text(json.dumps(record(variant(wall=[], device=[])) if untimed else BOTH))
    result = cli("compare", tmp_path, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_the_interval_holds_the_median_and_narrows_with_samples():
    random = np.random.default_rng(0)
    few, many = (median(10 + random.standard_normal(count)) for count in (10, 1000))
    assert few.low <= few.value <= few.high
    assert many.low < 10.1
    assert many.high > 9.9
    assert many.high - many.low < (few.high - few.low) / 3


def test_it_is_the_same_every_time():
    samples = [3.0, 1.0, 2.0, 5.0]
    assert median(samples) == median(samples)
    assert median([7.0]) == Interval(7.0, 7.0, 7.0)


def test_a_slow_round_does_not_widen_a_paired_ratio():
    slow = np.array([1.0, 1.0, 5.0, 1.0, 9.0, 1.0, 1.0, 3.0])
    paired = ratio_of_medians(list(2 * slow), list(slow), paired=True)
    assert (paired.value, paired.low, paired.high) == (2.0, 2.0, 2.0)
    alone = ratio_of_medians(list(2 * slow), list(slow), paired=False)
    assert alone.low < 2.0 < alone.high


def test_no_samples_have_no_median():
    with pytest.raises(ValueError, match="no samples"):
        median([])
