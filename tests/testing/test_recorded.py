"""Recorded ledgers: written on request, compared without it; a difference is said with scope, line and versions."""

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

from fusionlab.errors import InputError
from fusionlab.ledger.changes import compare_ledgers
from fusionlab.ledger.saved import compared_part, ledger_record, read_compared
from fusionlab.testing import RecordedLedgers, ledger
from fusionlab.testing.recorded import record_path
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [pytest.mark.versions, pytest.mark.usefixtures("module_cache")]

ROOT = Path(__file__).parents[2]
X = jax.ShapeDtypeStruct((64, 64), np.float32)


def smooth(x):
    with jax.named_scope("smooth"):
        return jnp.tanh(x @ x)


def twice(x):
    with jax.named_scope("smooth"):
        y = jnp.tanh(x @ x)
    with jax.named_scope("more"):
        return jnp.cos(y @ x)


def line_of(text):
    lines = Path(__file__).read_text().splitlines()
    return f"test_recorded.py:{next(at for at, line in enumerate(lines, 1) if text in line)}"


@pytest.fixture
def record(tmp_path):
    """``record(**options)``: the fixture of a test, with a record of ``smooth`` on the CPU."""
    path = record_path(tmp_path / "test_layers.py", "test_smooth")

    def make(**options):
        return RecordedLedgers("test_layers.py::test_smooth", path, **options)

    make(update=True)(smooth, (X,), target="cpu")
    return make


def test_what_is_recorded_passes_and_is_not_written_again(record):
    first = record()
    content = first.path.read_bytes()
    assert first(smooth, (X,), target="cpu").dynamic_launches >= 1
    again = record(update=True)
    again(smooth, (X,), target="cpu")
    assert (first.notices, again.notices) == ([], [])
    assert first.path.read_bytes() == content


def test_a_record_can_be_read(record):
    found = record()
    lines = found.path.read_text().splitlines()
    document = json.loads("\n".join(lines))
    assert list(document) == ["schema", "test", "ledgers"]
    assert document["test"] == "test_layers.py::test_smooth"
    one = document["ledgers"]["smooth on cpu"]
    assert one["target"] == "cpu"
    assert f"jax {jax.__version__}" in one["versions"]
    assert one["temp_bytes"] == ledger(smooth, (X,), target="cpu").temp_bytes
    (row,) = [line for line in lines if '"smooth"' in line and "dynamic_launches" in line and "dot_general" in line]
    assert f'"source": "{line_of("return jnp.tanh(x @ x)")}"' in row
    assert all(value not in ("", [], None) for row in one["rows"] for value in row.values())


@pytest.mark.parametrize("target", [pytest.param("a100", marks=needs_the_cuda_plugin), "cpu"])
def test_a_record_has_what_a_comparison_reads(target):
    """The comparison of what is recorded is that of the ledgers."""
    whole = [ledger_record(ledger(fn, (X,), target=target).compiled) for fn in (smooth, twice)]
    read = [read_compared(json.loads(json.dumps(compared_part(one))), "record.json", "one", "") for one in whole]
    assert compare_ledgers(*read).to_json() == compare_ledgers(*whole).to_json()
    assert compare_ledgers(whole[0], read[0]).is_same


def test_a_difference_is_said_with_scope_and_line(record, tmp_path):
    summary = tmp_path / "summary.md"
    found = record(summary=summary)
    with pytest.raises(AssertionError) as caught:
        found(twice, (X,), target="cpu", name="smooth")
    first, *lines = str(caught.value).splitlines()
    assert first.startswith("not as recorded: smooth -> twice on cpu: ")
    (appeared,) = [line for line in lines if "more/dot_general" in line]
    assert f"  appeared: more/dot_general at {line_of('return jnp.cos(y @ x)')} [" in appeared
    command = "python -m pytest test_layers.py::test_smooth --fusionlab-update"
    assert lines[-1] == f"record: {found.path}; if this is meant: {command}"
    assert not any("other versions" in line for line in lines)
    markdown = summary.read_text()
    assert markdown.startswith("### smooth -&gt; twice on cpu: ")
    assert "test\\_layers.py::test\\_smooth: not as recorded" in markdown
    assert "| appeared |" in markdown


def test_a_record_of_other_versions_is_said(record):
    found = record()
    document = json.loads(found.path.read_text())
    document["ledgers"]["smooth on cpu"]["versions"] = "jax 0.1.2"
    found.path.write_text(json.dumps(document))
    found(smooth, (X,), target="cpu")
    (notice,) = found.notices
    assert "smooth on cpu is as recorded with other versions (jax 0.1.2); here jax " in notice
    with pytest.raises(AssertionError, match=r"\nrecorded with other versions: jax 0.1.2; here jax "):
        record()(twice, (X,), target="cpu", name="smooth")


