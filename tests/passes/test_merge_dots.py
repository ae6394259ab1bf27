"""merge-dots: its cases (``cases/merge_dots/``), and its option."""

import pytest

from fusionlab.errors import InputError
from fusionlab.passes.merge_dots import MergeDots

from .case_files import test_case  # noqa: F401


def test_a_negative_width_is_refused():
    with pytest.raises(InputError, match="merge-dots: widest must be at least 0, not -1"):
        MergeDots(widest=-1)
