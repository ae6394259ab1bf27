"""Families of kernels, by the names that XLA gives them."""

import pytest

from fusionlab.hlo.ops import FAMILIES, TARGET_FAMILIES
from fusionlab.hlo.optimised.kernel_cost import family_of_kernel
from fusionlab.hlo.program import program_view

KERNELS = {
    ("loop_add_tanh_fusion.3", "fusion", ""): "elementwise",
    ("wrapped_tanh", "fusion", ""): "elementwise",
    ("loop_exponential_minus_one_fusion", "fusion", ""): "elementwise",
    ("wrapped_transpose.12", "fusion", ""): "layout",
    ("input_concatenate_fusion.7", "fusion", ""): "layout",
    ("loop_broadcast_fusion", "fusion", ""): "layout",
    ("loop_multiply_transpose_fusion", "fusion", ""): "elementwise",
    ("input_multiply_reduce_fusion.1", "fusion", ""): "reduction",
    ("loop_reduce_window_fusion", "fusion", ""): "reduction",
    ("input_scatter_fusion.9", "fusion", ""): "gather-scatter",
    ("wrapped_scatter", "fusion", ""): "gather-scatter",
    ("loop_gather_fusion", "fusion", ""): "gather-scatter",
    ("loop_dynamic_update_slice_fusion.2", "fusion", ""): "gather-scatter",
    ("gemm_fusion_dot_general.4", "fusion", ""): "gemm",
    ("triton_softmax.5", "fusion", ""): "reduction",
    ("command_buffer", "fusion", ""): "unknown",
    ("custom-call.3", "custom-call", "__cublas$lt$matmul"): "gemm",
    ("custom-call.4", "custom-call", "__cublas$triangularSolve"): "triangular-solve",
    ("custom-call.5", "custom-call", "cusolver_getrf_ffi"): "factorisation",
    ("custom-call.6", "custom-call", "cu_lu_pivots_to_permutation"): "factorisation",
    ("custom-call.7", "custom-call", "lapack_strsm_ffi"): "triangular-solve",
    ("custom-call.8", "custom-call", "__cudnn$fmhaSoftmax"): "attention",
    ("mhsea_forward", "custom-call", "__gpu$xla.gpu.triton"): "attention",
    ("my_kernel", "custom-call", "__gpu$xla.gpu.triton"): "custom",
    ("custom-call.9", "custom-call", "somebody_elses"): "custom",
    ("sort.3", "sort", ""): "sort",
    ("copy.3", "copy", ""): "layout",
    ("triangular-solve.3", "triangular-solve", ""): "triangular-solve",
    ("dot.3", "dot", ""): "gemm",
    ("while.3", "while", ""): "control",
    ("what.3", "never-heard-of", ""): "unknown",
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_family_of_a_kernel(kernel):
    assert family_of_kernel(*kernel) == KERNELS[kernel]
    assert {*KERNELS.values(), *(found for _, found in TARGET_FAMILIES)} <= set(FAMILIES)


def test_no_op_of_paulinet_is_unknown(paulinet):
    found = {node.family for node in program_view(paulinet).walk()}
    assert {"gemm", "elementwise", "layout", "factorisation", "triangular-solve", "gather-scatter"} <= found
    assert found.isdisjoint({"unknown", "custom"})
