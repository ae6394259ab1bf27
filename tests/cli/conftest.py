"""Small modules for the command line, and an absent A100."""

import io
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rich.console import Console

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.targets import load_target
from fusionlab.study import Circumstances
from tests.compiled import cache_with_shared_compiles
from tests.optional_packages import HAS_CUDA_PLUGIN, NO_CUDA_PLUGIN


@pytest.fixture(autouse=True)
def own_cache(compile_cache):
    """Commands that are called without the command line, too."""


@pytest.fixture(autouse=True)
def few_processes(request):
    """Commands check in this process, but for a test that asks for ``processes`` of their own."""
    if "processes" not in request.fixturenames:
        request.getfixturevalue("no_processes")


@pytest.fixture
def replay_file(lowered, tmp_path) -> Path:
    """A counted sum over directions in a file, lowered for the CPU."""
    x = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    program = lowered(lambda x: lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x), x)
    path = tmp_path / "replay.mlir"
    path.write_text(program.text)
    return path


@pytest.fixture(scope="session")
def pooled_file(lowered, tmp_path_factory) -> Path:
    """The local energy of a network that acts on each of four electrons, and then on their sum, in a file."""

    def log_psi(x):
        return jnp.sin(jnp.tanh(jnp.sin(x.reshape(4, 3)) @ jnp.ones((3, 8))).sum(0) @ jnp.ones((8, 64))).sum()

    def local(x):
        _, hessian_times = jax.linearize(jax.grad(log_psi), x)
        return log_psi(x), lax.fori_loop(0, 12, lambda k, s: s + hessian_times(jnp.eye(12)[k])[k], 0.0)

    path = tmp_path_factory.mktemp("pooled") / "pooled.mlir"
    path.write_text(lowered(jax.vmap(local), np.ones((3, 12), np.float32)).text)
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


@pytest.fixture(scope="session")
def on_a100(tmp_path_factory):
    """Circumstances of an absent A100 with a cache of this session; skips without the CUDA plugin."""
    if not HAS_CUDA_PLUGIN:
        pytest.skip(NO_CUDA_PLUGIN)
    cache = CompileCache(cache_with_shared_compiles(tmp_path_factory.mktemp("own")))
    return Circumstances(load_target("a100"), cache=cache)


@pytest.fixture
def console():
    """A console that keeps what is printed: ``console.file.getvalue()``."""
    return Console(file=io.StringIO(), width=160, highlight=False)
