"""What the catalogue builds from names."""

import jax
import numpy as np
import pytest

from fusionlab.workloads.catalogue import PROGRAMS, build
from fusionlab.workloads.molecules import find_molecule
from fusionlab.workloads.programs.potential import POTENTIALS
from tests.workloads.wavefunctions import STAGES


@pytest.mark.parametrize(
    ("program", "laplacian"), [*((name, None) for name in PROGRAMS), ("local-energy", "hutchinson")]
)
def test_inputs_are_abstract_until_they_are_asked_for(program, laplacian):
    workload = build("ferminet", "LiH", program, walkers=7, laplacian=laplacian, size="tiny")
    arguments = jax.eval_shape(workload.inputs, 0)
    assert len(arguments) == len(workload.argument_names)
    assert workload.argument_names[0] == "parameters"
    if laplacian:  # it takes random numbers
        assert (workload.argument_names[2], arguments[2].shape) == ("key", (2,))
    assert arguments[workload.argument_names.index("walkers")].shape == (7, 4, 3)
    shapes = jax.eval_shape(workload.function, *arguments)
    per_walker = {name: leaf.shape for name, leaf in shapes.items() if name in ("local_energy", "log_psi", "sign")}
    assert per_walker
    assert set(per_walker.values()) == {(7,)}


def test_inputs_follow_the_seed():
    workload = build("ferminet", "LiH", walkers=3, size="tiny")
    first, again, other = (jax.tree.leaves(workload.inputs(seed)) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True) if a.std() > 0)


def test_rebuild_changes_what_is_asked_and_keeps_the_rest(x64):
    workload = build("ferminet", "LiH", walkers=5, laplacian="scan", size="tiny")
    changed = workload.rebuild(walkers=16, dtype="float64")
    kept = (changed.name, changed.molecule, changed.program, changed.laplacian)
    assert kept == ("ferminet", "LiH", "local-energy", "scan")
    assert (changed.walkers, changed.dtype) == (16, "float64")
    assert changed.title == "ferminet-LiH-local-energy-scan-tiny-float64-w16"
    parameters, _ = jax.eval_shape(changed.inputs, 0)
    assert parameters["backflow"]["up"]["weight"].shape == (8, 8)
    assert workload.rebuild(program="log-psi").laplacian == "none"


@pytest.mark.parametrize("laplacian", ["replay", "hutchinson"])
@pytest.mark.parametrize("program", ["inference-step", "train-step"])
def test_phases_and_stages_are_marked(program, laplacian):
    workload = build("ferminet", "LiH", program, walkers=2, laplacian=laplacian, size="tiny")
    text = jax.jit(workload.function).lower(*jax.eval_shape(workload.inputs, 0)).as_text(debug_info=True)
    assert all(scope in text for scope in ("mcmc", *STAGES))
    assert workload.argument_names[:4] == ("parameters", "walkers", "key", "step")
    assert ("optimiser" in text) == (program == "train-step")


def test_coulomb_energy_against_a_plain_sum():
    molecule = find_molecule("CH4")
    electrons = np.random.default_rng(0).normal(size=(molecule.electrons, 3))
    charges = [*molecule.charges, *(-1 for _ in electrons)]
    places = np.concatenate([molecule.nuclei, electrons])
    expected = sum(
        charges[i] * charges[j] / np.linalg.norm(places[i] - places[j]) for i in range(len(charges)) for j in range(i)
    )
    with jax.enable_x64(True):
        for name, rtol in (("deepqmc", 1e-12), ("oneqmc", 1e-10)):  # oneQMC adds 1e-12 to every squared distance
            np.testing.assert_allclose(POTENTIALS[name](molecule, jax.numpy.asarray(electrons)), expected, rtol=rtol)


def test_where_particles_meet_the_potential_is_that_of_the_upstream_code():
    """oneQMC bounds every 1/d by 1e6; DeepQMC adds the dtype's epsilon between electrons and nothing at a nucleus."""
    molecule = find_molecule("LiH")
    at_nucleus, at_electron = (np.full((4, 3), 9.0) * np.arange(1, 5)[:, None] for _ in range(2))
    at_nucleus[0] = molecule.nuclei[0]
    at_electron[1] = at_electron[0]
    with jax.enable_x64(True):
        energy = {name: [float(of(molecule, r)) for r in (at_nucleus, at_electron)] for name, of in POTENTIALS.items()}
    assert energy["deepqmc"] == [-np.inf, pytest.approx(np.finfo("float64").eps ** -0.5, rel=1e-5)]
    assert energy["oneqmc"] == [pytest.approx(-3e6, rel=1e-5), pytest.approx(1e6, rel=1e-5)]
