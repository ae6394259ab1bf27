"""FILE.py:FUNCTION with ``--args`` on every command that takes a program, and where ``--args`` has no meaning."""

import json

import jax
import jax.numpy as jnp
import pytest

from fusionlab.cli import VERBS
from fusionlab.hlo.program import Program
from tests.optional_packages import needs_the_cuda_plugin

MODEL = """import jax, jax.numpy as jnp
def energy(x):
    y = jax.lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x)
    return jnp.tanh(y @ jnp.ones((4, 2)))
"""
SOLVE = """import jax, jax.numpy as jnp
def solve(x):
    return jnp.linalg.slogdet(x @ x.T + 3 * jnp.eye(4))[1]
"""
OTHER = MODEL.replace("tanh", "sin")
GIVEN = ("model.py:energy", "--args", "f32[3,4]")
COMMANDS = {
    "apply": ("--pass", "batch-replay", "--target", "cpu", "--out", "out.mlir"),
    "bench": ("--device", "cpu", "--records", "none", "--runs", "2", "--repeats", "1", "--check-only"),
    "bisect": ("--pass", "batch-replay", "--target", "cpu"),
    "check": ("--pass", "batch-replay", "--target", "cpu", "--no-oracles"),
    "clusters": ("--target", "cpu"),
    "diff": ("model.py:energy", "--target", "cpu"),
    "drift": ("--jax", jax.__version__, "--target", "a100"),
    "dump": ("--target", "cpu", "--out", "out"),
    "explain": ("--target", "cpu", "--kernel", "KERNEL"),
    "graph": ("--view", "stages", "--target", "cpu", "--out", "out.json"),
    "kernels": ("--target", "a100"),
    "launches": ("--target", "cpu"),
    "memory": ("--target", "cpu"),
    "replays": ("--target", "cpu"),
    "roofline": ("--target", "cpu"),
    "study": ("--pipeline", "batch-replay", "--target", "cpu", "-o", "out"),
}
NO_PROGRAM = {"compare", "completion", "corpus", "models", "paper", "passes"}

pytestmark = pytest.mark.usefixtures("without_exact_checks")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "other.py").write_text(OTHER)
    return tmp_path


def test_every_command_that_takes_a_program_is_here():
    assert set(COMMANDS) | NO_PROGRAM == set(VERBS)


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=needs_the_cuda_plugin if "a100" in COMMANDS[verb] else ()) for verb in COMMANDS]
)
def test_it_takes_a_python_function(verb, as_json, folder):
    words = COMMANDS[verb]
    if "KERNEL" in words:
        kernel = as_json("launches", *GIVEN, "--target", "cpu")["rows"][0]["name"]
        words = [kernel if word == "KERNEL" else word for word in words]
    document = json.dumps(as_json(verb, *GIVEN, *words))
    assert "energy" in document


def test_source_lines_are_the_users(as_json, folder):
    sources = {row["source"] for row in as_json("launches", *GIVEN, "--target", "cpu")["rows"]}
    assert "model.py:3" in sources
    assert {one.partition(":")[0] for one in sources - {""}} == {"model.py"}


def test_both_programs_of_a_check_may_be_python(cli, folder):
    words = ("--args", "f32[3,4]", "--target", "cpu", "--no-oracles", "--quiet")
    cli("check", "model.py:energy", "model.py", *words, code=0)
    cli("check", "model.py:energy", "other.py:energy", *words, code=1)


def test_a_check_lowers_python_for_where_it_runs(as_json, folder, lowered):
    """For the CPU, unless it is compared with a program that calls a GPU's libraries."""
    (folder / "model.py").write_text(SOLVE)
    (folder / "other.py").write_text(SOLVE.replace("x.T", "(x.T + 0)"))
    found = as_json("check", "model.py:solve", "other.py:solve", "--args", "f32[4,4]", "--no-oracles")
    assert (found["target"], found["verdict"]) == ("cpu", "equal")

    module = {"__name__": "solve"}
    exec(SOLVE, module)
    for platform, target in (("cuda", "a100"), ("cpu", "cpu")):
        program = Program.from_function(module["solve"], jnp.ones((4, 4)), platform=platform)
        assert program.platform == platform
        (folder / "solve.mlir").write_text(program.text)
        for sides in (("model.py:solve", "solve.mlir"), ("solve.mlir", "model.py:solve")):
            document = as_json("check", *sides, "--args", "f32[4,4]", "--no-oracles")
            assert (document["target"], document["verdict"]) == (target, "equal"), (platform, sides)


def test_a_comparison_of_two_files(as_json, cli, folder):
    (folder / "before.json").write_text(cli("launches", *GIVEN, "--target", "cpu", "--json", "--quiet").stdout)
    found = as_json("diff", "before.json", "other.py:energy", "--args", "f32[3,4]")
    assert found["after"]["name"] == "energy"
    assert found["totals"]["launches"]["before"] == found["totals"]["launches"]["after"]


def test_what_the_file_prints_is_not_among_results(cli, folder):
    (folder / "model.py").write_text(MODEL + "print('noise')\n")
    result = cli("launches", *GIVEN, "--target", "cpu", "--json", "--quiet", code=0)
    assert json.loads(result.stdout)["rows"]
    assert "noise" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("launches", "replay.mlir"), "--args: replay.mlir has the types of its arguments in it"),
        (("check", "replay.mlir", "replay.mlir"), "--args: replay.mlir has the types of its arguments in it"),
        (("diff", "replay.mlir", "replay.mlir"), "--args: replay.mlir has the types of its arguments in it"),
        (("dump", "--model", "paulinet"), "--args: model paulinet makes its own arguments"),
        (("launches", "model.py:enegy"), "there is no function 'enegy'; the file defines energy"),
    ],
)
def test_arguments_of_what_is_no_python(words, said, cli, folder, replay_file):
    result = cli(*words, "--args", "f32[3,4]", "--quiet", code=2)
    assert said in result.stderr
    assert result.stdout == ""


def test_an_error_of_the_user_s_code_is_told_with_its_line(cli, folder):
    result = cli("launches", "model.py:energy", "--args", "f32[3,5]", "--quiet", code=2)
    assert "model.py:energy: raises TypeError: dot_general" in result.stderr
    assert "  model.py:4, in energy: return jnp.tanh(y @ jnp.ones((4, 2)))" in result.stderr
    assert "Traceback" not in result.stderr
