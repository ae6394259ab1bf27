"""``fusionlab bisect``: the guilty application, a smaller module, and a test that fails for the right reason."""

import importlib.util
import itertools
import json
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.bisection import reduction
from fusionlab.bisection.reduction import reduce_program
from fusionlab.bisection.steps import Step, judge_steps, steps_of
from fusionlab.bisection.written import write_case
from fusionlab.bisection.xla_passes import changing_passes, judge_xla
from fusionlab.codegen.raising import RaisingFault
from fusionlab.equivalence.check import check_programs
from fusionlab.hlo.program import Program
from fusionlab.passes import batch_replay
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from tests.equivalence.mapped import SHARDED
from tests.equivalence.mapped import lowered as on_devices

from .mutations import MUTATIONS
from .small_programs import PROGRAMS, SQUARE

SETTING = Setting(platform="cpu")


def two_loops(x, w):
    """Much around two loops; only the second runs 3 trips."""
    y = jnp.tanh(x @ w) + jnp.cos(x)
    first = lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(y * k), y)
    z = jnp.exp(-(first**2)) @ w
    second = lax.fori_loop(0, 3, lambda k, s: s + jnp.cos(z * k), z)
    return jnp.sqrt(second**2 + 1.0).sum(), first.sum(), z


@pytest.fixture
def last_trip_lost_where_there_are_three(monkeypatch):
    right = batch_replay.batched_loop

    def wrong(trips, chunk):
        if trips.loop.trips != 3:
            return right(trips, chunk)
        return right(replace(trips, loop=replace(trips.loop, trips=2)), 2)

    monkeypatch.setattr(batch_replay, "batched_loop", wrong)


@pytest.fixture(scope="module")
def program(lowered):
    return lowered(two_loops, SQUARE, SQUARE)


def test_a_pipeline_is_taken_apart(program):
    steps, _ = steps_of(program, parse_pipeline("licm,batch-replay"), SETTING)
    batched = [step for step in steps if step.by.name == "batch-replay"]
    assert [(step.number, step.of) for step in batched] == [(1, 2), (2, 2)]
    assert all(before.after == after.before for before, after in itertools.pairwise(steps))
    whole = run_pipeline(program, parse_pipeline("licm,batch-replay"), SETTING).program
    assert steps[-1].after == whole
    assert steps[0].before == program


def test_a_pass_on_several_devices_is_one_step():
    """What it makes one after another are parts of the program, which compare with no whole one."""

    def energies(x):
        first = lax.fori_loop(0, 9, lambda k, s: s + jnp.sin(x * k), x)
        return lax.fori_loop(0, 9, lambda k, s: s + jnp.cos(x * k), first * lax.pmean(first.mean(), "walkers"))

    program = on_devices(energies, outside=SHARDED)
    steps, _ = steps_of(program, parse_pipeline("batch-replay"), SETTING)
    assert [(step.number, step.of, step.after.devices) for step in steps] == [(0, 2, 4)]


def test_what_chooses_is_taken_apart_into_what_it_chose(program):
    steps, _ = steps_of(program, parse_pipeline("fuse-jvp-replay"), SETTING)
    assert {step.by.name for step in steps} <= {"licm", "batch-replay"}
    assert all(verdict.passed for _, verdict in judge_steps(steps, check_programs).steps)


def test_the_second_application_is_guilty_and_reduced(program, last_trip_lost_where_there_are_three, tmp_path):
    steps, _ = steps_of(program, parse_pipeline("batch-replay"), SETTING)
    step, verdict = judge_steps(steps, check_programs).wrong
    assert (step.number, step.of) == (2, 2)
    assert verdict.verdict == "different"
    reduced = reduce_program(step, SETTING, check_programs)
    assert reduced.program.ops < reduced.ops_before / 2
    assert reduced.trials <= reduction.MOST_TRIALS
    module, test = write_case(tmp_path, reduced.program, step.by, "cpu")
    assert Program.from_file(module).ops == reduced.program.ops
    assert test.read_text().startswith('"""batch-replay on reduced.mlir, reduced from ')
    assert_differs(test)


