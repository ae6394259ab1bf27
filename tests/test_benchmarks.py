"""The benchmark scripts: rows in processes of their own, bars, and a run at tiny size."""

import argparse
import importlib
import json
import re
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.corpus.manifest import Corpus, ExpectedCompile
from fusionlab.hlo.program import Program
from fusionlab.ledger.time.constants import (
    ESTIMATED_FAMILIES,
    KERNELS,
    PAIR_ERROR,
    PRODUCTS,
    PROGRAM_ERROR,
)
from fusionlab.time_order import ESTIMATED_PAIR_ERROR
from fusionlab.versions.environments import JaxEnvironment
from tests.corpus.small import write_small_corpus

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """``module(name)``: a module of ``benchmarks/``, which are found beside the script that runs."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.mark.parametrize(
    ("program", "row"),
    [
        ("print('{\"a\": 1}'); print('{\"a\": 2}')", {"a": 2}),
        ("print('{\"a\": 1}', flush=True); raise SystemExit(3)", {"a": 1, "failed": "the process ended with 3"}),
        ("import time; print('{\"a\": 1}', flush=True); time.sleep(60)", {"a": 1, "failed": "not finished within 2 s"}),
    ],
)
def test_the_last_line_of_a_process_is_its_row_and_says_why_it_ended(module, tmp_path, program, row):
    script = tmp_path / "script.py"
    script.write_text(program)
    assert module("rows").measure_apart(str(script), "name", [], 2.0) == row


def test_a_row_that_is_there_is_measured_again_only_where_it_is_out_of_date(module, tmp_path):
    rows = module("rows")
    path, measured = tmp_path / "record.json", []

    def measure(name):
        measured.append(name)
        return {"revision": "new"}

    rows.fill_record(path, "v", ["a", "b"], measure)
    assert measured == ["a", "b"]
    rows.fill_record(path, "v", ["a", "b", "c"], measure, lambda name, row: name == "a")
    assert measured == ["a", "b", "b", "c"]
    assert json.loads(path.read_text())["rows"].keys() == {"a", "b", "c"}


def test_a_row_of_other_versions_is_measured_again_and_names_them(module, tmp_path):
    rows = module("rows")
    path, measured = tmp_path / "record.json", []

    def measure(name):
        measured.append(name)
        return {"launches": len(measured)}

    rows.fill_record(path, "jax 1", ["a", "b"], measure)
    assert rows.fill_record(path, "jax 2", ["a", "c"], measure) == {"a": {"launches": 3}, "c": {"launches": 4}}
    assert measured == ["a", "b", "a", "c"]
    record = json.loads(path.read_text())
    assert record["versions"] == "jax 2"
    assert record["rows"] == {"a": {"launches": 3}, "b": {"versions": "jax 1", "launches": 2}, "c": {"launches": 4}}
    assert rows.fill_record(path, "jax 1", ["b"], measure) == {"b": {"versions": "jax 1", "launches": 2}}
    assert measured == ["a", "b", "a", "c"]


def test_rows_that_all_name_their_versions_are_as_current_as_the_script_says(module, tmp_path):
    rows, path = module("rows"), tmp_path / "record.json"
    rows.fill_record(path, rows.OF_EACH_ROW, ["a"], lambda name: {"versions": "jax 1"})
    found = rows.fill_record(path, rows.OF_EACH_ROW, ["a", "b"], lambda name: {"versions": "jax 2"})
    assert found == {"a": {"versions": "jax 1"}, "b": {"versions": "jax 2"}}
    assert json.loads(path.read_text())["versions"] == rows.OF_EACH_ROW


def test_a_revision_is_that_of_the_named_sources_alone(module, tmp_path, monkeypatch):
    rows = module("rows")
    monkeypatch.setattr(rows, "__file__", str(tmp_path / "benchmarks" / "rows.py"))

    def commit():
        who = ["-c", "user.name=a", "-c", "user.email=a"]
        for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "a"]):
            subprocess.run(["git", *words], cwd=tmp_path, check=True)

    for name in ("deciding", "other"):
        (tmp_path / name).write_text("1")
    assert rows.revision_of("deciding") == ""
    commit()
    first = rows.revision_of("deciding")
    assert len(first) == 7
    (tmp_path / "other").write_text("2")
    assert rows.revision_of("deciding") == first
    assert rows.revision_of("deciding", "other") == ""
    (tmp_path / "deciding").write_text("2")
    commit()
    assert rows.revision_of("deciding") != first


FIGURES = {
    "walkers": 1024, "target": "a100", "dynamic_launches": 100, "temp_bytes": 1000, "flops": 10.0, "dynamic_copies": 2,
}  # fmt: skip


def sides(**changes):
    known = {
        "replay": FIGURES | {"dynamic_launches": 1000},
        "folx-dense": FIGURES,
        "folx-sparse": FIGURES,
        "log-psi": FIGURES | {"dynamic_launches": 45},
        "fused": FIGURES | {"dynamic_launches": 90, "temp_bytes": 900},
        "fused-in-replay-memory": FIGURES,
        "pass": {"pass_process_s": 60.0},
    }
    return {side: row | changes.get(side.replace("-", "_"), {}) for side, row in known.items()}


@pytest.fixture
def held(module):
    """``held(model, molecule, rows)``: whether each bar holds; None where that is not known."""
    return lambda *given: {bar.name: bar.holds for bar in module("laplacian_bars").bars(*given)}


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, set()),
        ({"fused": {"dynamic_launches": 91}}, {"launches", "twice log-psi"}),
        ({"fused": {"temp_bytes": 901}}, {"temp"}),
        ({"fused": {"flops": 11.0}}, {"FLOPs"}),
        ({"fused": {"dynamic_copies": 3}}, {"copies"}),
        ({"fused_in_replay_memory": {"dynamic_launches": 101}}, {"launches in the replay's memory"}),
        ({"fused_in_replay_memory": {"temp_bytes": 1001}}, {"launches in the replay's memory"}),
        ({"pass": {"pass_process_s": 60.1}}, {"pass seconds"}),
    ],
)
def test_bars_that_are_just_reached_hold_and_others_are_missed(held, changes, missed):
    found = held("paulinet", "C4H4", sides(**changes))
    assert {name for name, holds in found.items() if not holds} == missed


def test_what_is_not_known_neither_holds_nor_is_missed(held):
    assert set(held("ferminet", "LiH", {"fused": sides()["fused"]}).values()) == {None}


def test_tables_name_every_system_and_show_what_is_missing_as_a_dash(module):
    rows = {f"ferminet LiH {side}": row for side, row in sides().items()} | {"orbformer CH4 replay": {"failed": "why"}}
    tables = module("laplacian_tables")
    text = tables.tables(tables.by_system(rows), "jax 1")
    assert "| ferminet | LiH | 1,000 | 100 | 100 | 45 | 90 | 0.90 | 2.00 | 100 |" in text
    assert "1,024 walkers" in text
    assert "jax 1" in text
    assert "| orbformer | CH4 | - | - | - | - | - | - | - | - |" in text


@pytest.mark.parametrize(
    ("changes", "worse"),
    [
        ({}, []),
        ({"dynamic_copies": 9, "bytes_accessed": 1e12}, []),  # shown, and no bar
        ({"dynamic_launches": 101}, ["launches, dynamic: fused 101, folx-dense 100, folx-sparse 100"]),
        ({"temp_bytes": 2**21}, ["temp MiB: fused 2, folx-dense 0, folx-sparse 0"]),
        ({"flops": 1e10}, ["GFLOP (model): fused 10.0, folx-dense 0.0, folx-sparse 0.0"]),
    ],
)
def test_what_is_worse_than_folx_is_told_with_its_figures(module, changes, worse):
    script = module("other_codes")
    found = script.worse_than_folx(("netket:deep-set", "10"), sides(fused=changes))
    assert found == [f"netket:deep-set 10, {line}" for line in worse]


def test_rows_that_are_not_finished_have_no_version_and_verdicts_are_shown(module):
    script = module("other_codes")
    verdict = {"code": "a code 1", "versions": "jax 1", "pipeline": "licm", "verdict": "equal", "walkers": None}
    text = script.tables(
        {("ferminet", "CH4"): {**sides(), "verdict": verdict, "own": {"code": "a code 1", "failed": "late"}}}
    )
    assert "| ferminet | CH4 | - | equal | `licm` |" in text
    assert "a code 1" not in text


def test_the_tables_of_other_codes_are_those_of_their_record(module):
    """`studies/other-codes-a100.md` has all figures, docs/deepqmc.md launches, temp memory and FLOPs."""
    root, script = FOLDER.parent, module("other_codes")
    rows = json.loads((root / "studies/other-codes-a100.json").read_text())["rows"]
    assert not [name for name, row in rows.items() if "failed" in row]
    systems = module("laplacian_tables").by_system(rows)
    assert script.tables(systems) == (root / "studies/other-codes-a100.md").read_text(), "run: make other-codes"
    short = (root / "docs/deepqmc.md").read_text()
    for (model, _), sides in systems.items():
        if "own" not in sides:  # in the study alone
            continue
        ours = "laplacian" if model == script.NETKET else "fused"
        cells = []
        for figure, unit, _ in map(script.FIGURES.get, script.NOT_WORSE):
            peers = ("folx-dense", "folx-sparse") if figure == "flops" else ("own", "folx-dense", "folx-sparse")
            shown = [f"{unit * sides[side][figure]:,.0f}" for side in (*peers, ours)]
            cells += [*shown[:-1], f"**{shown[-1]}**"]
        assert f"| {' | '.join(cells)} |" in short, model


def test_what_the_pass_itself_takes(module, lowered):
    def laplacian(x):
        push = jax.linearize(jax.grad(lambda x: -jnp.sum(jnp.tanh(x) ** 2)), x)[1]
        return jax.lax.fori_loop(0, 3, lambda k, sum_: sum_ + push(jnp.eye(3)[k])[k], 0.0)

    row = module("pass_time").pass_seconds(lowered(jax.vmap(laplacian), np.ones((4, 3), np.float32)))
    assert (row["sparse_applied"], row["dense_applied"]) == (1, 1)
    seconds = {"sparse_process_s", "dense_process_s", "pass_process_s"}
    assert row.keys() == seconds | {"ops_before", "sparse_applied", "dense_applied"}
    assert all(row[name] >= 0 for name in seconds)


def test_the_cost_of_a_call(module, monkeypatch, capsys):
    script = module("optimize_calls")
    monkeypatch.setattr(script, "ROUNDS", 1)
    monkeypatch.setattr(script, "CALLS", 1)
    script.main()
    title, *rows = capsys.readouterr().out.splitlines()
    assert title.split() == ["arrays", "jax.jit", "us", "optimize", "us", "over", "us"]
    assert [row.split()[0] for row in rows] == ["1", "50", "500"]


def test_the_parser_on_growing_modules(module, monkeypatch, capsys):
    script = module("optimized_hlo_parser")
    monkeypatch.setattr(script, "MEGABYTES", (0.001, 0.01))
    script.main([str(FOLDER.parent / "tests" / "cli" / "estimated.hlo")])
    title, *rows = capsys.readouterr().out.splitlines()
    assert "instructions" in title
    assert [row.split()[-1] for row in rows] == ["yes", "yes"]
    assert int(rows[0].split()[1]) < int(rows[1].split()[1])


def test_counted_ops_are_written_beside_what_was_counted_before(module, monkeypatch):
    script, written = module("stablehlo_ops"), {}
    monkeypatch.setattr(script, "count_ops", lambda model, molecule, progress: {"log-psi": 1})
    monkeypatch.setattr(script, "write_whole", lambda path, text: written.update({path.name: json.loads(text)}))
    monkeypatch.setattr(sys, "argv", ["stablehlo_ops.py", "--models", "ferminet"])
    script.main()
    (table,) = written.values()
    assert table.keys() == {"jax", "ops"}
    assert set(map(str, table["ops"].pop("ferminet").values())) == {"{'log-psi': 1}"}
    assert len(table["ops"]) > 3


def repeated(x):
    return jax.lax.fori_loop(0, 3, lambda k, sum_: sum_ + jnp.tanh(x) * k, jnp.zeros_like(x))


def test_the_exact_check_of_the_catalogue(module, monkeypatch, lowered):
    script = module("exact_matrix")
    monkeypatch.setattr(script, "lowered", lambda *_: lowered(repeated, np.ones(3, np.float32)))
    *_, row = script.catalogue_row("ferminet log-psi", ["licm", "transpose-replay"])
    found = {pipeline: one["result"] for pipeline, one in row["results"].items()}
    assert found == {"licm": "identical", "transpose-replay": "unchanged"}
    other = {
        "results": {
            "transpose-replay": {"result": "not-covered", "reason": "an op"},
            "hoist-loop-invariants": {"result": "identical"},  # as a record of an earlier version names it
        }
    }
    table = script.catalogue_table({"ferminet log-psi": row, "a b": other, "c d": {"failed": "why"}}).splitlines()
    assert table == [
        "| pipeline | log-psi | b | d |",
        "|---|---|---|---|",
        "| `licm` | 1 of 1 | 1 of 1 | - |",
        "| `transpose-replay` | unchanged | 0 of 1 | - |",
        "",
        "- c d: why",
        "- a b, `transpose-replay`: not-covered: an op ",
    ]


def test_the_exact_check_at_full_size(module, monkeypatch, lowered):
    script, compared = module("exact_matrix"), []
    monkeypatch.setattr(script, "lowered", lambda *_: lowered(repeated, np.ones(3, np.float32)))
    monkeypatch.setattr(script, "AT_FULL_SIZE", {"log-psi": "licm"})

    def compare(original, rewritten, limit_s):
        compared.append((original.digest, rewritten.digest))
        return script.compare_exactly(original, rewritten)

    monkeypatch.setattr(script, "compare_files", compare)
    first, row = script.full_size_row("ferminet LiH log-psi")
    assert len(set(*compared)) == 2
    assert first.items() <= row.items()
    assert (row["applied"], row["result"], row["draws"]) == (1, "identical", 144)
    assert all(seconds >= 0 for seconds in row["draw_process_s"])
    monkeypatch.setattr(Program, "parse", lambda self, parse=Program.parse: (read.append(self.digest), parse(self))[1])
    program, read = lowered(repeated, np.ones(3, np.float32)), []
    for _ in range(2):
        script.one_draw_s(program)
    assert read == 2 * [program.digest]  # reading is counted every time
    assert "| ferminet | log-psi | identical" in script.full_size_table(
        {"ferminet LiH log-psi": row, "a b c": {"failed": "why"}}
    )


@pytest.mark.slow
def test_times_on_the_cpu(module, monkeypatch):
    """Two sides of four, rewritten by a small pass: the whole is run by make full."""
    script = module("cpu_times")
    whole = script.timed_rewrite
    monkeypatch.setattr(script, "LAPLACIANS", ("replay",))
    monkeypatch.setattr(script, "timed_rewrite", lambda program, _, given: whole(program, "batch-replay", given))
    (row,) = script.measure_times(module("laplacian_sides").Case("ferminet", "LiH", "cpu", 2, "tiny"), 1)
    assert set(row["samples_ms"]) == set(row["median_ms"]) == {"replay", "fused"}
    assert {len(times) for times in row["samples_ms"].values()} == {1}
    assert row["pipeline"].startswith("batch-replay")
    assert max(row["max_energy_difference_to_replay"].values()) < 1e-3
    assert "| ferminet | LiH |" in script.cpu_table({"ferminet LiH times": row | {"median_ms": None}})


@pytest.fixture
def tiny_run(tmp_path):
    """``tiny_run(*words)``: the record and the output of the script on FermiNet's LiH."""

    def measured(*words):
        given = ("--models", "ferminet", "--molecules", "LiH", "--size", "tiny", "--walkers", 4)
        out = tmp_path / "record.json"
        command = [sys.executable, FOLDER / "fuse_jvp_replay.py", *given, *words, "--out", out]
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=FOLDER.parent, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        rows = json.loads(out.read_text())["rows"]
        assert not [row for row in rows.values() if "failed" in row]
        return rows, done.stdout

    return measured


