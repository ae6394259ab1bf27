"""The programs of the codes in this environment become forward Laplacians; by make test-codes."""

import importlib.util
import sys
from pathlib import Path

import pytest

from fusionlab.codegen.targets import load_target
from fusionlab.hlo.cost import program_cost
from fusionlab.passes.interface import Applied
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.study import Circumstances, rewrite

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
code_programs = pytest.importorskip("code_programs")

HAS_DEEPQMC, HAS_NETKET = (importlib.util.find_spec(name) is not None for name in ("deepqmc", "netket"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its dependencies, when they are imported
@pytest.mark.skipif(not HAS_DEEPQMC, reason="in DeepQMC's environment")
@pytest.mark.parametrize("model", code_programs.DEEPQMC.values())
def test_deepqmcs_own_program_is_rewritten(model):
    program = code_programs.lowered(model, "LiH", "own", 4, "cpu")
    result, _ = rewrite(program, parse_pipeline("fuse-jvp-replay"), Circumstances(load_target("cpu")), compiles=False)
    assert "sparsify-directions" in [event.pass_name for event in result.events if isinstance(event, Applied)]


@pytest.mark.skipif(not HAS_NETKET, reason="in NetKet's environment")
def test_netkets_pairs_stay_sparse():
    """Its network takes pairs by indices that the program computes (``jnp.triu_indices``)."""
    flops = {
        side: program_cost(code_programs.lowered(code_programs.NETKET, "6", side, 4)).flops
        for side in ("own", "laplacian", "folx-dense")
    }
    assert flops["laplacian"] < 0.6 * flops["folx-dense"] < flops["own"]
