"""What is decided, checked, told and remembered about an optimised function."""

import base64
import gzip
import hashlib
import json
import warnings
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.errors import InputError, NotEquivalentError, NotOptimizedWarning
from fusionlab.optimizing.checking import Runners
from fusionlab.optimizing.decision import surroundings
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import faults
from tests.optimizing.networks import laplacians, repeated
from tests.optimizing.wrong_passes import Broken, SineToCosine, made_by
from tests.optional_packages import needs_the_cuda_plugin

HOIST = "hoist-loop-invariants"


@pytest.fixture
def in_the_catalogue(monkeypatch):
    monkeypatch.setitem(PASSES, SineToCosine.name, (SineToCosine.__module__, SineToCosine.__name__))


def test_a_function_without_anything_to_rewrite_comes_back_with_the_reason():
    function = fusionlab.optimize(jnp.sin, cache=False)
    assert function(0.5) == jnp.sin(0.5)
    assert function.fusionlab.reason == "there is no replay in it: its program has no loop"
    assert function.fusionlab.state == "unchanged"
    assert "the original runs" in str(function.fusionlab.report())


@pytest.mark.parametrize("check", ["once", "always"])
def test_a_wrong_rewrite_is_found_and_the_original_runs(check):
    function = made_by(SineToCosine(), check=check)
    expected = jax.jit(repeated)(1.0, 0.5)
    with pytest.warns(NotOptimizedWarning, match="repeated runs as it was: the rewritten program is different") as said:
        assert function(1.0, 0.5) == expected
    assert [warning.filename for warning in said] == [__file__]
    assert "different on the given arguments" in function.fusionlab.reason
    assert function(1.0, 0.6) == jax.jit(repeated)(1.0, 0.6)


def test_a_wrong_rewrite_inside_a_jit_is_found_on_drawn_numbers():
    function = made_by(SineToCosine())
    with pytest.warns(NotOptimizedWarning, match="different on drawn arguments"):
        assert jax.jit(function)(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)


def test_a_wrong_rewrite_can_be_an_error():
    function = made_by(SineToCosine(), on_difference="raise")
    with pytest.raises(NotEquivalentError, match=r"repeated: .* different on the given arguments and .* error"):
        function(1.0, 0.5)


def test_always_looks_at_the_arguments_of_every_call():
    """sin and cos of anything, no times, are the same; an integer that is an index is not varied."""

    def times(x, n):
        return jnp.array([0.0, 1.0])[n] * jnp.sin(x)

    function = made_by(SineToCosine(), times, check="always")
    assert function(0.5, 0) == 0.0
    assert function.fusionlab.decisions[0].verdict.passed
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments"):
        assert function(0.5, 1) == jnp.sin(0.5)
    assert function(0.5, 0) == 0.0


def test_a_difference_that_zeros_hide_is_found():
    function = made_by(SineToCosine())
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments and variants of them: variant"):
        assert function(0.0, 0.1) == 0.0


def test_a_variant_without_a_finite_result_says_nothing():
    """Only at 0 the original is finite; it is rewritten rightly."""
    function = fusionlab.optimize(lambda x, w: repeated(jnp.where(x == 0, w, jnp.nan), w), HOIST, cache=False)
    assert function(0.0, 0.5) == jax.jit(repeated)(0.5, 0.5)
    (decision,) = function.fusionlab.decisions
    assert decision.verdict.passed
    assert decision.compared_on == "the given arguments"


def of_integers(x, w):
    """Finite at integers x alone; at 0, sin(w) is hidden."""
    return jnp.where(x == jnp.round(x), x, jnp.nan) * jnp.sin(w)


def test_what_was_compared_without_variants_is_compared_again(tmp_path, in_the_catalogue):
    function = made_by(SineToCosine(), of_integers, folder=tmp_path)
    assert function(0.0, 0.5) == 0.0
    assert function.fusionlab.state == "rewritten"
    assert list(tmp_path.rglob("*.gz")) == []
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments"):
        assert function(1.0, 0.5) == jnp.sin(0.5)
    assert function(2.0, 0.5) == 2 * jnp.sin(0.5)
    assert function.fusionlab.state == "unchanged"


def test_what_was_compared_without_variants_can_be_an_error():
    function = made_by(SineToCosine(), of_integers, on_difference="raise")
    assert function(0.0, 0.5) == 0.0
    with pytest.raises(NotEquivalentError, match="different on the given arguments"):
        function(1.0, 0.5)
    assert function(1.0, 0.5) == jnp.sin(0.5)


