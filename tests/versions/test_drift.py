"""Versions side by side: of recorded compiles, and of the version that runs the tests, in a process of its own."""

import contextlib
import dataclasses
import json
import re
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.compile import Memory, compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.device_code.kernel_rows import kernels_by_launch
from fusionlab.errors import CompileError, InputError
from fusionlab.facts.drift_facts import DriftFacts, cause_words
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import inner_operations, location_name
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.ledger.ledger import count_launches
from fusionlab.report.pictures.versions import versions_svg
from fusionlab.subprocesses import Ended
from fusionlab.versions import compiling
from fusionlab.versions import drift as drifting
from fusionlab.versions.causes import ALIKE, GONE, RETURNS, Cause
from fusionlab.versions.compiling import (
    _BOOLEANS,
    _ending,
    _listed_booleans,
    _needs_whole_names,
    compile_apart,
    compiles,
    default_options,
    module_text,
)
from fusionlab.versions.drift import VersionRow, drift, of_rows, row_of, with_causes
from fusionlab.versions.environments import JaxEnvironment, NoEnvironment, environment
from tests.optional_packages import needs_the_cuda_plugin

A100 = load_target("a100")
OWN = jax.__version__


def two_steps(x):
    return jnp.tanh(x @ x.T).sum(axis=0)


@pytest.fixture(scope="module")
def program():
    return Program.from_function(two_steps, jax.ShapeDtypeStruct((64, 64), "float32"))


@pytest.fixture(scope="module")
def compiled(program):
    return compile_apart(program, A100, environment(OWN))


@needs_the_cuda_plugin
@pytest.mark.versions
def test_a_compile_apart_is_that_of_this_process(program, compiled):
    here = compile_program(program, A100)
    assert count_launches(compiled) == count_launches(here)
    assert compiled.memory == here.memory
    assert compiled.versions == here.versions
    assert compiled.priority_fusion
    assert compiled.buffer_assignment


@needs_the_cuda_plugin
def test_an_option_that_ends_xla_or_is_unknown_is_the_reason_of_its_compile_alone(program):
    own = environment(OWN)
    asked = [{"xla_no_such_option": True}, {"xla_gpu_autotune_level": "many"}, default_options(own)]
    with compiles(program, A100, own, asked) as made:
        first, second, third = made
    assert "No such compile option: 'xla_no_such_option'" in first.reason
    assert second.compiled is None
    assert second.reason
    assert third.compiled is not None


@needs_the_cuda_plugin
def test_a_broken_spec_is_the_reason(program):
    broken = dataclasses.replace(A100, spec="no_such_field: 1")
    with pytest.raises(CompileError, match=f"the process of JAX {OWN} failed: "):
        compile_apart(program, broken, environment(OWN))


@pytest.fixture
def no_environments(monkeypatch):
    def made(version, progress):
        raise AssertionError

    monkeypatch.setattr(drifting, "environment", made)


def test_only_gpus_with_a_spec(program, no_environments):
    with pytest.raises(InputError, match="target cpu: versions are compared for a GPU"):
        drift(program, load_target("cpu"), ("0.6.2",))


@needs_the_cuda_plugin
def test_a_compile_is_read_from_the_cache(program, tmp_path):
    cache, own = CompileCache(tmp_path), environment(OWN)
    first = compile_apart(program, A100, own, cache=cache)
    again = compile_apart(program, A100, own, cache=cache)
    assert again.from_cache
    assert again.optimized_hlo == first.optimized_hlo


def test_the_text_has_no_attribute_or_location_that_old_versions_do_not_read():
    def solve(x):
        return jnp.linalg.slogdet(x @ x)[1]

    lowered = Program.from_function(solve, jax.ShapeDtypeStruct((8, 4, 4), "float32"))
    text = module_text(lowered)
    assert "sdy.sharding_rule" not in text
    assert " to :" not in text
    assert Program.from_function(solve, jax.ShapeDtypeStruct((8, 4, 4), "float32")).digest == lowered.digest


@jax.jit
def inner(x):
    with jax.named_scope("deep"):
        return jnp.sin(x)


def calls_in_a_loop(x):
    with jax.named_scope("outer"):
        x = jax.lax.fori_loop(0, 5, lambda _, x: inner(x @ x), x)
    return inner(x)


def names_in(text):
    names = re.findall(r"loc\(\"([^\"]*)\"\(", text)
    return {name for name in names if name.endswith(("/sin", "/dot_general"))}


