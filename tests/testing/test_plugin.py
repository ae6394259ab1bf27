"""The plugin prints the ledgers of a test that fails, and of no other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import numpy as np, jax.numpy as jnp, pytest
from fusionlab.testing import assert_launches, ledger

X = np.ones((8, 3), np.float32)

def chosen(x):
    return jnp.tanh(x) + x

def other(x):
    return jnp.exp(x)

@pytest.fixture(scope="module")
def made():
    return ledger(chosen, (X,), target="cpu")

@pytest.fixture
def bad():
    assert_launches(chosen, (X,), at_most=0, target="cpu")

def test_that_passes():
    ledger(other, (X,), target="cpu")

def test_of_numbers():
    ledger(chosen, (X,), target="cpu")
    assert 1 + 1 == 3

def test_of_launches():
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


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What pytest prints of these tests."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "test_kernels.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "fusionlab.testing.plugin", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout


def test_a_failing_test_shows_its_ledger(said):
    assert "5 failed, 2 passed, 1 error" in said, said
    assert said.count("fusionlab ledger of chosen") == 2 + 4
    assert "fusionlab ledger of other" not in said
    assert said.count("chosen on cpu: 1 launches, at most 0 allowed") >= 2
    assert said.count("chosen on cpu: 1 launches of 1 sites, 0 copies and memsets") == 2 + 3


def test_ledgers_of_fixtures_belong_to_the_tests_that_have_them(said):
    assert "it cannot be told: ZeroDivisionError" in said
    assert "where 1 = <ledger of chosen on cpu>.dynamic_launches" in said
    assert "in assert_launches" not in said, "the test's own line is shown, and not fusionlab's"