@pytest.mark.slow
def test_a_tiny_run_of_one_side(tiny_run):
    rows, printed = tiny_run("--sides", "log-psi")
    (row,) = rows.values()
    assert {"revision", "target", "walkers", "dynamic_launches", "dynamic_copies", "temp_bytes", "flops"} <= row.keys()
    assert "| ferminet | LiH |" in printed


@pytest.mark.full  # five compiles for an absent GPU, each in a process of its own
def test_a_tiny_run(tiny_run):
    rows, _ = tiny_run("--sides", "replay,folx-dense,log-psi,fused,verdict")
    launches = {name.split()[-1]: row.get("dynamic_launches") for name, row in rows.items()}
    assert launches["log-psi"] < launches["fused"] < launches["replay"]
    assert rows["ferminet LiH verdict"]["verdict"] == "within-bound"


@pytest.mark.full  # four compiles for the CPU
def test_a_tiny_run_on_the_cpu(tiny_run):
    rows, _ = tiny_run("--device", "cpu", "--repeats", 3)
    row = rows["ferminet LiH times"]
    assert set(row["samples_ms"]) == {"replay", "folx-dense", "folx-sparse", "fused"}
    assert {len(times) for times in row["samples_ms"].values()} == {3}
    assert max(row["max_energy_difference_to_replay"].values()) < 1e-3


