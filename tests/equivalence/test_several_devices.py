"""Programs of several devices: run on as many of the CPU's, and compared between their collectives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jax import lax

from fusionlab.equivalence import isolated
from fusionlab.equivalence.between_collectives import OtherAround, functions_between, identity_of_all, verdict_of_all
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.isolated import check_files, compare
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.subprocesses import ProcessFailed
from tests.conftest import call_here
from tests.equivalence.mapped import clipped, energies, lowered

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def original():
    return lowered(clipped)


@pytest.fixture(scope="module")
def rewritten(original):
    result = run_pipeline(original, parse_pipeline("fuse-jvp-replay"), Setting())
    assert any("are the Laplacian of" in event.what for event in result.applied)
    return result.program


def edited(program, old, new):
    assert program.text.count(old) >= 1
    return Program.of_foreign_bytes(program.text.replace(old, new, 1).encode(), Path("edited.mlir"))


@pytest.mark.slow
def test_collectives_mean_what_jax_means():
    script = ROOT / "tests" / "equivalence" / "several_devices.py"
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "NPROC": "8", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=os.environ | flags, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_rewritten_program_runs_on_as_many_devices(original, rewritten):
    verdict = check_files(original, rewritten)
    assert verdict.passed, verdict.line
    assert verdict.walkers is None
    assert len(verdict.outputs) == 2


@pytest.mark.slow
def test_a_mesh_of_one_device_is_no_exception():
    """JAX lowers its program without a shard_map, and with collectives of one member."""
    alone = lowered(clipped, devices=1)
    assert (alone.devices, alone.has_collectives) == (1, True)
    result = run_pipeline(alone, parse_pipeline("sparsify-directions"), Setting())
    assert any("are the Laplacian of" in event.what for event in result.applied)
    identity = Identity(**compare(list(vars_of(alone)), list(vars_of(result.program))))
    assert (identity.result, identity.walkers) == ("identical", 2)
    assert check_files(alone, result.program).passed


def test_it_is_compared_exactly_between_its_collectives(original, rewritten):
    identity = Identity(**compare(list(vars_of(original)), list(vars_of(rewritten))))
    assert identity.result == "identical", identity.line
    assert "function by function between the collectives" in identity.line


def vars_of(program):
    return program.name, program.bytecode, program.platform, program.provenance


def test_a_function_that_reads_its_place_among_the_devices_is_not_compared_alone(original, rewritten):
    """On one device it is 0 in every function."""
    at = rewritten.text.index("between_collectives = true")
    line = next(line for line in rewritten.text[at:].splitlines() if line.strip().startswith("return"))
    name, type_ = line.split()[1].rstrip(","), line.split(" : ")[1].split(",")[0].strip()
    place = (
        "    %place = stablehlo.partition_id : tensor<ui32>\n"
        "    %number = stablehlo.convert %place : (tensor<ui32>) -> tensor<f32>\n"
        f"    %wide = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> {type_}\n"
        f"    %moved = stablehlo.add {name}, %wide : {type_}\n"
    )
    other = edited(rewritten, line, place + line.replace(name, "%moved", 1))
    with pytest.raises(OtherAround, match="collectives inside"):
        functions_between(original, other)


def test_another_collective_is_another_program(original, rewritten):
    """All functions between the collectives are the same."""
    other = edited(rewritten, "stablehlo.add %arg", "stablehlo.maximum %arg")
    assert other.text.count("stablehlo.maximum") == rewritten.text.count("stablehlo.maximum") + 1
    identity = Identity(**compare(list(vars_of(original)), list(vars_of(other))))
    assert (identity.result, identity.draws) == ("not-covered", 0)
    assert "outside of their functions" in identity.reason
    with pytest.raises(OtherAround):
        functions_between(original, other)


@pytest.mark.slow
def test_numbers_tell_another_collective_too(original, rewritten):
    other = edited(rewritten, "stablehlo.add %arg", "stablehlo.maximum %arg")
    assert check_files(original, other).verdict == "different"


def test_another_function_is_not_identical(original, rewritten):
    other = edited(rewritten, "stablehlo.tanh", "stablehlo.sine")
    identity = Identity(**compare(list(vars_of(original)), list(vars_of(other))))
    assert identity.result == "not-identical"


@pytest.fixture
def failing(monkeypatch):
    """``failing(reason, exit_code)``: from then on, checks of whole programs of several devices fail so."""

    def set_up(reason, exit_code):
        def call(function, *arguments, **limits):
            if Program(*arguments[0]).devices > 1:
                raise ProcessFailed(reason, exit_code)
            return call_here(function, *arguments, **limits)

        monkeypatch.setattr(isolated, "call", call)

    return set_up


def test_what_has_no_room_is_compared_by_function_and_what_crashes_is_not(original, rewritten, failing):
    failing("JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes", 1)
    assert "Out of memory allocating 8 bytes: compared function by function" in check_files(original, rewritten).reason
    failing("Segmentation fault", -11)
    assert check_files(original, rewritten).verdict == "not-checked"


def test_what_takes_too_long_is_compared_by_function(original, rewritten, failing):
    failing("it did not finish", None)
    verdict = check_files(original, rewritten)
    assert verdict.passed
    assert verdict.walkers is None, "four on each device are fewer than sixteen"
    assert "of the whole, the check did not finish within 300 s" in verdict.reason
    other = edited(rewritten, "stablehlo.tanh", "stablehlo.sine")
    assert check_files(original, other).verdict == "different"
    around = edited(rewritten, "stablehlo.add %arg", "stablehlo.maximum %arg")
    unknown = check_files(original, around)
    assert unknown.verdict == "not-checked"
    assert "outside of their functions" in unknown.reason


@pytest.mark.slow
def test_a_collective_without_truth_leaves_the_functions_to_compare():
    """No rule says what ``collective_broadcast`` means; both programs have the same."""

    def of_the_first_device(x):
        local = energies(x)
        return lax.pbroadcast(local.mean(), ("walkers",), 0), local

    program = lowered(of_the_first_device, platform="cuda")
    result = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting())
    assert result.applied
    verdict = check_files(program, result.program)
    assert verdict.passed
    assert "one of the programs cannot be raised: stablehlo.collective_broadcast" in verdict.reason
    assert "compared function by function" in verdict.reason
    other = edited(result.program, "stablehlo.tanh", "stablehlo.sine")
    assert check_files(program, other).verdict == "different"


def test_one_function_that_fails_decides():
    """The verdict on the whole is never better than that on a part."""
    same, unlike = Identity("identical", 6, 2, 1e-9, walkers=2), Identity("not-identical", 6, 2, 1.0, "they differ")
    unknown = Identity("not-covered", 0, 0, 1.0, "no rule")
    assert identity_of_all([same, unknown]).result == "not-covered"
    assert identity_of_all([same, unknown, unlike]).result == "not-identical"
    assert identity_of_all([same, same]).error_probability == 2e-9
    passed, failed, late = Verdict("equal"), Verdict("different"), Verdict("not-checked", reason="late")
    assert verdict_of_all([passed, Verdict("within-bound")], "why").verdict == "within-bound"
    assert verdict_of_all([passed, late], "why").verdict == "not-checked"
    assert verdict_of_all([late, failed], "why").verdict == "different"
