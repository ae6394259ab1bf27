"""sparsify-directions: its cases (``cases/sparsify_directions/``)."""

from .case_files import test_case  # noqa: F401
