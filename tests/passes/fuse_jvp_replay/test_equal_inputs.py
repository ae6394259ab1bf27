"""Where two values are exactly equal, a rewritten Laplacian is that of JAX's derivative rules, or there is none.

Forty geometries are the walkers of one program: electrons at the origin, at one place, on axes and lattices, 50 bohr
away and 0.001 bohr from one another.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from ..laplacian_functions import exact, fori, jvp_in_loop

pytestmark = pytest.mark.slow

N = 3
W = np.array([[1.0, 0.5, -0.25], [-0.75, 0.25, 1.0], [0.5, -1.0, 0.75]])
"""Products of it with small integers are exact, so that equal values stay equal."""


def geometries():
    """[40, N, 3], bohr."""
    x = np.random.default_rng(0).standard_normal((40, N, 3))
    for k in range(4, 8):  # one electron at the origin
        x[k, k % N] = 0
    x[8] = 0
    for k in range(9, 12):  # two electrons at one place
        x[k, 1] = x[k, 0]
    x[12] = x[12, 0]
    for k in range(13, 16):  # in a plane
        x[k, :, k % 3] = 0
    x[16:19, 0] = [1, -1, 0]
    x[16:19, 1] = -x[16:19, 0]
    x[19:22] = np.round(x[19:22])
    x[22:25, 1] = -x[22:25, 0]
    x[25:28] *= 50
    x[28:31] *= 1e-3
    x[31, 1] = x[31, 0] + 1e-3
    x[32], x[33], x[34], x[37] = 1, -1, np.sign(x[34]), 50 * np.sign(x[37])
    x[35, 0], x[35, 1] = 0, x[35, 2]
    x[36] = x[36, :, :1]
    x[38] = np.round(2 * x[38]) / 2
    x[39, 1] = x[39, 0, ::-1]
    return x


X = geometries()


def h(x):
    return x @ W


def differences(x):
    return x[FIRST] - x[SECOND]


FIRST, SECOND = np.triu_indices(N, 1)


def squared(terms):
    """Its curvature depends on the slopes of ``terms`` [N, features]."""
    return (terms.sum(-1) ** 2).sum()


# Functions that are summed up, each with a weight of its own, share a program: one compilation for all of them.
FUNCTIONS = {
    "softplus": [
        lambda x: jax.nn.softplus(h(x)).sum(),
        lambda x: jax.nn.mish(h(x)).sum(),
        lambda x: jax.nn.log_sigmoid(x).sum(),
        lambda x: jnp.log(jnp.cosh(h(x))).sum(),
    ],
    "logaddexp": [
        lambda x: jnp.logaddexp(h(x)[0], h(x)[1]).sum(),
        lambda x: jnp.logaddexp(-1.0, h(x)).sum(),
        lambda x: jnp.logaddexp(x, -x).sum() - np.log(2),
        lambda x: jnp.logaddexp2(x[0], x[1]).sum(),
    ],
    "sinc": [lambda x: jnp.sinc(x).sum(), lambda x: jnp.sinc(differences(x)).sum()],
    "relu": [
        lambda x: squared(jax.nn.relu(h(x))),
        lambda x: squared(jax.nn.relu(differences(x))),
        lambda x: squared(jax.nn.relu6(6 * x)),
        lambda x: (jax.nn.relu(jax.nn.relu(x @ W[:, ::-1]) @ W) @ W[:, :1]).sum() ** 2,
    ],
    "relatives-of-relu": [
        lambda x: squared(jax.nn.leaky_relu(h(x))),
        lambda x: squared(jax.nn.hard_tanh(h(x))),
        lambda x: squared(jax.nn.celu(x)),
        lambda x: squared(jax.nn.relu(x @ W[::-1]) + 2 * jax.nn.elu(x @ W[::-1])),
        lambda x: jax.nn.selu(h(x)).sum(),
        lambda x: (jax.nn.gelu(x) + jax.nn.gelu(h(x), approximate=False) + jax.nn.silu(h(x))).sum(),
    ],
    "maximum": [
        lambda x: (jnp.maximum(h(x)[0], h(x)[1]) ** 2).sum(),
        lambda x: (jnp.minimum(h(x)[0], h(x)[2]) ** 2).sum(),
        lambda x: squared(jnp.maximum(h(x), 0) + 2 * jax.nn.elu(h(x))),
        lambda x: squared(jnp.minimum(x, x**2)),
    ],
    "bounds": [
        lambda x: squared(jnp.clip(x, -1, 1)),
        lambda x: squared(lax.clamp(-1.0, h(x), 1.0)),
        lambda x: squared(jnp.abs(x)),
        lambda x: (h(x) * jnp.abs(h(x))).sum(),
    ],
    "max": [
        lambda x: (h(x).max(-1) ** 2).sum(),
        lambda x: (x.min(0) ** 3).sum(),
        lambda x: (lambda s: jnp.log(jnp.exp(s - s.max()).sum()) + s.max())(h(x).sum(-1)),
        lambda x: jax.nn.logsumexp(h(x), -1).sum(),
        lambda x: (jax.nn.softmax(h(x) @ h(x).T, -1) @ jnp.tanh(x)).sum(),
    ],
    "norms": [
        lambda x: (lambda r2: jnp.where(r2 == 0, 0.0, jnp.sqrt(jnp.where(r2 == 0, 1.0, r2))))(
            (differences(x) ** 2).sum(-1)).sum(),
        lambda x: jnp.exp(-jnp.linalg.norm(x, axis=-1)).sum(),
    ],
    # The slope of |x| at 0 does not enter the Laplacian of a sum of them; the program's gradient has slope 0 there.
    "subgradient-of-ones-own": [lambda x: _steep(x).sum()],
}  # fmt: skip

DECLINED = {
    "relu-and-maximum": lambda x: squared(jax.nn.relu(h(x)) + 2 * jnp.maximum(h(x), 0)),
    "derivative-of-ones-own": lambda x: squared(_steep(h(x))),
}


def total(terms):
    return lambda x: sum(weight * term(x) for weight, term in enumerate(terms, start=1))


@jax.custom_jvp
def _steep(x):
    return jnp.abs(x)


_steep.defjvps(lambda t, ans, x: jnp.sign(x) * t)  # jnp.abs has a slope of 1 at 0


def _bordered(x):
    """[4, 4], singular where two electrons are at one place; ``jnp.linalg.det`` has a derivative there."""
    return jnp.block([[x, jnp.ones((N, 1))], [jnp.arange(1.0, 5.0)]])


def smooth(x):
    """A term with a Laplacian everywhere."""
    return jnp.sin(0.3 * x).sum() + 0.1 * (x**2).sum()


def program_of(function, method=fori):
    """Value, Laplacian and gradient of ``function`` and a smooth term."""

    def log_psi(_, x):
        return function(x) + smooth(x)

    return jax.vmap(lambda x: (log_psi(None, x), method(log_psi, None, x), jax.grad(log_psi, 1)(None, x)))


FAST = ("softplus", "relu", "maximum")
SPARSE, DENSE, ADJOINT = "sparsify-directions", "collapse-replay", "transpose-replay"


@pytest.mark.by_turns(4, "relu-sparsify-directions-fori")
@pytest.mark.parametrize(
    ("name", "passes", "method"),
    [
        *((name, SPARSE, fori) for name in FAST),
        *(pytest.param(name, SPARSE, fori, marks=pytest.mark.slow) for name in FUNCTIONS if name not in FAST),
        *(pytest.param(name, ADJOINT, fori, marks=pytest.mark.slow) for name in ("relu", "logaddexp")),
        pytest.param("logaddexp", DENSE, fori, marks=pytest.mark.slow),
        ("sinc", SPARSE, jvp_in_loop),
    ],
)
def test_equal_coalescent_and_far_geometries(name, passes, method, lowered, run_raised):
    """Equal at every geometry where the Laplacian is finite; second derivatives near equal values cancel to 1e-6."""
    function = total(FUNCTIONS[name])
    with jax.enable_x64(True):
        truth = jax.jit(program_of(function, exact), compiler_options=CPU_OPTIONS)(X)
        program = lowered(program_of(function, method), X)
    result = run_pipeline(program, parse_pipeline(passes), Setting())
    assert result.applied, result.events
    known = np.isfinite(truth[1])
    assert known.sum() >= 20
    for ours, theirs in zip(run_raised(result.program, [X]), map(np.asarray, truth), strict=True):
        ours, theirs = (array[known].reshape(known.sum(), -1) for array in (ours, theirs))
        size = np.maximum(np.abs(theirs).max(1, keepdims=True), 1)
        np.testing.assert_allclose(ours / size, theirs / size, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", DECLINED)
def test_what_is_declined(name, lowered):
    with jax.enable_x64(True):
        program = lowered(program_of(DECLINED[name]), X[:4])
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert not result.applied
    assert any("where two values are exactly equal" in event.reason for event in result.events), result.events


@pytest.mark.slow
def test_a_determinant_that_vanishes_has_a_gradient_and_no_laplacian(lowered, run_raised):
    """Where the original has no Laplacian the gradient that comes with ours is undefined, too."""
    function = program_of(lambda x: jnp.log(jnp.abs(jnp.linalg.det(_bordered(x)) + 1)))
    x = np.random.default_rng(1).standard_normal((4, N, 3))
    x[:2, 1] = x[:2, 0]
    with jax.enable_x64(True):
        program, theirs = lowered(function, x), [np.asarray(array) for array in jax.jit(function)(x)]
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert result.applied
    assert np.isfinite(theirs[2]).all()
    np.testing.assert_array_equal(np.isnan(theirs[1]), [True, True, False, False])
    ours = run_raised(result.program, [x])
    for mine, original, known in zip(ours, theirs, (slice(None), slice(None), slice(2, None)), strict=True):
        np.testing.assert_allclose(mine[known], original[known], rtol=1e-9)


@pytest.mark.slow
def test_coefficients_of_determinants_may_vanish(lowered, run_raised):
    """There is no wave function then, and the derivatives of its logarithm are anything."""
    orbitals = np.random.default_rng(2).standard_normal((2, N, N))

    def log_psi(coefficients, x):
        signs, logarithms = jnp.linalg.slogdet(jnp.tanh(x @ W) @ orbitals)
        return jax.nn.logsumexp(logarithms, b=signs * coefficients, return_sign=True)[0]

    def energy(coefficients, x):
        return log_psi(coefficients, x), fori(log_psi, coefficients, x)

    coefficients, walkers = np.array([0.9, -0.4]), X[:4]
    with jax.enable_x64(True):
        truth = jax.jit(jax.vmap(energy, (None, 0)), compiler_options=CPU_OPTIONS)(coefficients, walkers)
        program = lowered(jax.vmap(energy, (None, 0)), coefficients, walkers)
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert result.applied, result.events
    for ours, theirs in zip(run_raised(result.program, [coefficients, walkers]), truth, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
