"""The body of every kernel, as Pallas interprets it, is identical to the plain twin that it is known by.

Programs with kernels are compared by their twins (``fusionlab.hlo.view``); this is the other half.
"""

import jax
import pytest

from fusionlab.codegen.kernels.batched_products import product_kernel
from fusionlab.codegen.kernels.dot_chains.kernel import chain_kernel
from fusionlab.codegen.kernels.row_kernels import row_kernel
from fusionlab.codegen.raising import raise_nodes
from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.hlo.view import view_of
from fusionlab.passes.batched_dot_kernels import BatchedDotKernels
from fusionlab.passes.interface import Setting
from tests.codegen.kernels.test_batched_products import jet_of_attention, sums_of
from tests.codegen.kernels.test_dot_chains import attention, chains_of
from tests.codegen.kernels.test_dot_chains import jet_of_attention as jet_of_chain
from tests.codegen.kernels.test_row_kernels import found, layers_in_a_loop


def floats(*shapes):
    return [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]


@pytest.fixture
def compared(lowered):
    """``compared(kernel, nodes, arrays, results)``: the verdict on a kernel and the nodes that it replaces."""

    def compare(kernel, nodes, arrays, results):
        given = floats(*(value.type.shape for value in arrays))
        plain = lowered(raise_nodes(nodes, list(arrays), list(results)), *given)
        return compare_exactly(plain, lowered(kernel, *given))

    return compare


def test_products(lowered, compared):
    value, tangent = (3, 5, 2, 3), (3, 2, 5, 2, 3)
    seen = {}
    for nodes, work in sums_of(lowered(jet_of_attention, *floats(*[value] * 3, *[tangent] * 3))):
        seen.setdefault(len(work.products), (nodes, work))
    assert seen.keys() == {1, 2}
    for nodes, work in seen.values():
        assert compared(product_kernel(work, interpret=True), nodes, work.arrays, [work.out]).result == "identical"


def test_layers(lowered, compared):
    module = lowered(layers_in_a_loop, *floats((3, 5, 4), (8, 3), (3, 4))).parse()
    kernels = list(found(module))
    assert sorted(len(program.layers) for _, program in kernels) == [1, 2]
    for block, program in kernels:
        kernel = row_kernel(program, interpret=True)
        assert compared(kernel, block.nodes, program.arrays, program.outputs).result == "identical"


@pytest.mark.parametrize(("function", "shapes"), [(attention, [(2, 3, 8)] * 3), (jet_of_chain, [(5, 2, 3, 4)] * 3)])
def test_dot_chains(lowered, compared, function, shapes):
    """Attention, and its forward Laplacian in a loop over directions, written over the queries."""
    [(nodes, chain)] = chains_of(lowered(function, *floats(*shapes), platform="cuda"))
    kernel = chain_kernel(chain, dead=chain.arrays, interpret=True)
    assert compared(kernel, nodes, chain.arrays, chain.outputs).result == "identical"


def test_a_program_with_kernels_is_compared_by_their_twins(lowered):
    program = lowered(jet_of_attention, *floats(*[(3, 5, 2, 70)] * 3, *[(3, 2, 5, 2, 70)] * 3), platform="cuda")
    result = BatchedDotKernels().run(program, Setting(platform="cuda"))
    assert "__gpu$xla.gpu.triton" in str(result.program.parse())
    assert not [node for node in view_of(result.program.parse()).walk() if node.name == "stablehlo.custom_call"]
    assert compare_exactly(program, result.program).result == "identical"
