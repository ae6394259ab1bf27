"""Wrong rewritings that an equivalence check once let pass, or might: what they hide behind must not hide them."""

from dataclasses import replace
from unittest.mock import ANY

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.check import check_programs, why_less_precise
from fusionlab.equivalence.samples import workload_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.workloads import catalogue

from .test_check import ROW, SQUARE, array
from .test_output_errors import compared

FIRST = np.arange(16) == 0


def huge(x):
    return jnp.where(FIRST, x * 1e30, x)


def ill_conditioned(x):
    return jnp.where(FIRST, jnp.sin(x * 1e8) * 1e6, x)


def overflowing(x):
    return jnp.where(FIRST, jnp.exp(100 + 300 * jnp.abs(x)), x)


def not_a_number(x):
    return jnp.where(FIRST, x, jnp.log(-jnp.abs(x)))


def sixth_off(f, factor):
    return lambda x: f(x).at[5].multiply(factor)


def wave(x):
    """Two right programs in float64 differ by more than a thousand roundings of its largest number."""
    return jnp.sin(1e9 * x.sum(1))


def narrow(dtype, order=1, factor=1.0):
    """A part in ``dtype``, which truth computes in float64."""

    def function(x):
        hidden = jnp.tanh(x).astype(dtype)[:, ::order]
        return (hidden * hidden).sum(1).astype(x.dtype) * factor

    return function


def summed(trips):
    return lambda x: lax.fori_loop(0, trips, lambda k, s: s + jnp.sin(x * k), x)


DOUBLE, INDEXED = (array("float64", 16, 32),), (array("int32", 4), ROW)
VERDICTS = {
    "wrong behind a huge element": (huge, sixth_off(huge, 1.5), (ROW,), "different"),
    "wrong behind an ill-conditioned element": (
        ill_conditioned, sixth_off(ill_conditioned, 1.001), (ROW,), "different"),
    "wrong behind an element that overflows": (overflowing, sixth_off(overflowing, 1.5), (ROW,), "different"),
    "wrong behind another column": (
        lambda x: jnp.stack([x * 1e20, x], 1), lambda x: jnp.stack([x * 1e20, x * 1.01], 1), (ROW,), "different"),
    "wrong at indices beyond 3": (lambda i, x: x[i], lambda i, x: x[jnp.minimum(i, 3)], INDEXED, "different"),
    "wrong at negative indices": (
        lambda i, x: x[i], lambda i, x: x.at[i].get(mode="clip", wrap_negative_indices=False), INDEXED, "different"),
    "zeros of two signs": (lambda x: x * 0, lambda x: jnp.abs(x * 0), (ROW,), "within-bound"),
    "another predicate": (lambda n: (n + 1, n > 1), lambda n: (n + 1, n > 2), (array("int32", 4),), "different"),
    "an empty float32": (lambda x: (x * 2, x.sum()), lambda x: (2 * x, x.sum()), (array("float32", 0, 3),), "equal"),
    "an empty int32": (lambda x: (x * 2, x.sum()), lambda x: (2 * x, x.sum()), (array("int32", 0, 3),), "equal"),
    "an ill-conditioned float64 program": (wave, lambda x: wave(x[:, ::-1]), DOUBLE, "within-bound"),
    "the same, wrong": (wave, lambda x: wave(x) * (1 + 1e-4), DOUBLE, "different"),
}  # fmt: skip
for dtype, reassociated in (("float32", "within-bound"), ("bfloat16", "equal")):
    VERDICTS |= {
        f"a part in {dtype}, reversed": (narrow(dtype), narrow(dtype, order=-1), DOUBLE, reassociated),
        f"a part in {dtype}, wrong": (narrow(dtype), narrow(dtype, factor=1 + 1e-11), DOUBLE, "different"),
        f"a part that is newly in {dtype}": (narrow("float64"), narrow(dtype), DOUBLE, "different"),
    }
for dtype in ("float16", "bfloat16", "complex64"):
    VERDICTS[f"a trip less in {dtype}"] = (summed(6), summed(5), (array(dtype, 5, 7),), "different")


