"""What tests need that not every installation has; found without importing it, which would change the process."""

import importlib.util

import pytest

from fusionlab.device_code.assembler import INSTALL, find_tool

HAS_CUDA_PLUGIN = any(importlib.util.find_spec(f"jax_cuda{major}_plugin") for major in (12, 13))
NO_CUDA_PLUGIN = "compiling for an absent GPU needs fusionlab[targets]"

needs_the_cuda_plugin = pytest.mark.skipif(not HAS_CUDA_PLUGIN, reason=NO_CUDA_PLUGIN)
needs_deepqmc = pytest.mark.skipif(
    importlib.util.find_spec("deepqmc") is None, reason="DeepQMC's models need fusionlab[deepqmc]"
)
needs_ptxas = pytest.mark.skipif(find_tool("ptxas") is None, reason=f"registers need ptxas: {INSTALL}")
needs_nvdisasm = pytest.mark.skipif(find_tool("nvdisasm") is None, reason=f"SASS needs nvdisasm: {INSTALL}")
