"""Row programs of real networks: the kernels compute what the ops that they replace do, and compile for absent GPUs."""

import jax
import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.kernels.row_kernels import row_kernel
from fusionlab.codegen.raising import raise_nodes
from fusionlab.codegen.targets import load_target
from fusionlab.hlo import lowering
from fusionlab.hlo.blocks import blocks_of
from fusionlab.hlo.view import view_of
from fusionlab.ledger.ledger import launches
from fusionlab.passes.dot_epilogue_kernels import DotEpilogueKernels, find_cluster
from fusionlab.passes.interface import Setting
from fusionlab.workloads.catalogue import build
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.versions


def found(module):
    """(block, row program) of every cluster of ``module``, as it is before any is put in."""
    for function in module.body.operations:
        for block in blocks_of(function, module):
            start = 0
            while (cluster := find_cluster(block, start, DotEpilogueKernels())) is not None:
                yield block, cluster[2]
                start = cluster[0] + 1


def assert_kernels_compute_what_they_replace(module):
    """Under Pallas' interpreter, one of each kind; the kinds, each with its number of layers first."""
    seen = set()
    for block, program in found(module):
        kind = (len(program.layers), len(program.absorbed) > 0, len(program.outputs), program.widest)
        if kind in seen:
            continue
        seen.add(kind)
        numbers = np.random.default_rng(0)
        arrays = [numbers.standard_normal(value.type.shape).astype("f4") for value in program.arrays]
        plain = jax.jit(raise_nodes(block.nodes, program.arrays, list(program.outputs)))(*arrays)
        made = row_kernel(program, interpret=True)(*arrays)
        for value, wanted in zip(made, plain, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-5)
    return seen


def paulinet(dtype="float32"):
    workload = build("paulinet", "LiH", program="mcmc", walkers=3, size="tiny", dtype=dtype)
    return lowering.lower(workload, "cuda")


@pytest.mark.slow
def test_kernels_of_a_network_compute_what_they_replace():
    """Parts side by side, views, chains of layers and rows that fill no block."""
    seen = assert_kernels_compute_what_they_replace(paulinet().parse())
    assert len(seen) > 5
    assert max(layers for layers, *_ in seen) > 1


def layers_in_a_loop(x, narrow, wide):
    """Five rows of three walkers that see their mean, in three steps."""

    def step(_, x):
        mean = jax.numpy.broadcast_to(x.mean(1, keepdims=True), x.shape)
        hidden = jax.numpy.tanh(jax.numpy.concatenate([x, mean], -1) @ narrow)
        return x + jax.numpy.tanh(hidden @ wide)

    return jax.lax.fori_loop(0, 3, step, x)


@pytest.fixture(scope="module")
def fused(lowered):
    arrays = [np.linspace(-1, 1, 150, dtype="f4").reshape(3, 5, 10), np.ones((20, 6), "f4"), np.ones((6, 10), "f4")]
    program = lowered(layers_in_a_loop, *arrays, platform="cuda")
    return program, DotEpilogueKernels().run(program, Setting(platform="cuda")), arrays


def test_kernels_compute_what_they_replace(fused):
    """A chain of two layers, and one layer alone, on rows that fill no block."""
    assert sorted(layers for layers, *_ in assert_kernels_compute_what_they_replace(fused[0].parse())) == [1, 2]


def test_analyses_and_runs_see_the_plain_twin(fused, run_raised):
    program, result, arrays = fused
    assert "__gpu$xla.gpu.triton" in str(result.program.parse())
    names = [node.name for node in view_of(result.program.parse()).walk()]
    assert "stablehlo.custom_call" not in names
    assert names.count("stablehlo.dot_general") == 2
    (made,), (wanted,) = run_raised(result.program, arrays), run_raised(program, arrays)
    np.testing.assert_array_equal(made, wanted)


@needs_the_cuda_plugin
@pytest.mark.parametrize("target", ["a100", "h200"])
def test_kernels_compile_for_an_absent_gpu(target, fused):
    program, result, _ = fused
    before, after = (compile_program(p, load_target(target)) for p in (program, result.program))
    counts = [sum(one.dynamic for one in launches(compiled) if not one.is_copy) for compiled in (before, after)]
    assert counts[1] < counts[0]
    assert 'fusionlab_flops="' in after.optimized_hlo


@pytest.mark.slow
def test_float64_takes_the_same_decisions_without_kernels():
    programs = paulinet("float64"), paulinet()
    wide, narrow = (DotEpilogueKernels().run(program, Setting(platform="cuda")) for program in programs)
    assert [event.to_json() for event in wide.events] == [event.to_json() for event in narrow.events]
    assert "__gpu$xla.gpu.triton" not in str(wide.program.parse())
