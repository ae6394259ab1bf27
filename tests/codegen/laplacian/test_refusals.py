"""What has no jets is refused with the op and the reason; nothing is left out silently."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import RaiseError

from .jet_cases import N, X, h, matrices


def _cholesky(x):
    return jnp.linalg.cholesky(matrices(x) @ matrices(x).swapaxes(1, 2) + jnp.eye(N))


def _window(x):
    return lax.reduce_window(h(x), np.float64(1), lax.mul, (1, 2, 2), (1, 1, 2), "SAME")


def _scattered(x):
    return h(x).at[:, np.array([1, 1])].multiply(jnp.cos(h(x)[:, 1:3]))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: jnp.exp(1j * h(x)).real, "complex<f64> depends on the coordinates; only real jets are known"),
        (lambda x: abs(jnp.fft.fft(h(x))), "complex<f64> depends on the coordinates; only real jets are known"),
        (_cholesky, "custom call @lapack_dpotrf_ffi is opaque"),
        (_window, "stablehlo.reduce_window cannot be "),
        (_scattered, "stablehlo.scatter has no jet: scatter_mul gradients are only implemented if"),
    ],
    ids=["complex", "fourier", "cholesky", "product-in-windows", "scatter-multiply-repeated"],
)
def test_refused(function, reason, jets_of):
    with pytest.raises(RaiseError, match=reason):
        jets_of(function, X)


def test_what_is_not_differentiated_may_be_anything(jets_of, brute_force):
    """Complex numbers that do not depend on x, or that no derivative passes through."""

    def function(x):
        phase = jnp.exp(1j * jnp.arange(N)).real
        return h(x) * phase[:, None] * (1 + jnp.floor(jnp.exp(1j * h(x)).real))

    found, expected = jets_of(function, X), brute_force(function, X)
    np.testing.assert_allclose(found.laplacians[0], expected.laplacians[0], rtol=1e-10)
