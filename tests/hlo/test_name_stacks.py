"""Name stacks of JAX 0.8 to 0.11: scope, primitive, transformation."""

import pytest

from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.stages import has_stages


@pytest.mark.parametrize(
    ("op_name", "scope", "op", "transform"),
    [
        ("jit(f)/my_layer/transpose", "my_layer", "transpose", "primal"),
        ("jit(f)/add", "jit(f)", "add", "primal"),
        ("jit(f)/jvp(embed)/gather", "embed", "gather", "jvp"),
        ("jit(f)/transpose(jvp(loss))/jit(log_softmax)/reduce_sum", "loss/log_softmax", "reduce_sum", "transpose"),
        ("jit(f)/transpose(jvp())/mul", "jit(f)", "mul", "transpose"),
        ("jit(f)/vmap(vmap(jvp(vmap(transpose(jvp())))))/dot_general", "jit(f)", "dot_general", "jvp(transpose)"),
        ("jit(f)/vmap(vmap(jvp(jvp())))/tanh", "jit(f)", "tanh", "jvp(jvp)"),
        # the body of a loop and the branch of a conditional are no scopes
        ("jit(f)/while/body/closed_call/nonlinear/jit(fft)/fft", "nonlinear/fft", "fft", "primal"),
        ("jit(f)/while/cond/lt", "jit(f)", "lt", "primal"),
        ("jit(f)/jvp(jit(_diag))/jit(diagonal)/cond/branch_0_fun/gather", "_diag/diagonal", "gather", "jvp"),
        ("jit(f)/body/cond/mul", "body/cond", "mul", "primal"),
        # a checkpoint repeats its scope
        ("jit(f)/transpose(jvp(l_1))/jvp(l_1)/checkpoint/ff/mul", "l_1/ff", "mul", "transpose"),
        (
            "jit(f)/transpose(jvp(l_1))/jvp(l_1)/checkpoint/rematted_computation/norm/rsqrt",
            "l_1/norm", "rsqrt", "transpose, rematted",
        ),
        # a branch repeats the path to it
        ("jit(f)/transpose(jvp(jit(g)))/cond/jit(f)/transpose(jvp(jit(g)))/jit(h)/mul", "g/h", "mul", "transpose"),
        # a rule of a library differentiates on its own account
        ("jit(f)/transpose(jvp(det))/jit(slogdet)/jit(solve)/vmap(jvp(transpose()))/neg",
         "det/slogdet/solve", "neg", "transpose"),
        # the compiled function is named after the one that is differentiated, or after a scope in it
        ("jit(loss)/jvp(jit(loss))/enc/tanh", "enc", "tanh", "jvp"),
        ("jit(loss)/transpose(jvp(jit(loss)))/mul", "jit(loss)", "mul", "transpose"),
        ("jit(encoder)/transpose(jvp(encoder))/mul", "encoder", "mul", "transpose"),
        # a jitted function that differentiates, inside of one that is differentiated
        ("jit(f)/jvp(loss)/jit(residual)/transpose(jvp(net))/mul", "loss/residual/net", "mul", "jvp(transpose)"),
        ("jit(f)/transpose(jvp(jit(g)))/jvp(net)/sin", "g/net", "sin", "transpose(jvp)"),
        ("jit(<lambda>)/jvp(loss)/jit(<lambda>)/jvp(net)/sin", "loss/net", "sin", "jvp(jvp)"),
        # ops that XLA merged, older JAX, others' names
        ("jit(f)/transpose(jvp())/mul;jit(f)/transpose(jvp())/broadcast_in_dim", "jit(f)", "mul", "transpose"),
        ("jit(f)/jit(main)/layer/add", "layer", "add", "primal"),
        ("/model/layers.0/attn/MatMul", "model/layers.0/attn", "MatMul", "primal"),
        ("jit(f)/jvp(loss(train))/step (1)/mul", "loss(train)/step (1)", "mul", "jvp"),
        ("jit(f)/solve/jit(cholesky)", "solve/cholesky", "", "primal"),
        ("", "", "", "primal"),
    ],
)  # fmt: skip
def test_a_name_stack_has_scope_primitive_and_transformation(op_name, scope, op, transform):
    found = read_name(op_name)
    assert (found.scope, found.op, found.transform) == (scope, op, transform)


def test_scopes_have_a_depth_and_vmaps_are_counted():
    found = read_name("jit(f)/vmap(vmap(a))/b/jit(c)/mul")
    assert [found.scope_to(depth) for depth in (1, 2, 3, 9, 0)] == ["a", "a/b", "a/b/c", "a/b/c", "a/b/c"]
    assert found.batched == 2
    assert read_name("jit(f)/mul").scope_to(1) == "jit(f)"


@pytest.mark.parametrize(
    ("op_name", "staged"),
    [
        ("jit(f)/vmap(stage_b)/mul", True),
        ("jit(f)/vmap(stage_e)/mul", True),
        ("jit(f)/electron_gnn_layer_1/mul", True),
        ("jit(f)/jit(slogdet)/mul", False),  # any program may have a determinant
        ("jit(f)/potential/mul", False),
        ("jit(f)/laplacian/mul", False),
        ("jit(f)/vmap(jvp(jvp(f)))/mul", False),
    ],
)
def test_only_scopes_of_wavefunctions_are_stages(op_name, staged):
    assert has_stages([op_name]) is staged
