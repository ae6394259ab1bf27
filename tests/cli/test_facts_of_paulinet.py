"""The figures that the fact commands must reach on PauliNet, CH4, 1,024 walkers, compiled for an absent A100."""

import dataclasses
import io
import json

import pytest
from rich.console import Console

from fusionlab.cli.clusters import clusters
from fusionlab.cli.explain import explain, explain_kernel
from fusionlab.cli.launches import launches
from fusionlab.cli.roofline import roofline
from fusionlab.cli.sources import make
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.hlo.cost import program_cost
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.ledger.ledger import count_launches
from fusionlab.ledger.thunks import parse_thunks
from fusionlab.workloads import catalogue

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(on_a100):
    """At full size: nothing is run, so nothing needs memory."""
    return make(catalogue.build("paulinet", "CH4", walkers=1024), on_a100)


@pytest.fixture(scope="module")
def program(made):
    return made.program


@pytest.fixture(scope="module")
def document(program, on_a100):
    return launches(program, [on_a100.target], ("stage", "family"), 5, on_a100, Console(quiet=True))


@pytest.fixture(scope="module")
def refused(program, on_a100):
    return explain(program, None, 0, on_a100, Console(quiet=True))


def test_every_thunk_is_a_row_or_a_copy_and_the_ledger_sums_to_xlas_launch_count(document, made):
    found, rows, counts = document["totals"], document["rows"], count_launches(made.compiled)
    assert counts.launch_source == document["launch_source"] == "xla thunk sequence"
    assert found["dynamic_launches"] == counts.dynamic_launches == sum(row["dynamic_launches"] for row in rows)
    assert found["static_launches"] == counts.static_launches == len(rows)
    assert 5_500 < found["dynamic_launches"] < 6_500
    assert found["dynamic_copies"] == counts.dynamic_copies
    for name in ("dynamic_launches", "flops", "bytes"):
        assert sum(group[name] for group in document["groups"]) == found[name]
    tops = parse_thunks(made.compiled.thunk_sequence, made.compiled.thunk_metadata)
    leaves = [thunk for top in tops for thunk in top.walk() if not thunk.sections]
    instructions = {one.name for part in made.compiled.module.computations.values() for one in part.instructions}
    assert {thunk.hlo_name for thunk in leaves} <= instructions
    assert sorted(row["name"] for row in rows) == sorted(one.hlo_name for one in leaves if "Copy" not in one.kind)
    assert {row["in_cuda_graph"] for row in rows} == {True, False}


def test_nearly_all_launches_carry_phase_stage_and_role_and_nearly_all_bytes_are_modelled(document, made):
    found = document["totals"]
    assert found["attributed_launches"] >= 0.95 * found["dynamic_launches"]
    by_their_own_names = found["attributed_launches"] - found["attributed_by_readers_launches"]
    assert by_their_own_names >= 0.95 * found["dynamic_launches"]
    assert found["unmodelled_bytes"] <= 0.01 * found["bytes"]
    assert (found["unmodelled_us_launches"], found["unknown_cuda_graph_launches"]) == (0, 0)
    assert found["flops"] == pytest.approx(program_cost(made.program).flops, rel=0.05)  # of kernels, and of ops


def test_at_least_70_percent_of_the_replay_name_the_stage_they_replay(document):
    replayed = [row for row in document["rows"] if row["trip_count"] == 30]
    runs = sum(row["dynamic_launches"] for row in replayed)
    assert runs > 5_000
    assert sum(row["dynamic_launches"] for row in replayed if row["stage"] in tuple("ABCD")) >= 0.7 * runs
    assert {row["role"] for row in replayed if row["stage"] == "B"} == {"tangent", "tangent-of-cotangent"}


def test_the_table_cuts_no_launch_site_short_and_says_what_is_a_model(program, on_a100, console):
    for width in (80, 160):  # a narrow terminal, and a file or pipe
        sheet = Console(file=io.StringIO(), width=width, highlight=False)
        document = launches(program, [on_a100.target], (), 500, on_a100, sheet)
        assert "…" not in sheet.file.getvalue()
    assert all(row["name"] in sheet.file.getvalue() for row in document["rows"])
    assert json.loads(json.dumps(document, allow_nan=False))["target"] == "a100"
    launches(program, [on_a100.target], (), 3, on_a100, console)
    for part in ("laplacian B tangent-of-cotangent", "the 3 slowest of", "ms (model)"):
        assert part in console.file.getvalue()


def test_several_targets_stand_side_by_side(on_a100, console):
    small = catalogue.build("paulinet", "LiH", program="log-psi", walkers=4, size="tiny")
    targets = [load_target("a5000"), load_target("h200")]
    document = launches(small, targets, ("family",), 5, on_a100, console)
    assert [one["target"] for one in document["targets"]] == ["a5000", "h200"]
    assert "a5000 launches" in console.file.getvalue()


def test_the_roofline_has_all_families_and_a_plot(program, on_a100, console, tmp_path):
    document = roofline(program, [on_a100.target], on_a100, console, out=str(tmp_path / "roof.svg"), kernels=3)
    families = {one["name"]: one for one in document["families"]}
    assert families["gemm"]["bound"] == "compute"
    assert families["elementwise"]["bound"] == "memory"
    assert families["elementwise"]["intensity_flop_per_byte"] < 1 < families["gemm"]["intensity_flop_per_byte"]
    unfused = {one["family"]: one for one in document["op_families"]}
    assert 0.01 < unfused["elementwise"]["intensity_flop_per_byte"] < 0.1  # the characterisation's 10^-2 to 10^-1
    assert document["ceilings"]["ridge_flop_per_byte"] == pytest.approx(12.5, rel=0.01)
    assert (tmp_path / "roof.svg").read_text().startswith("<svg")


