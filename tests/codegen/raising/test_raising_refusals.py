"""Modules that JAX did not write are raised with the semantics of the specification, or refused with a reason.

What JAX does not take is refused where JAX is called; a fault of a raising rule stays a fault.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.raising import (
    RULES,
    JaxRefusal,
    RaiseError,
    Raising,
    RaisingFault,
    raise_nodes,
    raise_program,
    unsupported_nodes,
)
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .raising_cases import ODD, REAL, SQUARE

HERE = Path(__file__).parent
REFUSED = sorted((HERE / "refused").glob("*.mlir"))

FIRST, SECOND = np.array([3, 1, 3, 1, 2], np.int32), np.array([9, 8, 7, 6, 5], np.int32)
FLOATS = np.nan_to_num(ODD, nan=7.0)
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2)
ONE_KEY, TWO_KEYS = [1, 3, 4, 0, 2], [3, 1, 4, 2, 0]


@pytest.mark.parametrize(
    ("module", "arrays", "expected", "rtol"),
    [
        ("sort-one-key", (FIRST, SECOND), (FIRST[ONE_KEY], SECOND[ONE_KEY]), 0),
        ("sort-two-keys", (FIRST, SECOND), (FIRST[TWO_KEYS], SECOND[TWO_KEYS]), 0),
        ("sort-floats", (FLOATS,), (np.sort(FLOATS),), 0),
        ("sort-floats-one-zero-one-nan", (FLOATS,), (np.sort(FLOATS),), 0),
        ("if", (np.bool_(True), REAL), (REAL,), 0),
        ("if", (np.bool_(False), REAL), (-REAL,), 0),
        # Out of range, the last branch is taken.
        *(("case", (np.int32(i),), (v,), 0) for i, v in ((0, 10), (1, 20), (2, 30), (3, 30), (-1, 30), (-9, 30))),
        ("cholesky", (POSITIVE,), (1 / (1 + np.exp(-np.linalg.cholesky(POSITIVE))),), 1e-4),
    ],
)
def test_modules_that_jax_did_not_write_are_raised(module, arrays, expected, rtol, run_raised):
    results = run_raised(Program.from_file(HERE / "raised" / f"{module}.mlir"), arrays)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=rtol)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in REFUSED])
def test_what_has_no_counterpart_is_a_raise_error_that_says_where(path):
    """The reason is in the module's first line."""
    program = Program.from_file(path)
    reason = path.read_text().partition("\n")[0].removeprefix("// refused: ")
    with pytest.raises(RaiseError, match=reason) as caught:
        jax.eval_shape(
            raise_program(program), *(jax.ShapeDtypeStruct(t.shape, Raising().dtype(t)) for t in program.inputs)
        )
    assert "in @main" in str(caught.value)


def test_jax_orders_descending_by_flipping_an_ascending_sort(lowered, run_raised):
    program = lowered(lambda x: jnp.sort(x, descending=True), REAL)
    np.testing.assert_array_equal(run_raised(program, (REAL,))[0], -np.sort(-REAL, 1))


def test_unsupported_nodes_are_found_inside_regions(lowered):
    # The Hessenberg form is a LAPACK call for which there is no rule.
    form = jax.lax.linalg.hessenberg
    program = lowered(lambda a: jax.lax.fori_loop(0, 2, lambda _, c: form(c)[0], a), np.eye(3, dtype="f4"))
    (node,) = unsupported_nodes(view_of(program.parse()))
    assert "gehrd" in node.attributes["call_target_name"].value


def test_values_from_outside_are_refused(lowered):
    flat = view_of(lowered(lambda x: jnp.sin(x) * 2, ODD).parse())
    with pytest.raises(RaiseError, match="come from outside"):
        raise_nodes(flat.nodes[-1:], [], flat.returns)


def test_a_region_can_be_entered_in_the_middle(lowered):
    flat = view_of(lowered(lambda x: jnp.cos(jnp.sin(x)), REAL).parse())
    middle = flat.nodes[0].results[0]
    (result,) = raise_nodes(flat.nodes, [middle], flat.returns)(REAL)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(jnp.cos(REAL)))


def test_a_constant_of_every_type_survives(run_raised):
    expected = [
        np.array([True, False]), np.array([-3, -3], np.int8), np.array([250, 1], np.uint8), np.array([7, 7]),
        np.array([1.5, -2], np.float16), np.array([1.5, np.nan]), np.array([1 + 2j, 1 + 2j], np.complex64),
        np.array([1 + 2j, 3 + 4j], np.complex64), np.array([complex(1, np.inf), -3.5e-2 + 4j]),
        np.array([1.5, 2], jnp.bfloat16), np.array(1.5, jnp.bfloat16), np.array(1 + 2j, np.complex64),
        np.array([1.5, 1.5], jnp.bfloat16),
    ]  # fmt: skip
    results = run_raised(Program.from_file(HERE / "raised" / "constants.mlir"), ())
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)


