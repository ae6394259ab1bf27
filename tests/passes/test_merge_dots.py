"""merge-dots: its cases (``cases/merge_dots/``)."""

from .case_files import test_case  # noqa: F401
