"""The output of a bisection: the reduced module, and a pytest file that fails as long as the pass breaks it."""

from __future__ import annotations

import re
from pathlib import Path

from fusionlab.files import require_writable, write_whole
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Pass
from fusionlab.passes.plugins import with_whole_path

MODULE = "reduced.mlir"

_TEST = '''"""{pass_name} on {module}, reduced from {provenance}: it must compute the same."""

from pathlib import Path

from fusionlab.equivalence.check import check_programs
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline


def test_{test_name}_keeps_the_numbers():
    program = Program.from_file(Path(__file__).with_name("{module}"))
    result = run_pipeline(program, parse_pipeline({pipeline!r}), Setting(platform="{platform}"))
    assert result.applied, "the pass no longer applies: the module tests nothing"
    verdict = check_programs(program, result.program)
    assert verdict.passed, f"{{verdict.verdict}}: {{verdict.worst or verdict.reason}}"
'''

_XLA_TEST = '''"""XLA's pass {xla_pass} on {module}, reduced from {provenance}: it must compute the same."""

from pathlib import Path

from fusionlab.bisection.xla_passes import judge_xla
from fusionlab.hlo.program import Program


def test_xla_keeps_the_numbers():
    program = Program.from_file(Path(__file__).with_name("{module}"))
    assert judge_xla(program, disabled=("{xla_pass}",)).passed, "it is another pass: bisect again"
    verdict = judge_xla(program)
    assert verdict.passed, f"{{verdict.verdict}}: {{verdict.worst or verdict.reason}}"
'''


def write_case(folder: Path, program: Program, pass_: Pass, platform: str) -> tuple[Path, Path]:
    """Write the module and the test of a pass of ours, or of the user's file, into ``folder``; return their paths."""
    test_name = re.sub(r"\W+", "_", pass_.name.rpartition("/")[2], flags=re.ASCII)  # of path.py:Name no path
    text = _TEST.format(
        pass_name=_one_line(pass_.name),
        pipeline=with_whole_path(str(pass_)),
        test_name=test_name,
        module=MODULE,
        platform=platform,
        provenance=_one_line(program.provenance),
    )
    return _write(folder, program, f"test_{test_name}.py", text)


def write_xla_case(folder: Path, program: Program, xla_pass: str) -> tuple[Path, Path]:
    """Write the module and the test of an XLA pass into ``folder``; return their paths."""
    text = _XLA_TEST.format(xla_pass=xla_pass, module=MODULE, provenance=_one_line(program.provenance))
    return _write(folder, program, "test_xla.py", text)


def _write(folder: Path, program: Program, test_file: str, test: str) -> tuple[Path, Path]:
    require_writable(folder)
    write_whole(folder / MODULE, program.text)
    write_whole(folder / test_file, test)
    return folder / MODULE, folder / test_file


def _one_line(outside: str) -> str:
    """A provenance or a pass's name escaped for a docstring, which untrusted text must not end."""
    printable = "".join(c for c in outside if c.isprintable() and c not in '"\\\\')
    return printable[:200]
