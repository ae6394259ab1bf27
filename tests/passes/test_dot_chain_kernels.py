"""dot-chain-kernels: its cases (``cases/dot_chain_kernels/``); kernels: ``codegen/kernels/test_dot_chains.py``."""

from .case_files import test_case  # noqa: F401
