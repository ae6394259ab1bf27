"""Facts of functions in Python: the same as the commands say of the same program."""

import json
import sys
import types
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [pytest.mark.usefixtures("module_cache"), pytest.mark.versions, needs_the_cuda_plugin]

HERE = "test_of_functions.py"
W = {"in": jax.ShapeDtypeStruct((64, 128), np.float32), "out": jax.ShapeDtypeStruct((128, 16), np.float32)}
BATCH = {"x": jax.ShapeDtypeStruct((256, 64), np.float32), "y": jax.ShapeDtypeStruct((256, 16), np.float32)}


def loss(w, batch):
    with jax.named_scope("hidden"):
        hidden = jnp.tanh(batch["x"] @ w["in"])
    with jax.named_scope("<readout>"):
        predicted = hidden @ w["out"]
    return jnp.mean((predicted - batch["y"]) ** 2)


def line_of(text):
    lines = Path(__file__).read_text().splitlines()
    return f"{HERE}:{next(at for at, line in enumerate(lines, 1) if text in line)}"


HIDDEN = line_of("hidden = jnp.tanh")


@pytest.fixture
def step_file(tmp_path):
    """The program of the gradient in a file with its name."""
    program = Program.from_function(jax.grad(loss), W, BATCH)
    path = tmp_path / f"{program.name}.mlir"
    path.write_text(program.text)
    return path


def as_document(facts):
    return json.loads(json.dumps(facts.to_dict()))


def test_launches_are_those_of_the_command(step_file, as_json):
    for by in ("source", "scope:1,transform"):
        found = fusionlab.launches(jax.grad(loss), W, BATCH, by=by)
        said = as_json("launches", step_file, "--by", by)
        document = as_document(found)
        assert document["groups"] == said["groups"]
        assert document["totals"] == said["totals"]
        assert {row["source"] for row in document["rows"]} == {row["source"] for row in said["rows"]}
        assert document == said
    assert found.dynamic_launches == said["totals"]["dynamic_launches"] == len(found.rows)


def test_refusals_are_those_of_the_command(step_file, as_json):
    found = fusionlab.explain(jax.grad(loss), W, BATCH)
    assert as_document(found) == as_json("explain", step_file)


def test_a_difference_is_that_of_the_command(step_file, as_json, tmp_path):
    forward = tmp_path / "forward" / "loss.mlir"
    forward.parent.mkdir()
    forward.write_text(Program.from_function(loss, W, BATCH).text)
    found = fusionlab.diff(loss, jax.grad(loss), W, BATCH)
    assert as_document(found) == as_json("diff", forward, step_file)


def test_the_first_line_is_the_verdict_and_there_are_few():
    found = fusionlab.launches(jax.grad(loss), W, BATCH, by="source")
    lines = repr(found).splitlines()
    most = max(found.groups.values(), key=lambda group: group.dynamic_launches)
    launches = f"{most.dynamic_launches} of {found.dynamic_launches}"
    assert lines[0].startswith(f"loss on a100: {found.dynamic_launches} launches, 0 copies, ")
    assert lines[0].endswith(f"most in {HIDDEN} ({launches})")
    assert [word for word in lines[1].split() if word.islower()][:3] == ["source", "static", "dynamic"]
    assert any(line.split()[:1] == [HIDDEN] for line in lines[3:])
    assert lines[-1].split()[:3] == ["all", str(len(found.rows)), str(found.dynamic_launches)]
    refused = repr(fusionlab.explain(jax.grad(loss), W, BATCH)).splitlines()
    assert refused[0].startswith("loss on a100: XLA refused ")
    assert "; the boundaries cost " in refused[0]
    assert any(HIDDEN in line for line in refused)
    changed = repr(fusionlab.diff(loss, jax.grad(loss), W, BATCH)).splitlines()
    assert changed[0].startswith("loss on a100: 5 launches become ") or " launches become " in changed[0]
    assert changed[1].startswith("launches ")
    same = repr(fusionlab.diff(loss, jax.jit(loss), W, BATCH)).splitlines()
    assert "the same" in same[0]
    assert same[1:] == ["all totals are the same"]
    program = repr(fusionlab.Program.from_function(loss, W, BATCH))
    assert program.startswith("Program(name='loss', platform='cuda', provenance=")
    for said in (lines, refused, changed, same):
        assert 2 <= len(said) <= 12
        assert all(line.strip() for line in said)


def test_a_notebook_shows_escaped_tables():
    step = jax.grad(loss)
    for found in (
        fusionlab.launches(step, W, BATCH),
        fusionlab.explain(step, W, BATCH),
        fusionlab.diff(loss, step, W, BATCH),
    ):
        page = found._repr_html_()
        assert page.startswith("<p><strong>loss on a100: ")
        assert "<table>" in page
        assert "&lt;readout&gt;" in page
        assert "<readout>" not in page