@pytest.mark.parametrize(
    ("record", "table", "page"),
    [
        ("catalogue", "catalogue_table", "studies/exact-catalogue.md"),
        ("full-size", "full_size_table", "docs/exact.md"),
    ],
)
def test_the_tables_of_the_pages_are_those_of_the_records(module, record, table, page):
    rows = json.loads((FOLDER.parent / "studies" / f"exact-{record}.json").read_text())["rows"]
    page = (FOLDER.parent / page).read_text()
    for line in getattr(module("exact_matrix"), table)(rows).splitlines():
        assert line in page


def test_the_tables_of_programs_are_those_of_their_record(module, capsys):
    """`studies/programs-a100.md` has all rows, docs/programs.md launches and temp memory of CH4."""
    root = FOLDER.parent
    rows = json.loads((root / "studies/programs-a100.json").read_text())["rows"]
    module("programs").print_table(rows)
    table = root / "studies/programs-a100.md"
    assert capsys.readouterr().out == table.read_text(), f"run: python benchmarks/programs.py > {table.name}"
    short = (root / "docs/programs.md").read_text()
    for model in module("programs").MODELS:
        of_model = [rows[f"{model} CH4 {program}"] for program in module("programs").PROGRAMS]
        cells = [f"{row['dynamic_launches']:,}, {row['temp_bytes'] / 2**20:,.0f}" for row in of_model]
        assert f"| {model} | {' | '.join(cells)} |" in short


