"""What is decided on an optimised function, when it is checked, and what its author is told."""

import re
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.equivalence import isolated
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.errors import FallbackWarning, InputError, NotEquivalentError, NotOptimizedError, NotOptimizedWarning
from fusionlab.optimizing import checking, references, rewriting
from fusionlab.optimizing.checking import Runners
from fusionlab.optimizing.optimize import Optimized
from fusionlab.optimizing.rewriting import Policy
from fusionlab.passes.interface import faults
from fusionlab.subprocesses import ProcessFailed
from tests.conftest import call_here
from tests.optimizing import functions
from tests.optimizing.functions import (
    HOIST,
    arguments,
    decision_of,
    hoisting,
    laplacians,
    made_by,
    of_integers,
    repeated,
    wrong,
)

pytestmark = pytest.mark.usefixtures("without_exact_checks")

ON_GIVEN, ON_VARIED = "the given arguments", "the given arguments and variants of them"
LINE = r" at test_rewriting.py:\d+.*; instead: "
NO_VALUE = "not-checked on the given .*: no input gave a finite value"


def no_finite(x, w):
    return repeated(x, w), jnp.log(0.0 * w)


def times(x, n):
    """sin and cos of anything, no times, are the same; an integer that is an index is not varied."""
    return jnp.array([0.0, 1.0])[n] * jnp.sin(x)


def of_walkers(x):
    return jax.vmap(repeated, (0, None))(x, 0.5)


def beyond_a_thousand(x, w):
    """Where drawn numbers do not come, the loop's."""
    return jnp.where(x > 1e3, repeated(x, w), x)


@pytest.mark.parametrize(
    ("function", "given", "on"),
    [
        (repeated, (1.0, 0.5), ON_GIVEN),
        (repeated, (0.0, 0.1), f"{ON_VARIED}: variant"),
        (no_finite, (0.0, 0.5), ON_VARIED),
        (lambda w: jnp.where(w > 0, w, jnp.sin(w)), (0.5,), f"{ON_VARIED}: variant"),
        (lambda n, x: n * jnp.sin(x), (0, 0.5), f"{ON_VARIED}: variant"),
        (lambda flag, x: jnp.where(flag, jnp.sin(x), x), (False, 0.5), f"{ON_VARIED}: variant"),
        (lambda mask, x: jnp.sum(jnp.where(mask, jnp.sin(x), x)), (np.zeros(3, bool), np.ones(3, np.float32)),
         f"{ON_VARIED}: variant"),
    ],
    ids=["plain", "a zero", "an output without a number", "a sign", "an integer", "a boolean", "a mask"],
)  # fmt: skip
@pytest.mark.parametrize("check", ["once", "always"])
def test_a_wrong_rewrite_is_found_whatever_hides_it_and_the_original_runs(function, given, on, check):
    optimized = wrong(function, check=check)
    message = f"{function.__name__.strip('<>')}_? runs as it was: the rewritten program is different on {on}"
    with pytest.warns(NotOptimizedWarning, match=message) as said:
        found = optimized(*given)
    assert [warning.filename for warning in said] == [__file__]
    assert "different on the given arguments" in optimized.fusionlab.reason
    jax.tree.map(np.testing.assert_array_equal, found, jax.jit(function)(*given))
    if function is repeated:
        assert optimized(1.0, 0.6) == jax.jit(repeated)(1.0, 0.6)


@pytest.mark.versions
def test_inside_a_jit_it_is_found_on_drawn_numbers():
    with pytest.warns(NotOptimizedWarning, match="different on drawn arguments"):
        assert jax.jit(wrong())(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)


@pytest.mark.versions
@pytest.mark.parametrize("check", ["once", "always"])
@pytest.mark.parametrize("look", ["lower", "trace", "eval_shape"])
def test_a_function_that_was_lowered_first_is_checked_on_the_arguments_of_its_call(check, look):
    function = wrong(beyond_a_thousand, check=check)
    shown = getattr(function, look)(0.0, 0.1)
    if look == "trace":
        shown.lower()
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments"):
        assert function(2000.0, 0.1) == jax.jit(beyond_a_thousand)(2000.0, 0.1)


@pytest.mark.parametrize("check", ["once", "always"])
def test_a_difference_can_be_an_error(check):
    function = wrong(check=check, on_difference="raise")
    for _ in range(2):
        with pytest.raises(NotEquivalentError, match=r"repeated: .* different on the given arguments and .* error"):
            function(1.0, 0.5)


