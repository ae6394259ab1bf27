"""``fusionlab passes`` prints the catalogue, and its presets are pipelines."""

import json

import pytest
from click.testing import CliRunner

from fusionlab.cli import main
from fusionlab.passes.catalogue import PASSES, PIPELINES, SEARCHED
from fusionlab.passes.pipeline import parse_pipeline, print_pipeline


def run(*arguments):
    return CliRunner().invoke(main, ["passes", *arguments])


def test_every_pass_says_what_it_does_to_the_numbers():
    listed = {one["name"]: one for one in json.loads(run("--json").stdout)}
    assert set(listed) == {*PASSES, *PIPELINES, SEARCHED}
    for name in PASSES:
        assert listed[name]["does"]
        assert listed[name]["exact"].startswith(("bitwise", "reassociates", "changes rounding"))
        assert listed[name]["requires"]
    printed = run().stdout
    assert all(name in printed for name in listed)


def test_one_pass_is_printed_as_it_is_documented():
    assert "-->" in run("scatter-to-gather").stdout
    assert run("layout").stdout == f"preset layout: {PIPELINES['layout']}\n"
    assert run("best").stdout.startswith("best: searched by apply")


@pytest.mark.parametrize("name", PIPELINES)
def test_a_preset_stands_for_its_passes(name):
    assert print_pipeline(parse_pipeline(f"batch-replay,{name}")) == f"batch-replay,{PIPELINES[name]}"
    assert name not in PASSES
