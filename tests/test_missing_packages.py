"""From a source checkout without installation, a package that is missing is named in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from fusionlab.cli import bench

WITHOUT_CLICK = "import sys, runpy; sys.modules['click'] = None; runpy.run_module('fusionlab', run_name='__main__')"


def test_before_the_command_line_is_there():
    command = [sys.executable, "-c", WITHOUT_CLICK]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "fusionlab: the Python package 'click' is needed and not installed: pip install click (or pip install .)"
    ]


def test_in_a_command(cli, monkeypatch):
    def missing(**_):
        raise ModuleNotFoundError("No module named 'lark.tree'", name="lark.tree")

    monkeypatch.setattr(bench, "load_source", missing)
    result = cli("bench", "--model", "ferminet", "--device", "cpu")
    assert result.exit_code == 2
    assert "fusionlab: the Python package 'lark' is needed" in result.stderr


def test_a_module_of_our_own_that_is_missing_is_a_mistake_of_ours(cli, monkeypatch):
    def missing(**_):
        raise ModuleNotFoundError("No module named 'fusionlab.nothing'", name="fusionlab.nothing")

    monkeypatch.setattr(bench, "load_source", missing)
    with pytest.raises(ModuleNotFoundError):
        cli("bench", "--model", "ferminet", "--device", "cpu")
