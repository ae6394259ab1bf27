"""Exit codes: every ending that a command names has one."""

import ast
from pathlib import Path

import fusionlab.cli
from fusionlab.cli.exit_codes import EXIT_CODES, exit_code


def test_every_ending_that_a_command_names_has_a_code():
    sources = Path(fusionlab.cli.__file__).parent.glob("*.py")
    calls = [node for path in sources for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    given = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "exit_code"]
    lists = [node for argument in given for node in ast.walk(argument) if isinstance(node, ast.List)]
    named = {one.value for each in lists for one in ast.walk(each) if isinstance(one, ast.Constant)}
    assert "not compiled" in named
    assert named <= EXIT_CODES.keys()


def test_what_compiles_nowhere_is_a_failed_check():
    assert exit_code(["not compiled"]) == 1
