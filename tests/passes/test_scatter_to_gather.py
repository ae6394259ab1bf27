"""scatter-to-gather: its cases (``cases/scatter_to_gather/``)."""

from .case_files import test_case  # noqa: F401
