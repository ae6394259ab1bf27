"""Wrong rewritings that an equivalence check once let pass, or might: what they hide behind must not hide them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.check import check_programs, why_less_precise
from fusionlab.equivalence.samples import workload_samples
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads import catalogue

from .compared import compared, runner

ROW = jax.ShapeDtypeStruct((16,), "float32")
INTEGERS = jax.ShapeDtypeStruct((4,), "int32")
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


WRONG = {
    "behind a huge element": (huge, sixth_off(huge, 1.5), (ROW,)),
    "behind an ill-conditioned element": (ill_conditioned, sixth_off(ill_conditioned, 1.001), (ROW,)),
    "behind an element that overflows": (overflowing, sixth_off(overflowing, 1.5), (ROW,)),
    "behind another column": (
        lambda x: jnp.stack([x * 1e20, x], 1),
        lambda x: jnp.stack([x * 1e20, x * 1.01], 1),
        (ROW,),
    ),
    "at indices beyond 3": (lambda i, x: x[i], lambda i, x: x[jnp.minimum(i, 3)], (INTEGERS, ROW)),
    "at negative indices": (
        lambda i, x: x[i],
        lambda i, x: x.at[i].get(mode="clip", wrap_negative_indices=False),
        (INTEGERS, ROW),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_does_not_hide(name, lowered):
    original, wrong, given = WRONG[name]
    program = lowered(original, *given)
    assert check_programs(program, program).verdict == "equal"
    assert check_programs(program, lowered(wrong, *given)).verdict == "different"


def test_nothing_is_said_of_what_is_nan_nearly_everywhere(lowered):
    program = lowered(not_a_number, ROW)
    verdict = check_programs(program, lowered(lambda x: not_a_number(x * 1.0), ROW))
    assert verdict.verdict == "not-checked"
    assert verdict.reason == "15 of 16 elements were NaN at every input in output 0"


def test_zeros_of_two_signs_are_not_the_same_bits(lowered):
    program = lowered(lambda x: x * 0, ROW)
    assert check_programs(program, program).verdict == "equal"
    assert check_programs(program, lowered(lambda x: jnp.abs(x * 0), ROW)).verdict == "within-bound"


def test_outputs_of_another_shape_are_different():
    """NumPy would compare one number with all of them."""

    for ours, theirs, wide in (((3,), (1,), (3,)), ((3,), (3,), ()), ((3,), (3, 1), (3,))):
        narrow = (np.ones(shape, np.float32) for shape in (ours, theirs))
        verdict = compared(np.ones(ours), *narrow, np.ones(wide))
        assert verdict.verdict == "different"
        assert "output 0 is" in verdict.reason


SQUARE = jax.ShapeDtypeStruct((4, 4), "float32")


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


def test_an_ill_conditioned_program_in_float64_may_lose_what_it_is_bound_to_lose(lowered):
    """It is its own truth there; two right programs differ by more than a thousand roundings of its largest number."""

    def wave(x):
        return jnp.sin(1e9 * x.sum(1))

    with jax.enable_x64(True):
        square = jax.ShapeDtypeStruct((4, 4), "float64")
        original, other, wrong = (
            lowered(function, square) for function in (wave, lambda x: wave(x[:, ::-1]), lambda x: wave(x) * (1 + 1e-4))
        )
    assert check_programs(original, other).verdict == "within-bound"
    assert check_programs(original, wrong).verdict == "different"


def test_what_a_float64_program_loses_by_cancellation_shows_in_float32():
    """At inputs rounded otherwise it loses the same, so that nothing moves."""
    truth = np.array([205.0, 1.0])
    off = truth + np.array([2.8e-10, 0.0])

    def verdict(rewritten, narrow):
        narrowed = None if narrow is None else lambda: runner(np.asarray(narrow, np.float32))
        return compared(truth, truth, rewritten, rewritten, narrowed=narrowed).verdict

    assert verdict(off, None) == "different"
    assert verdict(off, truth) == "different"
    assert verdict(off, [205.5, 1.0]) == "within-bound"
    assert verdict(off[::-1] - truth[::-1] + truth, [205.5, 1.0]) == "different"
    assert verdict(truth * (1 + 1e-6), [205.5, 1.0]) == "different"


@pytest.mark.slow
def test_a_model_in_float64_is_checked_by_the_same_command(cli, recwarn):
    result = cli(
        "check", "--model", "ferminet", "--molecule", "LiH", "--size", "tiny", "--dtype", "float64", "--pass",
        "fuse-jvp-replay", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.stdout
    assert not [warning for warning in recwarn if "float64" in str(warning.message)]


def test_an_optimiser_of_a_check_has_made_steps():
    """At its beginning its moments are zero, and hide whatever is done with them."""
    workload = catalogue.build("ferminet", "LiH", program="train-step", walkers=2, size="tiny")
    first, second = (sample for _, sample in zip(range(2), workload_samples(workload), strict=False))
    structure = jax.tree.structure(jax.eval_shape(workload.inputs, 0))
    states = [jax.tree.unflatten(structure, sample.arrays)[-1] for sample in (first, second)]
    start, under_way = ([leaf for leaf in jax.tree.leaves(state) if leaf.ndim] for state in states)
    assert all((leaf == 0).all() for leaf in start)
    assert all((leaf > 0).all() for leaf in under_way)


def test_events_of_a_pass_keep_the_precision_of_what_they_rewrite(lowered):
    def energies(x, w):
        def one(r):
            gradient = jax.grad(lambda q: jnp.tanh(jnp.dot(q, w, precision="highest")).sum())
            _, push = jax.linearize(gradient, r)
            eye = jnp.eye(4)
            return jax.lax.fori_loop(0, 4, lambda k, s: s + push(eye[k])[k], 0.0)

        return jax.vmap(one)(x)

    program = lowered(energies, jax.ShapeDtypeStruct((3, 4), "float32"), SQUARE)
    for name in ("batch-replay", "fuse-jvp-replay"):
        result = run_pipeline(program, parse_pipeline(name), Setting())
        assert result.applied
        assert why_less_precise(program, result.program) is None
