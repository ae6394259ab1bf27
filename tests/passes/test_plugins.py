"""Passes of a user's file and of an installed package: found by name, and whatever they do wrong is one line."""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.passes import plugins
from fusionlab.passes.pipeline import parse_pipeline, print_pipeline

HEAD = """
from dataclasses import dataclass
from fusionlab import Applied, Declined, Pass, Program, Result
from fusionlab.passes.matcher import number, op, rewrite_matches

"""
GOOD = (
    HEAD
    + """
@dataclass(frozen=True)
class Times(Pass):
    '''Divisions by a number multiply.'''
    name = "times"
    least: float = 0.0

    def run(self, program, setting):
        pattern = op("divide", "x", number("n"))
        return rewrite_matches(program, self, setting, pattern, lambda x, n: x * (1 / n), what="divisions multiply")
"""
)


def with_run(body):
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"{HEAD}@dataclass(frozen=True)\nclass Wrong(Pass):\n    def run(self, program, setting):\n{lines}\n"


CHANGED_TYPES = """
text = str(program.parse()).replace("3x4xf32", "4x3xf32")
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
with make_ir_context():
    other = Program.from_module(ir.Module.parse(text), name="x", provenance="x")
return Result(other, (Applied("wrong", "all", "", "wrong"),))
"""
INVALID = """
from dataclasses import replace
return Result(replace(program, bytecode=program.bytecode[:-40]), (Applied("wrong", "all", "", "wrong"),))
"""
WRONG = {
    "raises": ("raise KeyError('nothing')", "failed: KeyError: 'nothing' (wrong.py, line 9)"),
    "exits": ("raise SystemExit(3)", "failed: SystemExit: 3"),
    "gives nothing": ("return None", "gave NoneType and no fusionlab.Result"),
    "says nothing": ("return Result(program, ())", "gave no event"),
    "only says so": (
        "return Result(program, (Applied('wrong', 'all', '', 'wrong'),))",
        "gave an Applied and the same program",
    ),
    "does not come to rest": (
        "return rewrite_matches(program, self, setting, op('divide', 'x', 'y'), lambda x, y: x / y, what='again')",
        "the replacement that wrong.py:Wrong inserts matches again without end",
    ),
    "gives another type": (
        "return rewrite_matches(program, self, setting, op('divide', 'x', 'y'), lambda x, y: x[0], what='again')",
        "failed: ValueError: lowered to other types than it replaces",
    ),
    "leaves what does not verify": (INVALID, "produced an invalid module: "),
    "changes the signature": (CHANGED_TYPES, "changed the types of the program's arguments or results"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def program(lowered):
    return lowered(lambda x: jnp.sin(x) / 7.0 + x / x, np.ones((3, 4), np.float32))


def test_a_pass_of_a_file_is_found_and_printed_as_it_was_asked_for(folder, program, rewritten, run_raised):
    (folder / "mine.py").write_text(GOOD)
    passes = parse_pipeline("mine.py:Times{least=0.5},licm")
    assert print_pipeline(passes) == "mine.py:Times{least=0.5},licm"
    assert parse_pipeline(print_pipeline(passes)) == passes
    result = rewritten(program, str(passes[0]))
    (event,) = result.applied
    assert (event.pass_name, event.what, event.resolved) == (
        "mine.py:Times", "1 divisions multiply", "mine.py:Times{least=0.5}",
    )  # fmt: skip
    x = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)
    (value,), (wanted,) = run_raised(result.program, [x]), run_raised(program, [x])
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    assert rewritten(result.program, str(passes[0])).applied == ()


def test_a_path_may_have_blanks_and_an_edited_file_is_read_again(folder, program, rewritten):
    path = folder / "my passes"
    path.mkdir()
    file = path / "mine.py"
    file.write_text(GOOD)
    assert rewritten(program, "my passes/mine.py:Times").applied[0].what == "1 divisions multiply"
    file.write_text(GOOD.replace("divisions multiply", "are times"))
    assert rewritten(program, f"{file}:Times").applied[0].what == "1 are times"


def test_a_file_that_another_thread_is_importing_is_waited_for(folder):
    (folder / "slow.py").write_text("import time\ntime.sleep(0.3)\n" + GOOD)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(parse_pipeline, ["slow.py:Times", "slow.py:Times"])
    assert first == second


def test_a_pass_is_one_class_by_each_of_its_names_and_goes_with_its_module(folder):
    (folder / "mine.py").write_text(GOOD)
    relative, whole = "mine.py:Times", f"{folder / 'mine.py'}:Times"
    with ThreadPoolExecutor(4) as threads:
        made = {type(one) for (one,) in threads.map(parse_pipeline, [relative, whole] * 8)}
    assert sorted(one.name for one in made) == sorted([relative, whole])
    kept = [weakref.ref(one) for one in made]
    del sys.modules[made.pop().__mro__[1].__module__]
    made.clear()
    gc.collect()
    assert [one() for one in kept] == [None, None]


@pytest.mark.parametrize(("body", "said"), WRONG.values(), ids=WRONG)
def test_what_a_pass_does_wrong_is_one_line_that_names_it(body, said, folder, program, rewritten):
    (folder / "wrong.py").write_text(with_run(body))
    with pytest.raises(InputError) as raised:
        rewritten(program, "wrong.py:Wrong")
    assert "wrong.py:Wrong" in str(raised.value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("reference", "content", "said"),
    [
        ("none.py:Times", None, "there is no file none.py"),
        ("mine.py:Time", GOOD, "unknown name in this file 'Time'; did you mean: Times?"),
        ("mine.py:number", GOOD, "is not a pass: not a subclass of fusionlab.Pass"),
        ("mine.py:mine", GOOD + "mine = Times()\n", "is an object; name its class, Times"),
        ("mine.py:Times", GOOD.replace("@dataclass(frozen=True)", ""), "it needs @dataclass(frozen=True)"),
        ("mine.py:Times", "import nothing_such", "No module named 'nothing_such' (mine.py, line 1)"),
        ("mine.py:Times", "def (", "cannot be imported: SyntaxError"),
        ("mine.py:Times", "raise SystemExit", "cannot be imported: SystemExit"),
        ("mine.py:Times{most=1}", GOOD, "did you mean: least?"),
    ],
)  # fmt: skip
def test_what_is_no_pass_is_said(reference, content, said, folder):
    if content is not None:
        (folder / "mine.py").write_text(content)
    with pytest.raises(InputError) as raised:
        parse_pipeline(reference)
    assert said in str(raised.value)
    assert reference.partition("{")[0] in str(raised.value)


def test_a_file_is_imported_only_when_it_is_written_as_a_pass(folder):
    (folder / "mine.py").write_text("raise AssertionError('imported')")
    for text in ("mine", "mine.py", "mine:Times", "times"):
        with pytest.raises(InputError, match="unknown pass"):
            parse_pipeline(text)


def test_on_the_command_line_it_is_exit_code_2(cli, folder, program):
    (folder / "wrong.py").write_text(with_run("raise KeyError('nothing')"))
    (folder / "program.mlir").write_text(program.text)
    result = cli("apply", "program.mlir", "--pass", "wrong.py:Wrong", "--target", "cpu", "--quiet")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "fusionlab: pass wrong.py:Wrong failed: KeyError: 'nothing' (wrong.py, line 9)"
    )


def test_the_catalogue_prints_its_documentation(cli, folder):
    (folder / "mine.py").write_text(GOOD)
    result = cli("passes", "mine.py:Times")
    assert result.exit_code == 0
    assert "Divisions by a number multiply." in result.stdout


def test_installed_packages_bring_passes(folder, program, rewritten, monkeypatch, cli):
    (folder / "brought.py").write_text(GOOD)
    monkeypatch.syspath_prepend(folder)
    points = {
        name: EntryPoint(name, value, plugins.GROUP)
        for name, value in (("times", "brought:Times"), ("broken", "no_such_module:Times"), ("layout", "brought:Times"))
    }
    monkeypatch.setattr(plugins, "installed", lambda: points)
    result = rewritten(program, "times")
    assert result.applied[0].resolved == "times"
    assert "times: of brought:Times" in cli("passes").stdout
    with pytest.raises(InputError, match=r"pass broken .* cannot be imported: ModuleNotFoundError"):
        rewritten(program, "broken")
    with pytest.raises(InputError, match="did you mean: times"):
        rewritten(program, "time")
    assert len(parse_pipeline("layout")) > 1, "a name of fusionlab's own stays its own"