def test_whole_names_are_those_of_all_calls():
    lowered = Program.from_function(calls_in_a_loop, jax.ShapeDtypeStruct((8, 8), "float32"))
    whole = module_text(lowered, whole_names=True)
    assert names_in(whole) == {
        "jit(calls_in_a_loop)/outer/while/body/closed_call/jit(inner)/deep/sin",
        "jit(calls_in_a_loop)/outer/while/body/closed_call/dot_general",
        "jit(calls_in_a_loop)/jit(inner)/deep/sin",
    }
    assert "deep/sin" in names_in(module_text(lowered))
    assert len(re.findall("func.func private @inner", whole)) == 2  # one for each call


def test_names_of_calls_are_joined_once():
    """A version that joins the names of calls finds no call with a name."""
    lowered = Program.from_function(calls_in_a_loop, jax.ShapeDtypeStruct((8, 8), "float32"))
    module = Program.of_foreign_bytes(module_text(lowered, whole_names=True).encode(), Path("whole.mlir")).parse()
    calls = [one for one in inner_operations(module.operation) if one.name == "func.call"]
    assert calls
    assert not any("/" in location_name(one) for one in calls)


@needs_the_cuda_plugin
def test_whole_names_change_no_launch():
    lowered = Program.from_function(calls_in_a_loop, jax.ShapeDtypeStruct((64, 64), "float32"))
    text = module_text(lowered, whole_names=True).encode()
    one, other = (compile_program(each, A100) for each in (lowered, Program.of_foreign_bytes(text, Path("whole.mlir"))))
    assert count_launches(one) == count_launches(other)
    scopes = [{row.scope for row in launch_rows(each)} for each in (one, other)]
    assert scopes[0] == scopes[1]


@pytest.mark.parametrize(("version", "whole"), [("0.4.35", True), ("0.6.2", True), ("0.8.0", False), ("0.11.2", False)])
def test_versions_before_0_8_need_whole_names(version, whole):
    assert _needs_whole_names(JaxEnvironment(version, Path("python"))) is whole


def test_large_constants_of_booleans_are_words():
    mask = np.arange(6 * 31).reshape(6, 31) % 3 == 0
    text = module_text(Program.from_function(lambda x: jnp.where(mask, x, 0), jax.ShapeDtypeStruct((6, 31), "float32")))
    words = re.search(r"dense<(\[\[.*?\]\])> : tensor<6x31xi1>", text)[1]
    assert np.array_equal(json.loads(words), mask)
    assert _listed_booleans(re.fullmatch(_BOOLEANS, 'dense<"0x0302"> : tensor<2x5xi1>')) == (
        "dense<[[true, true, false, false, false], [false, false, false, false, true]]> : tensor<2x5xi1>"
    )


def test_programs_of_several_devices_are_refused(program, no_environments):
    several = dataclasses.replace(program)
    vars(several)["devices"] = 2
    with pytest.raises(InputError, match="a program of several devices"):
        drift(several, A100, ("0.6.2",))


@pytest.fixture
def recorded(compiled):
    """Three versions, of which the second is not compiled and the third has a kernel more, and more memory."""
    grown = dataclasses.replace(compiled, memory=Memory(16384, 256, 8 * 2**20, 0))
    first, last = row_of("0.6.2", compiled), row_of("0.10.2", grown)
    record = last.record
    more = dataclasses.replace(record, rows=(*record.rows, record.rows[-1]))
    last = dataclasses.replace(last, record=more, cas_loops=(drifting.CasLoop("fusion.1", "scatter-add", "a.py:3", 1),))
    return of_rows("two_steps", "a100", [first, VersionRow("0.8.0", reason="no such call"), last])


@needs_the_cuda_plugin
def test_rows_steps_and_verdict(recorded):
    facts = DriftFacts(recorded)
    assert len(recorded.steps) == 1
    count = recorded.rows[0].record.dynamic_launches
    assert facts.verdict.startswith(f"two_steps on a100: {count} launches with JAX 0.6.2, {count + 1} with 0.10.2; the")
    rows = facts.table().rows
    assert [row[:2] for row in rows] == [["0.6.2", ""], ["0.8.0", "no such call"], ["0.10.2", ""]]
    lines = facts.step_lines(recorded.steps[0])
    assert f"launches {count} -> {count + 1}" in lines[0]
    assert "fusion.1: scatter-add at a.py:3 is now a loop of compare-and-swap" in lines


@needs_the_cuda_plugin
def test_equal_versions_are_said_to_be(compiled):
    found = of_rows("two_steps", "a100", [row_of(version, compiled) for version in ("0.6.2", "0.8.0")])
    assert found.steps[0].is_same
    assert DriftFacts(found).verdict.startswith("two_steps on a100: the same in JAX 0.6.2 to 0.8.0: ")


