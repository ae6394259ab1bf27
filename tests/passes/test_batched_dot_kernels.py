"""batched-dot-kernels: its cases (``cases/batched_dot_kernels/``)."""

from .case_files import test_case  # noqa: F401
