"""Our ansätze against the installed DeepQMC 1.2.0, given the same parameters, to float64 rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.workloads.adapters.deepqmc_parameters import LOADERS, load_parameters
from fusionlab.workloads.catalogue import build
from tests.optional_packages import needs_deepqmc

pytestmark = [needs_deepqmc, pytest.mark.slow]

COUNTERPARTS = {
    "paulinet": "deepqmc:paulinet",
    "ferminet": "deepqmc:ferminet",
    "psiformer-deepqmc": "deepqmc:psiformer",
}
WALKERS = 6


def drawn_parameters(shapes, noise):
    """Parameters as DeepQMC starts them, up to the shape of the distribution, plus ``noise`` times a unit normal.

    With noise the arrays that start at zero or one (biases, envelopes, determinant weights) are told apart as well.
    """
    random = np.random.default_rng(7)

    def draw(module, name, shape):
        if name == "w" and "conf_coeff" not in module:
            start = random.normal(size=shape) * shape[0] ** -0.5
        else:
            start = np.zeros(shape) if name == "b" else np.ones(shape)
        return np.asarray(start + noise * random.normal(size=shape))

    return {
        module: {name: draw(module, name, array.shape) for name, array in arrays.items()}
        for module, arrays in shapes.items()
    }


def everything(name, molecule):
    """log|psi|, sign, gradient of log|psi| and local energy of every walker, as one function."""
    energy = build(name, molecule, "local-energy", walkers=WALKERS, dtype="float64").function
    wavefunction = build(name, molecule, "log-psi", walkers=WALKERS, dtype="float64").function

    def function(parameters, walkers):
        values, pullback = jax.vjp(lambda r: wavefunction(parameters, r), walkers)
        (gradient,) = pullback({"log_psi": jnp.ones(WALKERS), "sign": jnp.zeros(WALKERS)})
        return {**values, **energy(parameters, walkers), "gradient": gradient}

    return function


CASES = [(name, molecule) for name in COUNTERPARTS for molecule in ("LiH", "CH4")]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def compared(request, quickly):
    """(ours, DeepQMC's) for parameters as initialised and for perturbed ones; each side is compiled once."""
    ours, molecule = request.param
    theirs = COUNTERPARTS[ours]
    with jax.enable_x64(True):
        workload = build(theirs, molecule, walkers=WALKERS, dtype="float64")
        shapes, _ = jax.eval_shape(workload.inputs, 0)
        walkers = np.asarray(build(ours, molecule, "log-psi", WALKERS, "float64", size="tiny").inputs(3)[1])
        sources = [drawn_parameters(shapes, noise) for noise in (0.0, 0.1)]
        sides = []
        for name, parameters in ((ours, [load_parameters(s, ours) for s in sources]), (theirs, sources)):
            compiled = quickly(everything(name, molecule), parameters[0], walkers)
            sides.append([jax.tree.map(np.asarray, compiled(p, walkers)) for p in parameters])
        yield list(zip(*sides, strict=True))


def test_everything_agrees(compared):
    for ours, theirs in compared:
        assert set(ours["sign"]) == {-1.0, 1.0}
        np.testing.assert_array_equal(ours["sign"], theirs["sign"])
        np.testing.assert_allclose(ours["log_psi"], theirs["log_psi"], rtol=1e-12, atol=0)
        np.testing.assert_allclose(ours["local_energy"], theirs["local_energy"], rtol=1e-10, atol=0)
        scale = np.abs(theirs["gradient"]).max()
        np.testing.assert_allclose(ours["gradient"], theirs["gradient"], rtol=0, atol=1e-12 * scale)
    (initial, _), (perturbed, _) = compared
    assert np.abs(initial["local_energy"] - perturbed["local_energy"]).max() > 0.1


def test_every_parameter_is_renamed_exactly_once():
    assert set(LOADERS) == set(COUNTERPARTS)
    for ours, theirs in COUNTERPARTS.items():
        source, _ = jax.eval_shape(build(theirs, "CH4").inputs, 0)
        expected, _ = jax.eval_shape(build(ours, "CH4").inputs, 0)
        loaded = load_parameters(source, ours)
        assert jax.tree.map(lambda a: a.shape, loaded) == jax.tree.map(lambda a: a.shape, expected)
        assert len(jax.tree.leaves(loaded)) == len(jax.tree.leaves(source))
        assert len({id(leaf) for leaf in jax.tree.leaves(loaded)}) == len(jax.tree.leaves(source))
