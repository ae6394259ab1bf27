"""The front door: what ``fusionlab`` exports, and that it is opened without JAX."""

import subprocess
import sys

import pytest

import fusionlab


def test_the_public_names():
    assert fusionlab.__all__ == ["InputError", "NotEquivalentError", "NotOptimizedWarning", "__version__", "optimize"]
    assert dir(fusionlab) == sorted(fusionlab.__all__)
    assert all(getattr(fusionlab, name) is not None for name in fusionlab.__all__)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'optimise'"):
        _ = fusionlab.optimise


def test_importing_it_imports_no_jax():
    code = "import sys, fusionlab; print('jax' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
