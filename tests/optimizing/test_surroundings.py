"""What an optimised function does where something around it goes another way: lowered first, called back, failing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.errors import NotEquivalentError, NotOptimizedWarning
from fusionlab.optimizing.checking import Runners
from fusionlab.optimizing.optimize import Optimized
from fusionlab.optimizing.rewriting import Policy
from tests.optimizing.networks import repeated
from tests.optimizing.wrong_passes import SineToCosine, made_by

HOIST = "hoist-loop-invariants"


def beyond_a_thousand(x, w):
    """Where drawn numbers do not come, the loop's."""
    return jnp.where(x > 1e3, repeated(x, w), x)


@pytest.mark.parametrize("check", ["once", "always"])
@pytest.mark.parametrize("look", ["lower", "trace", "eval_shape"])
def test_a_function_that_was_lowered_first_is_checked_on_the_arguments_of_its_call(check, look):
    function = Optimized(beyond_a_thousand, Policy((SineToCosine(),), check), {})
    shown = getattr(function, look)(0.0, 0.1)
    if look == "trace":
        shown.lower()
    with pytest.warns(NotOptimizedWarning, match="different on the given arguments"):
        assert function(2000.0, 0.1) == jax.jit(beyond_a_thousand)(2000.0, 0.1)


def test_a_call_of_itself_is_not_checked_on_the_outer_call_s_arguments():
    def function(x, w):
        return repeated(x, w) if x.ndim == 0 else recursive(x.sum(), w) + recursive(x.max(), w)

    recursive = fusionlab.optimize(function, HOIST, cache=False)
    x = jnp.arange(3.0)
    np.testing.assert_allclose(recursive(x, 0.5), 4 * repeated(1.25, 0.5), rtol=1e-6)
    of_itself = [decision for decision in recursive.fusionlab.decisions if not decision.original.inputs[0].shape]
    assert [(decision.compared_on, decision.alone) for decision in of_itself] == [("drawn arguments", False)]


def test_always_after_a_difference_that_was_an_error():
    function = made_by(SineToCosine(), check="always", on_difference="raise")
    for _ in range(2):
        with pytest.raises(NotEquivalentError):
            function(1.0, 0.5)


def test_clear_cache_keeps_what_was_decided():
    function = made_by(SineToCosine(), check="never")
    for _ in range(2):
        assert function(1.0, 0.1) == function.lower(1.0, 0.1).compile()(1.0, 0.1)
        function.clear_cache()
    assert len(function.fusionlab.decisions) == 1


@pytest.mark.parametrize("check", ["once", "never"])
def test_a_function_that_calls_back_into_python_runs_as_it_is(check):
    """A pure callback is no effect in the jaxpr."""

    def function(x, w):
        type_ = jax.ShapeDtypeStruct((), jnp.float32)
        called = jax.lax.cond(x > 0, lambda x: jax.pure_callback(lambda x: x + np.float32(1), type_, x), lambda x: x, x)
        return repeated(called, w)

    optimized = fusionlab.optimize(function, HOIST, cache=False, check=check)
    with pytest.warns(NotOptimizedWarning, match="calls back into Python \\(pure_callback\\)"):
        np.testing.assert_allclose(optimized(1.0, 0.5), repeated(2.0, 0.5), rtol=1e-6)
    np.testing.assert_allclose(optimized(1.0, 0.5), repeated(2.0, 0.5), rtol=1e-6)


def test_a_failure_while_tracing_leaves_the_function_as_it_was(monkeypatch):
    def broken(*_):
        raise TypeError("a bug")

    monkeypatch.setattr("fusionlab.optimizing.optimize.trace", broken)
    function = made_by(SineToCosine())
    with pytest.warns(NotOptimizedWarning, match="TypeError: a bug"):
        assert function(1.0, 0.5) == jax.jit(repeated)(1.0, 0.5)


def test_a_failure_of_a_later_check_leaves_the_function_as_it_was(monkeypatch):
    function = fusionlab.optimize(repeated, HOIST, check="always", cache=False)
    assert function(0.0, 0.1) == 0.0

    def broken(*_, **__):
        raise TypeError("a bug")

    monkeypatch.setattr("fusionlab.optimizing.rewriting.Runners.compared", broken)
    with pytest.warns(NotOptimizedWarning, match="TypeError: a bug"):
        assert function(1.0, 0.1) == jax.jit(repeated)(1.0, 0.1)


def test_options_of_the_compiler_reach_the_check(monkeypatch):
    options = {"xla_cpu_enable_fast_math": True}
    function = Optimized(repeated, Policy((SineToCosine(),)), {"compiler_options": options})
    seen = []
    compared = Runners.compared
    note = lambda self, *how, **more: seen.append(dict(self.options)) or compared(self, *how, **more)  # noqa: E731
    monkeypatch.setattr(Runners, "compared", note)
    with pytest.warns(NotOptimizedWarning, match="different"):
        function(1.0, 0.5)
    assert [of_one["xla_cpu_enable_fast_math"] for of_one in seen] == [True]


def test_arguments_that_give_no_number_are_no_difference():
    function = made_by(SineToCosine(), on_difference="raise")
    with pytest.warns(NotOptimizedWarning, match="not-checked on the given .*: no input gave a finite value"):
        assert np.isnan(function(np.nan, 0.5))


OWN = """
from dataclasses import dataclass
from typing import ClassVar
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Applied, Pass, Result

@dataclass(frozen=True)
class Own(Pass):
    # Sine becomes something else.
    name: ClassVar[str] = "own"
    kind: ClassVar[str] = "own"

    def run(self, program, setting):
        text = program.text.replace("stablehlo.sine", "stablehlo.WORD")
        made = Program(program.name, text.encode(), program.platform, program.provenance)
        return Result(made, (Applied(self.name, "sine", "", self.name),))
"""


def test_a_pass_in_a_file_that_was_edited_is_run_again(tmp_path):
    found = []
    for index, word in enumerate(("cosine", "tanh")):
        path = tmp_path / "own.py"
        path.write_text(OWN.replace("WORD", word))
        function = fusionlab.optimize(repeated, f"{path}:Own", check="never", cache=tmp_path / "store")
        found.append(function(1.0, 0.5))
        assert not function.fusionlab.decisions[0].remembered, index
    np.testing.assert_allclose(found, [np.cos(0.5) ** 5, np.tanh(0.5) ** 5], rtol=1e-5)
