"""The local energies of DeepQMC 1.3.0's ansätze become forward Laplacians; by make test-codes."""

import sys
from pathlib import Path

import pytest

from fusionlab.codegen.targets import load_target
from fusionlab.passes.interface import Applied
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.study import Circumstances, rewrite

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
code_programs = pytest.importorskip("code_programs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its dependencies, when they are imported
@pytest.mark.parametrize("model", code_programs.DEEPQMC.values())
def test_deepqmcs_own_program_is_rewritten(model):
    program = code_programs.lowered(model, "LiH", "own", 4, "cpu")
    result, _ = rewrite(program, parse_pipeline("fuse-jvp-replay"), Circumstances(load_target("cpu")), compiles=False)
    assert "sparsify-directions" in [event.pass_name for event in result.events if isinstance(event, Applied)]