def test_a_dataframe_has_a_row_per_record(monkeypatch):
    step = jax.grad(loss)
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=tuple))
    for found in (fusionlab.launches(step, W, BATCH), fusionlab.explain(step, W, BATCH)):
        rows = found.to_dataframe()
        assert {"scope", "source", "op", "dynamic_launches"} <= set(rows[0])
    assert len(fusionlab.launches(step, W, BATCH).to_dataframe()) == len(fusionlab.launches(step, W, BATCH).rows)
    assert {"what", "label", "launches", "why"} <= set(fusionlab.diff(loss, step, W, BATCH).to_dataframe()[0])


def test_without_pandas_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    found = fusionlab.launches(loss, W, BATCH)
    with pytest.raises(
        ModuleNotFoundError, match="to_dataframe needs pandas, which is not installed: pip install pandas"
    ):
        found.to_dataframe()


def test_every_kind_of_function_and_of_argument():
    arrays = jax.tree.map(lambda one: jnp.ones(one.shape, one.dtype), (W, BATCH))
    first = fusionlab.launches(loss, W, BATCH)
    for found in (
        fusionlab.launches(jax.jit(loss), W, batch=BATCH),
        fusionlab.launches(loss, *arrays),
        fusionlab.launches(jax.jit(loss).trace(W, BATCH)),
        fusionlab.launches(Program.from_function(loss, W, BATCH)),
    ):
        assert found.to_dict() == first.to_dict()
    closed = fusionlab.launches(partial(loss, arrays[0]), BATCH)
    assert (closed.record.name, closed.dynamic_launches > 0) == ("loss", True)
    assert fusionlab.launches(loss, W, BATCH, target="cpu").record.target == "cpu"
    assert Program.from_function(loss, W, BATCH, platform="cpu").platform == "cpu"


def test_fusions_of_the_cpu_have_reasons_and_bytes():
    found = fusionlab.explain(loss, W, BATCH, target="cpu")
    assert found.verdict.startswith(f"loss on cpu: XLA refused {len(found.records())} fusion"), found.verdict
    assert len(found.records()) > 0
    assert " move " in found.verdict
    assert all(one["cause"] and one["boundary_us"] is None and one["result_bytes"] for one in found.records())
    assert found.tables()[0].columns[-1] == "boundary KiB"
    assert any("XLA:CPU decides" in note for note in found.notes)
    assert not any("us per launch" in note for note in found.notes)


def test_a_side_is_a_function_a_program_or_its_launches():
    step = jax.grad(loss)
    found = fusionlab.diff(loss, step, W, BATCH).to_dict()
    assert fusionlab.diff(fusionlab.launches(loss, W, BATCH), step, W, BATCH).to_dict() == found
    assert fusionlab.diff(loss, Program.from_function(step, W, BATCH), W, BATCH).to_dict() == found
    two = fusionlab.diff(loss, loss, W, BATCH, target=("a100", "h100")).found
    assert (two.before.target, two.after.target) == ("a100", "h100")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fusionlab.launches(3), "a function, .* or a Program is needed, not int"),
        (lambda: fusionlab.launches("step.mlir"), r"not the text 'step.mlir'; .*Program.from_file\('step.mlir'\)"),
        (lambda: fusionlab.launches(loss, W), "cannot trace loss with these arguments: TypeError: .*'batch'"),
        (lambda: fusionlab.launches(loss, W, "batch"), "cannot trace loss with these arguments: TypeError: .*'str'"),
        (lambda: fusionlab.launches(lambda x: 1 if x > 0 else 2, 1.0), "TracerBoolConversionError: Attempted boolean"),
        (lambda: fusionlab.launches(loss, W, BATCH, target="a10"), "unknown target 'a10'; did you mean: a100"),
        (lambda: fusionlab.launches(loss, W, BATCH, target=3), "target is one name, as 'a100', and not 3"),
        (lambda: fusionlab.launches(loss, W, BATCH, by="sourc"), "unknown view 'sourc'; did you mean: source"),
        (lambda: fusionlab.memory(loss, W, BATCH, by="family"), "unknown view of memory 'family'"),
        (lambda: fusionlab.diff(loss, loss, W, BATCH, target=("a100",)), "name one target or two, and not 1"),
        (lambda: fusionlab.launches(Program.from_function(loss, W, BATCH), W), "give no args"),
        (lambda: Program.from_function(loss, W, BATCH, platform="gpu"), "unknown platform 'gpu'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_jaxs_own_error_is_the_cause():
    with pytest.raises(InputError) as caught:
        fusionlab.launches(lambda x: 1 if x > 0 else 2, 1.0)
    assert isinstance(caught.value.__cause__, jax.errors.TracerBoolConversionError)