@pytest.mark.parametrize(
    ("function", "check", "hidden", "shown"),
    [(times, "always", (0.5, 0), (0.5, 1)), (of_integers, "once", (0.0, 0.5), (1.0, 0.5))],
    ids=["at every call", "where no variant was compared"],
)
def test_what_a_first_call_hides_is_compared_again(function, check, hidden, shown):
    optimized, strict = both = [wrong(function, check=check, on_difference=on) for on in ("original", "raise")]
    for one in both:
        assert one(*hidden) == 0.0
        assert one.fusionlab.state == "rewritten"
    for _ in range(2 if check == "always" else 1):
        with pytest.warns(NotOptimizedWarning, match="different on the given arguments"):
            assert optimized(*shown) == jnp.sin(0.5)
    with pytest.raises(NotEquivalentError, match="different on the given arguments"):
        strict(*shown)
    for one in both:
        assert one(*hidden) == 0.0
        assert check == "always" or one.fusionlab.state == "unchanged"


def finite_at_zero(x, w):
    return repeated(jnp.where(x == 0, w, jnp.nan), w)


def endless_beyond_one(x, w):
    return jax.lax.while_loop(lambda c: c[0] > 1e-3, lambda c: (c[0] * x, c[1] + jnp.sin(w)), (x, 0.0))[1]


@pytest.mark.parametrize(("function", "x"), [(finite_at_zero, 0.0), (endless_beyond_one, 0.9)])
def test_a_variant_without_a_finite_result_says_nothing_and_one_that_may_not_end_is_not_tried(function, x):
    optimized = hoisting(function, check="once")
    np.testing.assert_allclose(optimized(x, 0.5), jax.jit(function)(x, 0.5), rtol=1e-6)
    decision = decision_of(optimized)
    assert decision.verdict.passed
    assert decision.compared_on == ON_GIVEN


@pytest.mark.parametrize("check", ["once", "always"])
def test_what_had_no_finite_output_is_checked_at_the_next_call(check):
    """JAX keeps what it compiled at the first call, which is the original."""
    function, other = hoisting(repeated, check=check), wrong(on_difference="raise", check=check)
    for one in (function, other):
        with pytest.warns(NotOptimizedWarning, match=NO_VALUE):
            assert np.isnan(one(np.nan, 0.5))
        assert one.fusionlab.state != "rewritten"
    assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
    assert decision_of(function).verdict.passed
    with pytest.raises(NotEquivalentError, match="different"):
        other(1.0, 0.5)


