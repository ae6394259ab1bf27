"""The exact verdict of ``apply``, ``study``, ``check`` and ``bisect``: told first, kept in the JSON, never decisive."""

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence import isolated
from fusionlab.subprocesses import ProcessFailed, call

PASSES = """from dataclasses import dataclass
from fusionlab import Pass
from fusionlab.passes.matcher import op, rewrite_matches

def rewriting(name, replacement):
    def run(self, program, setting):
        return rewrite_matches(program, self, setting, op("subtract", "x", "y"), replacement, what="replaced")
    return dataclass(frozen=True)(type(name, (Pass,), {"run": run, "__doc__": "Another difference."}))

Sum = rewriting("Sum", lambda x, y: x + (-y))
Off = rewriting("Off", lambda x, y: x + (-y) + 1e-30)
"""
"""Rewritings of a difference: as the same function, and as one that is off by less than any rounding shows."""


def difference(x):
    return jnp.sin(x) - jnp.exp(x)


def after_a_loop(x):
    """The number of trips depends on the numbers; that no predicate of 64 is true is seen at no random point."""
    return lax.while_loop(lambda c: (c < 5.0).any(), lambda c: c + 1.0, x) - jnp.exp(x)


@pytest.fixture
def arguments(request, lowered, tmp_path):
    """The words that name a file, a pass and the target."""
    function, pass_name = request.param
    (tmp_path / "own.py").write_text(PASSES)
    (tmp_path / "p.mlir").write_text(lowered(function, np.ones(64, np.float32)).text)
    return (tmp_path / "p.mlir", "--pass", f"{tmp_path}/own.py:{pass_name}", "--target", "cpu", "--quiet")


IDENTICAL, OFF, UNCOVERED = (difference, "Sum"), (difference, "Off"), (after_a_loop, "Sum")
ONLY = "accepted by the float verdict only: "
EACH = {
    "identical": (IDENTICAL, "identical in exact arithmetic"),
    "not-identical": (OFF, f"{ONLY}not-identical: output 0 differs at 12 of 12 elements"),
    "not-covered": (UNCOVERED, f"{ONLY}not-covered: a loop that ends by what it computes"),
}
each = pytest.mark.parametrize(
    ("arguments", "result", "line"), [(case, name, line) for name, (case, line) in EACH.items()],
    ids=EACH, indirect=["arguments"],
)  # fmt: skip
of_one = pytest.mark.parametrize("arguments", [IDENTICAL], indirect=True)
KEYS = {
    "result",
    "draws",
    "primes",
    "error_probability",
    "reason",
    "first_difference",
    "walkers",
    "at_ties",
    "except_for",
}


def require_exact(verdict, result):
    assert set(verdict["exact"]) == KEYS
    assert verdict["exact"]["result"] == result
    assert verdict["exact"]["walkers"] == (None if result == "not-covered" else 2)  # of 64, which a loop mixes
    assert bool(verdict["exact"]["first_difference"]) == (result == "not-identical")
    assert verdict["verdict"] in ("equal", "within-bound")


@each
def test_apply_and_check_tell_it_first(arguments, result, line, cli, as_json):
    applied, checked = (cli(command, *arguments, code=0) for command in ("apply", "check"))
    word = as_json("check", *arguments)["verdict"]
    _, verdict, figures, *_ = applied.stdout.splitlines()
    assert verdict.startswith(f"equivalence: {word}; {line}")
    assert re.match(r"floating point.*: error \S+ of output 0, the original's own ", figures)
    assert checked.stdout.splitlines() == [verdict.replace("equivalence", "verdict"), figures]


