"""Sources and circumstances that tests of the fact commands share; every program is compiled once per session."""

import io

import pytest
from rich.console import Console

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.targets import load_target
from fusionlab.study import Circumstances
from tests.compiled import cache_with_shared_compiles
from tests.optional_packages import HAS_CUDA_PLUGIN, NO_CUDA_PLUGIN
from workloads import catalogue


@pytest.fixture(scope="session")
def on_a100(tmp_path_factory):
    """Circumstances of an absent A100 with a cache of this session; skips without the CUDA plugin."""
    if not HAS_CUDA_PLUGIN:
        pytest.skip(NO_CUDA_PLUGIN)
    return Circumstances(
        load_target("a100"), cache=CompileCache(cache_with_shared_compiles(tmp_path_factory.mktemp("own")))
    )


@pytest.fixture(scope="session")
def paulinet():
    """PauliNet on CH4 at full size, 1,024 walkers: nothing is run, so nothing needs memory."""
    return catalogue.build("paulinet", "CH4", walkers=1024)


@pytest.fixture
def console():
    """A console that keeps what is printed: ``console.file.getvalue()``."""
    return Console(file=io.StringIO(), width=160, highlight=False)
