"""NetKet 3.23's kinetic energy, rewritten, by fusionlab's Laplacian and within a memory budget; by make test-codes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from fusionlab.hlo.cost import program_cost
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

for folder in ("benchmarks", "examples"):
    sys.path.insert(0, str(Path(__file__).parents[2] / folder))


def test_the_kinetic_energies_are_netkets(tmp_path, monkeypatch):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    netket_kinetic = pytest.importorskip("netket_kinetic")
    found = netket_kinetic.main(particles=4, walkers=64, memory_budget="4MiB")
    (energies, temp), *ours = found.values()
    for other, _ in ours:
        np.testing.assert_allclose(other, energies, rtol=1e-8, atol=1e-8 * np.abs(energies).max())
    assert max(ours[0][1], ours[1][1]) < temp
    assert ours[2][1] <= 6 * 2**20  # the budget is of the Laplacian alone, this is the whole kernel


def test_its_pairs_stay_sparse():
    """Its network takes pairs by indices that the program computes (``jnp.triu_indices``)."""
    code_programs = pytest.importorskip("code_programs")
    flops = {
        side: program_cost(code_programs.lowered(code_programs.NETKET, "6", side, 4)).flops
        for side in ("own", "laplacian", "folx-dense")
    }
    assert flops["laplacian"] < 0.6 * flops["folx-dense"] < flops["own"]
    own = code_programs.lowered(code_programs.NETKET, "6", "own", 4)
    fused = run_pipeline(own, parse_pipeline("fuse-jvp-replay"), Setting(platform="cuda")).program
    assert program_cost(fused).flops < 1.02 * flops["laplacian"]
