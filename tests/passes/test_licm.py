"""licm: its cases, and what leaves the loops of small functions."""

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of

from .case_files import test_case  # noqa: F401


def test_the_factorisation_leaves_the_loop(loop_program, rewritten):
    loops = find_loops(view_of(rewritten(loop_program("determinants"), "licm").program.parse()))
    (loop,) = (loop for loop in loops if loop.trips == 4 and loop.body.nodes)
    assert not any("getrf" in str(node.operation.attributes) for node in loop.body.walk())


def test_jvp_in_the_loop_recomputes_nothing_after_hoisting(loop_program, rewritten):
    view = view_of(rewritten(loop_program("jvp-in-loop"), "licm").program.parse())
    (loop,) = find_loops(view)
    assert {"stablehlo.tanh", "stablehlo.exponential"}.isdisjoint(node.name for node in loop.body.walk())
    assert {"stablehlo.tanh", "stablehlo.exponential"} <= {node.name for node in view.nodes}
