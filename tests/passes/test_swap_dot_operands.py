"""swap-dot-operands: its cases (``cases/swap_dot_operands/``)."""

from .case_files import test_case  # noqa: F401
