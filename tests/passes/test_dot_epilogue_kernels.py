"""dot-epilogue-kernels: its cases (``cases/dot_epilogue_kernels/``)."""

from .case_files import test_case  # noqa: F401
