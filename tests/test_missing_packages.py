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


@pytest.mark.parametrize("name", ["lark.tree", "fusionlab.nothing"])
def test_in_a_command_it_is_one_line_unless_the_module_is_ours(name, cli, monkeypatch):
    def missing(**_):
        raise ModuleNotFoundError(f"No module named '{name}'", name=name)

    monkeypatch.setattr(bench, "load_source", missing)
    words = ("bench", "--model", "ferminet", "--device", "cpu")
    if name.startswith("fusionlab"):
        with pytest.raises(ModuleNotFoundError):
            cli(*words)
        return
    result = cli(*words)
    assert result.exit_code == 2
    assert "fusionlab: the Python package 'lark' is needed" in result.stderr