@pytest.mark.slow
@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name, lowered):
    function, other, given, expected = VERDICTS[name]
    with jax.enable_x64(given is DOUBLE):
        program, rewritten = lowered(function, *given), lowered(other, *given)
    assert check_programs(program, program).verdict == "equal"
    assert check_programs(program, rewritten).verdict == expected


def test_nothing_is_said_of_what_is_nan_nearly_everywhere(lowered):
    program, other = lowered(not_a_number, ROW), lowered(lambda x: not_a_number(x * 1.0), ROW)
    reason = "15 of 16 elements were NaN at every input in output 0"
    assert replace(check_programs(program, other), outputs=()) == Verdict("not-checked", walkers=ANY, reason=reason)


@pytest.mark.parametrize("shapes", [((3,), (1,), (3,)), ((3,), (3,), ()), ((3,), (3, 1), (3,))])
def test_outputs_of_another_shape_are_different(shapes):
    """NumPy would compare one number with all of them."""
    ours, theirs, wide = map(np.ones, shapes)
    verdict = compared(ours, ours.astype("f4"), theirs.astype("f4"), wide)
    assert verdict.verdict == "different"
    assert "output 0 is" in verdict.reason


def product(precision):
    return lambda a, b: jnp.dot(a, b, precision=precision)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize(("ours", "theirs"), [("highest", "high"), ("highest", None), ("high", "default")])
def test_a_lower_precision_of_contractions_is_different_where_a_cpu_computes_the_same(ours, theirs, platform, lowered):
    original, wrong = (lowered(product(precision), SQUARE, SQUARE, platform=platform) for precision in (ours, theirs))
    verdict = check_programs(original, wrong)
    assert verdict.verdict == "different"
    assert f"the original at {ours.upper()} or above" in verdict.reason
    assert check_programs(wrong, original).verdict == "equal"


def test_what_contracts_nothing_multiplies_at_full_precision(lowered):
    original = lowered(lambda a, b: (a[:, :, None] * b[None]).sum(1), SQUARE, SQUARE)
    assert why_less_precise(original, lowered(product(None), SQUARE, SQUARE)).endswith("the original nothing")
    assert why_less_precise(original, lowered(product("highest"), SQUARE, SQUARE)) is None


@pytest.mark.parametrize("name", ["batch-replay", "fuse-jvp-replay"])
def test_passes_keep_the_precision_of_what_they_rewrite(name, lowered):
    def energy(w, r):
        gradient = jax.grad(lambda q: jnp.tanh(jnp.dot(q, w, precision="highest")).sum())
        _, push = jax.linearize(gradient, r)
        return lax.fori_loop(0, 4, lambda k, s: s + push(jnp.eye(4)[k])[k], 0.0)

    program = lowered(jax.vmap(energy, (None, 0)), SQUARE, array("float32", 3, 4))
    result = run_pipeline(program, parse_pipeline(name), Setting())
    assert result.applied
    assert why_less_precise(program, result.program) is None


@pytest.mark.slow
def test_a_model_in_float64_is_checked_by_the_same_command(cli, recwarn):
    result = cli(
        "check", "--model", "ferminet", "--molecule", "LiH", "--size", "tiny", "--dtype", "float64", "--pass",
        "fuse-jvp-replay", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    assert not [warning for warning in recwarn if "float64" in str(warning.message)]


@pytest.mark.slow
def test_an_optimiser_of_a_check_has_made_steps():
    """At its beginning its moments are zero, and hide whatever is done with them."""
    workload = catalogue.build("ferminet", "LiH", program="train-step", walkers=2, size="tiny")
    structure = jax.tree.structure(jax.eval_shape(workload.inputs, 0))
    samples = (sample for _, sample in zip(range(2), workload_samples(workload), strict=False))
    states = [jax.tree.unflatten(structure, sample.arrays)[-1] for sample in samples]
    start, under_way = ([leaf for leaf in jax.tree.leaves(state) if leaf.ndim] for state in states)
    assert all((leaf == 0).all() for leaf in start)
    assert all((leaf > 0).all() for leaf in under_way)
