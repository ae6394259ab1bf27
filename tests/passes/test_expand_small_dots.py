"""expand-small-dots: its cases (``cases/expand_small_dots/``)."""

from .case_files import test_case  # noqa: F401
