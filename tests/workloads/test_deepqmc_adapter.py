"""DeepQMC's own programs by name: its energies, its sampler, the Laplacians that its Hamiltonian takes, refusals."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.lowering import lower
from fusionlab.workloads.adapters.deepqmc import CONFIGURATIONS
from fusionlab.workloads.adapters.deepqmc_sampler import FACTORIES, configured_sampler
from fusionlab.workloads.catalogue import PROGRAMS, build
from fusionlab.workloads.programs.laplacians import LAPLACIANS, STOCHASTIC
from fusionlab.workloads.programs.mcmc import TRANSITIONS
from fusionlab.workloads.programs.samplers import SAMPLERS
from tests.optional_packages import needs_deepqmc

pytestmark = needs_deepqmc
EXACT = ("replay", "scan", "jvp-in-loop", "forward", "forward-sparse")
TAKEN = [name for name in LAPLACIANS if name not in STOCHASTIC]


@pytest.mark.slow
def test_the_process_keeps_its_matmul_precision():
    """On the one model that has no counterpart; the others are compared number by number."""
    precision = jax.config.jax_default_matmul_precision
    for program, outputs in (("local-energy", {"local_energy"}), ("log-psi", {"log_psi", "sign"})):
        workload = build("deepqmc:deeperwin", "LiH", program, walkers=3)
        shapes = jax.eval_shape(workload.function, *jax.eval_shape(workload.inputs, 0))
        assert {key: value.shape for key, value in shapes.items()} == dict.fromkeys(outputs, (3,))
    assert jax.config.jax_default_matmul_precision == precision


@pytest.mark.by_turns(4)
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("laplacian", [n for n in EXACT if n != "replay"])
def test_every_laplacian_gives_the_energies_of_deepqmc(laplacian, quickly):
    workloads = [
        build("deepqmc:ferminet", "LiH", walkers=2, dtype="float64", laplacian=n) for n in (laplacian, "replay")
    ]
    arguments = workloads[0].inputs(1)
    ours, theirs = (quickly(w.function, *arguments)(*arguments)["local_energy"] for w in workloads)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name not in ("log-psi", "mcmc")])
@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_random_numbers_are_refused_in_one_line(name, program):
    with pytest.raises(InputError, match=f"^{name} has no Laplacian 'hutchinson': .*it takes {', '.join(TAKEN)}$"):
        build(name, program=program, laplacian="hutchinson")


def test_what_deepqmc_has_not_is_refused():
    with pytest.raises(InputError, match="only its full size"):
        build("deepqmc:paulinet", size="tiny")
    for charge, spin, found in ((3, 1, "1 up and 0 down"), (0, -4, "0 up and 4 down")):
        with pytest.raises(InputError, match=f"deepqmc:ferminet needs an electron of each spin; .* has {found}"):
            build("deepqmc:ferminet", "LiH", charge=charge, spin=spin)


@pytest.mark.parametrize("sampler", list(FACTORIES))
def test_our_settings_are_those_of_its_files(sampler):
    move = configured_sampler(sampler)
    assert move.tau == SAMPLERS[sampler].step
    assert move.get("target_acceptance", 0.57) == SAMPLERS[sampler].target_acceptance
    assert ("Langevin" in move["_target_"]) == SAMPLERS[sampler].drift


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["deepqmc:ferminet", pytest.param("deepqmc:paulinet", marks=pytest.mark.full)],  # Metropolis, Langevin
)
def test_one_inference_step(name, quickly):
    """Its sampler moves walkers, and what it returns belongs to them; the step adapts from the one given."""
    workload = build(name, "LiH", "inference-step", walkers=4)
    arguments = workload.inputs(0)
    result = quickly(workload.function, *arguments)(*arguments)
    assert {key: value.shape for key, value in result.items()} == {
        "walkers": (4, 4, 3), "log_psi": (4,), "sign": (4,), "acceptance": (), "step": (), "local_energy": (4,),
        "energy": (),
    }  # fmt: skip
    assert not np.array_equal(result["walkers"], arguments[1])
    assert 0 <= float(result["acceptance"]) <= 1
    for program, kept in (("log-psi", ("log_psi", "sign")), ("local-energy", ("local_energy",))):
        given = arguments[0], result["walkers"]
        expected = quickly(build(name, "LiH", program, walkers=4).function, *given)(*given)
        for key in kept:
            np.testing.assert_allclose(result[key], expected[key], rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_its_programs_are_its_own():
    """Ten of its transitions in a loop, and its own files as the sources of sampling and of the energy."""
    workload = build("deepqmc:ferminet", "LiH", "inference-step", walkers=2)
    jaxpr = jax.make_jaxpr(workload.function)(*jax.eval_shape(workload.inputs, 0))
    lengths = [e.params["length"] for e in jaxpr.jaxpr.eqns if e.primitive.name == "scan"]
    assert lengths == [TRANSITIONS, 3 * workload.electrons]
    text = lower(workload, "cuda").text
    files = set(re.findall(r'"[^"]*/(deepqmc/[\w/]+\.py)"', text))
    assert {"deepqmc/sampling/electron_samplers.py", "deepqmc/physics.py", "deepqmc/hamil.py"} <= files
    assert all(scope in text for scope in ("mcmc", "stage_e"))


@pytest.mark.slow
def test_a_training_step_moves_the_parameters(quickly):
    workload = build("deepqmc:ferminet", "LiH", "train-step", walkers=4)
    arguments = workload.inputs(0)
    result = quickly(workload.function, *arguments)(*arguments)
    before, after = (jax.tree.leaves(tree) for tree in (arguments[0], result["parameters"]))
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in after)
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
