"""Cost rules: against XLA's own figures for loop-free programs, by hand where XLA has none, and never free."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.cost import Cost, node_cost, program_cost, size_bytes
from fusionlab.hlo.view import TensorType, view_of

from .conftest import as_program

X, W = jnp.ones((32, 48)), jnp.ones((48, 16))

LIKE_XLA = {
    "dot": (lambda x, w: x @ w, X, W),
    "batched dot": (lambda a, b: jnp.einsum("bij,bkj->bik", a, b), jnp.ones((5, 32, 48)), jnp.ones((5, 16, 48))),
    "arithmetic": (lambda x: (x * x + 1.0) / (x - 3.0), X),
    "transcendentals": (lambda x: jnp.tanh(x) + jnp.exp(x), X),
    "select": (lambda x: jnp.where(x > 0, x, -x), X),
}


@pytest.mark.parametrize("case", LIKE_XLA)
def test_flops_are_those_of_xla(case):
    """XLA counts transcendentals apart from the rest; here they are part of the FLOPs."""
    function, *arguments = LIKE_XLA[case]
    analysis = jax.jit(function).lower(*arguments).compile().cost_analysis()
    cost = program_cost(as_program(function, *arguments))
    assert cost.transcendentals == analysis.get("transcendentals", 0)
    assert cost.flops == analysis["flops"] + analysis.get("transcendentals", 0)


def test_a_reduction_counts_its_input_elements_where_xla_counts_one_less_per_sum():
    analysis = jax.jit(lambda x: x.sum(0)).lower(X).compile().cost_analysis()
    cost = program_cost(as_program(lambda x: x.sum(0), X))
    assert cost.flops == 32 * 48 == analysis["flops"] + 48
    assert cost.bytes == analysis["bytes accessed"]


Z, AT = jnp.ones((3, 2), "complex64"), jnp.array([2, 0])
BRANCHES = [lambda y: y, lambda y: y * 2, lambda y: y * y + y]
BY_HAND = {
    "a product's operands and result": (lambda x, w: x @ w, (X, W), {"bytes": 4 * (32 * 48 + 48 * 16 + 32 * 16)}),
    "one operand, read once": (lambda x: x * x, (X,), {"bytes": 4 * (2 * 32 * 48)}),
    "a view": (lambda x: x.reshape(48, 32), (X,), {"bytes": 0}),
    "a part": (lambda x: x[4:6], (X,), {"bytes": 4 * (2 * 2 * 48)}),
    "integers and layout": (lambda i, x: (i * 3 + 1, x.T, jnp.sort(x)), (jnp.arange(64), X), {"flops": 0}),
    "moving complex numbers": (lambda z, i: (z[i], jax.lax.dynamic_slice_in_dim(z, i[0], 1)), (Z, AT), {"flops": 0}),
    "the dearest branch": (lambda i, x: jax.lax.switch(i, BRANCHES, x), (1, X), {"flops": 2 * X.size}),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_costs_by_hand(case):
    function, arguments, expected = BY_HAND[case]
    cost = program_cost(as_program(function, *arguments))
    assert {name: getattr(cost, name) for name in expected} == expected
    assert cost.unmodelled == {}
    assert cost.bytes > 0 or case == "a view"


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_linear_algebra(platform):
    a, b = jnp.ones((7, 9, 9)), jnp.ones((7, 9, 4))
    flat = view_of(as_program(lambda a: jax.lax.linalg.lu(a)[0], a, platform=platform).parse())
    calls = [node for node in flat.nodes if node.name == "stablehlo.custom_call"]
    (factorisation,) = [node_cost(node) for node in calls if "getrf" in str(node.attributes["call_target_name"])]
    assert factorisation.flops == pytest.approx(7 * 2 / 3 * 9**3, abs=1)
    assert factorisation.unmodelled == {}

    def solve(a, b):
        return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

    assert program_cost(as_program(solve, a, b, platform=platform)).flops == 7 * 9**2 * 4


def test_a_loop_costs_its_body_times_its_trips():
    def body(x):
        return jnp.tanh(x @ W @ W.T)

    once = program_cost(as_program(body, X))
    looped = program_cost(as_program(lambda x: jax.lax.fori_loop(0, 12, lambda _, y: body(y), x), X))
    assert looped.flops == 12 * once.flops
    assert looped.transcendentals == 12 * once.transcendentals
    assert looped.unmodelled == {}


def test_unknown_is_listed_and_not_free():
    halved = as_program(lambda x: jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, x), X)
    cost = program_cost(halved)
    assert cost.unmodelled == {"stablehlo.while with unknown trips": 1}
    assert cost.flops >= 32 * 48  # one trip at least
    assert program_cost(as_program(jnp.fft.fft, X)).unmodelled.keys() & {"stablehlo.fft"}
    assert "stablehlo.multiply" in program_cost(as_program(lambda z: z * z, Z)).unmodelled  # of complex numbers


def test_an_opaque_call_is_named(program_of_text):
    text = """module { func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.custom_call @mystery(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.add %0, %0 : tensor<4xf32>
      return %1 : tensor<4xf32> } }"""
    cost = program_cost(program_of_text(text))
    assert cost.unmodelled == {"custom call @mystery": 1}
    assert cost.flops == 4


@pytest.mark.parametrize(
    ("dtype", "precision", "in_tf32"),
    [
        ("float32", None, True),
        ("float32", "high", True),
        ("float32", ("high", "highest"), False),
        ("float32", "TF32_TF32_F32", True),
        ("float32", "F32_F32_F32", False),
        ("float64", None, False),
        ("bfloat16", None, False),
    ],
)
def test_products_that_a_library_may_compute_in_tf32(dtype, precision, in_tf32):
    with jax.enable_x64(True):
        x, w = X.astype(dtype), W.astype(dtype)
        layer = partial(lambda x, w: jnp.tanh(jnp.dot(x, w, precision=precision)))
        cost = program_cost(as_program(layer, x, w, platform="cuda"))
    product = 2 * 32 * 48 * 16
    assert (cost.flops, cost.tf32_flops) == (product + 32 * 16, product if in_tf32 else 0)


def test_costs_add_and_scale():
    first, second = Cost(3, 1, 8, {"a": 1}), Cost(5, 0, 2, {"a": 1, "b": 2})
    assert first + second == Cost(8, 1, 10, {"a": 2, "b": 2})
    assert sum([first, second], Cost()) == first + second
    assert second.times(3) == Cost(15, 0, 6, {"a": 3, "b": 6})
    assert first.intensity == 3 / 8
    assert Cost().intensity == 0.0


@pytest.mark.parametrize(
    ("dtype", "size"), [("i1", 6), ("bf16", 12), ("f32", 24), ("ui64", 48), ("complex<f32>", 48), ("f8E4M3FN", 6)]
)
def test_sizes(dtype, size):
    assert size_bytes(TensorType((2, 3), dtype)) == size


def test_paulinet_is_modelled_whole(paulinet):
    cost = program_cost(paulinet)
    assert cost.unmodelled == {}
    assert cost.flops > 1e6
    assert cost.bytes > cost.flops / 100