@needs_the_cuda_plugin
def test_versions_are_the_same_though_one_wrote_no_code_of_kernels(compiled):
    rows = [row_of("0.10.2", compiled), dataclasses.replace(row_of("0.11.2", compiled), cas_loops=None)]
    found = of_rows("two_steps", "a100", [dataclasses.replace(rows[0], cas_loops=()), rows[1]])
    assert found.steps[0].is_same
    assert DriftFacts(found).verdict.startswith("two_steps on a100: the same in JAX 0.10.2 to 0.11.2: ")


@needs_the_cuda_plugin
def test_the_same_figures_of_other_kernels_are_said_to_be(compiled):
    first = row_of("0.6.2", compiled)
    record = first.record
    other = dataclasses.replace(record, rows=(dataclasses.replace(record.rows[0], op="cosine"), *record.rows[1:]))
    found = of_rows("two_steps", "a100", [first, VersionRow("0.8.0", other, cas_loops=first.cas_loops)])
    said = DriftFacts(found).verdict
    assert said.startswith("two_steps on a100: the same figures in JAX 0.6.2 to 0.8.0: ")
    assert said.endswith(" changes among the kernels")


def loops(*lines):
    """Loops of compare-and-swap at those lines, with a kernel name each."""
    return tuple(drifting.CasLoop(f"k{at}_{line}", "scatter-add", f"a.py:{line}", 1) for at, line in enumerate(lines))


@needs_the_cuda_plugin
@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ((3,), (3, 4), ["k1_4: scatter-add at a.py:4 is now a loop of compare-and-swap"]),
        (
            (3, 4, 5),
            (4,),
            [
                "k0_3: scatter-add at a.py:3 is no longer a loop of compare-and-swap",
                "k2_5: scatter-add at a.py:5 is no longer a loop of compare-and-swap",
            ],
        ),
        ((3, 3), (3,), ["scatter-add at a.py:3: kernels with a compare-and-swap loop 2 -> 1"]),
        ((3, 4), (4, 3), []),
        ((), (3,) * 6, ["k0_3, k1_3, k2_3, k3_3, ...: scatter-add at a.py:3 is now a loop of compare-and-swap"]),
        (
            (3,),
            (4,),
            [
                "k0_3: scatter-add at a.py:3 is no longer a loop of compare-and-swap",
                "k0_4: scatter-add at a.py:4 is now a loop of compare-and-swap",
            ],
        ),
    ],
)
def test_loops_that_came_and_went_are_named_by_their_origin(old, new, lines, compiled):
    row = row_of("0.6.2", compiled)
    rows = [dataclasses.replace(row, version=name, cas_loops=loops(*at)) for name, at in (("1", old), ("2", new))]
    found = of_rows("two_steps", "a100", rows)
    assert [one for one in DriftFacts(found).step_lines(found.steps[0]) if "scatter" in one] == lines


def test_no_version_compiles_it():
    rows = [VersionRow(version, reason="no space") for version in ("0.6.2", "0.8.0")]
    found = of_rows("f", "a100", rows)
    assert DriftFacts(found).verdict == "f on a100: none of 2 versions compiles it: no space"
    assert "not compiled" in versions_svg(found)


@needs_the_cuda_plugin
def test_a_version_without_environment_is_a_row_with_the_reason(program, monkeypatch):
    def made(version, progress):
        if version == OWN:
            return environment(version)
        raise NoEnvironment(f"JAX {version} cannot be installed: no network")

    monkeypatch.setattr(drifting, "environment", made)
    found = drift(program, A100, ("0.6.2", OWN))
    assert [row.reason for row in found.rows] == ["JAX 0.6.2 cannot be installed: no network", ""]
    assert found.steps == ()


@needs_the_cuda_plugin
def test_the_chart_has_a_point_per_version_and_a_cross(recorded):
    svg = versions_svg(recorded)
    assert svg.count("<circle") == 3 * 2
    assert svg.count("✕ not compiled") == 1
    assert "8.00 MiB" in svg


@needs_the_cuda_plugin
@pytest.mark.slow
def test_a_cause_is_looked_for_by_compiles_of_both_sides(program, recorded, monkeypatch):
    """Both sides are the version that runs here, so that nothing returns the figures of the record."""
    asked = []

    def small(older, newer, measure, *, all_switches):
        assert all_switches
        assert "priority-fusion" in newer.passes
        assert "xla_gpu_autotune_level" not in newer.unset or newer.flags
        asked.extend(measure(newer.where, [{"xla_disable_hlo_passes": "algsimp"}, {"xla_no_such_option": True}]))
        return ()

    monkeypatch.setattr(drifting, "environment", lambda version: environment(OWN))
    monkeypatch.setattr(drifting, "causes", small)
    (step,) = with_causes(program, A100, recorded)
    assert step.causes == ()
    assert asked[0]["launches"] > 0
    assert asked[1] is None


