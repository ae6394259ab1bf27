"""fuse-jvp-replay: its cases, and small functions with loops; ``fuse_jvp_replay/`` has the tests of its parts."""

import numpy as np
import pytest

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of

from .case_files import test_case  # noqa: F401
from .loop_functions import FUNCTIONS, WEIGHTS, X


@pytest.mark.parametrize("name", ["replay", "stacked", "nested-sums"])
def test_the_same_types_in_float32(name, loop_program, rewritten, run_directly, run_raised):
    program = loop_program(name)
    result = rewritten(program, "fuse-jvp-replay")
    assert result.program.inputs == program.inputs
    assert result.program.outputs == program.outputs
    assert "f64" not in str(result.program.parse())
    expected = run_directly(FUNCTIONS[name], WEIGHTS, X)
    for value, wanted in zip(run_raised(result.program, (WEIGHTS, X)), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize(
    "name", ["replay", "scan", "jvp-in-loop", "stacked", "subtracting", "two-sums", "called-twice"]
)
def test_no_loop_is_left(name, loop_program, rewritten):
    assert find_loops(view_of(rewritten(loop_program(name), "fuse-jvp-replay").program.parse())) == []
