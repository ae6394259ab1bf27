"""jet-layer-kernels: its cases (``cases/jet_layer_kernels/``); kernels: ``codegen/kernels/test_jet_layers.py``."""

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.jet_layer_kernels import JetLayerKernels

from .case_files import test_case  # noqa: F401


def test_what_a_later_layer_reads_waits_for_the_kernel_before(lowered, run_raised):
    """Both layers read sums of ``p``: XLA would make them in one fusion, before the first kernel."""

    def layer(u, w):
        z = jnp.einsum("rwk,kn->rwn", u, w, precision="highest")
        s = jnp.tanh(z[0])
        return jnp.concatenate([s[None], (z[1] - 2 * s * (z[2:] ** 2).sum(0))[None], z[2:]])

    def two(u, p, w):
        q = jnp.tanh(p)
        u = layer(jnp.concatenate([u, q.sum(2)], -1), w)
        return layer(jnp.concatenate([u, (q * q).sum(2)], -1), w)

    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(shape).astype("f4") for shape in ((5, 3, 8), (5, 3, 4, 8), (16, 8))]
    with jax.default_matmul_precision("highest"):
        program = lowered(two, *arrays, platform="cuda")
    after = JetLayerKernels(narrowest=8).run(program, Setting(platform="cuda"))
    assert len(after.applied) == 1
    assert after.applied[0].what == "2 layers of jets became kernels"
    [barrier] = [node for node in view_of(after.program.parse()).walk() if node.op is ops.OPTIMIZATION_BARRIER]
    assert [value.type.shape for value in barrier.operands] == [(5, 3, 4, 8), (5, 3, 8)]
    for made, wanted in zip(run_raised(after.program, arrays), run_raised(program, arrays), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)
