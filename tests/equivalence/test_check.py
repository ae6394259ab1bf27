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
from fusionlab.equivalence.samples import Sample
from fusionlab.equivalence.verdict import Verdict
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline


def array(dtype, *shape):
    return jax.ShapeDtypeStruct(shape, dtype)


WALKERS, ROW, SQUARE = array("float32", 6, 6), array("float32", 16), array("float32", 4, 4)


def laplacian(variant):
    """Energies of 6 walkers of a function whose sign differs between walkers; ``variant`` plants a mistake."""

    def psi(x):
        hidden = jnp.tanh(x * jnp.arange(1, 7, dtype=x.dtype))
        return hidden.sum() * jnp.exp(-(x**2).sum())

    def of_one(x):
        _, hessian = jax.linearize(jax.grad(lambda x: jnp.log(jnp.abs(psi(x)))), x)
        eye = jnp.eye(len(x), dtype=x.dtype)
        trips = len(x) - 1 if variant == "dropped-direction" else len(x)
        total = lax.fori_loop(0, trips, lambda k, s: s + hessian(eye[k])[k], jnp.zeros((), x.dtype))
        factors = {"wrong-sign": -1, "missing-factor": 0.5, "small-factor": 1.0001, "sign-of-psi": jnp.sign(psi(x))}
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


@pytest.fixture(scope="module")
def original(lowered):
    return lowered(laplacian("right"), WALKERS)


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
    verdict = check_programs(original, lowered(laplacian(variant), WALKERS))
    assert verdict.verdict == "different"
    assert not verdict.passed
    assert f"walker {walker}" in verdict.worst
    assert verdict.worst.startswith("seed ")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_other_floating_types_are_compared_with_wider_truth(dtype, lowered):
    program = lowered(lambda x: lax.fori_loop(0, 6, lambda k, s: s + jnp.sin(x * k), x), array(dtype, 5, 7))
    result = run_pipeline(program, parse_pipeline("batch-replay"), Setting())
    assert result.applied
    assert check_programs(program, result.program).passed


def test_a_float64_program_may_be_reassociated(lowered):
    with jax.enable_x64(True):
        programs = [
            lowered(function, array("float64", 40, 40))
            for function in (
                lambda x: (x @ x).sum(0),
                lambda x: x.sum(0) @ x,
                lambda x: x.sum(0) @ x * (1 + 1e-9),
            )
        ]
    reassociated, wrong = (check_programs(programs[0], other) for other in programs[1:])
    assert reassociated.verdict == "within-bound"
    assert 0 < reassociated.outputs[0].max_abs_error < reassociated.outputs[0].tolerance < 1e-9
    assert wrong.verdict == "different"


@pytest.mark.parametrize("far", [1.0, 18.0, 18.5])
def test_slopes_at_the_end_of_a_tanh_may_be_multiples_of_a_rounding(far, lowered):
    """1 - t^2, and (1 - t) (1 + t), of a tanh t that is rounded to 1 or nearly so."""

    def function(slope, factor=1.0):
        return lambda x: jnp.concatenate([slope(jnp.tanh(far * x)) * factor, slope(jnp.tanh(x))])

    forms = [function(lambda t: 1 - t * t), function(lambda t: (1 - t) * (1 + t))]
    forms += [
        function(lambda t: 1 - t * t, 1 + 1e-7 if far == 1 else 1e9),
        function(lambda t: (1 - t) * (1 - 1e-9 + t)),
    ]
    with jax.enable_x64(True):
        x = np.linspace(0.99, 1.01, 40)
        programs = [lowered(form, x) for form in forms]
    verdicts = [check_programs(programs[0], other, [Sample("seed 1", (x,))]).verdict for other in programs]
    assert verdicts == ["equal", "within-bound", "different", "different"]


WRONG_IN_FLOAT64 = {
    "narrow-part": (
        lambda x: (jnp.tanh(x).astype(jnp.bfloat16) * 2).astype(x.dtype) + jnp.sin(x),
        lambda x: (jnp.tanh(x).astype(jnp.bfloat16) * 2.02).astype(x.dtype) + jnp.sin(x),
    ),
    "ties": (lambda x: jnp.round(jnp.round(4 * x) / 2), lambda x: jnp.floor(jnp.round(4 * x) / 2 + 0.5)),
    "floor": (lambda x: jnp.floor(x / x) + x, lambda x: jnp.floor(x / x) + 1 + x),
    "saturated-guard": (lambda x: jnp.where(jnp.tanh(20.3 + jnp.abs(x)) >= 1, 5.0, x), lambda x: x),
    "guard-of-a-product": (lambda x: jnp.where(x @ jnp.eye(6) == x, 2.0, x), lambda x: x),
    "guard-of-a-quotient": (lambda x: jnp.where(x / x.max(1, keepdims=True) == 1, 5.0, x), lambda x: x),
}


@pytest.mark.parametrize("name", WRONG_IN_FLOAT64)
def test_roundings_excuse_no_jump_and_no_narrow_part(name, lowered):
    """Each passed where intermediate results were rounded otherwise and ran again."""
    x = np.linspace(0.1, 2.0, 24).reshape(4, 6)
    with jax.enable_x64(True):
        right, wrong = (lowered(function, x) for function in WRONG_IN_FLOAT64[name])
    assert check_programs(right, wrong, [Sample("seed 1", (x,))]).verdict == "different"


def test_an_ill_conditioned_walker_allows_no_narrowed_part_at_the_others(lowered):
    """(1e5 + x) - 1e5 loses roundings of 1e5 at the first row, and nothing elsewhere."""

    def function(dtype):
        return lambda x: (jnp.tanh(x[:, 0]).astype(dtype).astype(x.dtype) + x[:, 1]) - x[:, 1]

    rows = np.stack([np.linspace(0.3, 0.7, 8), 1e5 * (np.arange(8) == 0)], 1)
    with jax.enable_x64(True):
        wide, narrowed = (lowered(function(dtype), rows) for dtype in ("float64", "float32"))
    assert check_programs(wide, narrowed, [Sample("seed 1", (rows,))]).verdict == "different"


def test_other_signatures_are_different(original, lowered):
    narrower = lowered(laplacian("right"), array("float32", 5, 6))
    assert check_programs(original, narrower) == Verdict(
        "different", reason="the signatures differ: argument 0 is 6x6xf32 in the original, 5x6xf32 in the other"
    )


def test_raising_must_reproduce_the_original(lowered, monkeypatch):
    program = lowered(lambda x: jnp.sin(x) * 2, ROW)
    assert check_programs(program, program).verdict == "equal"
    monkeypatch.setitem(RULES, "stablehlo.sine", RULES["stablehlo.cosine"])
    reason = "raising does not reproduce the original"
    assert check_programs(program, program) == Verdict("not-checked", reason=reason)


def test_what_was_lowered_for_cuda_is_run_raised_and_says_so(lowered):
    cuda, cpu = (lowered(jnp.linalg.slogdet, SQUARE, platform=platform) for platform in ("cuda", "cpu"))
    verdict = check_programs(cuda, cuda)
    assert verdict.verdict == "equal"
    assert verdict.reason == "lowered for CUDA: run through the raised program"
    assert check_programs(cpu, cpu) == replace(verdict, outputs=ANY, reason="")
