"""Small modules for the command line."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


@pytest.fixture(autouse=True)
def own_cache(compile_cache):
    """Commands that are called without the command line, too."""


@pytest.fixture(autouse=True)
def few_processes(request):
    """Commands check in this process, but for a test that asks for ``processes`` of their own."""
    if "processes" not in request.fixturenames:
        request.getfixturevalue("no_processes")


@pytest.fixture
def processes():
    """The test runs checks in processes of their own, as users do."""


@pytest.fixture
def replay_file(lowered, tmp_path) -> Path:
    """A counted sum over directions in a file, lowered for the CPU."""
    x = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    program = lowered(lambda x: lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x), x)
    path = tmp_path / "replay.mlir"
    path.write_text(program.text)
    return path


@pytest.fixture
def recurrence_file(lowered, tmp_path) -> Path:
    """A loop in which nothing applies, in a file."""
    x = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    path = tmp_path / "recurrence.mlir"
    path.write_text("// a comment that only the very same bytes keep\n")
    program = lowered(lambda x: lax.fori_loop(0, 4, lambda k, y: jnp.tanh(y) * 2, x), x)
    path.write_text(path.read_text() + program.text)
    return path