def test_the_table_of_layout_passes_is_that_of_its_record(module):
    root, script = FOLDER.parent, module("layout_passes")
    rows = json.loads((root / "studies/layout-a100.json").read_text())["rows"]
    names = {f"{m} {program} {p}" for m in script.MODELS for program, of in script.PIPELINES.items() for p in of}
    assert set(rows) == names
    assert script.table(rows) == (root / "studies/layout-a100.md").read_text()


def test_launches_are_compared_with_the_same_laplacian_s(module):
    figures = {"dynamic_copies": 2, "bytes_accessed": 2**31, "temp_bytes": 2**20, "flops": 3e9}
    launches = {"-": 100, "layout": 80, "fuse-jvp-replay": 50, "fuse-jvp-replay,layout": 45, "kernels": None}
    rows = {f"m inference-step {name}": {"dynamic_launches": count} | figures for name, count in launches.items()}
    text = module("layout_passes").table(rows)
    assert "| m | inference-step | as lowered | 100 | +0 % | 2 | 2.0 | 1 | 3 |" in text
    assert "| `layout` | 80 | -20 % |" in text
    assert "| `fuse-jvp-replay,layout` | 45 | -10 % |" in text
    assert "| `kernels` | - | - |" in text


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["-", "layout"])
def test_a_row_of_layout_passes(module, pipeline):
    *_, row = module("layout_passes").measured(f"ferminet mcmc {pipeline}", walkers=4, size="tiny")
    assert row["dynamic_launches"] > 0
    assert ("pass_s" in row) == (pipeline != "-")


