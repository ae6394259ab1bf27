"""Memory of functions in Python: the same as the command says of the same program. It needs JAX 0.10 or later."""

import sys
import types

import jax
import jax.numpy as jnp
import pytest

import fusionlab
from fusionlab.hlo.program import Program
from tests.facts.test_of_functions import BATCH, HIDDEN, W, as_document, loss
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [pytest.mark.usefixtures("module_cache"), needs_the_cuda_plugin]


@pytest.mark.parametrize("target", ["a100", "cpu"])
def test_memory_is_that_of_the_command(target, tmp_path, as_json):
    step = jax.grad(loss)
    program = Program.from_function(step, W, BATCH, platform="cpu" if target == "cpu" else "cuda")
    path = tmp_path / f"{program.name}.mlir"
    path.write_text(program.text)
    for by in ("", "source"):
        found = fusionlab.memory(step, W, BATCH, target=target, by=by)
        said = as_json("memory", path, "--target", target, *(("--by", by) if by else ()))
        assert as_document(found) == said
    assert found.temp_bytes == said["temp_bytes"]
    assert sum(found.held_by.values()) == found.record.peak.held_bytes > 0


def test_memory_is_said_in_few_lines_and_shown_in_tables(monkeypatch):
    found = fusionlab.memory(jax.grad(loss), W, BATCH)
    lines = repr(found).splitlines()
    assert lines[0].startswith("loss on a100. Peak: ")
    assert lines[1].split() == ["buffer", "scope", "op", "source", "size", "alive"]
    assert any(HIDDEN in line for line in lines[3:])
    assert any(line.startswith(" XLA's temp memory ") for line in lines)
    assert len(lines) <= 12
    page = found._repr_html_()
    assert page.startswith("<p><strong>loss on a100. Peak: ")
    assert "buffers alive at the peak</caption>" in page
    held = fusionlab.memory(jax.grad(loss), W, BATCH, by="source")
    assert any(line.split()[:1] == [HIDDEN] for line in repr(held).splitlines()[1:])
    assert "held at the peak by source</caption>" in held._repr_html_()
    nothing = repr(fusionlab.memory(jnp.sin, BATCH["x"])).splitlines()
    assert nothing[0] == "sin on a100: no temporary memory"
    assert nothing[1].startswith("XLA's memory analysis: ")
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=tuple))
    rows = found.to_dataframe()
    assert sum(row["bytes"] for row in rows) == found.record.peak.held_bytes
    assert {"name", "scope", "source", "bytes", "born_launch"} <= set(rows[0])