def test_what_is_never_finite_is_checked_a_few_times(monkeypatch):
    compared, checks = Runners.compared, []
    monkeypatch.setattr(Runners, "compared", lambda *args, **named: checks.append(1) or compared(*args, **named))
    function = hoisting(lambda x, w: repeated(x * jnp.nan, w), check="once")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for w in (0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            assert np.isnan(function(1.0, w))
    assert len(checks) == 4
    assert len(said) == 2
    assert "so at 4 calls, and not checked again" in str(said[-1].message)


def test_never_compares_nothing_and_decisions_outlive_the_cache():
    function = wrong(check="never")
    for _ in range(2):
        np.testing.assert_allclose(function(1.0, 0.1), np.cos(0.1) ** 5, rtol=1e-5)
        assert function(1.0, 0.1) == function.lower(1.0, 0.1).compile()(1.0, 0.1)
        function.clear_cache()
    assert decision_of(function).verdict is None
    assert "nothing was compared" in str(function.fusionlab.report())


def test_a_call_of_itself_is_not_checked_on_the_outer_call_s_arguments():
    def function(x, w):
        return repeated(x, w) if x.ndim == 0 else recursive(x.sum(), w) + recursive(x.max(), w)

    recursive = hoisting(function, check="once")
    x = jnp.arange(3.0)
    with pytest.warns(NotOptimizedWarning, match="nothing that a trip computes is invariant"):  # of the outer call
        np.testing.assert_allclose(recursive(x, 0.5), 4 * repeated(1.25, 0.5), rtol=1e-6)
    of_itself = [decision for decision in recursive.fusionlab.decisions if not decision.original.inputs[0].shape]
    assert [(decision.compared_on, decision.alone) for decision in of_itself] == [("drawn arguments", False)]


@pytest.mark.versions
def test_options_of_the_compiler_reach_the_check(monkeypatch):
    seen, compared = [], Runners.compared
    monkeypatch.setattr(Runners, "compared", lambda self, *a, **k: seen.append(self.options) or compared(self, *a, **k))
    function = Optimized(
        repeated, Policy((functions.SineToCosine(),)), {"compiler_options": {"xla_cpu_enable_fast_math": True}}
    )
    with pytest.warns(NotOptimizedWarning, match="different"):
        function(1.0, 0.5)
    assert [options["xla_cpu_enable_fast_math"] for options in seen] == [True]


def broken(*_, **__):
    raise TypeError("a bug")


def test_a_pass_that_fails_leaves_the_function_as_it_was(caplog):
    function = made_by(functions.Broken())
    with pytest.warns(NotOptimizedWarning, match="ZeroDivisionError: a bug"):
        assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
    assert function.fusionlab.reason.startswith("broken: ZeroDivisionError: a bug; cause: fault; instead: leave the ")
    [event] = function.fusionlab.decisions[0].events
    assert event.kind == "fault"
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("place", ["optimize.trace", "rewriting.lower_jaxpr", "rewriting.Runners.compared"])
def test_a_failure_of_ours_leaves_the_function_as_it_was(place, monkeypatch):
    function = hoisting(repeated, check="always")
    if place == "rewriting.Runners.compared":  # in a later check
        assert function(0.0, 0.1) == jax.jit(repeated)(0.0, 0.1)
    monkeypatch.setattr(f"fusionlab.optimizing.{place}", broken)
    with pytest.warns(NotOptimizedWarning, match="TypeError: a bug"):
        assert function(1.0, 0.1) == jax.jit(repeated)(1.0, 0.1)


def printing(x, w):
    jax.debug.print("seen {}", x)
    return repeated(x, w)


def calling_back(x, w):
    """A pure callback is no effect in the jaxpr."""
    type_ = jax.ShapeDtypeStruct((), jnp.float32)
    called = jax.lax.cond(x > 0, lambda x: jax.pure_callback(lambda x: x + np.float32(1), type_, x), lambda x: x, x)
    return repeated(called, w)


@pytest.mark.versions
@pytest.mark.parametrize("check", ["once", "never"])
@pytest.mark.parametrize(
    ("function", "expected", "message"),
    [
        (printing, (1.0, 0.5), rf"it has effects \(\w+\); cause: op, \w+{LINE}leave out"),
        (calling_back, (2.0, 0.5), rf"\(pure_callback\).*; cause: op, pure_callback{LINE}write"),
    ],
)
def test_a_function_with_effects_or_callbacks_runs_as_it_is(function, expected, message, check, capfd):
    optimized = hoisting(function, check=check)
    with pytest.warns(NotOptimizedWarning, match=message):
        np.testing.assert_allclose(optimized(1.0, 0.5), repeated(*expected), rtol=1e-6)
    np.testing.assert_allclose(optimized(1.0, 0.5), repeated(*expected), rtol=1e-6)
    jax.effects_barrier()
    assert ("seen 1.0" in capfd.readouterr().out) == (function is printing)


@pytest.mark.versions
def test_an_opaque_call_is_named_with_what_can_be_done():
    """The check needs every operation in float64, and of a library call that is not known it has none."""

    def function(x, w):
        return repeated(x, w) + jax.lax.linalg.hessenberg(jnp.outer(x, x))[0][0, 0]

    optimized = hoisting(function, check="once")
    with pytest.warns(
        NotOptimizedWarning, match=rf"custom call @\w*gehrd\w* is opaque; cause: op.*{LINE}.*check='never' runs"
    ):
        optimized(jnp.ones(2), 0.5)
    unseen = hoisting(function)
    np.testing.assert_allclose(unseen(jnp.ones(2), 0.5), function(jnp.ones(2), 0.5), rtol=1e-5)
    assert unseen.fusionlab.state == "rewritten"


def test_where_nothing_applies_one_warning_says_so():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hoisting(repeated, check="once")(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
    sine = fusionlab.optimize(jnp.sin, cache=False)
    empty = fusionlab.optimize(laplacians, "collapse-replay", cache=False)
    with pytest.warns(NotOptimizedWarning, match="sin runs as it was: fuse-jvp-replay: there is no replay") as said:
        assert sine(0.5) == jnp.sin(0.5)
    np.testing.assert_array_equal(sine(jnp.ones(3)), jnp.sin(jnp.ones(3)))  # another program, without a warning
    np.testing.assert_array_equal(jax.jit(jax.vmap(sine))(jnp.ones(3)), jnp.sin(jnp.ones(3)))
    assert [one.filename for one in said] == [__file__]
    with pytest.warns(NotOptimizedWarning, match="no walkers"):
        assert empty(jnp.ones((3, 5)), jnp.zeros((0, 3))).shape == (0,)
    no_sum = "its program has no loop, and no sum over an identity's rows or unit vectors"
    assert f"there is no replay in it: {no_sum}; cause: form; instead: " in sine.fusionlab.reason
    assert sine.fusionlab.state == "unchanged"
    assert "the original runs" in str(sine.fusionlab.report())
    assert "no walkers" in empty.fusionlab.reason
    assert not faults(empty.fusionlab.decisions[0].events)


def test_a_rewriting_can_be_required():
    required = hoisting(repeated, check="once", require_applied=True)
    assert required(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
    sine = fusionlab.optimize(jnp.sin, cache=False, require_applied=True)
    message = (
        "sin is not rewritten, as require_applied demands: fuse-jvp-replay: there is no replay in it: .*cause: form"
    )
    for call in (sine, sine, jax.jit(lambda x: sine(x) + 1), sine.lower):
        with pytest.raises(NotOptimizedError, match=message):
            call(0.5)
    assert sine.fusionlab.state == "unchanged"
    back = fusionlab.optimize(lambda x: jax.pure_callback(np.sin, x, x), cache=False, require_applied=True)
    with pytest.raises(NotOptimizedError, match="it calls back into Python"):
        back(jnp.ones(3))


@pytest.mark.parametrize("check", ["once", "always"])
def test_a_required_rewriting_that_differs_is_an_error_at_every_call(check):
    function = wrong(check=check, require_applied=True)
    for _ in range(2):
        with pytest.raises(NotOptimizedError, match="different on the given arguments"):
            function(1.0, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pipeline": "fuse-jvp-replai"}, "did you mean: fuse-jvp-replay"),
        ({"pipeline": None}, "pipeline is the names of passes, .* and not None"),
        ({"check": "often"}, "unknown check 'often'"),
        ({"check": None}, "unknown check 'None'"),
        ({"on_difference": "ignore"}, "unknown on_difference 'ignore'"),
        ({"cache": 3}, "cache is True, False or a folder, and not 3"),
        ({"exact_s": -1}, "exact_s is a number of seconds"),
        ({"require_applied": 1}, "require_applied is True or False, and not 1"),
        ({"chek": "never"}, "unknown option of optimize 'chek'; did you mean: check"),
    ],
)
def test_words_that_are_not_known(options, message):
    for function in ((), (jnp.sin,)):
        with pytest.raises(InputError, match=message):
            fusionlab.optimize(*function, **options)
    with pytest.raises(InputError, match="takes a function, not 'licm'"):
        fusionlab.optimize(HOIST)


def decided(function, *given):
    """The decision on a function of one program, after a call."""
    function(*given)
    (decision,) = function.fusionlab.decisions
    return decision


@pytest.mark.usefixtures("no_processes")
class TestExactVerdicts:
    """They are told and kept, under a budget, and never decisive."""

    @pytest.fixture
    def without_exact_checks(self):
        """They have them."""

    def test_identical_is_told_in_the_verdicts_line_and_remembered(self, tmp_path):
        for remembered in (False, True):
            function = hoisting(repeated, check="once", cache=tmp_path)
            decision = decided(function, 1.0, 0.5)
            assert (decision.remembered, decision.verdict.exact.result) == (remembered, "identical")
        report = function.fusionlab.report()
        assert re.search("^check: (equal|within-bound); identical", str(report), re.MULTILINE)
        (program,) = report.to_json()["programs"]
        assert program["equivalence"]["exact"]["result"] == "identical"

    def test_a_verdict_under_another_budget_is_not_taken(self, tmp_path, monkeypatch):
        """What was not covered within a second may be within twenty."""
        monkeypatch.setattr(rewriting, "compare_files", lambda *_: isolated.Identity("not-covered", 0, 0, 1.0, "late"))
        for exact_s, remembered in ((1, False), (1, True), (2, False)):
            function = hoisting(repeated, check="once", cache=tmp_path, exact_s=exact_s)
            assert decided(function, 1.0, 0.5).remembered == remembered

    def test_what_is_not_identical_is_accepted_by_the_float_verdict_only(self):
        function = made_by(functions.OtherConstant(), lambda x: jnp.sin(x) + 1e-30)
        assert function(0.5) == jnp.sin(0.5)
        assert function.fusionlab.state == "rewritten"
        said = "^check: (equal|within-bound); accepted by the float verdict only: not-identical"
        assert re.search(said, str(function.fusionlab.report()), re.MULTILINE)

    def test_identical_is_not_accepted_where_the_float_verdict_is_another(self, monkeypatch):
        identity = isolated.Identity("identical", 12, 2, 1e-36)
        monkeypatch.setattr(rewriting, "compare_files", lambda *_: identity)
        with pytest.warns(NotOptimizedWarning, match="the rewritten program is different"):
            assert decided(wrong(), 1.0, 0.5).verdict.exact == identity

    def test_a_budget_that_is_exceeded_is_told_once_for_a_program(self, monkeypatch):
        limits = []

        def late(function, *arguments, limit_s, memory_limited, stop):
            limits.append(limit_s)
            raise ProcessFailed("it did not finish", None)

        monkeypatch.setattr(isolated, "call", late)
        function = hoisting(repeated, check="always", exact_s=3)
        function(1.0, 0.5)
        decision = decided(function, 1.0, 0.6)
        assert limits == [pytest.approx(3, abs=1)]  # what the check has left of them
        assert decision.rewritten is not None
        assert decision.verdict.line.startswith("accepted by the float verdict only: not-covered: time limit")

    def test_no_seconds_are_no_exact_check(self, monkeypatch):
        monkeypatch.setattr(rewriting, "compare_files", None)
        assert decided(hoisting(repeated, check="once", exact_s=0), 1.0, 0.5).verdict.exact is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "walkers"),
    [({}, 16), ({"check_walkers": 5}, 5), ({"check_walkers": None}, None), ({"check": "always"}, None)],
)
def test_few_walkers_of_the_call_are_compared(given, walkers):
    """Walkers are the leading axes of all results."""
    parameters, x = arguments(40)
    energies = jax.vmap(functions.energy, (None, 0))
    optimized = fusionlab.optimize(energies, cache=False, exact_s=0, **given)
    np.testing.assert_allclose(optimized(parameters, x[None]), jax.jit(energies)(parameters, x[None]), 1e-3, 1e-3)
    assert decision_of(optimized).verdict.walkers == walkers