@pytest.fixture
def searched(monkeypatch, recorded):
    """``searched(step=..., ...)``: what the search of the cause of that step is told and gives, nothing compiled."""

    def of(found, program, listing=lambda *given: None, **options):
        asked = []

        def search(older, newer, measure, *, all_switches):
            asked.append(all_switches)
            return found

        monkeypatch.setattr(drifting, "environment", lambda version: JaxEnvironment(version, None))
        monkeypatch.setattr(drifting, "listed", listing)
        monkeypatch.setattr(drifting, "causes", search)
        (step,) = with_causes(program, A100, recorded, **options)
        return step, asked

    return of


@needs_the_cuda_plugin
def test_a_side_that_xla_does_not_list_is_a_step_without_cause_and_the_reason(program, searched):
    def listing(*given):
        raise CompileError("XLA ended the process")

    step, asked = searched((), program, listing)
    assert (step.causes, asked) == (None, [])
    assert DriftFacts(drifting.Drift("f", "a100", (), (step,))).cause_lines(step) == ["no cause: XLA ended the process"]


@needs_the_cuda_plugin
def test_switches_are_left_out_by_the_number_of_ops_and_the_output_says_so(program, searched, recorded):
    none = Cause("launches", 2, 3, (), "", None, 81)
    step, asked = searched((none,), program)
    assert (asked, step.cause_note) == ([True], "")
    large = dataclasses.replace(program)
    vars(large)["ops"] = 501
    step, asked = searched((none,), large)
    assert asked == [False]
    assert DriftFacts(recorded).cause_lines(step)[-1] == (
        "switches with the same default on both sides were left out: the program has 501 ops"
    )
    step, _ = searched((dataclasses.replace(none, by=("pass a",), how=RETURNS, trial=2),), large)
    assert step.cause_note == ""


@needs_the_cuda_plugin
def test_trials_have_the_code_of_kernels_where_it_was_asked_for(program, recorded, monkeypatch):
    asked = []

    @contextlib.contextmanager
    def nothing(program, target, where, options):
        asked.extend(options)
        yield iter(())

    def search(older, newer, measure, *, all_switches):
        assert list(measure(JaxEnvironment("0.11.2", None), [{"a": 1}])) == []
        return ()

    monkeypatch.setattr(drifting, "environment", lambda version: JaxEnvironment(version, None))
    monkeypatch.setattr(drifting, "listed", lambda *given: None)
    monkeypatch.setattr(drifting, "compiles", nothing)
    monkeypatch.setattr(drifting, "causes", search)
    for ptx in (True, False):
        list(with_causes(program, A100, recorded, ptx=ptx))
    assert ["xla_dump_emitter_re" in one for one in asked] == [True, False]


@needs_the_cuda_plugin
def test_equal_scatters_are_a_loop_each():
    """XLA gives equal fusions one entry in PTX."""

    def three(x, y, z, at):
        return [jnp.zeros(64).at[at].add(one) for one in (x, y, z)]

    specs = [jax.ShapeDtypeStruct((1000,), "float32")] * 3
    program = Program.from_function(three, *specs, jax.ShapeDtypeStruct((1000,), "int32"))
    compiled = compile_apart(program, A100, environment(OWN), ptx=True)
    loops = row_of(OWN, compiled).cas_loops
    if not loops:
        pytest.skip("this XLA writes no loop of compare-and-swap")
    assert [one.op for one in loops] == ["scatter-add"] * 3
    assert len({kernels_by_launch(compiled)[one.kernel].name for one in loops}) == 1
    by_name = kernels_by_launch(dataclasses.replace(compiled, thunk_sequence="", captured_thunks=""))
    assert [by_name[one.kernel].name for one in loops] == [
        kernels_by_launch(compiled)[one.kernel].name for one in loops
    ]


