"""The check lets a correct rewriting pass and catches wrong ones, naming the worst walker."""

from dataclasses import replace
from unittest.mock import ANY

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import RULES
from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.verdict import OutputError, Verdict
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .compared import compared, in_float32, runner


def laplacian(variant):
    """Energies of 6 walkers of a function whose sign differs between walkers; ``variant`` plants a mistake."""

    def psi(x):
        hidden = jnp.tanh(x * jnp.arange(1, 7, dtype=x.dtype))
        return hidden.sum() * jnp.exp(-(x**2).sum()), hidden

    def log_psi(x):
        return jnp.log(jnp.abs(psi(x)[0]))

    def of_one(x):
        n, zero = x.shape[0], jnp.zeros((), x.dtype)
        _, hessian = jax.linearize(jax.grad(log_psi), x)
        eye = jnp.eye(n, dtype=x.dtype)
        trips = n - 1 if variant == "dropped-direction" else n
        total = lax.fori_loop(0, trips, lambda k, s: s + hessian(eye[k])[k], zero)
        factors = {"wrong-sign": -1, "missing-factor": 0.5, "small-factor": 1.0001, "sign-of-psi": jnp.sign(psi(x)[0])}
        return total * factors.get(variant, 1)

    def batched(walkers):
        energies = jax.vmap(of_one)(walkers)
        changed = {
            "swapped-walkers": lambda: energies[::-1],
            "stale-residual": lambda: jax.vmap(of_one)(jnp.roll(walkers, 1, 0)).at[0].set(energies[0]),
            "nan-at-one-walker": lambda: energies.at[3].set(jnp.nan),
            "infinite-at-one-walker": lambda: energies.at[3].set(jnp.inf),
            "one-walker-off": lambda: energies.at[4].add(0.01),
        }
        return changed[variant]() if variant in changed else energies

    return batched


ABSTRACT = jax.ShapeDtypeStruct((6, 6), np.float32)


@pytest.fixture(scope="module")
def original(lowered):
    return lowered(laplacian("right"), ABSTRACT)


def test_the_same_program_is_equal(original):
    verdict = check_programs(original, original)
    assert verdict.verdict == "equal"
    assert verdict.passed
    assert verdict.outputs[0].bitwise


def test_a_rewritten_file_is_within_bound(original):
    result = run_pipeline(original, parse_pipeline("fuse-jvp-replay"), Setting())
    assert result.applied
    assert check_programs(original, result.program).passed


WRONG = {
    **dict.fromkeys(("wrong-sign", "dropped-direction", "missing-factor", "small-factor", "sign-of-psi"), ""),
    **{"swapped-walkers": "", "stale-residual": "", "nan-at-one-walker": 3, "infinite-at-one-walker": 3},
    "one-walker-off": 4,
}


@pytest.mark.parametrize(("variant", "walker"), WRONG.items())
def test_a_wrong_rewriting_is_different_and_names_the_worst_walker(variant, walker, original, lowered):
    verdict = check_programs(original, lowered(laplacian(variant), ABSTRACT))
    assert verdict.verdict == "different"
    assert not verdict.passed
    assert f"walker {walker}" in verdict.worst
    assert verdict.worst.startswith("seed ")


def test_other_signatures_are_different(original, lowered):
    narrower = lowered(laplacian("right"), jax.ShapeDtypeStruct((5, 6), np.float32))
    assert check_programs(original, narrower) == Verdict(
        "different", reason="the signatures differ: argument 0 is 6x6xf32 in the original, 5x6xf32 in the other"
    )


def test_the_tolerance_is_what_the_original_loses():
    exact = [1.0, 2.0, 3.0]
    loose = in_float32(exact, [1.0, 2.1, 3.0], [1.3, 2.0, 3.0])
    assert loose.passed
    np.testing.assert_allclose(loose.outputs[0].tolerance, 0.4, rtol=1e-5)
    assert not in_float32(exact, exact, [1.3, 2.0, 3.0]).passed
    assert in_float32(exact, exact, [1.0, 2.0, 3.0000002]).verdict == "within-bound"


def test_a_mistake_below_float32_rounding_is_seen_in_float64():
    verdict = in_float32([1.0, 2.0], [1.001, 2.0], [1.0, 2.0], [1.0, 2.0000001])
    assert verdict.verdict == "different"
    assert "walker 1" in verdict.worst


def test_values_that_are_not_finite_must_agree():
    assert in_float32([1.0, np.nan], [1.0, np.nan], [1.0, np.nan]).verdict == "equal"
    assert in_float32([1.0, np.inf], [1.0, np.inf], [1.0, 7.0]).verdict == "different"
    # Where the original overflows in float32 and truth does not, the rewritten program may as well.
    assert in_float32([1.0, 1e39], [1.0, np.inf], [1.0, np.inf]).verdict == "equal"
    # Infinite of the other sign is as wrong as a number.
    assert in_float32([1.0, np.inf], [1.0, np.inf], [1.0, -np.inf]).verdict == "different"
    assert in_float32([1.0, np.inf], [1.0, np.inf], [1.0, np.nan]).verdict == "different"


