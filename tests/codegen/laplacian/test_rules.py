"""The tables of derivative rules."""

from fusionlab.codegen import raising
from fusionlab.codegen.laplacian import interpreter
from fusionlab.codegen.laplacian.rules import dot_general, elementwise, generic, moves, reductions, slogdet
from fusionlab.hlo.ops import OPS

TABLES = [module.RULES for module in (dot_general, elementwise, generic, moves, reductions, slogdet)]


def test_every_op_with_a_rule_can_be_raised_has_derivatives_and_is_in_one_table():
    names = [name for table in TABLES for name in table]
    assert len(names) == len(set(names))
    assert interpreter.RULES.keys() == set(names)
    ops = set(names) - {"log_abs_det"}
    assert ops <= raising.RULES.keys()
    assert "zero" not in {OPS[name].derivative for name in ops}