@pytest.mark.slow
def test_the_first_call_of_a_tiny_model():
    given = ("--models", "ferminet", "--molecule", "LiH", "--size", "tiny", "--walkers", "20")
    script = str(FOLDER / "first_call.py")
    done = subprocess.run([sys.executable, script, *given], capture_output=True, text=True, check=True)
    model, walkers, *seconds, exact, verdict = done.stdout.splitlines()[1].split()
    assert (model, walkers, exact, verdict) == ("ferminet", "20", "identical,", "within-bound")
    assert all(float(one) > 0 for one in seconds)


def test_the_ratios_of_errors_have_an_interval_over_walkers(module):
    script = module("float32_accuracy")
    of = np.random.default_rng(0).lognormal(size=256)
    assert script.ratios(2 * of, of, ["geometric mean", "p99"]) == {"geometric mean": [2, 2, 2], "p99": [2, 2, 2]}
    [found, lower, upper] = script.ratios(of[::-1], of, ["geometric mean"])["geometric mean"]
    assert found == 1
    assert 0.7 < lower < 1 < upper < 1.4  # the same errors, of other walkers
    lost = script.errors_of(np.array([1.0, np.nan, np.inf, 2.5]), np.full(4, 2.0))
    assert lost.tolist() == [1, np.inf, np.inf, 0.5]
    assert script.FIGURES["max"](lost) == np.inf


