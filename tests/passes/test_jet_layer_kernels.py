"""jet-layer-kernels: its cases (``cases/jet_layer_kernels/``); kernels: ``codegen/kernels/test_jet_layers.py``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.check import check_programs
from fusionlab.errors import InputError
from fusionlab.hlo import ops
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.jet_layer_kernels import JetLayerKernels

from .case_files import test_case  # noqa: F401


def layer(u, w, precision="highest"):
    z = jnp.einsum("rwk,kn->rwn", u, w, precision=precision)
    s = jnp.tanh(z[0])
    return jnp.concatenate([s[None], (z[1] - 2 * s * (z[2:] ** 2).sum(0))[None], z[2:]])


def applied_to_a_layer(lowered, dtype, asked, width=8, **options):
    """What the pass says of one layer of ``dtype``, of a product in the precision ``asked``."""
    arrays = [np.ones(shape, dtype) for shape in ((5, 3, width), (width, width))]
    with jax.enable_x64(dtype == "f8"):
        program = lowered(lambda u, w: layer(u, w, asked), *arrays, platform="cuda")
    [event] = JetLayerKernels(narrowest=8, **options).run(program, Setting(platform="cuda")).applied
    return event.what


def test_what_a_later_layer_reads_waits_for_the_kernel_before(lowered, run_raised):
    """Both layers read sums of ``p``: XLA would make them in one fusion, before the first kernel."""

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


@pytest.mark.parametrize("precision", ["exact", "tf32x3"])
def test_a_layer_in_float64_is_no_kernel(precision, lowered):
    what = applied_to_a_layer(lowered, "f8", "highest", precision=precision)
    assert what == "1 layers of jets were outlined (float64: no kernel)"


@pytest.mark.parametrize(
    ("asked", "width", "what"),
    [
        ("highest", 128, "1 layers of jets became kernels, by three products of TF32"),
        ("highest", 64, "1 layers of jets became kernels, in float32: too narrow for three products"),
        ("default", 128, "1 layers of jets became kernels"),
    ],
)
def test_three_products_are_told(asked, width, what, lowered):
    """A product that is asked for in TF32 is one product."""
    assert applied_to_a_layer(lowered, "f4", asked, width, precision="tf32x3") == what


@pytest.mark.parametrize(("precision", "rounded"), [("exact", False), ("tf32x3", True)])
def test_the_check_reads_the_rounding_of_three_products(precision, rounded, lowered, run_raised):
    """The twin asks for the kernel's products, and a raised program computes them."""
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(shape).astype("f4") for shape in ((5, 3, 128), (128, 128))]
    program = lowered(lambda u, w: layer(u, w), *arrays, platform="cuda")
    after = JetLayerKernels(narrowest=8, precision=precision).run(program, Setting(platform="cuda")).program
    [made], [wanted] = run_raised(after, arrays), run_raised(program, arrays)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    assert np.array_equal(made, wanted) == (not rounded)
    assert check_programs(program, after).verdict == ("within-bound" if rounded else "equal")


@pytest.mark.parametrize("option", ["narrowest", "widest", "most_rows"])
def test_an_option_below_one_is_an_error(option):
    with pytest.raises(InputError, match=f"jet-layer-kernels: {option} must be at least 1, not 0"):
        JetLayerKernels(**{option: 0})
