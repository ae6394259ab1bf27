"""The platform that the target of a custom call is a library's for."""

import pytest

from fusionlab.hlo.ops import platform_of_target


@pytest.mark.parametrize(
    ("target", "platform"),
    [
        ("cusolver_getrf_ffi", "cuda"),
        ("__cublas$triangularSolve", "cuda"),
        ("__cudnn$convForward", "cuda"),
        ("__gpu$xla.gpu.triton", "cuda"),
        ("__triton_gemm", "cuda"),
        ("cu_lu_pivots_to_permutation", "cuda"),
        ("lapack_sgetrf_ffi", "cpu"),
        ("dynamic_ducc_fft", "cpu"),
        ("__onednn$matmul", "cpu"),
        ("my_eigen_solver", ""),
        ("without_cuda_graphs", ""),
        ("my_lapack_of_all_platforms", ""),
        ("", ""),
    ],
)
def test_a_library_is_known_by_how_its_calls_begin(target, platform):
    assert platform_of_target(target) == platform