@pytest.mark.parametrize("walkers", ["0", "1500"])
def test_walkers_that_are_no_multiple_of_a_call_are_a_usage_error(module, monkeypatch, capsys, walkers):
    monkeypatch.setattr(sys, "argv", ["float32_accuracy.py", "--walkers", walkers])
    with pytest.raises(SystemExit) as ended:
        module("float32_accuracy").main()
    assert ended.value.code == 2
    assert f"1024 or a multiple of it, not {walkers}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["float32-accuracy", "float32-accuracy-2048", "float32-accuracy-8192"])
def test_the_table_of_errors_is_that_of_its_record(module, name):
    root, script = FOLDER.parent, module("float32_accuracy")
    rows = json.loads((root / f"studies/{name}.json").read_text())["rows"]
    whole = {f"{model} {molecule}" for model in script.MODELS for molecule in script.MOLECULES}
    assert set(rows) == ({"paulinet CH4"} if name.endswith("8192") else whole)
    assert script.table(rows, script.COMPARISONS["folx"]) == (root / f"studies/{name}.md").read_text()


def test_the_table_of_three_products_is_that_of_its_record(module):
    root, script = FOLDER.parent, module("float32_accuracy")
    rows = json.loads((root / "studies/float32-accuracy-tf32x3.json").read_text())["rows"]
    said = (root / "studies/float32-accuracy-tf32x3.md").read_text()
    assert script.table(rows, script.COMPARISONS["tf32x3"]) == said


def test_the_table_of_three_products_marks_what_is_over_the_bound(module):
    script = module("float32_accuracy")
    compared = script.COMPARISONS["tf32x3"]
    errors = {side: {"geometric mean": 1e-6, "p99": 1e-4} for side in compared.sides}
    row = {"initial": {**errors, compared.key: {"geometric mean": [1.21, 1.1, 1.3], "p99": [1.4, 1, 2]}}, "walkers": 8}
    [initial, equilibrated] = script.table({"ferminet LiH": row}, compared).splitlines()[-2:]
    assert "**1.21** [1.10, 1.30]" in initial
    assert "| 1.40 [1.00, 2.00] |" in initial
    assert equilibrated.endswith("equilibrated | - | - | - | - | - | - | - | - |")


def test_the_row_of_a_model_without_such_layers_says_so(module):
    """Products of a tiny FermiNet are too narrow."""
    script = module("float32_accuracy")
    workload = script.Case("ferminet", "LiH", "cpu", 4, "tiny").workload("replay")
    with pytest.raises(SystemExit, match="no layer contracts by three products"):
        script.in_tf32x3(workload, "licm")


@pytest.fixture
def readme_figures(module):
    return module("readme_figures")


def test_readme_its_picture_and_their_record_have_the_same_figures(readme_figures):
    rows = json.loads(readme_figures.RECORD.read_text())["rows"]
    in_record = {name: readme_figures.figures(rows[name]) for name in readme_figures.TABLE.values()}
    in_table = readme_figures.table_of(readme_figures.README.read_text())
    pictured = readme_figures.pictured_in(readme_figures.PICTURE.read_text())
    command = "run benchmarks/readme_figures.py"
    assert in_table == {program: in_record[name] for program, name in readme_figures.TABLE.items()}, command
    assert pictured == {text: in_record[name] for text, name in readme_figures.PICTURED.items()}, command


