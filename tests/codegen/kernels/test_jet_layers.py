"""Layers of jets: the kernels compute what the ops that they replace do, and compile for absent GPUs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.kernels.jet_layers.kernel import layer_kernel
from fusionlab.codegen.raising import raise_nodes
from fusionlab.device_code.kernel_rows import kernel_table
from fusionlab.errors import InputError
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import blocks_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.jet_layer_kernels import JetLayerKernels
from fusionlab.passes.refusals import Refusal
from fusionlab.testing import assert_no_spills
from tests.optional_packages import needs_ptxas, needs_the_cuda_plugin

WALKERS, ELECTRONS, K, N = 3, 5, 48, 40


def layers_of(program, **options):
    """(nodes, layer) of every kernel that the pass would make, in the program as it is, without barriers."""
    module, pass_ = program.parse(), JetLayerKernels(**options)
    for function in module.body.operations:
        for block in blocks_of(function, module):
            block = block.data_flow()
            for node in block.nodes:
                if node.op is ops.DOT_GENERAL:
                    try:
                        yield block.nodes, pass_.layer_of(node, block)
                    except Refusal:
                        continue


def jet(u, w, b, activation=jnp.tanh, asked="highest"):
    """The layer of a jet ``u`` [rows, ..., k] of value, Laplacian and derivatives; its product is ``asked`` for so."""
    z = jnp.einsum("r...k,kn->r...n", u, w, precision=asked)
    return activated(z, b, activation)


def activated(z, b, activation=jnp.tanh):
    v = z[0] + b

    def slope(x):
        return jax.jvp(activation, (x,), (jnp.ones_like(x),))[1]

    s, s1 = jax.jvp(activation, (v,), (jnp.ones_like(v),))
    s2 = jax.jvp(slope, (v,), (jnp.ones_like(v),))[1]
    lap = s1 * z[1] + s2 * (z[2:] ** 2).sum(0)
    return jnp.concatenate([s[None], lap[None], s1[None] * z[2:]])


def residual(u, w, b, asked="highest"):
    return u[..., : w.shape[1]] + jet(u, w, b, asked=asked)


def with_a_mean(u, m, w, v, b):
    """A second contraction, of means over electrons, and concatenated features."""
    z = jnp.concatenate([u, m], -1) @ w + (m.mean(2, keepdims=True) @ v)
    return activated(z, b), z[0]


def transposed_weights(u, w, b):
    return jet(u, w.T, b)


def strided_weights(u, w, b):
    return jet(u, w[1:97:2, 3:43], b)


def broadcast_rows(u, w, b):
    return jet(jnp.broadcast_to(u, (8, WALKERS, ELECTRONS, K)), w, b)


def transposed_rows(u, w, b):
    return jet(u.transpose(2, 0, 1, 3), w, b)


def some_electrons(u, w, b):
    return jet(u[:, :, 1:4], w, b)


def arrays(*shapes):
    numbers = np.random.default_rng(0)
    return [numbers.standard_normal(shape).astype("f4") for shape in shapes]


CASES = {
    "jet": (jet, [(11, WALKERS, ELECTRONS, K), (K, N), (N,)]),
    "silu": (lambda u, w, b: jet(u, w, b, jax.nn.silu), [(18, WALKERS, ELECTRONS, K), (K, N), (N,)]),
    "residual": (residual, [(8, WALKERS, ELECTRONS, K), (K, N), (N,)]),
    "of walkers": (jet, [(5, WALKERS, K), (K, N), (N,)]),
    "wide": (jet, [(35, 2, 3, K), (K, 300), (300,)]),
    "with a mean": (
        with_a_mean,
        [(11, WALKERS, ELECTRONS, K), (11, WALKERS, ELECTRONS, 32), (K + 32, N), (32, N), (N,)],
    ),
    "transposed weights": (transposed_weights, [(8, WALKERS, ELECTRONS, K), (N, K), (N,)]),
    "strided weights": (strided_weights, [(8, WALKERS, ELECTRONS, K), (97, 50), (N,)]),
    "broadcast rows": (broadcast_rows, [(8, WALKERS, 1, K), (K, N), (N,)]),
    "transposed rows": (transposed_rows, [(WALKERS, ELECTRONS, 8, K), (K, N), (N,)]),
    "some electrons": (some_electrons, [(8, WALKERS, ELECTRONS, K), (K, N), (N,)]),
    "one walker": (jet, [(20, 1, 2, K), (K, N), (N,)]),
    "in TF32": (partial(jet, asked="high"), [(8, WALKERS, ELECTRONS, K), (K, N), (N,)]),
}


@pytest.fixture
def layer_in(lowered):
    """``layer_in(case)``: the nodes and the one layer of a case, which is all that follows its contraction."""

    def find(case):
        function, shapes = CASES[case]
        with jax.default_matmul_precision("highest"):
            program = lowered(function, *arrays(*shapes), platform="cuda")
        [found] = layers_of(program)
        return found

    return find


def inputs_of(layer):
    numbers = np.random.default_rng(0)
    return [numbers.standard_normal(value.type.shape).astype("f4") for value in layer.arrays]


def interpreted(layer, **options):
    kernel = layer_kernel(layer, interpret=True, **options)
    return jax.jit(kernel, compiler_options=CPU_OPTIONS)(*inputs_of(layer))


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_computes_what_its_ops_do(case, layer_in):
    nodes, layer = layer_in(case)
    plain = raise_nodes(nodes, layer.arrays, list(layer.outputs))(*inputs_of(layer))
    for value, wanted in zip(interpreted(layer), plain, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-4, atol=2e-5 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("case", ["jet", "with a mean"])
def test_three_products_of_tf32_are_nearly_float32(case, layer_in):
    """A product of TF32 alone has an error of 1e-3. This is the emulation: a GPU has Triton's three products."""
    _, layer = layer_in(case)
    for three, one in zip(interpreted(layer, in_tf32x3=True), interpreted(layer), strict=True):
        assert 0 < np.abs(three - one).max() < 1e-5 * np.abs(one).max()


