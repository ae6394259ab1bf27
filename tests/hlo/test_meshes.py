"""Meshes of a module, and constraints over them."""

import pytest
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from fusionlab.hlo.meshes import constrains_nothing
from fusionlab.hlo.view import inner_operations

PROGRAM = """
sdy.mesh @mesh = {mesh}
func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = sdy.sharding_constraint %a <@mesh, [{axes}]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}}
"""


@pytest.mark.parametrize(
    ("mesh", "axes", "nothing"),
    [
        ("<[]>", "{}", True),
        ('<["a"=1]>', '{"a"}', True),
        ('<["a"=1], device_ids=[0]>', "{}", True),
        ('<["a"=2]>', "{}", False),
        ("<[], device_ids=[3]>", "", False),
    ],
)
def test_a_constraint_over_one_device_constrains_nothing_unless_it_names_the_device(mesh, axes, nothing):
    with make_ir_context():
        module = ir.Module.parse(PROGRAM.format(mesh=mesh, axes=axes))
        found = [op for op in inner_operations(module.operation) if op.name == "sdy.sharding_constraint"]
        assert [constrains_nothing(op) for op in found] == [nothing]
