"""``fusionlab drift``: the version that runs here, versions without environment, bad input, and what is deleted."""

import json

import jax
import pytest

from fusionlab.errors import InputError
from fusionlab.versions import drift as drifting
from fusionlab.versions import environments
from fusionlab.versions.environments import NoEnvironment, environment
from tests.optional_packages import needs_the_cuda_plugin

OWN = jax.__version__


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """Environments cannot be made, but that of this process."""

    def made(version, progress=lambda line: None):
        if version == OWN:
            return environment(version)
        raise NoEnvironment(f"JAX {version} cannot be installed: no network")

    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drifting, "environment", made)


@needs_the_cuda_plugin
def test_a_row_per_version_and_a_chart(cli, replay_file, no_network, tmp_path):
    result = cli("drift", replay_file, "--jax", f"0.4.35,{OWN}", "--out", "chart.svg", code=0)
    assert f"with JAX {OWN}, the only version that compiles it" in result.stdout.splitlines()[0]
    assert "JAX 0.4.35 cannot be installed" in " ".join(result.stdout.split())
    assert result.stdout.rstrip().endswith("written: chart.svg")
    assert "✕ not compiled" in (tmp_path / "chart.svg").read_text()


@needs_the_cuda_plugin
def test_progress_is_on_stderr_and_the_document_on_stdout(cli, replay_file, no_network):
    result = cli("drift", replay_file, "--jax", OWN, "--json", code=0)
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["jax"], row["reason"]) == (OWN, None)
    assert row["launches"] > 0
    assert f"by JAX {OWN}" in result.stderr


def test_no_version_compiles_it(cli, replay_file, no_network):
    result = cli("drift", replay_file, "--jax", "0.4.35,0.6.2", "--quiet", code=1)
    assert "none of 2 versions compiles it: JAX 0.6.2 cannot be installed: no network" in result.stdout


@needs_the_cuda_plugin
def test_figures_and_chart_are_there_before_causes_are_looked_for(cli, replay_file, no_network, tmp_path, monkeypatch):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(drifting, "with_causes", interrupted)
    result = cli("drift", replay_file, "--jax", OWN, "--cause", "--out", "chart.svg")
    assert "launch" in result.stdout
    assert (tmp_path / "chart.svg").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--jax", "0.4.28"), "JAX 0.4.28 cannot compile for an absent GPU"),
        (("--jax", "new"), "'new' is no version"),
        (("--out", "chart.png"), "chart.png: the chart is SVG; name --out FILE.svg"),
        (("--out", "nowhere/chart.svg"), "there is no folder"),
        (("--target", "cpu", "--jax", OWN), "target cpu: versions are compared for a GPU with a spec"),
        (("--clean", "--nightly"), "--nightly: name the nightly to delete with --jax"),
    ],
)
def test_bad_input(words, said, cli, replay_file, no_network):
    result = cli("drift", replay_file, *words, "--quiet", code=2)
    assert said in result.stderr
    assert result.stdout == ""


def test_without_a_nightly_nothing_is_compiled(cli, replay_file, no_network, monkeypatch):
    def none():
        raise InputError("--nightly: no package index of pip has a nightly of JAX")

    monkeypatch.setattr(environments, "nightly_version", none)
    result = cli("drift", replay_file, "--jax", OWN, "--nightly", code=2)
    assert result.stderr.strip().endswith("no package index of pip has a nightly of JAX")
    assert result.stdout == ""


def test_a_nightly_is_a_row(cli, replay_file, no_network, monkeypatch):
    monkeypatch.setattr(environments, "nightly_version", lambda: "0.12.0.dev20261128")
    result = cli("drift", replay_file, "--jax", "0.6.2", "--nightly", "--quiet", code=1)
    assert "none of 2 versions compiles it: JAX 0.12.0.dev20261128 cannot be installed" in result.stdout


def test_clean_deletes_the_environments_of_these_versions(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    for version in ("0.6.2", "0.7.0"):
        place = tmp_path / "environments" / f"jax-{version}" / "bin"
        place.mkdir(parents=True)
        (place / "python").write_text("12345678")
    for broken in ("jax-0.9.2", ".making-x"):
        (tmp_path / "environments" / broken / "lib").mkdir(parents=True)
        (tmp_path / "environments" / broken / "lib" / "a").write_text("12")
    result = cli("drift", "--clean", "--jax", "0.6.2,0.8.0", code=0)
    assert result.stdout.startswith("deleted environments: 0.6.2, 2 incomplete, 12 B in ")
    assert result.stdout.rstrip().endswith("left: 0.7.0")
    assert [path.name for path in (tmp_path / "environments").iterdir()] == ["jax-0.7.0"]
