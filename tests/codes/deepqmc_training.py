"""DeepQMC 1.3.0's training command with fusionlab's Laplacian, and with its local energy rewritten; by make test-codes.

The name of this file keeps it out of the other tiers, whose environment has another DeepQMC.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def runs(cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONLAB_CACHE", str(cache))
        import deepqmc_training

        return deepqmc_training.main(walkers=16, steps=2)


@pytest.mark.parametrize("side", ["loop", "fusionlab.laplacian", "fusionlab.optimize"])
def test_the_energies_are_those_of_deepqmcs_own_command(runs, side):
    np.testing.assert_allclose(runs[side].energies[0], runs["folx"].energies[0], rtol=1e-3, atol=1e-3)
    assert np.isfinite(runs[side].energies).all()
    assert runs[side].warnings == []


def test_both_are_rewritten_and_shown_equal(runs, cache):
    kept = [json.loads(gzip.decompress(path.read_bytes())) for path in cache.rglob("optimized/**/*.json.gz")]
    assert len(kept) == 2
    for decision in kept:
        applied = [event["pass"] for event in decision["events"] if event["kind"] is None]
        assert "sparsify-directions" in applied
        assert decision["verdict"]["verdict"] in ("equal", "within-bound")
