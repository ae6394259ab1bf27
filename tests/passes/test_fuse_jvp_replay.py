"""fuse-jvp-replay: its cases, and small functions with loops; ``fuse_jvp_replay/`` has the tests of its parts."""

import pytest

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of

from .case_files import test_case  # noqa: F401


@pytest.mark.parametrize(
    "name", ["replay", "scan", "jvp-in-loop", "stacked", "subtracting", "two-sums", "called-twice"]
)
def test_no_loop_is_left(name, loop_program, rewritten):
    assert find_loops(view_of(rewritten(loop_program(name), "fuse-jvp-replay").program.parse())) == []
