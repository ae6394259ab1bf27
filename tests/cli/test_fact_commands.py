"""Launches, roofline, clusters, explain and replays: on files of HLO text, on small models, on rewritten programs."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import export

from fusionlab.cli.clusters import clusters
from fusionlab.cli.explain import explain
from fusionlab.cli.replays import replays
from fusionlab.cli.roofline import roofline
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
from fusionlab.workloads import catalogue

CPU, A100 = (Circumstances(load_target(name)) for name in ("cpu", "a100"))
ESTIMATED = (Path(__file__).parent / "estimated.hlo").read_text()


@pytest.fixture
def estimated(tmp_path):
    path = tmp_path / "estimated.hlo"
    path.write_text("\ufeff// saved by somebody\n" + ESTIMATED)
    return path


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


def test_hlo_text_belongs_to_the_target_that_its_estimates_are_for(as_json, estimated):
    document = as_json("launches", estimated, "--by", "stage")
    (row,) = document["rows"]
    assert (row["name"], row["stage"], row["flops"], row["bytes"]) == ("loop_tanh_fusion", "B", 8, 64)
    assert (document["target"], row["model_source"], row["model_us"]) == ("a100", "xla", 3.0)
    assert document["notes"] == []
    assert document["groups"][0]["stage"] == "B"
    document = as_json("roofline", estimated, "--target", "a5000")
    assert document["families"][0]["name"] == "elementwise"


def test_a_small_kernel_has_figures_in_units_that_fit(cli, estimated):
    shown = cli("explain", estimated, "--kernel", "loop_tanh_fusion", "--quiet").stdout
    assert "loop_tanh_fusion: elementwise, 1 launch, 8 FLOP, 64 B, 0.12 FLOP/byte, 3.0 us (xla)" in shown


def test_stages_have_a_legend_and_other_programs_scopes(cli, as_json, estimated, tmp_path):
    legend = "stages: A features; B correlation update; C orbitals and readout; D determinants, log|psi|; E derivatives"
    assert legend in cli("launches", estimated, "--quiet").stdout
    assert legend in cli("explain", estimated, "--kernel", "loop_tanh_fusion", "--quiet").stdout
    assert legend in cli("clusters", estimated, "--quiet").stdout
    assert legend in cli("roofline", estimated, "--by", "stage", "--quiet").stdout
    plain = tmp_path / "plain.hlo"
    plain.write_text(estimated.read_text().replace("stage_e", "model").replace("stage_b", "encoder"))
    for command in ("launches", "explain --kernel loop_tanh_fusion", "clusters"):
        shown = cli(*command.split()[:1], plain, *command.split()[1:], "--quiet").stdout
        assert "stages:" not in shown
        assert command == "clusters" or "encoder" in shown
    document = as_json("launches", plain)
    assert document["by"] == ["scope"]
    (row,) = document["rows"]
    assert (row["scope"].rpartition("/")[2], row["op"], row["attributed_by"]) == ("encoder", "tanh", "members")
    assert [group["scope"] for group in document["groups"]] == [row["scope"]]
    by_op = as_json("roofline", plain, "--by", "op")
    assert [group["name"] for group in by_op["groups"]] == ["tanh", "all"]
    assert by_op["kernels"][0]["scope"] == row["scope"]


def test_estimates_for_another_target_are_not_used_and_that_is_said(cli, as_json, estimated):
    words = ("launches", estimated, "--target", "h200", "--quiet")
    assert "for a clock of 1.410 GHz, which is not that of h200: they are not used" in cli(*words).stdout
    (row,) = as_json(*words)["rows"]
    assert row["model_source"] == "roofline"
    assert row["model_us"] < 2


def test_hlo_text_has_no_record_of_fusions_and_no_stablehlo(estimated, console):
    source = load_saved(estimated)
    assert isinstance(source, HloFile)
    explain(source, "loop_tanh_fusion", 0, A100, console)
    assert "XLA's record says nothing about its neighbours" in console.file.getvalue()
    with pytest.raises(InputError, match="unknown kernel 'u'"):
        explain(source, "u", 0, A100, console)
    with pytest.raises(InputError, match="no record of its fusion decisions"):
        explain(source, None, 0, A100, console)
    with pytest.raises(InputError, match="needs StableHLO"):
        replays(source, True, A100, console)


def test_explain_of_a_cpu_program_is_xlas_record(cli, as_json, lowered, tmp_path):
    program = lowered(lambda x: jnp.sort(jnp.tanh(x) @ x.T) * 2 + 1, jnp.ones((64, 64)))
    path = tmp_path / "small.mlir"
    path.write_text(program.text)
    printed = cli("explain", path, "--target", "cpu").stdout
    assert "Producer is not loop-fusible: sort" in printed
    assert re.search(r"XLA refused \d fusions of \d launches; the boundaries move [\d.]+ KiB \(model\)", printed)
    document = as_json("explain", path, "--target", "cpu")
    assert sum(group["refusals"] for group in document["causes"]) == document["join"]["joined"] >= 2
    text = tmp_path / "cpu.hlo"
    text.write_text(make(program, CPU).compiled.optimized_hlo)
    failed = cli("explain", text, code=2)
    assert "no record of its fusion decisions" in failed.stderr


def test_a_cpu_text_is_the_cpus_and_has_no_column_of_times(cli, as_json, lowered, tmp_path):
    program = lowered(lambda x: jnp.sort(jnp.tanh(x) @ x.T) * 2 + 1, jnp.ones((8, 8)))
    path = tmp_path / "cpu.hlo"
    path.write_text(make(program, CPU).compiled.optimized_hlo)
    document = as_json("launches", path, "--by", "family")
    assert document["target"] == "cpu"
    assert document["totals"]["model_us"] is None
    assert {group["model_us"] for group in document["groups"]} == {None}
    shown = cli("launches", path, "--quiet").stdout
    assert re.search(r"^ ?all .*[0-9]\s*$", shown, re.MULTILINE)
    assert "model us" not in shown
    cli("roofline", path, "--quiet", code=0)
    refused = cli("launches", path, "--target", "a100")
    assert "compiled this text for the CPU, but target a100 is a GPU" in refused.stderr


BROKEN = {
    "truncated": (ESTIMATED[:-40], "line 11, column"),
    "nonsense": ("HloModule x\nnonsense", "line 2"),
    "no entry": (ESTIMATED[: ESTIMATED.index("ENTRY")], "there is no ENTRY computation: the text is not complete"),
    "call": (
        ESTIMATED.replace("calls=%fused", "calls=%fuse"),
        "%loop_tanh_fusion of %main calls %fuse, which is not there: the text is not complete",
    ),
    "bracket": (ESTIMATED.replace('{"operation', '{"a":[1}{"operation'), "a bracket is never closed"),
    "shape": (ESTIMATED.replace("f32[8]{0} tanh", "f32[x]{0} tanh"), "%t of %fused: not a shape: 'f32[x]{0}'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_hlo_text_names_the_place(name, cli, tmp_path):
    text, complaint = BROKEN[name]
    path = tmp_path / "broken.hlo"
    path.write_text(text)
    result = cli("launches", path)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert str(path) in result.stderr
    assert complaint in result.stderr


def test_a_saved_export_is_a_program_whose_name_is_no_path(tmp_path):
    def evil(x):
        return jnp.tanh(x) * 2

    evil.__name__ = "../../outside"
    path = tmp_path / "saved.bin"
    path.write_bytes(export.export(jax.jit(evil), platforms=["cpu"])(jnp.ones(3)).serialize())
    program = load_saved(path)
    assert isinstance(program, Program)
    assert (program.name, program.platform, program.inputs[0].shape) == ("_.._outside", "cpu", (3,))
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


def test_a_second_call_reads_the_cache_and_says_so(cli, lowered, tmp_path, monkeypatch, on_a100):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tanh.mlir"
    path.write_text(lowered(jnp.tanh, jnp.ones(300), platform="cuda").text)
    first, second = (cli("launches", path, "--json") for _ in range(2))
    afresh = cli("launches", path, "--json", "--no-cache")
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
    assert all(one["blockers"] == [refusal["reason"] for refusal in one["refusals"]] != [] for one in others)
    assert all(refusal["cause"] and refusal["op"] and refusal["instead"] for refusal in others[0]["refusals"])
    printed = console.file.getvalue()
    assert "linear part" in printed
    assert "not a replay" in printed


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


def test_near_memory_gains_without_times_are_unknown(console):
    source = catalogue.build("paulinet", "LiH", program="log-psi", walkers=4, size="tiny")
    document = clusters(source, CPU, console, criteria="pim", link=64.0)
    assert document["launch_clusters"]
    assert {one["pim_gain_us"] for one in document["launch_clusters"]} == {None}
    assert document["model_us"] is None
    assert "can give back at most - of - (model)" in console.file.getvalue()


def test_a_plot_is_of_all_targets_or_none(lowered, tmp_path, on_a100, console):
    program = lowered(jnp.tanh, jnp.ones(300), platform="cuda")
    given = {"peak_tflops": 1.0, "bandwidth": 10.0}
    for ceilings, complaint in (({}, "target cpu has no spec"), (given, "lowered for cuda")):
        with pytest.raises(InputError, match=complaint):
            roofline(program, [on_a100.target, CPU.target], on_a100, console, out=str(tmp_path / "x.svg"), **ceilings)
        assert list(tmp_path.iterdir()) == []
    document = roofline(program, [on_a100.target], on_a100, console, out=str(tmp_path))
    assert document["files"] == [str(tmp_path / "small-a100-roofline.svg")]
    assert (tmp_path / "small-a100-roofline.svg").read_text().startswith("<svg")
