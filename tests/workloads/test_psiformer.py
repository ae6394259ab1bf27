"""Psiformer: its size and its initial values."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from workloads.ansatze.psiformer import build
from workloads.molecules import find_molecule


@pytest.mark.parametrize(("molecule", "parameters"), [("CH4", 1_363_778), ("LiH", 1_334_786)])
def test_parameters(molecule: str, parameters: int) -> None:
    ansatz = build(find_molecule(molecule))
    leaves = jax.tree.leaves(jax.eval_shape(lambda: ansatz.init(jax.random.PRNGKey(0), np.dtype("float32"))))
    assert (len(leaves), sum(leaf.size for leaf in leaves)) == (46, parameters)
    assert {str(leaf.dtype) for leaf in leaves} == {"float32"}


@pytest.fixture(scope="module")
def parameters() -> Any:
    return build(find_molecule("LiH")).init(jax.random.PRNGKey(0), np.dtype("float32"))


def test_envelopes_and_jastrow_start_at_one(parameters: Any) -> None:
    for leaf in jax.tree.leaves([parameters["envelope_weight"], parameters["envelope_decay"], parameters["jastrow"]]):
        assert np.all(np.asarray(leaf) == 1.0)


def test_weights_start_with_variance_of_one_over_inputs(parameters: Any) -> None:
    for layer in parameters["layers"]:
        for part in layer["attention"].values():
            assert np.std(part["weight"]) == pytest.approx(1 / 16, rel=0.02)
            assert not np.any(part["bias"])
        weight = np.asarray(layer["dense"]["weight"])
        assert np.std(weight) == pytest.approx(0.8796 / 16, rel=0.02)
        assert np.max(np.abs(weight)) <= 2 / 16


def test_no_two_arrays_start_alike(parameters: Any) -> None:
    queries = [np.asarray(layer["attention"]["query"]["weight"]) for layer in parameters["layers"]]
    assert not np.array_equal(queries[0], queries[1])
    assert not np.array_equal(queries[0], np.asarray(parameters["layers"][0]["attention"]["key"]["weight"]))