def test_new_figures_are_written_to_the_table_and_the_picture(readme_figures):
    rows = json.loads(readme_figures.RECORD.read_text())["rows"]
    rows["paulinet CH4 fused"] |= {"dynamic_launches": 1234, "temp_bytes": 2**30, "flops": 3e12}
    before = readme_figures.README.read_text(), readme_figures.PICTURE.read_text()
    readme, picture = readme_figures.with_figures(*before, rows)
    assert "| **1,234** | **1,024** | **3,000** |" in readme
    assert ">1,234 launches &#183; 3,000 GFLOP &#183; 1,024 MiB<" in picture
    for old, new in zip(before, (readme, picture), strict=True):
        pairs = zip(old.splitlines(), new.splitlines(), strict=True)
        assert sum(one != other for one, other in pairs) == 1


def test_the_constants_of_the_model_of_time_are_those_of_its_record(module):
    """And its error is the largest of a whole program that was left out of the fit."""
    fitting = module("time_model_fit")
    programs, sites = fitting.read(FOLDER.parent / "studies" / "time-model.json")
    found = fitting.fit(sites)
    for constants, fitted in ((KERNELS, found.kernels), (PRODUCTS, found.products)):
        assert astuple(constants) == pytest.approx(astuple(fitted), rel=0.01)
    errors = re.findall(r"\| ([+-]\d+)% \| [+-]", fitting.page(programs, sites).partition("## Kernels")[0])
    assert max(abs(int(error)) for error in errors) == round(100 * PROGRAM_ERROR)
    assert fitting.family_ranges(programs, sites) == ESTIMATED_FAMILIES


def test_what_the_models_of_time_cannot_order_is_their_error_of_pairs(module):
    """The largest modelled difference of a pair in the wrong order, or of one without an order, is less."""
    fitting = module("time_model_fit")
    programs, sites = fitting.read(FOLDER.parent / "studies" / "time-model.json")
    models = {
        PAIR_ERROR: fitting.whole_times(programs, sites, fitting.without_own_ansatz(sites)),
        ESTIMATED_PAIR_ERROR: fitting.whole_times(programs, sites, fitting.estimate_us),
    }
    for error, times in models.items():
        wrong = fitting.least_decidable(programs, times)
        assert 0.01 < wrong < error < wrong + 0.03


@pytest.fixture
def of_paper():
    """``of_paper(module)``: the rows of studies/paper.json, as those of both versions."""
    cells = json.loads((FOLDER.parent / "studies" / "paper.json").read_text())["cells"]

    def made(module):
        rows = {name: {module.OLD_JAX: row, module.TODAY: row} for name, row in cells.items()}
        return {"versions": f"jax {module.TODAY}", "rows": rows}

    return made


def test_a_contradiction_that_both_versions_have_is_not_the_compiler_s(module, of_paper):
    paper = module("paper_versions")
    text = paper.page(of_paper(paper))
    assert text.splitlines()[2].startswith("96 of 96 cells")
    assert "**shown** for 0, **not** for" in " ".join(text.split())
    assert "**shown** |" not in text
    assert "**not** |" in text


def test_a_claim_that_only_the_older_version_confirms_is_shown(module, of_paper):
    paper = module("paper_versions")

    record = of_paper(paper)
    for name, sides in record["rows"].items():
        if "train-step" in name:
            old = sides[paper.OLD_JAX]
            sides[paper.OLD_JAX] = {**old, "temp_bytes": 4 * old["temp_bytes"]}
    (line,) = [one for one in paper.page(record).splitlines() if "training holds more memory" in one]
    assert line.endswith("| **shown** |")


def test_a_row_of_other_sources_is_measured_again(module):
    paper = module("paper_versions")
    current, other = ({paper.TODAY: {"sources": digest}} for digest in (paper.sources_digest(), "0"))
    known = {"a": current, "b": other, "c": {"failed": "no"}, "d": {"0.4.35": {}}}
    assert paper.missing("abcde", known) == ["b", "d", "e"]


def test_the_page_of_versions_is_that_of_its_record(module):
    paper = module("paper_versions")
    record = paper.read_record(FOLDER.parent / "studies" / "paper-versions.json", "")
    assert paper.page(record) == (FOLDER.parent / "studies" / "paper-versions.md").read_text()


