"""hoist-reduce-through-dot: its cases (``cases/hoist_reduce_through_dot/``)."""

from .case_files import test_case  # noqa: F401