def test_whole_numbers_must_be_the_same(lowered):
    arguments = (np.arange(4, dtype=np.int32),)
    original = lowered(lambda n: (n + 1, n > 1), *arguments)
    assert check_programs(original, original).verdict == "equal"
    assert check_programs(original, lowered(lambda n: (n + 1, n > 2), *arguments)).verdict == "different"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_other_floating_types_are_compared_with_wider_truth(dtype, lowered):
    abstract = jax.ShapeDtypeStruct((5, 7), dtype)
    original = lowered(lambda x: lax.fori_loop(0, 6, lambda k, s: s + jnp.sin(x * k), x), abstract)
    result = run_pipeline(original, parse_pipeline("batch-replay"), Setting())
    assert result.applied
    assert check_programs(original, result.program).passed
    wrong = lowered(lambda x: lax.fori_loop(0, 5, lambda k, s: s + jnp.sin(x * k), x), abstract)
    assert check_programs(original, wrong).verdict == "different"


def test_raising_must_reproduce_the_original(lowered, monkeypatch):
    program = lowered(lambda x: jnp.sin(x) * 2, np.ones(4, np.float32))
    assert check_programs(program, program).verdict == "equal"
    monkeypatch.setitem(RULES, "stablehlo.sine", RULES["stablehlo.cosine"])
    reason = "raising does not reproduce the original"
    assert check_programs(program, program) == Verdict("not-checked", reason=reason)


def test_a_wrong_truth_does_not_widen_the_tolerance():
    right, wrong = np.float32([1.0, 2.0]), np.float32([1.0, 7.0])
    for raised, word in ((right, "equal"), (right + np.float32(2e-7), "equal"), (wrong, "not-checked")):
        verdict = compared(raised.astype(np.float64), right, right, raised=runner(raised))
        assert verdict.verdict == word


def test_what_was_lowered_for_cuda_is_run_raised_and_says_so(lowered):
    square = jax.ShapeDtypeStruct((3, 3), np.float32)
    original = lowered(jnp.linalg.slogdet, square, platform="cuda")
    verdict = check_programs(original, original)
    assert verdict.verdict == "equal"
    assert verdict.reason == "lowered for CUDA: run through the raised program"
    on_cpu = lowered(jnp.linalg.slogdet, square)
    assert check_programs(on_cpu, on_cpu) == replace(verdict, outputs=ANY, reason="")


def test_an_output_that_is_never_finite_is_no_evidence():
    nan = [np.nan, np.inf]
    verdict = in_float32(nan, nan, nan)
    assert verdict.verdict == "not-checked"
    assert verdict.reason == "no input gave a finite value in output 0"
    assert not verdict.passed
    assert in_float32(nan, nan, [1.0, np.inf]).verdict == "different"


@pytest.mark.parametrize(
    ("dtype", "left", "right"),
    [("int64", 2**60, 2**60 + 1), ("uint64", 2**64 - 1, 2**64 - 2), ("int64", -(2**63), 2**63 - 1), ("uint8", 0, 1)],
)
def test_whole_numbers_are_not_rounded_before_they_are_compared(dtype, left, right):
    verdict = compared(*(np.array([5, value], dtype) for value in (left, left, right, right)))
    assert verdict.verdict == "different"
    assert "walker 1" in verdict.worst
    assert verdict.outputs[0].max_abs_error == float(abs(left - right))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_an_output_without_elements_is_equal(dtype, lowered):
    program = lowered(lambda x: (x * 2, x.sum()), np.ones((0, 3), dtype))
    assert check_programs(program, program).verdict == "equal"


def test_a_float64_program_may_be_reassociated(lowered):
    abstract = jax.ShapeDtypeStruct((40, 40), np.float64)
    with jax.enable_x64(True):
        original = lowered(lambda x: (x @ x).sum(0), abstract)
        reassociated = lowered(lambda x: x.sum(0) @ x, abstract)
        wrong = lowered(lambda x: x.sum(0) @ x * (1 + 1e-9), abstract)
    verdict = check_programs(original, reassociated)
    assert verdict.verdict == "within-bound"
    assert 0 < verdict.outputs[0].max_abs_error < verdict.outputs[0].tolerance < 1e-9
    assert check_programs(original, wrong).verdict == "different"


def test_a_verdict_goes_to_json_and_back():
    import json

    output = OutputError("output 0", float("inf"), 0.5, float("nan"), 1e-9, False)
    verdict = Verdict("different", (output,), 16, "seed 1, walker 3", "")
    text = json.dumps(verdict.to_json(), allow_nan=False)
    back = Verdict.from_json(json.loads(text))
    assert back.outputs[0].max_abs_error == float("inf")
    assert np.isnan(back.outputs[0].max_abs_error_float64)
    assert (back.verdict, back.walkers, back.worst) == ("different", 16, "seed 1, walker 3")
    assert set(verdict.to_json()) >= {"verdict", "max_abs_error", "tolerance", "walkers"}
