"""The GitHub Action: its steps, run in a shell as a runner runs them, with files in the place of the runner's."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml

from fusionlab.hlo.program import Program
from tests.optional_packages import needs_the_cuda_plugin

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


def base(x):
    return jnp.tanh(x @ x)


def grown(x):
    return jnp.cos(jnp.tanh(x @ x) @ x)


class Runner:
    """A job of one step that uses the action; ``state`` holds what the runner's files have afterwards."""

    def __init__(self, folder):
        self.folder = folder
        self.errors = ""

    def run(self, **given):
        """The exit code of the first step that fails, else 0; arguments are inputs, with ``_`` for ``-``."""
        inputs = {name: one["default"] for name, one in ACTION["inputs"].items()} | {"python": sys.executable}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        for name in ("summary", "output"):
            (self.folder / name).write_text("")
        failed, outcomes = 0, {}
        for step in ACTION["runs"]["steps"]:
            wanted = self.value(step["if"], inputs, outcomes)
            outcomes[step.get("id")] = "skipped"
            if wanted and (not failed or "cancelled()" in step["if"]):
                code = self.step(step, inputs)
                outcomes[step.get("id")] = "failure" if code else "success"
                failed = failed or code
        return failed

    def value(self, text, inputs, outcomes=None):
        """An expression of GitHub, of those that the action has."""
        (code,) = EXPRESSION.fullmatch(text).groups()
        code = re.sub(r"inputs\.([\w-]+)", lambda found: repr(inputs[found[1]]), code)
        code = re.sub(r"steps\.(\w+)\.outcome", lambda found: repr(outcomes[found[1]]), code)
        code = code.replace("github.action_path", repr(str(ROOT))).replace("!cancelled()", "True")
        return eval(code.replace("&&", " and ").replace("||", " or "), {})

    def step(self, step, inputs):
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an input in a script could end a command"
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        files = {"GITHUB_STEP_SUMMARY": str(self.folder / "summary"), "GITHUB_OUTPUT": str(self.folder / "output")}
        own = {name: str(self.value(value, inputs)) for name, value in step["env"].items()}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder), **files, **own}
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        self.errors = done.stdout + done.stderr
        return done.returncode

    @property
    def summary(self):
        return (self.folder / "summary").read_text()

    @property
    def outputs(self):
        return dict(line.split("=", 1) for line in (self.folder / "output").read_text().splitlines())