def test_an_output_that_is_not_finite_hides_no_other(tmp_path):
    function = made_by(SineToCosine(), lambda x, w: (repeated(x, w), jnp.log(0.0 * w)))
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments and variants"):
        assert function(0.0, 0.5)[0] == 0.0


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda w: jnp.where(w > 0, w, jnp.sin(w)), (0.5,)),
        (lambda n, x: n * jnp.sin(x), (0, 0.5)),
        (lambda flag, x: jnp.where(flag, jnp.sin(x), x), (False, 0.5)),
        (lambda mask, x: jnp.sum(jnp.where(mask, jnp.sin(x), x)), (np.zeros(3, bool), np.ones(3, np.float32))),
    ],
    ids=["a sign", "an integer", "a boolean", "a mask"],
)
def test_what_one_discrete_value_hides_is_found(function, given):
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments and variants of them: variant"):
        made_by(SineToCosine(), function)(*given)


def test_what_is_never_finite_is_checked_a_few_times(monkeypatch):
    compared, checks = Runners.compared, []
    monkeypatch.setattr(Runners, "compared", lambda *args, **named: checks.append(1) or compared(*args, **named))
    function = fusionlab.optimize(lambda x, w: repeated(x * jnp.nan, w), HOIST, cache=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for w in (0.5, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            assert np.isnan(function(1.0, w))
    assert len(checks) == 4
    assert len(said) == 2
    assert "so at 4 calls, and not checked again" in str(said[-1].message)
    assert not function._rewriter.checks_again


def test_a_decision_of_a_later_call_is_remembered(tmp_path):
    first, second = (fusionlab.optimize(repeated, HOIST, cache=tmp_path) for _ in range(2))
    with pytest.warns(NotOptimizedWarning, match="no input gave a finite value"):
        first(np.nan, 0.5)
    assert list(tmp_path.rglob("*.gz")) == []
    first(1.0, 0.5)
    assert second(1.0, 0.5) == first(1.0, 0.5)
    assert second.fusionlab.decisions[0].remembered


def test_a_difference_of_a_later_call_is_told():
    function = made_by(SineToCosine())
    with pytest.warns(NotOptimizedWarning, match="no input gave a finite value"):
        function(np.nan, 0.5)
    with pytest.warns(NotOptimizedWarning, match="different"):
        assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)


def start_of_a_replay(start, xs):
    """Of walkers [walkers, 6]: a multiple of |gradient|^2 plus a Laplacian, in one loop."""

    def one(x):
        gradient, push = jax.linearize(jax.grad(lambda y: -(jnp.sum(jnp.tanh(1.3 * y)) ** 2) / 10), x)
        return jax.lax.fori_loop(0, 6, lambda k, s: s + push(jnp.eye(6)[k])[k], start * (gradient @ gradient))

    return jax.vmap(one)(xs)


@pytest.mark.parametrize("zero", [0.0, 0], ids=["float", "int"])
def test_the_start_that_a_zero_hides_is_there_in_another_process(zero, tmp_path):
    """The second function finds on disk what the first call of the first one decided, as another process does."""
    xs = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    first, second = (fusionlab.optimize(start_of_a_replay, cache=tmp_path) for _ in range(2))
    one = type(zero)(1)
    np.testing.assert_allclose(first(zero, xs), jax.jit(start_of_a_replay)(zero, xs), rtol=1e-4, atol=1e-5)
    for function in (second, first):
        np.testing.assert_allclose(function(one, xs), jax.jit(start_of_a_replay)(one, xs), rtol=1e-4, atol=1e-5)
    assert second.fusionlab.decisions[0].remembered
    assert second.fusionlab.state == "rewritten"


def test_never_compares_nothing():
    function = made_by(SineToCosine(), check="never")
    np.testing.assert_allclose(function(1.0, 0.1), np.cos(0.1) ** 5, rtol=1e-5)
    assert function.fusionlab.decisions[0].verdict is None
    assert "nothing was compared" in str(function.fusionlab.report())


def test_a_pass_that_fails_leaves_the_function_as_it_was(caplog):
    function = made_by(Broken())
    with pytest.warns(NotOptimizedWarning, match="ZeroDivisionError: a bug"):
        assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
    assert function.fusionlab.reason == "broken: ZeroDivisionError: a bug"
    [event] = function.fusionlab.decisions[0].events
    assert event.kind == "fault"
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.exc_info[0] is ZeroDivisionError


def test_a_function_with_effects_runs_as_it_is(capfd):
    def function(x, w):
        jax.debug.print("seen {}", x)
        return repeated(x, w)

    optimized = fusionlab.optimize(function, HOIST, cache=False)
    with pytest.warns(NotOptimizedWarning, match="effects"):
        optimized(1.0, 0.5)
    jax.effects_barrier()
    assert "seen 1.0" in capfd.readouterr().out


def test_words_that_are_not_known():
    for wrong, message in (
        ({"pipeline": "fuse-jvp-replai"}, "did you mean: fuse-jvp-replay"),
        ({"check": "often"}, "unknown check 'often'"),
        ({"on_difference": "ignore"}, "unknown on_difference 'ignore'"),
        ({"check": None}, "unknown check 'None'"),
        ({"pipeline": None}, "pipeline is the names of passes, .* and not None"),
        ({"cache": 3}, "cache is True, False or a folder, and not 3"),
        ({"chek": "never"}, "unknown option of optimize 'chek'; did you mean: check"),
    ):
        with pytest.raises(InputError, match=message):
            fusionlab.optimize(jnp.sin, **wrong)
        with pytest.raises(InputError, match=message):
            fusionlab.optimize(**wrong)
    with pytest.raises(InputError, match="takes a function, not 'hoist-loop-invariants'"):
        fusionlab.optimize(HOIST)


def test_a_second_function_finds_what_was_done_for_the_first(tmp_path):
    options = {"pipeline": HOIST, "cache": tmp_path / "store"}
    first, second = (fusionlab.optimize(repeated, **options) for _ in range(2))
    assert first(1.0, 0.5) == second(1.0, 0.5)
    (made,), (remembered,) = first.fusionlab.decisions, second.fusionlab.decisions
    assert (made.remembered, remembered.remembered) == (False, True)
    assert remembered.rewritten.digest == made.rewritten.digest
    assert (remembered.verdict, remembered.events) == (made.verdict, made.events)


def module_of(content):
    return {"module": base64.b64encode(content).decode(), "sha256": hashlib.sha256(content).hexdigest()}


def test_a_stored_program_that_was_changed_is_made_anew(tmp_path):
    def run():
        function = fusionlab.optimize(repeated, HOIST, cache=tmp_path)
        np.testing.assert_allclose(function(1.0, 0.5), repeated(1.0, 0.5), rtol=1e-6)
        return function.fusionlab.decisions[0]

    run()
    (path,) = tmp_path.rglob("*.json.gz")
    record = json.loads(gzip.decompress(path.read_bytes()))
    whole = path.read_bytes()
    for damaged in (
        whole[:100],
        gzip.compress(json.dumps({**record, "sha256": "0" * 64}).encode()),
        gzip.compress(json.dumps({**record, "format": 0}).encode()),
        gzip.compress(b"[]"),
        gzip.compress(json.dumps({**record, **module_of(b"no module")}).encode()),
        gzip.compress(json.dumps({**record, **module_of(b"module {}")}).encode()),
    ):
        path.write_bytes(damaged)
        assert not run().remembered
    assert run().remembered


def test_a_pass_outside_the_catalogue_is_not_remembered(tmp_path):
    """Its file may be edited between two processes."""
    made_by(SineToCosine(), folder=tmp_path, check="never")(1.0, 0.5)
    assert list(tmp_path.rglob("*.gz")) == []


def test_what_was_found_different_is_not_remembered(tmp_path, in_the_catalogue):
    with pytest.warns(NotOptimizedWarning):
        made_by(SineToCosine(), folder=tmp_path)(1.0, 0.5)
    assert list(tmp_path.rglob("*.gz")) == []


def test_what_was_not_checked_is_checked_when_it_is_asked_for(tmp_path, in_the_catalogue):
    made_by(SineToCosine(), folder=tmp_path, check="never")(1.0, 0.5)
    assert list(tmp_path.rglob("*.gz"))
    with pytest.warns(NotOptimizedWarning, match="different"):
        made_by(SineToCosine(), folder=tmp_path)(1.0, 0.5)


def test_the_report_counts_before_and_after(monkeypatch, tmp_path):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    function = fusionlab.optimize(repeated, HOIST)
    assert "not called yet" in str(function.fusionlab.report())
    function(jnp.ones(8), jnp.ones(8))
    report = function.fusionlab.report()
    text, page = str(report), report._repr_html_()
    for shown in ("launches", "before", "after", "hoist-loop-invariants", "on the given arguments"):
        assert shown in text
        assert shown in page
    assert page.startswith("<table>")
    (program,) = json.loads(json.dumps(report.to_json()))["programs"]
    assert program["rewritten"]
    assert program["before"]["dynamic_launches"] > 0
    assert program["equivalence"]["verdict"] in ("equal", "within-bound")


def test_no_warning_where_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusionlab.optimize(repeated, HOIST, cache=False)(1.0, 0.5)


def test_the_same_function_is_lowered_to_the_same_text():
    """So that JAX's own compilation cache, where a user has one, finds it in another process."""
    first, second = (fusionlab.optimize(repeated, HOIST, cache=False, check="never") for _ in range(2))
    assert first.lower(1.0, 0.5).as_text() == second.lower(1.0, 0.5).as_text()


@needs_the_cuda_plugin
def test_a_report_for_a_gpu_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    function = fusionlab.optimize(repeated, HOIST, cache=False, check="never")
    function(jnp.ones(8), jnp.ones(8))
    (entry,) = function.fusionlab.report("a100").entries
    assert (entry.before.target, entry.after.target) == ("a100", "a100")
    assert entry.before.dynamic_launches > 0
    assert entry.decision.platform == "cuda"
    assert "not run" in entry.lines[-1]


def test_a_verdict_of_another_device_is_not_taken(tmp_path, monkeypatch):
    """A GPU that multiplies in TF32 gives other numbers than one that does not, and than the CPU."""

    def decided():
        function = fusionlab.optimize(repeated, HOIST, cache=tmp_path)
        function(1.0, 0.5)
        return function.fusionlab.decisions[0]

    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)  # DeepQMC sets it where it is imported
    assert not decided().remembered
    assert decided().remembered
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    assert not decided().remembered
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE")
    assert decided().remembered
    monkeypatch.setattr(jax, "local_devices", lambda **_: [SimpleNamespace(device_kind="another")])
    assert surroundings("cpu").startswith("another")
    assert not decided().remembered

    def none(**_):
        raise RuntimeError("no such backend")

    monkeypatch.setattr(jax, "local_devices", none)
    assert surroundings("cuda").startswith("absent")