def test_all_that_follows_is_one_kernel(layer_in):
    _, layer = layer_in("residual")
    assert [value.type.shape for value in layer.outputs] == [(8, WALKERS, ELECTRONS, N)]
    assert layer.traffic == 2 * 8 * N + N, "it reads the residual and the bias, and writes the result"
    _, layer = layer_in("with a mean")
    assert [source.extent for source in layer.sources] == [K, 32], "the concatenation is no array"


@needs_the_cuda_plugin
@needs_ptxas
@pytest.mark.parametrize(
    ("target", "precision", "asked"),
    [("a100", "exact", "highest"), ("h100", "tf32x3", "highest"), ("h100", "exact", "high")],
)
def test_kernels_compile_for_an_absent_gpu(target, precision, asked, lowered):
    """30 directions and 256 features, as in FermiNet: no spills, and tensor cores where asked for."""
    program = lowered(partial(residual, asked=asked), *arrays((32, 16, 10, 256), (256, 256), (256,)), platform="cuda")
    after = JetLayerKernels(precision=precision).run(program, Setting(platform="cuda")).program
    rows = kernel_table(assert_no_spills(after, target=target).compiled).rows
    [row] = [row for row in rows if "jet_layer" in row.kernel or "pallas" in row.name]
    assert (row.tensor_instructions > 0) == (precision == "tf32x3" or asked == "high")
    assert row.resources.registers <= 200


def test_an_unknown_precision_is_an_error(lowered):
    program = lowered(jnp.sin, jax.ShapeDtypeStruct((3,), np.float32), platform="cuda")
    with pytest.raises(InputError, match="'half' is neither exact nor tf32x3"):
        JetLayerKernels(precision="half").run(program, Setting(platform="cuda"))
