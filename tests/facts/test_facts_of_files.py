"""The fact commands on files, on other ansätze, and on rewritten programs."""

import json
import re

import jax
import jax.numpy as jnp
import pytest
from click.testing import CliRunner
from jax import export

from fusionlab.cli import main
from fusionlab.cli.explain import explain
from fusionlab.cli.launches import launches
from fusionlab.cli.replays import replays
from fusionlab.cli.sources import make
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.hlo.optimised.saved import HloFile, load_saved
from fusionlab.hlo.program import Program
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.ledger.ledger import count_launches
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.study import Circumstances
from workloads import catalogue

CPU = Circumstances(load_target("cpu"))
HLO = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %t = f32[8]{0} tanh(%x), metadata={op_name="jit(f)/vmap(stage_e)/jvp(jvp(stage_b))/tanh"}
}
"""


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


# PauliNet has a file of its own; Orbformer compiles for half a minute.
ANSATZE = [
    "ferminet",
    pytest.param("psiformer", marks=pytest.mark.slow),
    pytest.param("psiformer-deepqmc", marks=pytest.mark.slow),
    pytest.param("orbformer", marks=pytest.mark.full),
]
A_LAUNCH = r"\d+: k(?!Sequential|While|Conditional|CommandBuffer|Copy|Memset|Memzero|WaitForStreams)\w+\s*\["


@pytest.mark.parametrize("name", ANSATZE)
def test_ledger_thunks_and_hlo_agree_for_all_ansatze(name, on_a100):
    made = make(catalogue.build(name, "LiH", walkers=4, size="tiny"), on_a100)
    rows, counts = launch_rows(made.compiled), count_launches(made.compiled)
    found = totals(rows)
    assert (found.static_launches, found.dynamic_launches) == (counts.static_launches, counts.dynamic_launches)
    assert found.attributed_launches >= 0.95 * found.dynamic_launches
    assert found.unmodelled_bytes <= 0.01 * found.bytes
    names = {one.name for part in made.compiled.module.computations.values() for one in part.instructions}
    assert {row.name for row in rows} <= names
    assert found.static_launches == len(re.findall(A_LAUNCH, made.compiled.thunk_sequence))
    assert found.unmodelled_us_launches == 0
    printed = str(made.compiled.module)
    assert str(parse_optimized(printed)) == printed


@pytest.mark.slow
def test_a_rewritten_program_keeps_its_origins(on_a100):
    source = catalogue.build("ferminet", "LiH", walkers=4, size="tiny")
    program = make(source, on_a100).program
    batched = run_pipeline(program, parse_pipeline("licm,batch-replay"), Setting()).program
    before, after = (totals(launch_rows(make(one, on_a100).compiled)) for one in (program, batched))
    assert after.dynamic_launches < before.dynamic_launches / 3
    assert after.attributed_launches >= 0.95 * after.dynamic_launches


def test_optimised_hlo_text_is_a_source_for_launches(tmp_path, console):
    path = tmp_path / "mine.hlo.txt"
    path.write_text(HLO)
    source = load_saved(path)
    assert isinstance(source, HloFile)
    document = launches(source, [load_target("a100")], (), 5, CPU, console)
    (row,) = document["rows"]
    assert (row["name"], row["stage"], row["flops"], row["bytes"]) == ("t", "B", 8, 64)
    explain(source, "t", 0, CPU, console)
    assert "XLA's record says nothing about its neighbours" in console.file.getvalue()
    with pytest.raises(InputError, match="unknown kernel 'u'"):
        explain(source, "u", 0, CPU, console)
    with pytest.raises(InputError, match="no record of its fusion decisions"):
        explain(source, None, 0, CPU, console)
    with pytest.raises(InputError, match="needs StableHLO"):
        replays(source, True, CPU, console)


def test_a_saved_export_is_a_program(tmp_path):
    path = tmp_path / "saved.bin"
    exported = export.export(jax.jit(lambda x: jnp.tanh(x) * 2), platforms=["cpu"])(jnp.ones(3))
    path.write_bytes(exported.serialize())
    program = load_saved(path)
    assert isinstance(program, Program)
    assert (program.platform, program.inputs[0].shape) == ("cpu", (3,))
    assert program.ops >= 2


@pytest.mark.parametrize(
    ("arguments", "platforms", "complaint"),
    [
        ((jnp.ones(3),), ["cpu", "cuda"], "exported for several platforms (cpu, cuda)"),
        ((jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), jnp.float32),), ["cpu"], "only tensors of static shape"),
    ],
)
def test_an_export_that_cannot_be_studied(tmp_path, arguments, platforms, complaint):
    path = tmp_path / "saved.bin"
    path.write_bytes(export.export(jax.jit(jnp.tanh), platforms=platforms)(*arguments).serialize())
    with pytest.raises(InputError, match=re.escape(complaint)):
        load_saved(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HLO[:-40], "line 5, column"),
        ("HloModule x\nnonsense", "line 2"),
        ("\0\1\2 no flat buffer", "neither|not a valid"),
    ],
)
def test_broken_files_name_the_place(tmp_path, content, message):
    path = tmp_path / "broken.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        load_saved(path)
    assert str(path) in str(caught.value)


def test_a_second_call_reads_the_cache_and_says_so(lowered, tmp_path, monkeypatch, on_a100):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tanh.mlir"
    path.write_text(lowered(jnp.tanh, jnp.ones(300), platform="cuda").text)
    first, second = (run("launches", str(path), "--json") for _ in range(2))
    afresh = run("launches", str(path), "--json", "--no-cache")
    assert first.stdout == second.stdout == afresh.stdout
    said = ["read from the cache" in one.stderr for one in (first, second, afresh)]
    assert said == [False, True, False]


@pytest.mark.slow
def test_replays_of_a_program_say_what_each_rewrite_would_do(console):
    source = catalogue.build("ferminet", "LiH", walkers=4, size="tiny")
    document = replays(source, True, CPU, console)
    (found,) = [one for one in document["loops"] if one["is_replay"]]
    assert found["trip_count"] == 12
    hoisted = next(one for one in found["rewrites"] if one["rewrite"] == "licm")
    assert found["direction_ops"] > found["recomputed_ops"] > 0
    assert hoisted["would"] == f"{found['recomputed_ops']} invariant ops hoisted out of the loop"
    assert found["residual_bytes"] > 0
    tried = {one["rewrite"]: one for one in found["rewrites"]}
    assert "12 trips batched" in tried["batch-replay"]["would"]
    others = [one for one in document["loops"] if not one["is_replay"]]
    assert others
    assert all(one["blockers"] for one in others)
    printed = console.file.getvalue()
    assert "linear part" in printed
    assert "not a replay" in printed


def test_the_command_line_prints_json_and_nothing_else(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(HLO)
    result = run("launches", str(path), "--json", "--by", "stage", "--quiet")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["groups"][0]["stage"] == "B"
    result = run("roofline", str(path), "--json", "--target", "a5000")
    assert json.loads(result.stdout)["families"][0]["name"] == "elementwise"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["launches"], "name one thing to work on"),
        (["launches", "HERE", "--target", "a101"], "unknown target 'a101'"),
        (["roofline", "HERE", "--target", "cpu", "--out", "x.svg"], "has no spec"),
        (["explain", "nowhere.txt"], "nowhere.txt: cannot be read"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.txt"
    path.write_text(HLO)
    result = run(*(str(path) if part == "HERE" else part for part in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "x.svg").exists()


CALLING = """HloModule m

