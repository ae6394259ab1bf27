"""Per pass: the smallest modules that it changes, with what comes out, and near misses, with the reason.

``cases/<pass>/<name>.mlir`` begins with what is expected of it: ``// pipeline: TEXT`` (the pass itself by default),
``// platform: NAME`` (``cpu`` by default), and one line per event, ``// applied: WHAT`` or ``// declined KIND:
REASON``. ``<name>.after.mlir`` is the module that comes out; there is none when nothing is applied, because then the
very same program comes out. A test file that imports ``test_case`` has the cases of its pass.
"""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Applied, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

CASES = Path(__file__).parent / "cases"
OF_JAX_0_10 = ("carried_constant", "sum_in_chunks")
"""Cases whose golden files are of JAX 0.10: others order or share the operations of what is put in differently."""


def sources(folder):
    return sorted(path for path in (CASES / folder).glob("*.mlir") if not path.name.endswith(".after.mlir"))


def expectations(path):
    """The pipeline, the platform and the events that the header asks for."""
    pipeline, platform, events = path.parent.name.replace("_", "-"), "cpu", []
    for line in path.read_text().splitlines():
        if not line.startswith("// "):
            break
        kind, _, text = line.removeprefix("// ").partition(": ")
        if kind == "pipeline":
            pipeline = text
        elif kind == "platform":
            platform = text
        else:
            events.append((kind, text))
    return pipeline, platform, events


def readable(program):
    """The text of a module without the bytes of its kernels."""
    text = re.sub(r'\bir = "(?:[^"\\]|\\.)*"', 'ir = "..."', str(program.parse()))
    return re.sub(r"(?<=\S)  +", " ", text)  # JAX 0.8 prints more spaces


def described(event):
    return ("applied", event.what) if isinstance(event, Applied) else (f"declined {event.kind}", event.reason)


@pytest.mark.versions
def test_case(case, golden, run_raised):
    """The events, the module that comes out, that it is identical, and its numbers, of one run of the pipeline."""
    pipeline, platform, events = expectations(case)
    assert events, f"{case.name} does not say what is expected"
    assert all(text.strip() for _, text in events), f"{case.name} expects an event without a text, which any event has"
    program = Program.from_file(case)
    result = run_pipeline(program, parse_pipeline(pipeline), Setting(platform=platform))
    found = [described(event) for event in result.events]
    assert len(found) == len(events), found
    for (kind, text), (expected_kind, expected_text) in zip(found, events, strict=True):
        assert kind == expected_kind
        assert text.startswith(expected_text)
    if not result.applied:
        assert result.program is program
        return
    if case.stem not in OF_JAX_0_10 or (0, 10) <= jax.__version_info__ < (0, 11):
        golden(case.with_suffix(".after.mlir"), readable(result.program))
    assert compare_exactly(program, result.program).result == "identical"
    numbers = [np.linspace(-1, 1, int(np.prod(t.shape))).reshape(t.shape) for t in program.inputs]
    arrays = [array.astype(NUMPY[t.dtype]) for array, t in zip(numbers, program.inputs, strict=True)]
    for value, wanted in zip(run_raised(result.program, arrays), run_raised(program, arrays), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6, atol=1e-6)
