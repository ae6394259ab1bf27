"""merge-dots: its cases, and one contraction in the loop after hoisting."""

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of

from .case_files import test_case  # noqa: F401


def test_merged_layers_leave_one_contraction_in_the_loop(loop_program, rewritten):
    (loop,) = find_loops(view_of(rewritten(loop_program("layers"), "merge-dots,licm").program.parse()))
    names = [node.name for node in loop.body.walk()]
    assert names.count("stablehlo.dot_general") == 1
    assert "stablehlo.concatenate" not in names