%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %t = f32[4]{0} tanh(%p)
}

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %f = f32[4]{0} fusion(%a), kind=kLoop, calls=%fused
}
"""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CALLING[: CALLING.index("ENTRY")], "there is no ENTRY computation"),
        (CALLING.replace("calls=%fused", "calls=%fuse"), "%f of %main calls %fuse, which is not there"),
    ],
)
def test_hlo_text_that_was_cut_between_computations(tmp_path, text, complaint):
    path = tmp_path / "cut.hlo"
    path.write_text(CALLING)
    assert load_saved(path).module.entry.name == "main"
    path.write_text(text)
    with pytest.raises(InputError, match=f"{re.escape(complaint)}: the text is not complete"):
        load_saved(path)


def test_what_a_rewrite_says_of_one_of_two_loops_of_a_scope(lowered, console):
    def laplacians(x):
        eye = jnp.eye(4)
        first = jax.lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x) * (x * eye[k]), x)  # repeats the sine
        return jax.lax.fori_loop(0, 4, lambda k, s: s + x * eye[k], first)

    document = replays(lowered(laplacians, jnp.ones(4)), True, CPU, console)
    first, second = document["loops"]
    assert first["location"] == second["location"]
    assert "#" not in first["location"]

    def hoisting(loop):
        return next(one for one in loop["rewrites"] if one["rewrite"] == "licm")

    assert "hoisted" in hoisting(first)["would"]
    assert hoisting(second)["kind"] == "unprofitable"
    names = [[one["rewrite"] for one in loop["rewrites"]] for loop in (first, second)]
    assert names[0] == names[1]
    assert len(set(names[0])) == len(names[0])


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("calls=%fused", 'calls=%fused, backend_config={"a":[1}', "%f of %main: a bracket is never closed"),
        ("f32[4]{0} tanh", "f32[x]{0} tanh", "%t of %fused: not a shape: 'f32[x]{0}'"),
    ],
)
def test_hlo_text_with_a_broken_instruction(tmp_path, old, new, complaint):
    path = tmp_path / "broken.hlo"
    path.write_text(CALLING.replace(old, new))
    result = run("launches", str(path))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert complaint in result.stderr


def test_options_are_judged_before_anything_is_compiled(monkeypatch):
    for module in ("launches.make_all", "clusters.make"):
        monkeypatch.setattr(f"fusionlab.cli.{module}", lambda *_: pytest.fail("compiled first"))
    for arguments, complaint in (
        (("launches", "--by", "stge"), "unknown column 'stge'; did you mean: stage"),
        (("clusters", "--criteria", "pim", "--link", "-1"), "--link must be positive"),
    ):
        result = run(*arguments, "--model", "ferminet")
        assert result.exit_code == 2
        assert complaint in result.stderr
