"""pack-isomorphic-slices: its cases (``cases/pack_isomorphic_slices/``)."""

from .case_files import test_case  # noqa: F401
