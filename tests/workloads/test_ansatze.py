"""What every ansatz of the catalogue must do; adding an ansatz adds no test code here but its parameter count."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workloads.catalogue import ANSATZE, build
from workloads.molecule import Molecule
from workloads.programs.walkers import initial_walkers

OURS = [name for name in ANSATZE if not name.startswith("deepqmc:")]
QUICK = ("ferminet", "psiformer")
SAMPLES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in OURS]
PARAMETERS = {
    ("paulinet", "LiH"): 197_589,
    ("paulinet", "CH4"): 230_799,
    ("ferminet", "LiH"): 683_744,
    ("ferminet", "CH4"): 744_800,
    ("psiformer-deepqmc", "LiH"): 1_610_498,
    ("psiformer-deepqmc", "CH4"): 1_665_410,
    ("psiformer", "LiH"): 1_334_786,
    ("psiformer", "CH4"): 1_363_778,
    ("orbformer", "LiH"): 3_027_514,
    ("orbformer", "CH4"): 3_029_650,
    ("orbformer-flash", "CH4"): 3_029_650,
}


@pytest.mark.parametrize(("name", "molecule"), list(PARAMETERS))
def test_parameter_count(name: str, molecule: str) -> None:
    parameters, _ = jax.eval_shape(build(name, molecule, "log-psi").inputs, 0)
    assert sum(leaf.size for leaf in jax.tree.leaves(parameters)) == PARAMETERS[name, molecule]


@dataclass(frozen=True)
class Sample:
    """A tiny float64 wavefunction on CH4 with four walkers; ``run(parameters, walkers)`` is compiled."""

    electrons: int
    parameters: Any
    walkers: Any
    run: Callable[..., Any]


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request: pytest.FixtureRequest, quickly: Callable[..., Any]) -> Iterator[Sample]:
    with jax.enable_x64(True):
        workload = build(request.param, "CH4", "log-psi", walkers=4, dtype="float64", size="tiny")
        parameters, walkers = workload.inputs(0)

        def outputs_and_gradients(parameters: Any, walkers: Any) -> dict[str, Any]:
            outputs, pullback = jax.vjp(lambda r: workload.function(parameters, r), walkers)
            one, zero = jnp.ones(4), jnp.zeros(4)
            (gradient,), (sign_gradient,) = (pullback({"log_psi": a, "sign": b}) for a, b in ((one, zero), (zero, one)))
            return {**outputs, "gradient": gradient, "sign_gradient": sign_gradient}

        run = quickly(outputs_and_gradients, parameters, walkers)
        yield Sample(workload.electrons, parameters, walkers, run)


def test_exchange_of_same_spin_electrons_flips_only_the_sign(sample: Sample) -> None:
    before, n_up = sample.run(sample.parameters, sample.walkers), sample.electrons // 2
    for first, second in ((0, n_up - 1), (n_up, sample.electrons - 1)):
        order = np.arange(sample.electrons)
        order[[first, second]] = second, first
        after = sample.run(sample.parameters, sample.walkers[:, order])
        np.testing.assert_array_equal(after["sign"], -before["sign"])
        np.testing.assert_allclose(after["log_psi"], before["log_psi"], rtol=1e-10)
        np.testing.assert_allclose(after["gradient"], before["gradient"][:, order], rtol=1e-7, atol=1e-9)


def test_exchange_of_opposite_spins_is_no_symmetry(sample: Sample) -> None:
    before = sample.run(sample.parameters, sample.walkers)
    order = np.roll(np.arange(sample.electrons), 1)
    after = sample.run(sample.parameters, sample.walkers[:, order])
    assert not np.any(np.isclose(after["log_psi"], before["log_psi"], rtol=1e-6))


def test_only_the_logarithm_carries_a_gradient(sample: Sample) -> None:
    result = sample.run(sample.parameters, sample.walkers)
    assert not np.any(result["sign_gradient"])
    assert np.all(result["gradient"])


ALL_UP = Molecule("H2", (1, 1), ((0.0, 0.0, 0.0), (1.4, 0.0, 0.0)), spin=2)
ONE_DOWN = Molecule("Li", (3,), ((0.0, 0.0, 0.0),), spin=1)


@pytest.mark.parametrize(
    ("name", "molecule"),
    [
        pytest.param("paulinet", ALL_UP, marks=pytest.mark.slow),
        ("ferminet", ALL_UP),
        pytest.param("psiformer-deepqmc", ALL_UP, marks=pytest.mark.slow),
        pytest.param("paulinet", ONE_DOWN, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_spins_without_pairs_give_finite_values_and_gradients(
    name: str, molecule: Molecule, quickly: Callable[..., Any]
) -> None:
    ansatz = importlib.import_module(ANSATZE[name]).build(molecule, "tiny")
    parameters = ansatz.init(jax.random.PRNGKey(0), jnp.dtype("float32"))
    r = initial_walkers(jax.random.PRNGKey(1), molecule, 1, "float32")[0]
    function = jax.value_and_grad(lambda p, r: ansatz.log_psi(p, r)[1], (0, 1))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(quickly(function, parameters, r)(parameters, r)))


def jaxprs(jaxpr: Any) -> Iterator[Any]:
    """``jaxpr`` and every jaxpr nested in its equations."""
    yield jaxpr
    for equation in jaxpr.eqns:
        for value in jax.tree.leaves(equation.params, is_leaf=lambda v: hasattr(v, "jaxpr") or hasattr(v, "eqns")):
            if hasattr(value, "jaxpr") or hasattr(value, "eqns"):
                yield from jaxprs(getattr(value, "jaxpr", value))


def float_dtypes(traced: Any) -> set[str]:
    """The floating-point dtypes of every value that the traced function ever makes."""
    avals = [
        variable.aval
        for jaxpr in jaxprs(traced.jaxpr.jaxpr)
        for variable in (*jaxpr.invars, *jaxpr.constvars, *(v for e in jaxpr.eqns for v in e.outvars))
    ]
    return {str(aval.dtype) for aval in avals if jnp.issubdtype(aval.dtype, jnp.floating)}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "laplacian"),
    [*((name, "replay") for name in OURS), *(("ferminet", other) for other in ("scan", "jvp-in-loop", "hutchinson"))],
)
def test_one_floating_point_dtype_and_all_stages(name: str, laplacian: str, dtype: str) -> None:
    workload = build(name, "LiH", walkers=2, dtype=dtype, laplacian=laplacian, size="tiny")
    arguments = jax.eval_shape(workload.inputs, 0)
    traced = jax.jit(workload.function).trace(*arguments)
    assert float_dtypes(traced) == {dtype}
    assert {str(a.dtype) for a in jax.tree.leaves(arguments[:2])} == {dtype}
    if (laplacian, dtype) == ("replay", "float32"):
        text = traced.lower().as_text(debug_info=True)
        for scope in ("stage_a", "stage_b", "stage_c", "stage_d", "stage_e", "potential"):
            assert scope in text


@pytest.mark.parametrize(
    ("name", "path", "mean", "deviation"),
    [
        ("paulinet", ("interactions", 1, "node", 0, "weight"), 0.0, 448**-0.5),
        ("paulinet", ("interactions", 0, "pair", 1, "bias"), 0.0, 0.0),
        ("paulinet", ("determinants",), 1.0, 0.0),
        ("ferminet", ("interactions", 1, "node", 0, "weight"), 0.0, 832**-0.5),
        ("ferminet", ("interactions", 1, "node", 0, "bias"), 0.0, 256**-0.5),
        ("psiformer-deepqmc", ("embedding", "weight"), 0.0, 0.8796 * 21**-0.5),
        ("psiformer-deepqmc", ("envelopes", "up", "exponent"), 1.0, 0.0),
    ],
)
def test_initial_distributions(name: str, path: tuple[Any, ...], mean: float, deviation: float) -> None:
    """At full size; only the array that is looked at is compiled and drawn."""
    draw = build(name, "CH4", "log-psi", walkers=1).inputs
    array = jax.jit(lambda: functools.reduce(lambda tree, step: tree[step], path, draw(0)[0]))()
    assert float(array.mean()) == pytest.approx(mean, abs=5 * deviation / np.sqrt(array.size))
    assert float(array.std()) == pytest.approx(deviation, rel=5 / np.sqrt(2 * array.size))
