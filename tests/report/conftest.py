"""Programs that several tests of pictures draw."""

import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.lowering import lower
from fusionlab.workloads import catalogue


@pytest.fixture(scope="package")
def ferminet():
    return lower(catalogue.build("ferminet", "LiH", walkers=4, size="tiny"), "cuda")


@pytest.fixture(scope="package")
def compiled(ferminet):
    return compile_program(ferminet, load_target("a100"))