def python(folder, script):
    """A Python in ``folder`` that runs a script of the shell instead."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def runner(tmp_path):
    """A folder with the programs of two functions in it."""
    shape = jax.ShapeDtypeStruct((64, 64), np.float32)
    for function in (base, grown):
        text = Program.from_function(function, shape, platform="cpu").text
        (tmp_path / f"{function.__name__}.mlir").write_text(text)
    return Runner(tmp_path)


def test_the_difference_is_in_the_summary(runner):
    assert runner.run(package="none", base="base.mlir", program="grown.mlir", target="cpu", max_more_launches="9") == 0
    assert runner.summary.startswith("### base -&gt; grown on cpu: 2 launches become 4 (+2)\n")
    assert runner.outputs == {"result": "passed"}
    assert [path.name for path in runner.folder.iterdir() if path.is_dir()] == []


def test_limits_fail_the_job(runner):
    given = {"package": "none", "base": "base.mlir", "program": "grown.mlir", "target": "cpu"}
    assert runner.run(**given, max_more_launches="1", max_more_temp="0", changes="1") == 1
    assert runner.outputs == {"result": "failed"}
    assert "- :x: +2 launches; --max-more-launches allows 1\n" in runner.summary
    assert ":x: +16,384 bytes of temp memory" in runner.summary
    assert "smaller changes" in runner.summary


def test_a_side_that_cannot_be_read(runner):
    assert runner.run(package="none", base="$(touch ran).mlir", program="grown.mlir", target="cpu") == 2
    assert runner.outputs == {"result": "error"}
    assert runner.summary == (
        "### fusionlab diff: no comparison\n\n"
        "    fusionlab: $(touch ran).mlir: cannot be read: No such file or directory\n"
    )
    assert not (runner.folder / "ran").exists()
    assert runner.run(package="none", base="base.mlir") == 2
    assert "give base and program, or tests" in runner.errors


def test_a_crash_is_no_limit(runner):
    """A Python without fusionlab ends with 1, as a limit does; it compares nothing."""
    fake = python(runner.folder, 'echo "No module named fusionlab" >&2; exit 1')
    assert runner.run(package="none", base="base.mlir", program="grown.mlir", python=fake) == 1
    assert runner.outputs == {"result": "error"}
    assert runner.summary == "### fusionlab diff: no comparison\n\n    No module named fusionlab\n"


def test_nothing_is_compared_without_an_installation(runner):
    fake = python(runner.folder, 'echo "$2" >>"$0.said"; exit 3')
    assert runner.run(base="base.mlir", program="grown.mlir", tests="test_layers.py", python=fake) == 3
    assert (runner.folder / "python.said").read_text() == "pip\n"
    assert (runner.outputs, runner.summary) == ({}, "")


def test_tests_of_several_lines_and_with_quotes(runner):
    (runner.folder / "test_one.py").write_text("def test_a(): pass\ndef test_ab(): pass\ndef test_b(): pass\n")
    (runner.folder / "test_two.py").write_text("def test_ab(): pass\n")
    plugin = "-p fusionlab.testing.plugin -p no:cacheprovider"
    given = {"package": "none", "python": sys.executable}
    assert runner.run(**given, tests=f"{plugin}\ntest_one.py\ntest_two.py -k 'a and b' \n") == 0, runner.errors
    assert "2 passed, 2 deselected" in runner.errors
    assert runner.run(**given, tests="test_one.py -k 'a and b") == 2
    assert "fusionlab: tests: No closing quotation" in runner.errors


@pytest.mark.slow
@needs_the_cuda_plugin
def test_a_saved_ledger_without_a_target(runner):
    command = [sys.executable, "-m", "fusionlab", "launches", "base.mlir", "--target", "h100", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    saved = subprocess.run(command, cwd=runner.folder, env=environment, capture_output=True, check=True).stdout
    (runner.folder / "main.json").write_bytes(saved)
    assert runner.run(package="none", base="main.json", program="base.mlir") == 0
    assert runner.summary.startswith("### base on h100: the same ")


@pytest.mark.slow
def test_recorded_ledgers_are_tested(runner):
    shutil.copy(ROOT / "tests/testing/recorded_tests.txt", runner.folder / "test_layers.py")
    plugin = "-p fusionlab.testing.plugin -p no:cacheprovider test_layers.py"
    assert runner.run(package="none", tests=f"{plugin} --fusionlab-update") == 0
    (record,) = runner.folder.glob("recorded_ledgers/test_layers/*.json")
    document = json.loads(record.read_text())
    del document["ledgers"]["hidden on cpu"]["rows"][1:]
    record.write_text(json.dumps(document))
    assert runner.run(package="none", tests=plugin, base="base.mlir", program="grown.mlir", target="cpu") == 1
    recorded, _, compared = runner.summary.partition("### base -&gt; grown")
    assert "not as recorded" in recorded
    assert compared, "the comparison is made where the tests failed, too"
    assert runner.outputs == {"result": "passed"}


def test_what_is_installed(runner):
    """pip is asked for the action's own folder, or for the package that is named."""
    said = python(runner.folder, 'printf "%s\\n" "$@" >"$0.said"')
    runner.run(python=said)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    assert (runner.folder / "python.said").read_text().splitlines() == [*pip, f"{ROOT}[targets]"]
    runner.run(python=said, package="fusionlab==0.1.0")
    assert (runner.folder / "python.said").read_text().splitlines() == [*pip, "fusionlab==0.1.0"]


def test_every_input_is_described_and_used():
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert used == set(ACTION["inputs"])
    assert all(one["description"].endswith(".") for one in ACTION["inputs"].values())
    page = (ROOT / "docs" / "ci.md").read_text()
    assert [name for name in ACTION["inputs"] if f"| `{name}` |" not in page] == []