def test_an_opaque_call_is_named_with_what_can_be_done():
    """The check needs every operation in float64, and of a library call that is not known it has none."""

    def function(x, w):
        return repeated(x, w) + jnp.linalg.eigvalsh(jnp.outer(x, x))[0]

    optimized = fusionlab.optimize(function, HOIST, cache=False)
    with pytest.warns(NotOptimizedWarning, match=r"custom call @\w*syevd\w* is opaque at .*check='never' runs"):
        optimized(jnp.ones(2), 0.5)
    unseen = fusionlab.optimize(function, HOIST, cache=False, check="never")
    np.testing.assert_allclose(unseen(jnp.ones(2), 0.5), function(jnp.ones(2), 0.5), rtol=1e-5)
    assert unseen.fusionlab.state == "rewritten"


@pytest.mark.parametrize("check", ["once", "always"])
def test_what_had_no_finite_output_is_checked_at_the_next_call(check):
    """JAX keeps what it compiled at the first call, which is the original."""
    function = fusionlab.optimize(repeated, HOIST, cache=False, check=check)
    with pytest.warns(NotOptimizedWarning, match="no input gave a finite value"):
        assert np.isnan(function(np.nan, 0.5))
    assert function.fusionlab.state != "rewritten"
    assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
    (decision,) = function.fusionlab.decisions
    assert decision.verdict.passed
    assert decision.rewritten is not None
    assert function._rewriter.checks_again == (check == "always")


def test_no_walkers_are_a_result_without_elements():
    function = fusionlab.optimize(laplacians, "collapse-replay", cache=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(jnp.ones((3, 5)), jnp.zeros((0, 3))).shape == (0,)
    assert "no walkers" in function.fusionlab.reason
    (decision,) = function.fusionlab.decisions
    assert not faults(decision.events)
