"""Starting JAX says nothing on stderr, and what native code writes there can be collected."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.jax_setup import VARIABLES, _interrupts_held, captured_stderr

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


def test_an_absent_gpu_where_jax_was_used_before(tmp_path):
    code = (
        "import jax.numpy as jnp; jnp.ones(3) + 1\n"
        "import fusionlab; print(type(fusionlab.launches(jnp.sin, jnp.ones(3))).__name__)"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "JAX_PLATFORMS")}
    environment |= {"PYTHONPATH": str(ROOT), "FUSIONLAB_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "LaunchFacts\n", done.stderr


OPTIMIZED = """
from fusionlab import NotOptimizedWarning, optimize
import warnings
import jax, jax.numpy as jnp
warnings.simplefilter("ignore", NotOptimizedWarning)  # in a sine nothing applies
function = optimize(jnp.sin, check="never", cache=False)
function(jnp.ones(3))
"""
AFTER_JAX = """
import jax
import fusionlab
function = fusionlab.optimize(jax.numpy.sin, check="never", cache=False)
function(jax.numpy.ones(3))
"""
REWRITTEN = """
import sys
import fusionlab
program = fusionlab.Program.from_file(sys.argv[1])
setting = fusionlab.Setting(platform="cpu")
print(len(fusionlab.run_pipeline(program, fusionlab.parse_pipeline("batch-replay"), setting).applied))
"""


@pytest.mark.parametrize("code", [OPTIMIZED, REWRITTEN], ids=["optimize", "run_pipeline"])
def test_a_users_script_runs_in_silence(code, tmp_path, lowered):
    """Also where the CUDA plugin is installed and no GPU attached, and nothing is set in the environment."""
    x = np.ones((3, 4), np.float32)
    program = lowered(lambda x: jax.lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x), x)
    (tmp_path / "p.mlir").write_text(program.text)
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, tmp_path / "p.mlir"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_after_jax_is_imported_there_is_no_traceback():
    """Importing JAX with its CUDA plugin writes lines of its own."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", AFTER_JAX]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


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


@pytest.mark.parametrize("fails", [False, True])
def test_ctrl_c_that_waited_for_an_import_is_raised_after_it(fails):
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    done = []

    def imported():
        with _interrupts_held():
            signal.raise_signal(signal.SIGINT)
            done.append("imported")
            if fails:
                raise ImportError("as an extension makes of it")

    try:
        with pytest.raises(KeyboardInterrupt):
            imported()
        assert (done, signal.getsignal(signal.SIGINT)) == (["imported"], signal.default_int_handler)
    finally:
        signal.signal(signal.SIGINT, handler)
