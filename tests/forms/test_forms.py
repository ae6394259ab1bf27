"""The matrix of forms and networks (``python -m tests.forms``): a part of it by turns, the whole in ``make full``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising.rules.contraction import algorithm_of
from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.equivalence.oracle import program_runner
from fusionlab.hlo import ops
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import program_view
from fusionlab.optimizing.rewriting import lower_jaxpr
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from tests.forms.compositions import drawn
from tests.forms.forms import EXPECTED, FORMS
from tests.forms.layers import LAYERS, complex_log_psi
from tests.forms.matrix import CELLS, FUNCTIONS, MANY, cell, derivatives, lowered, positions
from tests.forms.networks import COORDINATES, NETWORKS

FAST = {
    "mlp-with-pairs": [
        "fori", "chunks", "set-directions", "jvp-in-loop", "two-sums", "weighted", "some-coordinates",
        "kinetic-of-masses",
    ],
    "complex-periodic": ["trace-of-hessian"],
    "recurrent": ["jvp-in-loop"],
}  # fmt: skip
BY_TURNS = {
    "mlp-with-pairs": [
        "scan-unrolled", "mapped-in-batches", "one-hot-directions", "nested-jvp", "with-squares", "start-of-gradient",
        "jacrev-of-jacfwd", "per-particle", "diagonal-kept", "per-electron", "while-loop", "old-ferminet",
        "run-time-factor", "reverse-over-reverse", "diagonal-set", "weighted-diagonal", "weighted-by-contraction",
        "diagonal-per-particle", "some-of-diagonal",
    ],
    "ferminet-like": ["vmapped", "diagonal-of-hessian", "weighted", "diagonal-per-electron"],
    "complex-periodic": ["fori"],
    "recurrent": ["vmapped", "per-electron"],
}  # fmt: skip
FORWARD = [
    *((form, network) for network in FAST for form in FAST[network]),
    *(pytest.param(form, network, marks=pytest.mark.by_turns(4)) for network in BY_TURNS for form in BY_TURNS[network]),
]


@pytest.mark.parametrize(("form", "network"), FORWARD)
def test_forms_that_have_a_forward_laplacian(form, network):
    found = cell(form, network, 1)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


@pytest.mark.parametrize(
    ("form", "network"),
    [("fori", "complex-periodic"), pytest.param("vmapped", "ferminet-like", marks=pytest.mark.slow)],
)
def test_many_walkers_are_resized_for_the_check(form, network):
    found = cell(form, network, 1, MANY)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


def test_a_value_of_one_coordinate_of_one_walker():
    found = cell("run-time-factor", "mlp-with-pairs", 0)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


def test_a_taylor_series(monkeypatch):
    """Its factorials are exp(lgamma(n))."""

    def network(x):
        h = jax.nn.silu(x @ np.linspace(-1, 1, COORDINATES * 4, dtype=np.float32).reshape(COORDINATES, 4))
        return jnp.log(1 + (h * jnp.tanh(x[:4])) ** 2).sum()

    monkeypatch.setitem(FUNCTIONS, "smooth", network)
    found = cell("taylor", "smooth", 1)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


@pytest.mark.parametrize("layer", ["complex-determinants"])
def test_a_layer_of_any_kind(layer):
    found = cell("fori", layer, 1)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


@pytest.mark.by_turns(4)
@pytest.mark.parametrize("form", ["fori", "jvp-in-loop"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_of_all_kinds(form, layer):
    found = cell(form, layer, 1)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


@pytest.mark.parametrize("layer", ["cholesky", "eigenvalues"])
def test_a_factorisation_is_differentiated_by_the_rule_of_jax(layer):
    found = cell("fori", layer, 1)
    assert (found["result"], found["exact"]) == ("forward", "identical"), found


def test_a_factorisation_without_derivative_is_named():
    found = run_pipeline(lowered("fori", "qr", 1), parse_pipeline("sparsify-directions"), Setting(platform="cpu"))
    assert not found.applied
    assert any("Differentiation rule for 'geqrf'" in event.reason for event in found.events), found.events


def _is_not_wrong(at, *walkers):
    found = cell(*CELLS[at], *walkers)
    assert found["result"] != "wrong", found
    assert found["result"] in ("forward", "not JAX") or found["reason"], "a refusal has its reason"


@pytest.mark.by_turns(40)
@pytest.mark.parametrize("at", range(len(CELLS)))
def test_the_matrix_is_not_wrong(at):
    _is_not_wrong(at)


@pytest.mark.full
@pytest.mark.parametrize("at", [at for at in range(5, len(CELLS), 10) if CELLS[at][2]])
def test_a_tenth_of_the_matrix_is_not_wrong_at_many_walkers(at):
    _is_not_wrong(at, MANY)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4000, 4100))
def test_random_compositions_are_not_wrong_at_many_walkers(seed):
    found = drawn(seed).judged(MANY)
    assert found["result"] != "wrong", (drawn(seed).name, found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [14, 21])
def test_random_compositions_are_forward_at_many_walkers(seed):
    found = drawn(seed).judged(MANY)
    assert (found["result"], found["exact"]) == ("forward", "identical"), (drawn(seed).name, found)


@pytest.mark.by_turns(2)
@pytest.mark.parametrize("seed", [65, 268, 395, 904, *range(3000, 3007)])
def test_random_compositions_are_forward(seed):
    found = drawn(seed).judged()
    assert (found["result"], found["exact"]) == ("forward", "identical"), (drawn(seed).name, found)


@pytest.mark.parametrize("squares", [False, True], ids=["second", "and-squares"])
def test_masses_are_arguments(squares):
    """The weights of the coordinates are known at run time alone."""
    network = NETWORKS["mlp-with-pairs"]

    def energy(masses, x):
        gradient, h = jax.linearize(jax.grad(network), x)
        e = jnp.eye(x.size)

        def add(k, total):
            return total - 0.5 * ((h(e[k])[k] + squares * gradient[k] ** 2) / masses[k // 3])

        return network(x), lax.fori_loop(0, x.size, add, 0.0)

    masses = np.array([1.0, 1836.15, 3671.5], np.float32)
    original = lower_jaxpr(jax.make_jaxpr(jax.vmap(energy, (None, 0)))(masses, positions(1)), "cpu", "energy")
    found = run_pipeline(original, parse_pipeline("sparsify-directions"), Setting(platform="cpu"))
    assert "with weights of the coordinates" in found.applied[0].what, found.events
    assert compare_exactly(original, found.program).result == "identical"
    ours = program_runner(found.program, widen=True)([masses, positions(1)])[1]
    _, gradient, diagonal = (np.asarray(array) for array in derivatives("mlp-with-pairs", 1))
    expected = -0.5 * ((diagonal + squares * gradient**2) / np.repeat(masses.astype(np.float64), 3)).sum(-1)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def flops_with_parts(form, *parts):
    """FLOPs of the rewritten Laplacians of these parts of a complex log psi."""

    def of_one(x):
        return [FORMS[form](lambda y, part=part: part(complex_log_psi(y)), x) for part in parts]

    original = lower_jaxpr(jax.make_jaxpr(jax.vmap(of_one))(positions(1)), "cpu", "parts")
    found = run_pipeline(original, parse_pipeline("sparsify-directions"), Setting(platform="cpu"))
    assert 1 <= len(found.applied) <= len(parts), found.events  # without loops, both parts are one event
    return program_cost(found.program).flops


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fori", "trace-of-hessian"])
def test_real_and_imaginary_part_share_their_jets(form):
    one_by_one = flops_with_parts(form, jnp.real) + flops_with_parts(form, jnp.imag)
    assert flops_with_parts(form, jnp.real, jnp.imag) <= 0.6 * one_by_one


def traced_outside(network, x, identity):
    return jnp.trace(jax.vmap(jax.linearize(jax.grad(network), x)[1])(identity))


@pytest.mark.parametrize(
    "form",
    ["jvp-in-loop", *(pytest.param(name, marks=pytest.mark.slow) for name in ("trace-of-hessian", "from outside"))],
)
def test_in_a_loop_that_moves_walkers(form):
    """Its body is rewritten, and what it does beside is not computed twice."""
    network = NETWORKS["recurrent"]

    def steps(x):
        identity = jnp.eye(COORDINATES)

        def measured(y):
            value = network(y)
            return value, FORMS[form](network, y) if form in FORMS else traced_outside(network, y, identity)

        def step(x, _):
            x = x + 0.1 * jnp.sin(x)
            return x, jax.vmap(measured)(x)

        return lax.scan(step, x, length=2)

    def count(program, op):
        return sum(node.op is op for node in program_view(program).walk())

    original = lower_jaxpr(jax.make_jaxpr(steps)(positions(1)), "cpu", "steps")
    found = run_pipeline(original, parse_pipeline("fuse-jvp-replay"), Setting(platform="cpu"))
    assert [event.pass_name for event in found.applied] == ["sparsify-directions"], found.events
    assert compare_exactly(original, found.program).result == "identical"
    assert count(found.program, ops.WHILE) == 2, "of the steps, of the layers"
    assert count(found.program, ops.SINE) == count(original, ops.SINE)
    assert program_cost(found.program).flops < 0.6 * program_cost(original).flops


@pytest.mark.parametrize("algorithm", ["TF32_TF32_F32", "BF16_BF16_F32_X3"])
def test_products_of_derivatives_have_the_algorithm_of_the_product(algorithm):
    """For a GPU; the identification on the CPU, which has no TF32, computes in float32."""
    weights = np.linspace(-1, 1, COORDINATES * 4, dtype=np.float32).reshape(COORDINATES, 4)

    def network(x):
        h = lax.dot(jnp.tanh(x), weights, precision=lax.DotAlgorithmPreset[algorithm])
        return lax.dot(jnp.sin(h), h, precision=lax.DotAlgorithmPreset[algorithm])

    traced = jax.make_jaxpr(jax.vmap(lambda x: FORMS["fori"](network, x)))(positions(1))
    original = lower_jaxpr(traced, "cuda", "fori")
    found = run_pipeline(original, parse_pipeline("sparsify-directions"), Setting(platform="cuda"))
    assert found.applied, found.events
    products = [node for node in program_view(found.program).walk() if node.op is ops.DOT_GENERAL]
    assert products
    assert {algorithm_of(node) for node in products} == {lax.DotAlgorithmPreset[algorithm]}


def test_every_form_says_what_it_returns():
    assert EXPECTED.keys() == FORMS.keys()
