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


def test_a_failing_test_shows_its_ledger(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "fusionlab.testing.plugin", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert done.stdout.count("fusionlab ledger of chosen") == 2
    assert "fusionlab ledger of other" not in done.stdout
    assert "chosen on cpu: 1 launches, at most 0 allowed" in done.stdout
    assert "chosen on cpu: 1 launches of 1 sites, 0 copies and memsets" in done.stdout