def test_widened_programs_compute_in_float64(lowered, run_raised):
    def function(x):
        third = x / 3
        rounded = jax.lax.reduce_precision(third, 5, 3)
        bits = jax.lax.bitcast_convert_type(x, np.uint32)
        looped = jax.lax.fori_loop(0, 3, lambda k, c: c * third + 0.1, third)
        return third.sum(), rounded, bits, jnp.linalg.slogdet(x[:3, :3])[1], looped, x.astype(np.int32)

    wide = REAL.astype(float)
    sums, rounded, bits, determinant, looped, whole = run_raised(lowered(function, REAL), (wide,), widen=True)
    assert sums.dtype == rounded.dtype == determinant.dtype == looped.dtype == np.float64
    np.testing.assert_allclose(sums, (wide / 3).sum(), rtol=1e-14)
    np.testing.assert_allclose(rounded, wide / 3, rtol=1e-15)
    np.testing.assert_array_equal(bits, REAL.view(np.uint32))
    np.testing.assert_allclose(determinant, np.linalg.slogdet(wide[:3, :3])[1], rtol=1e-13)
    expected = wide / 3
    for _ in range(3):
        expected = expected * wide / 3 + np.float32(0.1)
    np.testing.assert_allclose(looped, expected, rtol=1e-13)
    np.testing.assert_array_equal(whole, wide.astype(np.int32))


def test_narrower_floats_are_widened_too(lowered, run_raised):
    half = REAL.astype(jnp.bfloat16)
    (result,) = run_raised(lowered(lambda x: x / 3, half), (half.astype(float),), widen=True)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, half.astype(float) / 3, rtol=1e-2)


def test_precision_and_scopes_survive_lowering_again(lowered):
    def function(a, b):
        with jax.named_scope("stage_b"):
            return jax.lax.dot(a, b, precision=("high", "highest"))

    program = lowered(function, REAL, REAL.T.copy())
    again = lowered(raise_program(program), REAL, REAL.T.copy())
    assert "precision = [HIGH, HIGHEST]" in str(again.parse())


@pytest.mark.parametrize(
    ("operation", "types"),
    [
        ("add", "i1"),
        ("multiply", "i1"),
        ("power", "i8 i32 i64 ui8 ui32 ui64"),
        ("remainder", "complex<f32> complex<f64>"),
        ("cbrt", "complex<f32> complex<f64>"),
        ("real", "f16 f32 f64"),
        ("imag", "f16 f32 f64"),
    ],
)
def test_element_types_that_jax_does_not_take_are_refused(operation, types, program_of_text):
    """All of the elementwise rules' that StableHLO's verifier takes; comparisons and CHLO's apart."""
    for type_ in types.split():
        tensor = f"tensor<8x{type_}>"
        given = "%x" if operation in ("cbrt", "real", "imag") else "%x, %x"
        operands = ", ".join([tensor] * given.count("x"))
        body = f'%0 = "stablehlo.{operation}"({given}) : ({operands}) -> {tensor}\nreturn %0 : {tensor}'
        program = program_of_text(f"func.func public @main(%x: {tensor}) -> {tensor} {{ {body} }}")
        with jax.enable_x64(True):
            arguments = [jax.ShapeDtypeStruct(t.shape, Raising().dtype(t)) for t in program.inputs]
            with pytest.raises(JaxRefusal, match=f"stablehlo.{operation} cannot be expressed in JAX"):
                jax.eval_shape(raise_program(program), *arguments)


@pytest.mark.parametrize(("looped", "expected"), [(False, TypeError), (True, RaisingFault)])
def test_a_fault_of_a_rule_is_not_taken_for_a_refusal(looped, expected, lowered, monkeypatch):
    def faulty(op):
        return [None + 1]

    def function(x):
        return jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(c), x) if looped else jnp.sin(x)

    program = lowered(function, REAL)
    monkeypatch.setitem(RULES, "stablehlo.sine", faulty)
    with pytest.raises(expected, match="unsupported operand"):
        jax.eval_shape(raise_program(program), REAL)


def test_a_complex_exponent_keeps_its_imaginary_part(lowered, run_raised):
    given = REAL.astype(np.complex64)
    program = lowered(lambda x: jax.lax.pow(x, jnp.full(x.shape, 2 + 1j, x.dtype)), given)
    np.testing.assert_allclose(run_raised(program, (given,))[0], given ** (2 + 1j), rtol=1e-4)


def test_a_pass_declines_what_jax_does_not_take():
    program = Program.from_file(HERE / "refused" / "powers-in-a-loop.mlir")
    for name in ("batch-replay", "licm", "fuse-jvp-replay"):
        result = run_pipeline(program, parse_pipeline(name), Setting())
        assert not result.applied
        assert result.events, name
