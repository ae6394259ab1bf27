"""The output of a bisection: the reduced module, the inputs that were given, and a pytest file that fails as long as
the pass breaks it."""

from __future__ import annotations

import re
from pathlib import Path

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.files import require_writable, write_whole
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Pass
from fusionlab.passes.plugins import with_whole_path

MODULE = "reduced.mlir"
INPUTS = "inputs.npz"

_TEST = '''"""{pass_name} on {module}, {origin}: it must compute the same."""

from pathlib import Path

from fusionlab.equivalence.check import check_programs
{imports}from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline


def test_{test_name}_keeps_the_numbers():
    program = Program.from_file(Path(__file__).with_name("{module}"))
    result = run_pipeline(program, parse_pipeline({pipeline!r}), Setting(platform="{platform}"))
    assert result.applied, "the pass no longer applies: the module tests nothing"
    verdict = check_programs(program, result.program{samples})
    assert verdict.passed, f"{{verdict.verdict}}: {{verdict.worst or verdict.reason}}"
'''

_XLA_TEST = '''"""XLA's pass {xla_pass} on {module}, {origin}: it must compute the same."""

from pathlib import Path

from fusionlab.bisection.xla_passes import judge_xla
{imports}from fusionlab.hlo.program import Program


def test_xla_keeps_the_numbers():
    program = Program.from_file(Path(__file__).with_name("{module}"))
    assert judge_xla(program, disabled=("{xla_pass}",){inputs}).passed, "it is another pass: bisect again"
    verdict = judge_xla(program{inputs})
    assert verdict.passed, f"{{verdict.verdict}}: {{verdict.worst or verdict.reason}}"
'''


_IMPORTS = """from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.samples import sample_of
"""
_SAMPLE = f'sample_of(Counterexample.load(Path(__file__).with_name("{INPUTS}")))'


def write_case(
    folder: Path, program: Program, pass_: Pass, platform: str, inputs: Counterexample | None = None
) -> tuple[Path, ...]:
    """Write the module and the test of a pass of ours, or of the user's file, into ``folder``, and ``inputs``, where
    there are any; return their paths."""
    test_name = re.sub(r"\W+", "_", pass_.name.rpartition("/")[2], flags=re.ASCII)  # of path.py:Name no path
    text = _TEST.format(
        pass_name=_one_line(pass_.name),
        pipeline=with_whole_path(str(pass_)),
        test_name=test_name,
        module=MODULE,
        platform=platform,
        origin=("reduced " if inputs is None else "") + _origin(program),
        imports="" if inputs is None else _IMPORTS,
        samples="" if inputs is None else f", [{_SAMPLE}]",
    )
    return _write(folder, program, f"test_{test_name}.py", text, inputs)


def write_xla_case(
    folder: Path, program: Program, xla_pass: str, inputs: Counterexample | None = None
) -> tuple[Path, ...]:
    """Write the module and the test of an XLA pass into ``folder``, and ``inputs``, where there are any; return their
    paths."""
    text = _XLA_TEST.format(
        xla_pass=xla_pass,
        module=MODULE,
        origin=_origin(program),
        imports="" if inputs is None else _IMPORTS,
        inputs="" if inputs is None else f", inputs={_SAMPLE}",
    )
    return _write(folder, program, "test_xla.py", text, inputs)


def _write(
    folder: Path, program: Program, test_file: str, test: str, inputs: Counterexample | None
) -> tuple[Path, ...]:
    require_writable(folder)
    write_whole(folder / MODULE, program.text)
    write_whole(folder / test_file, test)
    if inputs is None:
        return folder / MODULE, folder / test_file
    inputs.save(folder / INPUTS)
    return folder / MODULE, folder / test_file, folder / INPUTS


def _origin(program: Program) -> str:
    return f"from {_one_line(program.provenance)}"


def _one_line(outside: str) -> str:
    """A provenance or a pass's name escaped for a docstring, which untrusted text must not end."""
    printable = "".join(c for c in outside if c.isprintable() and c not in '"\\\\')
    return printable[:200]
