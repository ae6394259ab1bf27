"""Sums of contractions of real networks: the kernels compute what the ops that they replace do, and compile."""

import jax
import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.kernels.batched_products import product_kernel
from fusionlab.codegen.raising import raise_nodes
from fusionlab.codegen.targets import load_target
from fusionlab.hlo import lowering
from fusionlab.hlo.blocks import blocks_of
from fusionlab.hlo.view import view_of
from fusionlab.ledger.ledger import launches
from fusionlab.passes.batched_dot_kernels import BatchedDotKernels
from fusionlab.passes.interface import Setting
from fusionlab.passes.rewriting import Refusal
from fusionlab.workloads.catalogue import build
from tests.optional_packages import needs_the_cuda_plugin


def sums_of(program):
    """(nodes, work) of every kernel that the pass would make, in the program as it is."""
    pass_ = BatchedDotKernels()
    module = program.parse()
    for function in module.body.operations:
        for block in blocks_of(function, module):
            for node in block.nodes:
                if node.name != "stablehlo.dot_general":
                    continue
                try:
                    yield block.nodes, pass_.decide(node, block)[1]
                except Refusal:
                    continue


def jet_of_attention(q, k, v, dq, dk, dv):
    """What a forward Laplacian does to the scores and the mixed values of two heads."""
    score = jax.numpy.einsum("wqhc,wkhc->whqk", q, k)
    slope = jax.numpy.einsum("wdqhc,wkhc->wdhqk", dq, k) + jax.numpy.einsum("wqhc,wdkhc->wdhqk", q, dk)
    curve = jax.numpy.einsum("wdqhc,wdkhc->whqk", dq, dk)
    mixed = jax.numpy.einsum("wdhqk,wkhc->wdqhc", slope, v) + jax.numpy.einsum("whqk,wdkhc->wdqhc", score, dv)
    return mixed, jax.numpy.einsum("whqk,wkhc->wqhc", curve, v[:, :, ::-1])


@pytest.fixture(scope="module")
def attention(lowered):
    numbers = np.random.default_rng(0)
    shapes = [(3, 5, 2, 70)] * 3 + [(3, 6, 5, 2, 70)] * 3
    arrays = [numbers.standard_normal(shape).astype("f4") for shape in shapes]
    return lowered(jet_of_attention, *arrays, platform="cuda"), arrays


def psiformer(dtype="float32"):
    return lowering.lower(build("psiformer", "LiH", walkers=3, size="tiny", dtype=dtype), "cuda")


def close(work, nodes):
    """The kernel under Pallas' interpreter against the plain ops, on random arrays."""
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(value.type.shape).astype("f4") for value in work.arrays]
    (plain,) = jax.jit(raise_nodes(nodes, work.arrays, [work.out]))(*arrays)
    (made,) = product_kernel(work, interpret=True)(*arrays)
    np.testing.assert_allclose(made, plain, rtol=2e-5, atol=2e-4)


@pytest.mark.slow
def test_kernels_compute_what_they_replace(attention):
    """Rows, columns and terms that fill no block, several blocks, axes of two, and two products in one."""
    sums = list(sums_of(attention[0]))
    assert {len(work.products) for _, work in sums} == {1, 2}
    for nodes, work in sums:
        close(work, nodes)


@pytest.mark.slow
def test_kernels_of_a_network_compute_what_they_replace():
    seen = {}
    for nodes, work in sums_of(psiformer()):
        seen[work.batch, work.rows, work.columns, len(work.products)] = (nodes, work)
    assert len(seen) > 4
    for nodes, work in seen.values():
        close(work, nodes)


@pytest.fixture(scope="module")
def rewritten(attention):
    return BatchedDotKernels().run(attention[0], Setting(platform="cuda"))


def test_analyses_and_runs_see_the_plain_twin(attention, rewritten, run_raised):
    program, arrays = attention
    assert "__gpu$xla.gpu.triton" in str(rewritten.program.parse())
    assert "stablehlo.custom_call" not in [node.name for node in view_of(rewritten.program.parse()).walk()]
    for made, wanted in zip(run_raised(rewritten.program, arrays), run_raised(program, arrays), strict=True):
        np.testing.assert_array_equal(made, wanted)


def test_a_second_run_finds_nothing_left(rewritten):
    again = BatchedDotKernels().run(rewritten.program, Setting(platform="cuda"))
    assert not again.applied


@needs_the_cuda_plugin
@pytest.mark.parametrize("target", ["a100", "h200"])
def test_kernels_compile_for_an_absent_gpu(target, attention, rewritten):
    before, after = (compile_program(p, load_target(target)) for p in (attention[0], rewritten.program))
    counts = [sum(one.dynamic for one in launches(compiled) if not one.is_copy) for compiled in (before, after)]
    assert counts[1] < counts[0]
    assert 'fusionlab_flops="' in after.optimized_hlo


@pytest.mark.slow
def test_float64_takes_the_same_decisions_without_kernels():
    programs = psiformer("float64"), psiformer()
    wide, narrow = (BatchedDotKernels().run(program, Setting(platform="cuda")) for program in programs)
    assert [event.to_json() for event in wide.events] == [event.to_json() for event in narrow.events]
    assert "__gpu$xla.gpu.triton" not in str(wide.program.parse())
