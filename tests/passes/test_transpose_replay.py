"""transpose-replay: its cases (``cases/transpose_replay/``)."""

from .case_files import test_case  # noqa: F401
