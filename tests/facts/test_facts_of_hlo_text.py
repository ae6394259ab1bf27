"""Optimised HLO text as a source: it belongs to one target, and so do XLA's estimates in it."""

import json
import re

import jax.numpy as jnp
import pytest
from click.testing import CliRunner

from fusionlab.cli import main
from fusionlab.cli.clusters import clusters
from fusionlab.cli.roofline import roofline
from fusionlab.cli.sources import make
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.study import Circumstances
from workloads import catalogue

CPU = Circumstances(load_target("cpu"))


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


ESTIMATED = """HloModule jit_f, is_scheduled=true

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %t = f32[8]{0} tanh(%p), metadata={op_name="jit(f)/vmap(stage_e)/jvp(jvp(stage_b))/tanh"}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %loop_tanh_fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused, \
backend_config={"operation_queue_id":"0","reification_cost":[{"end_to_end_cycles":2820,"exec_time_us":2}]}
}
""".replace("\\\n", "")  # an estimate of 2 us at 1.41 GHz: an A100


@pytest.fixture
def estimated(tmp_path):
    path = tmp_path / "estimated.hlo"
    path.write_text("\ufeff// saved by somebody\n" + ESTIMATED)
    return path


def test_hlo_text_belongs_to_the_target_that_its_estimates_are_for(estimated):
    result = run("launches", str(estimated), "--json", "--quiet")
    document = json.loads(result.stdout)
    (row,) = document["rows"]
    assert (document["target"], row["model_source"], row["model_us"]) == ("a100", "xla", 3.0)
    assert document["notes"] == []


def test_estimates_for_another_target_are_not_used_and_that_is_said(estimated):
    result = run("launches", str(estimated), "--target", "h200", "--quiet")
    assert "for a clock of 1.410 GHz, which is not that of h200: they are not used" in result.stdout
    document = json.loads(run("launches", str(estimated), "--target", "h200", "--json", "--quiet").stdout)
    (row,) = document["rows"]
    assert row["model_source"] == "roofline"
    assert row["model_us"] < 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["launches", "HERE", "--target", "a100,h200"], "for one target; name that one, not a100, h200"),
        (["roofline", "HERE", "--target", "a100,h200"], "for one target; name that one, not a100, h200"),
        (["launches", "HERE", "--target", "cpu"], "compiled this text for a GPU, but target cpu is the CPU"),
        (["roofline", "HERE", "--out", "plot.png"], "plot.png: the plot is SVG; name --out FILE.svg or a folder"),
    ],
)
def test_what_hlo_text_and_plots_cannot_be(estimated, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run(*(str(estimated) if part == "HERE" else part for part in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"estimated.hlo"}


def test_a_cpu_text_is_the_cpus_and_unknown_times_are_dashes(lowered, tmp_path, console):
    function = lambda x: jnp.sort(jnp.tanh(x) @ x.T) * 2 + 1  # noqa: E731  # one line is clearer
    made = make(lowered(function, jnp.ones((8, 8))), CPU)
    path = tmp_path / "cpu.hlo"
    path.write_text(made.compiled.optimized_hlo)
    document = json.loads(run("launches", str(path), "--json", "--by", "family", "--quiet").stdout)
    assert document["target"] == "cpu"
    assert document["totals"]["model_us"] is None
    assert {group["model_us"] for group in document["groups"]} == {None}
    printed = run("launches", str(path), "--quiet").stdout
    assert re.search(r"^ ?all .* -\s*$", printed, re.MULTILINE)
    assert run("roofline", str(path), "--quiet").exit_code == 0
    refused = run("launches", str(path), "--target", "a100")
    assert "compiled this text for the CPU, but target a100 is a GPU" in refused.stderr


def test_near_memory_gains_without_times_are_unknown(tmp_path, console):
    source = catalogue.build("paulinet", "LiH", program="log-psi", walkers=4, size="tiny")
    document = clusters(source, CPU, console, criteria="pim", link=64.0)
    assert document["launch_clusters"]
    assert {one["pim_gain_us"] for one in document["launch_clusters"]} == {None}
    assert document["model_us"] is None
    assert "can give back at most - ms of - ms" in console.file.getvalue()


def test_a_plot_into_a_folder_and_nothing_of_half_the_targets(lowered, tmp_path, on_a100, console):
    program = lowered(jnp.tanh, jnp.ones(300), platform="cuda")
    with pytest.raises(InputError, match="target cpu has no spec"):
        roofline(program, [on_a100.target, CPU.target], on_a100, console, out=str(tmp_path / "x.svg"))
    assert list(tmp_path.iterdir()) == []
    document = roofline(program, [on_a100.target], on_a100, console, out=str(tmp_path))
    assert document["files"] == [str(tmp_path / "small-a100-roofline.svg")]
    assert (tmp_path / "small-a100-roofline.svg").read_text().startswith("<svg")


def test_a_later_target_that_cannot_be_compiled_leaves_no_plot(lowered, tmp_path, on_a100, console):
    program = lowered(jnp.tanh, jnp.ones(300), platform="cuda")
    options = {"out": str(tmp_path / "x.svg"), "peak_tflops": 1.0, "bandwidth": 10.0}
    with pytest.raises(InputError, match="lowered for cuda"):
        roofline(program, [on_a100.target, CPU.target], on_a100, console, **options)
    assert list(tmp_path.iterdir()) == []
