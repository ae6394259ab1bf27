"""Shared by the tests of passes: the cases of a pass, and small functions with loops as Programs."""

from pathlib import Path

import jax
import pytest

from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .case_files import sources
from .loop_functions import FUNCTIONS, WEIGHTS, X


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        found = sources(Path(metafunc.module.__file__).stem.removeprefix("test_"))
        metafunc.parametrize("case", found, ids=[path.stem for path in found])


@pytest.fixture(scope="session")
def loop_program(lowered):
    """``loop_program(name, dtype)``: the function of this name of ``loop_functions`` for the CPU, lowered once."""
    made = {}

    def get(name, dtype="float32"):
        if (name, dtype) not in made:
            with jax.enable_x64(dtype == "float64"):
                made[name, dtype] = lowered(FUNCTIONS[name], WEIGHTS.astype(dtype), X.astype(dtype))
        return made[name, dtype]

    return get


@pytest.fixture(scope="session")
def rewritten():
    """``rewritten(program, pipeline)``: the result on the CPU, without a target."""
    return lambda program, pipeline: run_pipeline(program, parse_pipeline(pipeline), Setting())