@each
def test_study_and_bisect_keep_it(arguments, result, line, cli, as_json, tmp_path):
    (target,) = as_json("study", *arguments, "-o", tmp_path / "study")["targets"]
    require_exact(target["equivalence"], result)
    (kept,) = json.loads((tmp_path / "study" / "study.json").read_text())["targets"]
    assert kept["equivalence"] == target["equivalence"]
    document = as_json("bisect", *arguments)
    (step,) = document["verdicts"]
    require_exact(step, result)
    assert document["steps"] == [step["step"]]
    none, told = cli("bisect", *arguments, "--verbose").stdout.splitlines()
    assert cli("bisect", *arguments).stdout == f"{none}\n"
    only_drawn = "" if result == "identical" else "; only drawn inputs were tried: --inputs FILE.npz judges on others"
    in_floats = "" if result == "identical" else "; 1 accepted by the float verdict only (--verbose says why)"
    assert none == f"none of 1 steps differs{in_floats}{only_drawn}"
    assert line.replace("identical in exact arithmetic", "identical: all outputs of 2 walkers") in told


@of_one
def test_two_files(arguments, as_json):
    require_exact(as_json("check", arguments[0], arguments[0]), "identical")


@of_one
def test_it_is_left_out(arguments, as_json):
    for command in ("apply", "check", "bisect"):
        document = as_json(command, *arguments, "--no-exact")
        (verdict,) = document.get("verdicts", [document.get("equivalence", document)])
        assert verdict["exact"] is None
        assert verdict["verdict"] in ("equal", "within-bound")


@of_one
def test_a_time_limit_is_no_failure_of_the_command(arguments, cli, monkeypatch):
    def late(function, *arguments, **limits):
        if function is isolated.compare:
            raise ProcessFailed("it did not finish", None)
        return call(function, *arguments, **limits)

    monkeypatch.setattr(isolated, "call", late)
    done = cli("apply", *arguments, "--check-time-limit", "9", code=0)
    assert f"{ONLY}not-covered: time limit: the check did not finish within 9 s\nfloating point" in done.stdout


@of_one
def test_progress_names_both_checks(arguments, cli):
    result = cli("apply", *arguments[:-1], "--json")
    json.loads(result.stdout)  # and nothing else on stdout
    said = result.stderr.splitlines()
    assert [line.partition(":")[0] for line in said] == ["measure", "rewrite", "check", "check", "measure"]


def test_an_unchanged_program_has_no_exact_verdict(as_json, recurrence_file):
    document = as_json("apply", recurrence_file, "--pass", "batch-replay", "--target", "cpu")
    assert document["equivalence"]["exact"] is None


PHASES = """func.func public @main(%x: tensor<128x3xf32>) -> tensor<128xcomplex<f32>> {
  %unit = stablehlo.constant dense<(0.0,1.0)> : tensor<128xcomplex<f32>>
  %row = stablehlo.constant dense<[[(1.0,0.0), (0.0,2.0), (0.5,-1.0)]]> : tensor<1x3xcomplex<f32>>
  %zero = stablehlo.constant dense<(0.0,0.0)> : tensor<complex<f32>>
  %1 = stablehlo.convert %x : (tensor<128x3xf32>) -> tensor<128x3xcomplex<f32>>
  %2 = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x3xcomplex<f32>>) -> tensor<128x3xcomplex<f32>>
  %3 = stablehlo.multiply %1, %2 : tensor<128x3xcomplex<f32>>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<128x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<128xcomplex<f32>>
  %5 = stablehlo.multiply %4, %unit : tensor<128xcomplex<f32>>
  return %5 : tensor<128xcomplex<f32>>
}
"""


@pytest.mark.usefixtures("exact_checks", "no_processes")
def test_complex_constants_of_many_walkers(cli, as_json, tmp_path):
    """They are cut for a check at 2 and 16 walkers."""
    first, second = tmp_path / "a.mlir", tmp_path / "b.mlir"
    first.write_text(PHASES)
    second.write_text(PHASES.replace("(0.0,2.0)", "(0.0,2.0000002)"))
    found = as_json("check", first, first, "--target", "cpu")
    assert (found["exact"]["result"], found["verdict"]) == ("identical", "equal")
    assert as_json("check", first, second, "--target", "cpu", code=1)["exact"]["result"] == "not-identical"
    cli("apply", first, "--pass", "licm", "--target", "cpu", "--quiet", code=0)