class TestReferencesBesidePlanning:
    """Those of a large program come from a process that runs while the passes plan."""

    @pytest.fixture(autouse=True)
    def _large(self, monkeypatch):
        monkeypatch.setattr(references, "_LARGE", 0)

    @staticmethod
    def verdict():
        optimized = wrong(of_walkers, check="once", exact_s=0)
        with pytest.warns(NotOptimizedWarning):
            optimized(jnp.linspace(0.0, 1.0, 32))
        (decision,) = optimized.fusionlab.decisions
        return decision.verdict

    def test_they_are_not_computed_here_and_the_verdict_is_the_same(self, monkeypatch):
        evaluated, plain = [], references.references_of

        def here_at_others(program):
            def of(run):
                def at_others(arrays):
                    assert not np.array_equal(arrays[0], np.linspace(0.0, 1.0, 32, dtype=np.float32)[:16])
                    return run(arrays)

                return at_others

            return {name: of(run) for name, run in plain(program).items()}

        def here(function, program, arrays, **given):
            evaluated.append([array.shape for array in arrays])
            return call_here(function, program, arrays, **given)

        with monkeypatch.context() as patched:
            patched.setattr(references, "call", here)
            patched.setattr(checking, "references_of", here_at_others)
            found = self.verdict()
        assert evaluated == [[(16,)]]
        monkeypatch.setattr(references, "_LARGE", 10**6)
        assert found == self.verdict()

    @pytest.mark.parametrize("error", [ProcessFailed("out of memory", -9), OSError("no space left")])
    def test_where_the_process_fails_they_are_computed_here(self, monkeypatch, error):
        def fails(*_, **__):
            raise error

        monkeypatch.setattr(references, "call", fails)
        failed = self.verdict()
        monkeypatch.setattr(references, "_LARGE", 10**6)
        assert failed == self.verdict()

    def test_the_process_is_ended_where_nothing_applies(self, monkeypatch):
        stops = []
        monkeypatch.setattr(references, "call", lambda *_, stop, **__: stops.append(stop) or stop.wait(60))
        optimized = fusionlab.optimize(lambda x: x + 1.0, HOIST, check="once", cache=False)
        with pytest.warns(NotOptimizedWarning, match="there is no loop in the program"):
            optimized(jnp.ones(32))
        assert optimized.fusionlab.state == "unchanged"
        assert stops[0].is_set()


