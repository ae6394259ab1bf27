"""The report of an optimised function: before and after, here and for an absent GPU."""

import json

import jax.numpy as jnp
import pytest

import fusionlab
from tests.optimizing.functions import arguments, energy, hoisting, repeated
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.usefixtures("compile_cache")


def test_it_counts_before_and_after():
    function = hoisting(repeated, check="once")
    assert "not called yet" in str(function.fusionlab.report())
    function(jnp.ones(8), jnp.ones(8))
    report = function.fusionlab.report()
    text, page = str(report), report._repr_html_()
    for shown in ("launches", "before", "after", "licm", "on the given arguments"):
        assert shown in text
        assert shown in page
    assert page.startswith("<table>")
    (program,) = json.loads(json.dumps(report.to_json()))["programs"]
    assert program["rewritten"]
    assert program["before"]["dynamic_launches"] > 0
    assert program["equivalence"]["verdict"] in ("equal", "within-bound")


@needs_the_cuda_plugin
def test_of_an_absent_gpu():
    function = hoisting(repeated)
    function(jnp.ones(8), jnp.ones(8))
    (entry,) = function.fusionlab.report("a100").entries
    assert (entry.before.target, entry.after.target) == ("a100", "a100")
    assert entry.before.dynamic_launches > 0
    assert entry.decision.platform == "cuda"
    assert "not run" in entry.lines[-1]


def test_it_says_where_sparsity_is_lost():
    function = fusionlab.optimize(energy, check="never", cache=False)
    function(*arguments(electrons=4))
    report = function.fusionlab.report()
    [line] = [line for line in report.entries[0].lines if line.startswith("sparsity: ")]
    assert "lost at add (functions.py:" in line
    assert "3 directions become 12" in line
    assert "instead: do the work per electron before" in str(report)
    [event] = report.to_json()["programs"][0]["events"]
    assert event["sparsity"]["line"] in line
