"""The plugin prints the ledgers of a test that fails, and of no other."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import numpy as np, jax.numpy as jnp
from fusionlab.testing import assert_launches, ledger

X = np.ones((8, 3), np.float32)

def chosen(x):
    return jnp.tanh(x) + x

def other(x):
    return jnp.exp(x)

def test_that_passes():
    ledger(other, (X,), target="cpu")

def test_of_numbers():
    ledger(chosen, (X,), target="cpu")
    assert 1 + 1 == 3

def test_of_launches():
    assert_launches(chosen, (X,), at_most=0, target="cpu")
"""


def run_pytest(folder, tests):
    (folder / "test_mine.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "fusionlab.testing.plugin", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def test_a_failing_test_shows_its_ledger(tmp_path):
    said = run_pytest(tmp_path, TESTS)
    assert "2 failed, 1 passed" in said, said
    assert said.count("fusionlab ledger of chosen") == 2
    assert "fusionlab ledger of other" not in said
    assert "chosen on cpu: 1 launches, at most 0 allowed" in said
    assert "chosen on cpu: 1 launches of 1 sites, 0 copies and memsets" in said


FIXTURES = """
import numpy as np, jax.numpy as jnp, pytest
from fusionlab.testing import assert_launches, ledger

X = np.ones((8, 3), np.float32)

def chosen(x):
    return jnp.tanh(x) + x

@pytest.fixture(scope="module")
def made():
    return ledger(chosen, (X,), target="cpu")

@pytest.fixture
def bad():
    assert_launches(chosen, (X,), at_most=0, target="cpu")

def test_first(made):
    assert made.dynamic_launches == 2

def test_second(made):
    assert made.dynamic_launches == 3

def test_whose_setup_fails(bad):
    pass

def test_that_cannot_be_told(made, monkeypatch):
    monkeypatch.setattr(type(made), "text", lambda self: 1 / 0)
    assert made.dynamic_launches == 4

def test_after_all():
    pass
"""


def test_ledgers_of_fixtures_belong_to_the_tests_that_have_them(tmp_path):
    said = run_pytest(tmp_path, FIXTURES)
    assert "3 failed, 1 passed, 1 error" in said, said
    assert said.count("fusionlab ledger of chosen") == 4
    assert said.count("chosen on cpu: 1 launches of 1 sites") == 3
    assert "it cannot be told: ZeroDivisionError" in said
    assert "where 1 = <ledger of chosen on cpu>.dynamic_launches" in said
    assert "in assert_launches" not in said, "the test's own line is shown, and not fusionlab's"