def test_measured_ceilings_enter_the_time_in_pairs(program, on_a100, console):
    document = roofline(program, [on_a100.target], on_a100, console, peak_tflops=1.0, bandwidth=100.0)
    spec = roofline(program, [on_a100.target], on_a100, Console(quiet=True))
    assert document["families"][-1]["model_us"] > 5 * spec["families"][-1]["model_us"]
    assert all(one["roof_share"] is None or one["roof_share"] <= 1 for one in document["families"])
    assert document["ceilings"]["source"] == "measured, as given"
    assert "time is the roofline of the measured ceilings" in console.file.getvalue()
    with pytest.raises(InputError, match="pairs"):
        roofline(program, [on_a100.target], on_a100, console, peak_tflops=18.0)


def test_clusters_cap_what_fusing_can_give(program, on_a100, console):
    document = clusters(program, on_a100, console)
    found = document["launch_clusters"]
    assert found[0]["gain_us"] == max(one["gain_us"] for one in found) > 0
    assert sum(one["gain_us"] for one in found) < document["model_us"]
    assert all(one["least_bytes"] <= one["bytes"] for one in found)
    assert any(one["boundary_conversions"] for one in found)
    assert document["op_clusters"][0]["saved_bytes"] > 10 * 2**30


def test_near_memory_execution_pays_for_its_boundaries(program, on_a100, console):
    cheap = clusters(program, on_a100, console, criteria="pim", sync_us=0.0)
    dear = clusters(program, on_a100, console, criteria="pim", link=64.0, sync_us=10.0)
    first = {tuple(one["units"]): one for one in cheap["launch_clusters"]}
    for one in dear["launch_clusters"]:
        assert one["boundaries_per_step"] == 2 * one["runs"]
        assert one["transfer_us"] == pytest.approx(1e6 * one["boundary_bytes_per_step"] / 64e9)
        assert one["pim_gain_us"] < first[tuple(one["units"])]["pim_gain_us"]
    assert max(one["pim_gain_us"] for one in dear["launch_clusters"]) < 0  # over a bus, nothing pays


def test_refusals_are_joined_to_source_and_stablehlo(refused):
    found = refused["refusals"]
    assert len(found) > 300
    assert sum(bool(one["stablehlo_op"] and one["source"]) for one in found) > 0.9 * len(found)
    causes = {group["cause"]: group for group in refused["causes"]}
    assert causes["the producer is not fusible: library call __cublas$lt$matmul"]["kernels"] == 127
    slower = causes["XLA's cost model says that fused is slower"]["xla"]
    assert slower["us_fused"] > slower["us_unfused"] > 0 > slower["us_lost"]


def test_every_refused_producer_is_accounted_for(refused):
    join, found = refused["join"], refused["refusals"]
    assert join["joined"] == len(found) == sum(group["refusals"] for group in refused["causes"])
    assert join["producers"] == sum(join[name] for name in ("joined", "merged", "idle", "not_joined", "results"))
    assert join["joined"] >= 0.98 * (join["producers"] - join["results"])
    assert join["with_source"] >= 0.98 * join["joined"]
    assert len({one["producer"] for one in found}) == len(found)


def test_a_launch_counts_once_and_reads_nothing_of_its_own(refused, document):
    found = refused["refusals"]
    once = sum({one["kernel"]: one["dynamic_launches"] for one in found}.values())
    assert sum(group["dynamic_launches"] for group in refused["causes"]) == refused["dynamic_launches"] == once
    assert once <= document["totals"]["dynamic_launches"]
    assert all(one["kernel"] not in one["consumers"] for one in found)
    assert any(one["merged_readers"] for one in found)


def test_what_xla_did_not_weigh_has_no_time_of_its(refused):
    xla = refused["xla_estimates"]
    weighed = [one for one in refused["refusals"] if one["us_fused"] is not None]
    assert (xla["refusals_with"], xla["refusals_with"] + xla["refusals_without"]) == (
        len(weighed),
        len(refused["refusals"]),
    )
    for group in refused["causes"]:
        assert (group["xla"]["us_lost"] is None) == (group["xla"]["refusals_with"] == 0)


def test_an_unknown_kernel_gives_the_nearest_few(program, on_a100, console):
    for name, near in (("loop_multiply_fusio", "loop_multiply_fusion"), ("zzz", "")):
        with pytest.raises(InputError, match=f"unknown kernel '{name}'; did you mean: {near}") as caught:
            explain(program, name, 0, on_a100, console)
        assert str(caught.value).count(",") == 2


def test_a_launch_that_is_no_instruction_has_no_members(made, document, console):
    row = next(iter(launch_rows(made.compiled)))
    told = explain_kernel(made, "kNone", [dataclasses.replace(row, name="kNone")], (), {}, console)
    assert told["members"] == []


def test_a_kernel_is_explained(program, refused, on_a100, console):
    name = next(one["kernel"] for one in refused["refusals"] if one["us_fused"] is not None)
    document = explain(program, name, 0, on_a100, console)
    assert document["kernel"]["name"] == name
    assert document["members"]
    assert document["not_fused_with_readers"]
    assert "it is not in its readers" in console.file.getvalue()