def test_where_walkers_are_taken_in_parts_the_original_is_rewritten_at_few():
    optimized = fusionlab.optimize(functions.energy, "sparsify-directions{chunks=4}", cache=False, exact_s=0)
    optimized(*arguments(40))
    assert decision_of(optimized).verdict.walkers == 16


@pytest.mark.parametrize("wrong", [0, -1, "all", 2.5])
def test_numbers_of_walkers_that_are_none(wrong):
    with pytest.raises(fusionlab.InputError, match="check_walkers"):
        fusionlab.optimize(functions.energy, check_walkers=wrong)


def test_a_fallback_has_at_most_one_and_a_half_times_the_memory_of_the_original():
    """The absolute values beside the diagonal have no forward Laplacian, and all directions at once have several times
    as much."""
    draw = np.random.default_rng(0).normal
    first, second, last = (jnp.asarray(draw(size=shape), jnp.float32) for shape in ((12, 256), (256, 256), (256,)))

    def energy(x):
        _, derivative = jax.linearize(jax.grad(lambda x: jnp.tanh(jnp.tanh(x @ first / 4) @ second / 16) @ last), x)
        eye = jnp.eye(12, dtype=x.dtype)
        return jax.lax.fori_loop(0, 12, lambda k, total: total + jnp.abs(derivative(eye[k])[k - 1]), 0.0)

    x = jnp.asarray(draw(size=(1024, 12)), jnp.float32)
    optimized = fusionlab.optimize(jax.vmap(energy), cache=False, check="never")
    told = r"energy: batch-replay\{chunk=\d\} instead of a forward Laplacian \(the loop computes second derivatives"
    with pytest.warns(FallbackWarning, match=told):
        before, after = (
            jax.jit(one).lower(x).compile().memory_analysis().temp_size_in_bytes
            for one in (jax.vmap(energy), optimized)
        )
    assert 2**20 < before < after <= max(1.5 * before, 16 * 2**20)


