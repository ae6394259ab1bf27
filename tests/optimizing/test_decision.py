"""What is remembered of an optimised function: on disk, and only what was shown equal there."""

import base64
import gzip
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.errors import NotOptimizedWarning
from fusionlab.optimizing.decision import surroundings
from fusionlab.passes.catalogue import PASSES
from tests.optimizing import functions
from tests.optimizing.functions import SineToCosine, hoisting, of_integers, repeated, wrong


@pytest.fixture
def in_the_catalogue(monkeypatch):
    monkeypatch.setitem(PASSES, SineToCosine.name, (SineToCosine.__module__, SineToCosine.__name__))


@pytest.fixture
def decided(tmp_path):
    """``decided()``: what a function decides that finds what others stored, as in another process."""

    def decided():
        function = hoisting(repeated, check="once", cache=tmp_path)
        assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)
        return function.fusionlab.decisions[0]

    return decided


def files(folder):
    return list(folder.rglob("*.gz"))


def test_a_second_function_finds_what_was_done_for_the_first(decided):
    made, remembered = decided(), decided()
    assert (made.remembered, remembered.remembered) == (False, True)
    assert remembered.rewritten.digest == made.rewritten.digest
    assert (remembered.verdict, remembered.events) == (made.verdict, made.events)


def module_of(content):
    return {"module": base64.b64encode(content).decode(), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.slow
def test_a_stored_program_that_was_changed_is_made_anew(decided, tmp_path):
    decided()
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    record = json.loads(gzip.decompress(whole))
    changes = ({"sha256": "0" * 64}, {"format": 0}, module_of(b"no module"), module_of(b"module {}"))
    for damaged in (
        whole[:100],
        *(gzip.compress(json.dumps(one).encode()) for one in ([], *(record | c for c in changes))),
    ):
        path.write_bytes(damaged)
        assert not decided().remembered
    assert decided().remembered


def test_a_verdict_of_another_device_is_not_taken(decided, monkeypatch):
    """A GPU that multiplies in TF32 gives other numbers than one that does not, and than the CPU."""
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)  # DeepQMC sets it where it is imported
    assert [decided().remembered, decided().remembered] == [False, True]
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


def test_a_pass_outside_the_catalogue_is_not_remembered(tmp_path):
    """Its file may be edited between two processes."""
    wrong(folder=tmp_path, check="never")(1.0, 0.5)
    assert files(tmp_path) == []


def test_a_pass_in_a_file_that_was_edited_is_run_again(tmp_path):
    found, path = [], tmp_path / "own.py"
    for word in ("cosine", "tanh"):
        path.write_text(Path(functions.__file__).read_text().replace("stablehlo.cosine", f"stablehlo.{word}"))
        function = fusionlab.optimize(repeated, f"{path}:SineToCosine", check="never", cache=tmp_path / "store")
        found.append(function(1.0, 0.5))
        assert not function.fusionlab.decisions[0].remembered
    np.testing.assert_allclose(found, [np.cos(0.5) ** 5, np.tanh(0.5) ** 5], rtol=1e-5)


@pytest.mark.parametrize(("function", "x"), [(repeated, 1.0), (of_integers, 0.0)], ids=["different", "provisional"])
def test_what_was_not_shown_equal_is_not_remembered(function, x, tmp_path, in_the_catalogue):
    optimized = wrong(function, folder=tmp_path)
    if function is repeated:
        with pytest.warns(NotOptimizedWarning):
            optimized(x, 0.5)
    else:
        optimized(x, 0.5)
        assert optimized.fusionlab.state == "rewritten"
    assert files(tmp_path) == []


def test_what_was_not_checked_is_checked_when_it_is_asked_for(tmp_path, in_the_catalogue):
    wrong(folder=tmp_path, check="never")(1.0, 0.5)
    assert files(tmp_path)
    with pytest.warns(NotOptimizedWarning, match="different"):
        wrong(folder=tmp_path)(1.0, 0.5)


def test_a_decision_of_a_later_call_is_remembered(decided, tmp_path):
    first = hoisting(repeated, check="once", cache=tmp_path)
    with pytest.warns(NotOptimizedWarning, match="no input gave a finite value"):
        first(np.nan, 0.5)
    assert files(tmp_path) == []
    first(1.0, 0.5)
    assert decided().remembered


def start_of_a_replay(start, xs):
    """Of walkers [walkers, 6]: a multiple of |gradient|^2 plus a Laplacian, in one loop."""

    def one(x):
        gradient, push = jax.linearize(jax.grad(lambda y: -(jnp.sum(jnp.tanh(1.3 * y)) ** 2) / 10), x)
        return jax.lax.fori_loop(0, 6, lambda k, s: s + push(jnp.eye(6)[k])[k], start * (gradient @ gradient))

    return jax.vmap(one)(xs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fusionlab.errors.FallbackWarning")
@pytest.mark.parametrize("zero", [0.0, 0], ids=["float", "int"])
def test_the_start_that_a_zero_hides_is_there_in_another_process(zero, tmp_path):
    xs = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    first, second = (fusionlab.optimize(start_of_a_replay, cache=tmp_path) for _ in range(2))
    one = type(zero)(1)
    for function, start in ((first, zero), (second, one), (first, one), (second, zero)):
        expected = jax.jit(start_of_a_replay)(start, xs)
        np.testing.assert_allclose(function(start, xs), expected, rtol=1e-4, atol=1e-5)
    assert second.fusionlab.decisions[0].remembered
    assert second.fusionlab.state == "rewritten"


HALVED = """import jax


def halved(x):
    return jax.lax.fori_loop(0, 5, lambda k, y: jax.numpy.tanh(y) * k, x)
"""


def test_a_refusal_is_remembered_until_its_lines_move(tmp_path):
    path = tmp_path / "mine.py"

    def decided(text):
        names = {}
        exec(compile(text, path, "exec"), names)
        function = fusionlab.optimize(names["halved"], cache=tmp_path / "store")
        with pytest.warns(NotOptimizedWarning, match="links one trip to the next"):
            function(0.5)
        return function.fusionlab.decisions[0]

    made, remembered, moved = decided(HALVED), decided(HALVED), decided("\n\n" + HALVED)
    assert [one.remembered for one in (made, remembered, moved)] == [False, True, False]
    assert remembered.events == made.events
    assert remembered.reason == made.reason
    first, later = made.events[0], moved.events[0]
    assert (first.cause, "mine.py:5" in first.op, "mine.py:7" in later.op) == ("form", True, True)
    assert first.instead in made.reason
    assert first.op in made.reason