@pytest.mark.parametrize(
    ("exit_code", "errors", "said"),
    [
        (-6, "noise\n", "XLA ended the process (exit code -6): noise"),
        (
            1,
            "F0: x.cc:3 Check failed: a == b\nmore",
            "XLA ended the process (exit code 1): F0: x.cc:3 Check failed: a == b",
        ),
        (1, "ImportError: no jax", "the process of JAX 0.6.2 failed: ImportError: no jax"),
        (None, "", "no result within 1200 s"),
    ],
)
def test_only_xla_ends_a_process_by_a_signal_or_a_check(exit_code, errors, said):
    assert _ending("0.6.2", Ended(exit_code, b"", errors, 1.0)) == said


@needs_the_cuda_plugin
def test_compiles_of_one_process_are_few_and_none_is_made_twice(program, monkeypatch):
    monkeypatch.setattr(compiling, "_IN_ONE_PROCESS", 2)
    asked = []

    class Noted(compiling.Running):
        def __init__(self, command, *rest):
            asked.append(command[-2:])
            super().__init__(command, *rest)

    monkeypatch.setattr(compiling, "Running", Noted)
    with compiles(program, A100, environment(OWN), [{"xla_no_such_option": True}] * 3) as made:
        assert all("No such compile option" in one.reason for one in made)
    assert asked == [["0", "2"], ["2", "3"]]


def test_a_compile_after_one_that_ends_xla_has_its_own_result(program, monkeypatch):
    begun = []

    class Crashing:
        """A process that XLA ends in compile 1."""

        def __init__(self, command, *rest):
            folder, first, end = Path(command[-3]), int(command[-2]), int(command[-1])
            for number in range(first, end):
                begun.append(number)
                if number == 1:
                    return
                (folder / str(number)).mkdir()
                (folder / str(number) / "result.json").write_text(json.dumps({"error": f"own {number}"}))

        def wait(self):
            return Ended(-6, b"", "Check failed: x", 1.0)

    monkeypatch.setattr(compiling, "Running", Crashing)
    with compiles(program, A100, JaxEnvironment("0.6.2", Path("python")), [{}] * 4) as made:
        reasons = [one.reason for one in made]
    assert reasons == ["own 0", "XLA ended the process (exit code -6): Check failed: x", "own 2", "own 3"]
    assert begun == [0, 1, 1, 2, 3]


def test_an_error_cancels_environments_that_are_not_begun(program, monkeypatch):
    begun, ready = [], threading.Event()

    def made(version, progress):
        begun.append(version)
        if len(begun) > 1:
            ready.wait(10)
        raise InputError("no folder")

    monkeypatch.setattr(drifting, "environment", made)
    monkeypatch.setattr(drifting, "_AT_ONCE", 1)
    with pytest.raises(InputError, match="no folder"):
        drift(program, A100, ("0.6.2", "0.7.0", "0.8.0", "0.9.2"))
    ready.set()
    assert "0.8.0" not in begun


@needs_the_cuda_plugin
def test_without_a_cause_xla_s_own_reason_is_said(recorded):
    (step,) = recorded.steps
    refused = dataclasses.replace(step.changes, refused=(("fused is slower", 0, 2), ("other", 3, 1)))
    said = cause_words(Cause("launches", 2, 3, (), "", None, 81), dataclasses.replace(step, changes=refused))
    assert said.endswith("none of 81 passes and flags; XLA's fusion pass refuses 2 more than before: fused is slower")
    said = cause_words(Cause("cas_loops", 2, 3, (), "", None, 81), dataclasses.replace(step, changes=refused))
    assert said.endswith("none of 81 passes and flags")


@needs_the_cuda_plugin
@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            Cause("launches", 1, 12, ("pass horizontal_loop_fusion",), GONE, 12, 102),
            "cause of launches 1 -> 12: pass horizontal_loop_fusion of JAX 0.6.2; without it that version has 12, too",
        ),
        (
            Cause("cas_loops", 0, 1, ("xla_gpu_ftz=true", "pass b"), RETURNS, 0, 300),
            "cause of compare-and-swap loops 0 -> 1: xla_gpu_ftz=true (or pass b); with it JAX 0.10.2 has 0",
        ),
        (
            Cause("temp_bytes", 0, 2048, ("pass cse",), RETURNS, 0, 80),
            "cause of temp memory 0 B -> 2.0 KiB: pass cse; without it JAX 0.10.2 has 0 B",
        ),
        (
            Cause("launches", 2, 3, ("pass fusion",), ALIKE, 9, 80),
            "cause of launches 2 -> 3: pass fusion; without it both versions have 9",
        ),
        (
            Cause("launches", 2, 3, (), "", None, 81),
            "cause of launches 2 -> 3: none of 81 passes and flags",
        ),
    ],
)
def test_a_cause_in_words(cause, words, recorded):
    assert cause_words(cause, recorded.steps[0]) == words