def test_what_is_not_recorded_fails_with_the_command(record, tmp_path):
    command = "python -m pytest test_layers.py::test_smooth --fusionlab-update"
    with pytest.raises(AssertionError) as caught:
        record()(twice, (X,), target="cpu")
    assert str(caught.value) == f"no ledger of twice on cpu is recorded (smooth on cpu is there); write it: {command}"
    missing = RecordedLedgers("test_layers.py::test_more[a b]", tmp_path / "none.json")
    with pytest.raises(AssertionError) as caught:
        missing(twice, (X,), target="cpu")
    quoted = "python -m pytest 'test_layers.py::test_more[a b]' --fusionlab-update"
    assert str(caught.value) == f"no ledger of twice on cpu is recorded; write it: {quoted}"
    assert not missing.path.exists()


def test_two_functions_of_one_name(record):
    found = record(update=True)
    found(smooth, (X,), target="cpu")
    found(smooth, (X,), target="cpu")
    with pytest.raises(InputError, match="records two functions as 'smooth on cpu'; give one of them a name="):
        found(twice, (X,), target="cpu", name="smooth")
    found(twice, (X,), target="cpu")
    assert list(json.loads(found.path.read_text())["ledgers"]) == ["smooth on cpu", "twice on cpu"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"is not JSON .*; write it again: python -m pytest"),
        ("[1]", "is not a record with the schema fusionlab-recorded-1; write it again"),
        ('{"schema": "fusionlab-recorded-0"}', "is not a record with the schema"),
        ('{"schema": "fusionlab-recorded-1"}', "has no ledgers; write it again"),
        ('{"schema": "fusionlab-recorded-1", "ledgers": {"smooth on cpu": 3}}', "smooth on cpu is no ledger"),
        (
            '{"schema": "fusionlab-recorded-1", "ledgers": {"smooth on cpu": {"name": "f", "target": "cpu", '
            '"versions": "", "rows": [{"bytes": "many"}]}}}',
            r"field smooth on cpu\.rows\.0\.bytes is not an integer",
        ),
    ],
)
def test_a_damaged_record(record, content, message):
    found = record()
    found.path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        found(smooth, (X,), target="cpu")
    command = "python -m pytest test_layers.py::test_smooth --fusionlab-update"
    assert str(caught.value).endswith(f"; write it again: {command}")


@pytest.mark.parametrize(
    ("summary", "said"), [("none/s.md", r"there is no folder .*/none; make it"), (".", "is a folder; name a file")]
)
def test_a_summary_that_cannot_be_written(tmp_path, summary, said):
    """pytest ends before any test, also where records are written."""
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    plugins = ["-p", "fusionlab.testing.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "--fusionlab-update", "--fusionlab-summary", summary]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.search(f"ERROR: --fusionlab-summary {re.escape(summary)}: {said}", done.stdout + done.stderr)
    assert "passed" not in done.stdout


def test_tests_have_paths_of_their_own(tmp_path):
    file = tmp_path / "test_layers.py"
    of = {name: record_path(file, name) for name in ("test_a", "TestB::test_a", "test_a[cpu-1.5]", "test_a[a/b]",
                                                     "test_a[a b]", "test_a[../../etc]", "test_" + "a" * 300,
                                                     "test_" + "a" * 301)}  # fmt: skip
    folder = tmp_path / "recorded_ledgers" / "test_layers"
    assert {path.parent for path in of.values()} == {folder}
    assert len(set(of.values())) == len(of)
    assert [path.name for path in of.values()][:3] == ["test_a.json", "TestB.test_a.json", "test_a[cpu-1.5].json"]
    assert all(len(path.name) < 200 for path in of.values())


@pytest.mark.slow
def test_pytest_writes_and_compares_records(tmp_path):
    """In pytest: an update that says what it wrote, then an edit that fails in two places, message and summary."""
    file = tmp_path / "test_layers.py"
    shutil.copy(Path(__file__).with_name("recorded_tests.txt"), file)
    command = [sys.executable, "-m", "pytest", "-p", "fusionlab.testing.plugin", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*options):
        found = subprocess.run([*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True)
        return found.stdout

    path = tmp_path / "recorded_ledgers" / "test_layers" / "TestLayer.test_hidden[cpu].json"
    said = run("--fusionlab-update")
    assert "2 passed" in said, said
    assert f"{path}: written" in said
    file.write_text(file.read_text().replace("jnp.tanh(x @ w)", "jnp.tanh(jnp.sort(x) @ w)"))
    said = run("--fusionlab-summary", "summary.md")
    assert "1 failed, 1 passed" in said, said
    above = said.partition("short test summary")[0]  # which repeats messages where the environment has CI
    assert above.count("not as recorded: hidden on cpu: ") == 1
    assert re.search(r"appeared: hidden/sort\S* at test_layers.py:10 ", said), said
    assert "fusionlab ledger of" not in said
    assert "python -m pytest 'test_layers.py::TestLayer::test_hidden[cpu]' --fusionlab-update" in said
    assert "hidden/sort" in (tmp_path / "summary.md").read_text()


def test_the_plugin_imports_no_jax():
    code = "import fusionlab.testing.plugin, sys; sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0
