"""The op table: complete for the dialects, right about derivatives, and the only place that names ops."""

import ast
from pathlib import Path

import jax
import pytest
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, stablehlo

from fusionlab.codegen.raising import RULES, raise_program
from fusionlab.hlo import batch_axes, cost, ops
from fusionlab.hlo.ops import FAMILIES
from fusionlab.hlo.view import view_of

ROOT = Path(__file__).parents[2]

NO_TRAITS = {
    # distributed, asynchronous ops, quantisation, batch normalisation, dynamic shapes, a terminator
    *("stablehlo.async_done", "stablehlo.async_start", "stablehlo.cross-replica-sum", "stablehlo.set_dimension_size"),
    *("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize", "stablehlo.return", "chlo._asin_acos_kernel"),
    *("stablehlo.batch_norm_grad", "stablehlo.batch_norm_inference", "stablehlo.batch_norm_training"),
}
DERIVATIVES = {"linear", "product", "piecewise", "smooth", "zero", "regions", "call"}
WITHOUT_DERIVATIVE = {"chlo.next_after", "chlo.polygamma", "chlo.zeta", "stablehlo.imag", "stablehlo.real"}
"""Of float64 operands, all of them, in JAX."""
UNMODELLED = {"chlo.scan", "stablehlo.fft"}
"""Ops that can be raised and have no rule of FLOPs."""

NAMED_IN = ("hlo/ops.py", "codegen/raising/rules/", "codegen/laplacian/", "equivalence/exact/")
"""The table, and the tables of rules: how ops are raised, differentiated and evaluated exactly."""
STILL_NAMED_IN = {
    *("report/pictures/dataflow.py", "report/pictures/files.py"),  # of facts in JSON
    "equivalence/interpreter.py",  # looks for a dialect in a module's text
}


def names_in(path):
    """String constants of a file that are an op's name or the beginning of one; those of f-strings too."""
    strings = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
    return [text for text in strings if isinstance(text, str) and text in {*ops.OPS, "stablehlo.", "chlo."}]


def test_the_table_has_every_op_of_the_dialects():
    known = {getattr(op, "OPERATION_NAME", None) for dialect in (stablehlo, chlo) for op in vars(dialect).values()}
    assert len(known - {None}) > 150
    assert known - {None} - set(ops.OPS) == NO_TRAITS
    assert {op.family for op in ops.OPS.values()} <= set(FAMILIES)


@pytest.mark.parametrize("name", sorted(RULES))
def test_what_can_be_raised_has_all_traits(name):
    if name == "sdy.sharding_constraint":
        return
    op = ops.OPS[name]
    assert op.derivative in DERIVATIVES
    assert op.flops in {*cost._RULES, "none", "elements", "call", "while", "branches"} or name in UNMODELLED
    assert op.axes in batch_axes._RULES


def test_every_rule_is_asked_for():
    assert {op.flops for op in ops.OPS.values()} == {*cost._RULES, "", "none", "elements", "call", "while", "branches"}
    assert {op.axes for op in ops.OPS.values()} == set(batch_axes._RULES)


def test_named_ops_are_rows():
    named = {name: value for name, value in vars(ops).items() if isinstance(value, ops.OpDef)}
    assert all(ops.OPS[op.name] is op and op.mnemonic == name.lower() for name, op in named.items())
    assert ops.op_of("sdy.return").family == "unknown"


def raised(name, arity):
    """The op of ``arity`` float64 scalars as a JAX function; None where it takes something else."""
    arguments = ", ".join(f"%{i}: tensor<f64>" for i in range(arity))
    operands, types = (", ".join(each) for each in ([f"%{i}" for i in range(arity)], ["tensor<f64>"] * arity))
    body = f'%r = "{name}"({operands}) : ({types}) -> tensor<f64> return %r : tensor<f64>'
    with make_ir_context():
        try:
            module = ir.Module.parse(f"func.func public @main({arguments}) -> tensor<f64> {{ {body} }}")
        except ir.MLIRError:
            return None
    return raise_program(view_of(module))


def test_derivatives_are_as_the_table_says():
    elementwise = {op.name for op in ops.OPS.values() if op.family == "elementwise"}
    checked = set()
    with jax.enable_x64(True):
        for name in sorted(set(RULES) & elementwise - WITHOUT_DERIVATIVE):
            function = raised(name, 1) or raised(name, 2)
            if function is None:
                continue
            at = (1.3,) if name == "chlo.acosh" else (0.7,) if raised(name, 1) else (0.7, 0.3)

            def along(t, at=at, f=function):
                return f(*(x + t * slope for x, slope in zip(at, (1.0, -0.6), strict=False)))[0]

            first = jax.grad(along)
            flat, straight = bool(first(0.0) == 0), bool(abs(jax.grad(first)(0.0)) < 1e-12)
            kinds = ("zero",) if flat else ("linear", "piecewise") if straight else ("smooth", "product")
            assert ops.OPS[name].derivative in kinds, name
            checked.add(name)
    assert len(checked) > 40
    assert checked >= {"stablehlo.tanh", "stablehlo.add", "stablehlo.floor", "stablehlo.maximum"}


def test_ops_are_named_in_the_table_alone():
    files = {str(path.relative_to(ROOT / "fusionlab")): path for path in (ROOT / "fusionlab").rglob("*.py")}
    naming = {name for name, path in files.items() if names_in(path) and not name.startswith(NAMED_IN)}
    assert naming == STILL_NAMED_IN & set(files)


def test_names_are_found_in_f_strings_too(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""``stablehlo.add`` in words."""\nx = f"stablehlo.{y}"\nz = name == "chlo.erf"\n')
    assert names_in(path) == ["stablehlo.", "chlo.erf"]
