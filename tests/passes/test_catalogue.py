"""The names of passes: aliases of former ones, in pipelines, records and on the command line."""

import json

import pytest

from fusionlab.passes.catalogue import ALIASES, PASSES, present_names
from fusionlab.passes.pipeline import parse_pipeline, print_pipeline


@pytest.mark.parametrize(("old", "new"), ALIASES.items())
def test_a_former_name_resolves_to_the_present_one(old, new, cli):
    assert old not in PASSES
    text = f"batch-replay{{chunk=3}},{old}"
    assert print_pipeline(parse_pipeline(text)) == present_names(text) == f"batch-replay{{chunk=3}},{new}"
    [listed] = json.loads(cli("passes", old, "--json").stdout)
    assert listed["name"] == new


def test_a_path_keeps_the_former_name_of_a_pass():
    path = "/home/fuse-layers/my.py:Mine{x=1}"
    assert present_names(f"{path},fuse-layers") == f"{path},dot-epilogue-kernels"
