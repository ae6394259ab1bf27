"""collapse-replay: its cases (``cases/collapse_replay/``)."""

from .case_files import test_case  # noqa: F401
