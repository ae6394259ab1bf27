"""Starting JAX says nothing on stderr, and what native code writes there can be collected."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusionlab.jax_setup import VARIABLES, captured_stderr

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parent.parent


def test_a_cpu_program_runs_in_silence_with_or_without_the_cuda_plugin():
    code = (
        "from fusionlab import jax_setup; jax_setup.load_jax()\n"
        "import jax.numpy as jnp; print(float(jnp.ones(3).sum()))"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK",)}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("3.0\n", "")


def test_import_sets_nothing():
    """Not even where fusionlab compiles in a user's process, and JAX is started by it."""
    code = (
        "import os, jax; before = dict(os.environ)\n"
        "import fusionlab; fusionlab.optimize\n"
        "from fusionlab import jax_setup; jax_setup.load_jax()\n"
        "print([k for k in {**before, **os.environ} if before.get(k) != os.environ.get(k)])"
    )
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_native_writes_are_collected():
    with captured_stderr() as captured:
        os.write(2, b"from native code\n")
    assert captured.text == "from native code"