def run_tests_of(path):
    spec = importlib.util.spec_from_file_location("written_by_bisect", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = [getattr(module, name) for name in dir(module) if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


def assert_differs(path):
    with pytest.raises(AssertionError, match="different: seed"):
        run_tests_of(path)


def test_a_module_that_tests_nothing_is_said(lowered, tmp_path):
    _, test = write_case(tmp_path, lowered(jnp.sin, SQUARE), parse_pipeline("batch-replay")[0], "cpu")
    with pytest.raises(AssertionError, match="the module tests nothing"):
        run_tests_of(test)


def test_no_text_from_outside_reaches_the_code_that_is_written(lowered, tmp_path):
    evil = replace(lowered(jnp.sin, SQUARE), provenance='x""" + __import__("os").abort() + """\n')
    _, test = write_case(tmp_path, evil, parse_pipeline("batch-replay")[0], "cpu")
    first = test.read_text().splitlines()[0]
    assert first.count('"') == 6
    compile(test.read_text(), str(test), "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["half of the cross term of a product", "hoisted values in the wrong order"])
def test_mutations_are_reduced_and_their_tests_fail(name, lowered, monkeypatch, tmp_path):
    mutation = next(mutation for mutation in MUTATIONS if mutation.name == name)
    program = lowered(*PROGRAMS[mutation.program])
    with monkeypatch.context() as patch:
        mutation.plant(patch)
        step, _ = judge_steps(steps_of(program, parse_pipeline(mutation.pipeline), SETTING)[0], check_programs).wrong
        reduced = reduce_program(step, SETTING, check_programs)
        assert reduced.program.ops <= program.ops
        _, test = write_case(tmp_path, reduced.program, step.by, "cpu")
        assert_differs(test)
    run_tests_of(test)


@pytest.mark.slow
def test_a_pass_of_xla_is_found(cli, tmp_path):
    result = cli(
        "bisect", Path(__file__).with_name("overflow.mlir"), "--xla", "--json", "--quiet", "--out", tmp_path / "out"
    )
    document = json.loads(result.stdout)
    assert result.exit_code == 1, result.stderr
    assert document["different"]
    assert document["guilty"][0] == "algsimp"
    assert_differs(tmp_path / "out" / "test_xla.py")


def test_passes_of_xla_have_names_and_one_that_it_keeps_passes(lowered):
    names = changing_passes(lowered(lambda x: (x * 2 * 3) @ x, SQUARE))
    assert "algsimp" in names
    assert "pipeline-start" not in names
    assert judge_xla(lowered(lambda x: jnp.sin(x) @ x, SQUARE)).passed


def test_the_command_on_a_file(cli, program, last_trip_lost_where_there_are_three, tmp_path, no_processes):
    path, out = tmp_path / "two.mlir", tmp_path / "out"
    path.write_text(program.text)
    result = cli("bisect", path, "--pass", "batch-replay", "--target", "cpu", "--trials", "1", "--json", "--out", out)
    assert result.exit_code == 1, result.stderr
    document = json.loads(result.stdout)
    assert (document["guilty"], document["application"], document["applications"]) == ("batch-replay", 2, 2)
    assert document["ops_after"] < document["ops_before"]
    assert [path.rpartition("/")[2] for path in document["files"]] == ["reduced.mlir", "test_batch_replay.py"]
    assert_differs(out / "test_batch_replay.py")


SWAPPED = """from dataclasses import dataclass
from fusionlab import Pass
from fusionlab.passes.matcher import op, rewrite_matches

@dataclass(frozen=True)
class Swapped(Pass):
    shift: int = 0

    def run(self, program, setting):
        pattern = op("subtract", "x", "y")
        return rewrite_matches(program, self, setting, pattern, lambda x, y: y + (-x), what="subtractions swapped")
"""


def test_a_pass_of_a_file_gets_a_test_that_runs_anywhere(cli, lowered, tmp_path, monkeypatch, no_processes):
    (tmp_path / "p.mlir").write_text(lowered(lambda x: jnp.sin(x - 2.0) + jnp.exp(x), SQUARE).text)
    (tmp_path / "own.py").write_text(SWAPPED)
    monkeypatch.chdir(tmp_path)
    assert cli("bisect", "p.mlir", "--pass", "own.py:Swapped{shift=2}", "--out", "found").exit_code == 1
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert_differs(tmp_path / "found" / "test_own_py_Swapped.py")
    (tmp_path / "own.py").write_text(SWAPPED.replace("y + (-x)", "x + (-y)"))
    run_tests_of(tmp_path / "found" / "test_own_py_Swapped.py")


def test_a_pass_of_a_file_is_no_code_of_the_test(lowered, tmp_path):
    """Its path stands in the test: quotes and braces of it stay text."""
    folder = tmp_path / """a"+b'"""
    folder.mkdir()
    (folder / "own.py").write_text(SWAPPED)
    pass_ = parse_pipeline(f"{folder}/own.py:Swapped")[0]
    _, test = write_case(tmp_path, lowered(lambda x: x - 2.0, SQUARE), pass_, "cpu")
    assert_differs(test)


def test_inputs_of_a_file_show_what_drawn_ones_hide(cli, lowered, tmp_path, monkeypatch, no_processes):
    """Arrays of ``numpy.savez`` in the order of the arguments, or the worst walker that ``check`` saved."""
    monkeypatch.chdir(tmp_path)
    Path("p.mlir").write_text(lowered(lambda x, y: jnp.sin(x - y), SQUARE, SQUARE).text)
    Path("own.py").write_text(SWAPPED.replace("y + (-x)", "x + (-y) + (x == 2e3)"))
    words = (
        "bisect",
        "p.mlir",
        "--pass",
        "own.py:Swapped",
        "--target",
        "cpu",
        "--no-exact",
        "--quiet",
        "--out",
        "found",
    )
    drawn = cli(*words, code=0).stdout
    assert "none of 1 steps differs; only drawn inputs were tried: --inputs FILE.npz judges on others" in drawn
    for name, value in {"small": 2.0, "large": 2e3}.items():
        np.savez(f"{name}.npz", x=np.full_like(SQUARE, value), y=SQUARE)
    assert "judged on the inputs of small.npz" in cli(*words, "--inputs", "small.npz", code=0).stdout
    found = json.loads(cli(*words, "--inputs", "large.npz", "--json", code=1).stdout)
    assert [Path(path).name for path in found["files"]] == ["reduced.mlir", "test_own_py_Swapped.py", "inputs.npz"]
    written = Path("found/test_own_py_Swapped.py").read_text()
    assert " on reduced.mlir, from " in written.splitlines()[0]
    with pytest.raises(AssertionError, match=r"different: inputs of large\.npz"):
        run_tests_of(Path("found/test_own_py_Swapped.py"))
    cli(*words, "--inputs", "found/inputs.npz", code=1)
    np.savez("double.npz", SQUARE.astype(np.float64), SQUARE)
    assert "double.npz: inputs of another program" in cli(*words, "--inputs", "double.npz", code=2).stderr


@pytest.mark.slow
def test_inputs_at_which_xla_overflows(cli, lowered, tmp_path):
    (tmp_path / "p.mlir").write_text(lowered(lambda a, b, x: a * x + b * x, *np.ones(3, np.float32)).text)
    np.savez(tmp_path / "inputs.npz", *np.array([1e38, -1e38, 10.0], np.float32))
    words = ("bisect", tmp_path / "p.mlir", "--xla", "--quiet", "--out", tmp_path / "out")
    assert "only drawn inputs were tried" in cli(*words, code=0).stdout
    assert "XLA's program differs" in cli(*words, "--inputs", tmp_path / "inputs.npz", code=1).stdout


@pytest.fixture
def loop_file(lowered, tmp_path):
    path = tmp_path / "loop.mlir"
    path.write_text(lowered(*PROGRAMS["directions"]).text)
    return path


def test_nothing_to_find_is_exit_0_and_no_files(cli, loop_file, tmp_path, no_processes):
    out = tmp_path / "out"
    result = cli("bisect", loop_file, "--pass", "batch-replay", "--target", "cpu", "--quiet", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "none of 1 steps differs" in result.stdout
    assert not out.exists()


def test_what_could_not_be_judged_is_no_all_clear(cli, loop_file, tmp_path):
    out = tmp_path / "out"
    words = "--pass batch-replay --target cpu --check-time-limit 0.1 --json --quiet --out"
    given = (*words.split(), out)
    result = cli("bisect", loop_file, *given)
    assert result.exit_code == 1, result.stderr
    document = json.loads(result.stdout)
    assert (document["different"], document["not_checked"], document["guilty"]) == (False, 1, None)
    plain = cli("bisect", loop_file, *(word for word in given if word != "--json"))
    assert "none of 1 steps differs; 1 could not be checked" in plain.stdout
    assert "did not finish within 0.1 s" in plain.stdout


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "name what to bisect"),
        (("--xla", "--pass", "batch-replay"), "name what to bisect"),
        (("--xla", "--target", "a100"), "cannot be run here"),
        (("--pass", "batch-reply"), "unknown pass"),
        (("--pass", "batch-replay", "--inputs", "no.npz"), "no.npz: cannot be read"),
    ],
)
def test_bad_input(arguments, part, cli, loop_file):
    result = cli("bisect", loop_file, *arguments, "--quiet")
    assert result.exit_code == 2
    assert part in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_the_raising_fails_on_is_no_smaller_program(program, monkeypatch):
    def faulty(*given):
        raise RaisingFault("TypeError: a bug")

    step = Step(parse_pipeline("batch-replay")[0], 1, 1, "", program, program)
    assert reduce_program(step, SETTING, faulty, most_trials=1).program is program
    monkeypatch.setattr(reduction, "raise_nodes", faulty)
    assert reduce_program(step, SETTING, check_programs).trials == 0
