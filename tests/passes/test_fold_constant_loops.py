"""fold-constant-loops: its cases (``cases/fold_constant_loops/``)."""

from .case_files import test_case  # noqa: F401
