"""What Psiformer and every variant of Orbformer must do, on LiH with few channels."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from workloads.ansatz import Ansatz
from workloads.ansatze import orbformer, psiformer
from workloads.catalogue import ANSATZE
from workloads.layers.padded_molecule import Dimensions
from workloads.molecules import find_molecule
from workloads.programs.walkers import initial_walkers

LIH = find_molecule("LiH")
WALKERS = 16
VARIANTS: dict[str, Callable[[], Ansatz]] = {
    "psiformer": lambda: psiformer.build(LIH, "tiny"),
    "orbformer": lambda: orbformer.build(LIH, "tiny"),
    "orbformer-leaf": lambda: orbformer.build(LIH, "tiny", mode="leaf"),
    "orbformer-flash": lambda: orbformer.build(LIH, "tiny", attention="flash"),
    "orbformer-padded": lambda: orbformer.build(LIH, "tiny", dimensions=Dimensions(3, 3, 4, 3, 3)),
}

QUICK = ("psiformer", "orbformer")


@dataclass(frozen=True)
class Sample:
    """A wavefunction with parameters and walkers; ``run(walkers)`` gives sign, log|psi| and its gradient."""

    ansatz: Ansatz
    parameters: Any
    walkers: Any
    run: Callable[[Any], Any]


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in VARIANTS]
)
def sample(request: pytest.FixtureRequest, quickly: Callable[..., Any]) -> Iterator[Sample]:
    with jax.enable_x64(True):
        ansatz = VARIANTS[request.param]()
        parameters = ansatz.init(jax.random.PRNGKey(0), jnp.dtype("float64"))
        walkers = initial_walkers(jax.random.PRNGKey(1), LIH, WALKERS, jnp.dtype("float64"))

        def of_one_walker(parameters: Any, r: Any) -> Any:
            def log_first(r: Any) -> Any:
                sign, log = ansatz.log_psi(parameters, r)
                return log, sign

            (log, sign), gradient = jax.value_and_grad(log_first, has_aux=True)(r)
            return sign, log, gradient

        run = quickly(jax.vmap(of_one_walker, (None, 0)), parameters, walkers)
        yield Sample(ansatz, parameters, walkers, lambda r: run(parameters, r))


def test_exchange_of_same_spin_electrons_flips_the_sign(sample: Sample) -> None:
    sign, log, gradient = sample.run(sample.walkers)
    for order in ([1, 0, 2, 3], [0, 1, 3, 2]):
        other_sign, other_log, other_gradient = sample.run(sample.walkers[:, np.array(order)])
        np.testing.assert_array_equal(other_sign, -sign)
        np.testing.assert_allclose(other_log, log, atol=1e-10)
        np.testing.assert_allclose(other_gradient, gradient[:, np.array(order)], rtol=1e-8, atol=1e-8)


def test_both_signs_occur(sample: Sample) -> None:
    assert {float(sign) for sign in sample.run(sample.walkers)[0]} == {-1.0, 1.0}


def test_finite_near_coalescence(sample: Sample) -> None:
    walkers = np.array(sample.walkers)
    nudge = np.array([0.0, 0.0, 1e-6])
    walkers[0, 0] = LIH.nuclei[0] + nudge
    walkers[1, 3] = LIH.nuclei[1] + nudge
    walkers[2, 0] = walkers[2, 1] + nudge
    walkers[3, 0] = walkers[3, 2] + nudge
    walkers[4] *= 30.0
    for part in sample.run(jnp.asarray(walkers)):
        assert np.all(np.isfinite(part))


def test_stages_are_marked(sample: Sample) -> None:
    function = jax.vmap(sample.ansatz.log_psi, (None, 0))
    text = jax.jit(function).lower(sample.parameters, sample.walkers).as_text(debug_info=True)
    assert all(f"stage_{letter}" in text for letter in "abcd")


@pytest.mark.parametrize("name", [name for name in ANSATZE if not name.startswith("deepqmc:")])
def test_unknown_size_names_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match="unknown size 'tinny'; did you mean: tiny"):
        importlib.import_module(ANSATZE[name]).build(LIH, "tinny")