@pytest.fixture
def exact_later(monkeypatch):
    """``exact_later(result)``: the exact check has this result, after the given arguments were compared."""
    compared = threading.Event()
    plain = Runners.compared

    def compare(self, arrays, **how):
        found = plain(self, arrays, **how)
        compared.set()
        return found

    def later(result):
        def compare_exactly(original, rewritten, limit_s, stop):
            assert compared.wait(60)
            return Identity(result, 12, 2, 1e-36)

        monkeypatch.setattr(rewriting, "compare_files", compare_exactly)

    monkeypatch.setattr(Runners, "compared", compare)
    return later


@pytest.mark.parametrize("result", ["identical", "not-identical"])
def test_variants_are_spared_by_an_exact_verdict_that_comes_later(result, exact_later):
    exact_later(result)
    function = hoisting(repeated, check="once")
    function(1.0, 0.5)
    decision = decision_of(function)
    assert (decision.compared_on, decision.verdict.exact.result) == (
        ON_GIVEN if result == "identical" else ON_VARIED,
        result,
    )
    assert not decision.provisional


@pytest.mark.parametrize("on_difference", ["original", "raise"])
def test_a_difference_that_variants_show_later_is_told_and_the_original_runs_from_then_on(on_difference, exact_later):
    exact_later("not-identical")
    function = wrong(repeated, check="once", on_difference=on_difference)
    if on_difference == "raise":
        with pytest.raises(NotEquivalentError, match=f"different on {ON_VARIED}: variant"):
            function(0.0, 0.1)
    else:
        with pytest.warns(NotOptimizedWarning, match=f"different on {ON_VARIED}: variant"):
            assert function(0.0, 0.1) == jax.jit(repeated)(0.0, 0.1)
        assert function(1.0, 0.6) == jax.jit(repeated)(1.0, 0.6)


def test_a_forward_laplacian_that_is_not_identical_does_not_run(exact_later, monkeypatch):
    """Although the verdict in floating point passes it, which has walkers at the edges."""
    exact_later("not-identical")
    labels, plain = [], checking.compare

    def compare(samples, **how):
        def noted():
            for sample in samples:
                labels.append(sample.label)
                yield sample

        return plain(noted(), **how)

    monkeypatch.setattr(checking, "compare", compare)
    function = fusionlab.optimize(functions.energy, cache=False)
    with pytest.warns(NotOptimizedWarning, match="runs as it was: the forward Laplacian is not-identical"):
        found = function(*arguments())
    np.testing.assert_allclose(found, jax.jit(functions.energy)(*arguments()), rtol=1e-5)
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is None
    assert decision.verdict.passed
    assert {"near walkers of the given arguments", "far walkers of the given arguments"} <= set(labels)