def test_the_page_names_the_versions_of_the_record(module, of_paper):
    paper = module("paper_versions")
    text = paper.page(of_paper(paper) | {"versions": "jax 0.9.2, jaxlib 0.9.2"})
    assert "JAX 0.9.2, and compiled by both" in text
    assert text.startswith("# The characterisation's programs by JAX 0.4.35 and today's\n\n0 of 96 cells")


def test_a_record_of_versions_has_its_circumstances(module, tmp_path, monkeypatch):
    paper, out = module("paper_versions"), tmp_path / "versions.json"
    monkeypatch.setattr(paper, "measure_apart", lambda *_: {"failed": "no room"})
    paper.fill(argparse.Namespace(again=False, out=out, limit_s=1.0), ["ferminet LiH train-step a100"], None)
    content = json.loads(out.read_text())
    assert content["circumstances"] == paper.MatrixSetup().to_json()
    assert paper.version_of(content) == paper.TODAY


def test_claims_are_not_measured_again(module, monkeypatch, capsys):
    paper = module("paper_versions")
    monkeypatch.setattr("sys.argv", ["paper_versions.py", "--claims", "--again"])
    with pytest.raises(SystemExit, match="2"):
        paper.main()
    assert "--again goes with names of cells" in capsys.readouterr().err


def test_the_recipes_of_the_corpus_are_its_programs(module):
    made = module("corpus").recipes()
    kept = Corpus.read(FOLDER.parent / "studies" / "corpus").programs
    assert list(made) == [one.name for one in kept]
    for one in kept:
        recipe = made[one.name]
        assert (recipe.group, recipe.about, recipe.licence) == (one.group, one.about, one.licence)
    assert len(made) == 38


def test_the_corpus_of_an_unknown_name_is_refused(module, tmp_path):
    made = module("corpus")
    assert made.chosen(["pinn", "cholesky"], ["cholesky", "phases", "pinn"]) == ["cholesky", "pinn"]
    with pytest.raises(SystemExit, match="unknown program 'pin'; did you mean: pinn"):
        made.main(["--folder", str(tmp_path / "c"), "--only", "pin", "--jax", "0.10.2"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit, match="has no pinn; make it with --texts"):
        made.main(["--folder", str(tmp_path / "c"), "--only", "pinn", "--jax", "0.10.2"])
    with pytest.raises(SystemExit, match="2"):
        made.main(["--folder", str(tmp_path / "c"), "--only", "pinn"])


def test_a_reference_of_a_program_that_is_not_there_is_refused(module, tmp_path):
    made = module("corpus")
    name = "ferminet-LiH-rewritten"
    with pytest.raises(SystemExit, match=f"make that too: --only ferminet-LiH-replay {name}"):
        made.make(name, made.recipes()[name], tmp_path, None, {})
    assert list(tmp_path.iterdir()) == []


def test_launches_by_a_nightly_are_ordered_and_recorded(module, tmp_path, monkeypatch):
    made = module("corpus")
    found = ExpectedCompile({"launches": 2, "copies": 0, "temp_bytes": 256})
    monkeypatch.setattr(made, "environment", lambda version, progress: JaxEnvironment(version, tmp_path))
    monkeypatch.setattr(made, "compiled_counts", lambda *given, **options: found)
    corpus = write_small_corpus(tmp_path)
    made.record(corpus, ["small"], ["0.11.0.dev20260101", "0.4.35", "0.10.2"], "a100")
    (one,) = Corpus.read(tmp_path).programs
    assert list(one.expected["a100"]) == ["0.4.35", "0.10.2", "0.11.0.dev20260101"]


@pytest.mark.slow
def test_the_corpus_is_made_and_its_launches_recorded_once(tmp_path):
    words = [sys.executable, str(FOLDER / "corpus.py"), "--folder", str(tmp_path), "--only", "fft_solver"]
    subprocess.run([*words, "--texts"], check=True, capture_output=True)
    first = (tmp_path / "manifest.json").read_text()
    (made,) = json.loads(first)["programs"]
    kept = Corpus.read(FOLDER.parent / "studies" / "corpus")
    assert made["inputs"] == json.loads(json.dumps(kept.select(["fft_solver"])[0].to_json()))["inputs"]
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "fft_solver.mlir.gz", "fft_solver.mlirbc.gz"}
    subprocess.run([*words, "--texts"], check=True, capture_output=True)
    assert (tmp_path / "manifest.json").read_text() == first
