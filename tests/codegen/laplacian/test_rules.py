"""The tables of derivative rules."""

from fusionlab.codegen import raising
from fusionlab.codegen.laplacian import interpreter
from fusionlab.codegen.laplacian.rules import dot_general, elementwise, generic, moves, reductions, slogdet

TABLES = [module.RULES for module in (dot_general, elementwise, generic, moves, reductions, slogdet)]
RECOGNISED = {"composite", "log_abs_det"}


def test_every_op_has_one_rule():
    names = [name for table in TABLES for name in table]
    assert len(names) == len(set(names))
    assert interpreter.RULES.keys() == set(names)


def test_ops_with_a_rule_can_be_raised_and_have_derivatives():
    names = interpreter.RULES.keys() - RECOGNISED
    assert names <= raising.RULES.keys()
    assert names.isdisjoint(interpreter._WITHOUT_DERIVATIVE)


def test_ops_without_derivatives_can_be_raised():
    assert interpreter._WITHOUT_DERIVATIVE - {"stablehlo.constant"} <= raising.RULES.keys()
