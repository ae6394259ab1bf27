"""sink-broadcast-through-dot: its cases (``cases/sink_broadcast_through_dot/``)."""

from .case_files import test_case  # noqa: F401
