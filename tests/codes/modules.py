"""Local energies of networks written with flax, haiku and equinox are rewritten and right; by make test-codes."""

import numpy as np
import pytest

import fusionlab
from fusionlab.passes.interface import Applied

jax = pytest.importorskip("jax")
eqx = pytest.importorskip("equinox")
nn = pytest.importorskip("flax.linen")
nnx = pytest.importorskip("flax.nnx")
hk = pytest.importorskip("haiku")
jnp = jax.numpy

ELECTRONS, WIDTH, HEADS = 3, 8, 2
KEY = jax.random.key(0)
WALKERS = jax.random.normal(jax.random.key(1), (4, 3 * ELECTRONS))


def features(x):
    """[electrons, 4] of ``x`` [coordinates]."""
    r = x.reshape(ELECTRONS, 3)
    return jnp.concatenate([r, jnp.sqrt((r**2).sum(-1, keepdims=True) + 0.1)], -1)


class LinenTransformer(nn.Module):
    """A transformer block, and the logarithm of a determinant."""

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(WIDTH)(features(x))
        h = h + nn.MultiHeadDotProductAttention(num_heads=HEADS)(nn.LayerNorm()(h))
        h = h + nn.Dense(WIDTH)(nn.gelu(nn.LayerNorm()(h)))
        return jnp.linalg.slogdet(nn.Dense(ELECTRONS)(h))[1]


class LinenRecurrent(nn.Module):
    """A scan of a GRU cell over the electrons."""

    @nn.compact
    def __call__(self, x):
        cells = nn.scan(nn.GRUCell, variable_broadcast="params", split_rngs={"params": False})(features=WIDTH)
        state, _ = cells(jnp.zeros(WIDTH), features(x))
        return nn.Dense(1)(state).sum()


def of_linen(module):
    """(log psi of parameters and positions, parameters)."""
    return module.apply, module.init(KEY, WALKERS[0])


class NnxPerceptron(nnx.Module):
    """A multilayer perceptron with RMS norm."""

    def __init__(self):
        rngs = nnx.Rngs(0)
        self.first, self.second = nnx.Linear(4, WIDTH, rngs=rngs), nnx.Linear(WIDTH, 1, rngs=rngs)
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)

    def __call__(self, x):
        return self.second(nnx.silu(self.norm(self.first(features(x))))).sum()


def of_nnx():
    graph, state = nnx.split(NnxPerceptron())
    return lambda state, x: nnx.merge(graph, state)(x), state


def of_haiku():
    def attention(x):
        h = hk.Linear(WIDTH)(features(x))
        y = hk.LayerNorm(-1, create_scale=True, create_offset=True)(h)
        h = h + hk.MultiHeadAttention(HEADS, WIDTH // HEADS, w_init=hk.initializers.VarianceScaling())(y, y, y)
        return hk.nets.MLP([WIDTH, 1], activation=jnp.tanh)(h).sum()

    made = hk.without_apply_rng(hk.transform(attention))
    return made.apply, made.init(KEY, WALKERS[0])


class EquinoxAttention(eqx.Module):
    """Attention over electrons, then a perceptron of each."""

    embed: eqx.nn.Linear
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    perceptron: eqx.nn.MLP

    def __init__(self):
        keys = jax.random.split(KEY, 3)
        self.embed = eqx.nn.Linear(4, WIDTH, key=keys[0])
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=keys[1])
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.perceptron = eqx.nn.MLP(WIDTH, "scalar", WIDTH, 2, activation=jax.nn.softplus, key=keys[2])

    def __call__(self, x):
        h = jax.vmap(self.embed)(features(x))
        h = h + self.attention(h, h, h)
        return jax.vmap(self.perceptron)(jax.vmap(self.norm)(h)).sum()


def of_equinox():
    arrays, rest = eqx.partition(EquinoxAttention(), eqx.is_array)
    return lambda arrays, x: eqx.combine(arrays, rest)(x), arrays


NETWORKS = {
    "flax.linen transformer": lambda: of_linen(LinenTransformer()),
    "flax.linen GRU": lambda: of_linen(LinenRecurrent()),
    "flax.nnx": of_nnx,
    "haiku": of_haiku,
    "equinox": of_equinox,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_module_of_any_library(name):
    log_psi, parameters = NETWORKS[name]()

    def energy(parameters, x):
        gradient, hessian_times = jax.linearize(jax.grad(lambda x: log_psi(parameters, x)), x)
        e = jnp.eye(x.size)
        total = jax.lax.fori_loop(0, x.size, lambda k, s: s + hessian_times(e[k])[k], 0.0)
        return log_psi(parameters, x), -0.5 * (total + gradient @ gradient)

    optimized = fusionlab.optimize(jax.vmap(energy, (None, 0)), cache=False)
    _, ours = optimized(parameters, WALKERS)
    [decision] = optimized.fusionlab.decisions
    applied = [event.pass_name for event in decision.events if isinstance(event, Applied)]
    assert applied == ["sparsify-directions"], decision.events
    assert decision.verdict.exact.result == "identical", decision.verdict.exact.line
    with jax.enable_x64(True):
        wide, x = (jax.tree.map(lambda a: a.astype("float64"), one) for one in (parameters, WALKERS))
        gradient = jax.vmap(jax.grad(log_psi, argnums=1), (None, 0))(wide, x)
        hessian = jax.vmap(jax.hessian(log_psi, argnums=1), (None, 0))(wide, x)
        expected = -0.5 * (jnp.trace(hessian, axis1=1, axis2=2) + (gradient**2).sum(-1))
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-3)
