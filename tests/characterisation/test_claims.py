"""A verdict follows from the rows alone, and a figure that is not there is never made up."""

import pytest

from fusionlab.characterisation import claims
from fusionlab.characterisation.claims import CLAIMS, Claim, holds, judge_all, near, within
from fusionlab.characterisation.figures import MatrixFigures, NotMeasured, TimeErrors, measured_times
from fusionlab.characterisation.matrix import EVERY, INFERENCE, Cell
from fusionlab.characterisation.modelled import ModelledFigure
from fusionlab.characterisation.page import claims_table, intensity_table, matrix_tables, ratio_tables, share_tables
from tests.characterisation.rows import row

EMPTY = MatrixFigures({})
exact = ModelledFigure.exact
KERNELS = Cell("paulinet", "CH4", INFERENCE, "a5000")


def verdict_of(judge, figures):
    (one,) = judge_all([Claim("here", "so it is", "1", judge)], figures)
    return one.finding.verdict


def judge_of(statement):
    """``judge_of(statement)(rows)``: the finding of that claim."""
    (found,) = [one for one in CLAIMS if one.statement == statement]
    return lambda rows: found.judge(MatrixFigures(rows))


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.40, "confirmed"), (0.38, "contradicted"), (0.64, "confirmed"), (0.66, "contradicted")]
)
def test_a_share_may_be_a_quarter_off(ours, verdict):
    assert verdict_of(lambda _: near(0.52, exact(ours)), EMPTY) == verdict
    assert verdict_of(lambda _: near(0.02, exact(0.039)), EMPTY) == "confirmed"
    assert verdict_of(lambda _: near(0.02, exact(0.041)), EMPTY) == "contradicted"
    assert verdict_of(lambda _: near(0.01, exact(0.0)), EMPTY) == "contradicted"


def test_what_hangs_on_the_error_is_not_decidable():
    def share(low, high):
        return verdict_of(lambda _: near(0.52, ModelledFigure(0.52, low, high)), EMPTY)

    assert [share(*ends) for ends in ((0.4, 0.6), (0.3, 0.6), (0.1, 0.3))] == [
        "confirmed", "not decidable", "contradicted",
    ]  # fmt: skip
    figures = [("one", lambda: ModelledFigure(8.5, 8.0, 20.0))]
    assert verdict_of(lambda _: within(figures, 8, 9), EMPTY) == "not decidable"
    assert verdict_of(lambda _: within([*figures, ("two", lambda: exact(30.0))], 8, 9), EMPTY) == "contradicted"
    assert verdict_of(lambda _: holds([("one", lambda: (True, "")), ("two", lambda: (None, ""))]), EMPTY) == (
        "not decidable"
    )


def test_shares_have_the_errors_of_their_families():
    """GEMMs take 1 to 2 times their modelled time, the rest what is modelled, and a launch up to 1 us more."""
    errors = TimeErrors({"gemm": (1.0, 2.0)}, (1.0, 1.0), launch_us=1.0)
    cells = [KERNELS, Cell("paulinet", "CH4", INFERENCE, "a100")]
    figures = MatrixFigures(
        {cell: row([("mcmc", "gemm", 30.0), ("", "elementwise", 70.0)]) for cell in cells}, errors=errors
    )
    share = figures.modelled_share(KERNELS, lambda group: group.family == "gemm")
    assert (share.value, share.low, share.high) == (0.3, 30 / 110, 70 / 140)  # each group has 10 launches
    assert share.words("30 %", 100) == "30 % (27 to 50)"
    time = figures.time_ms(KERNELS)
    assert [1e3 * end for end in (time.value, time.low, time.high)] == pytest.approx([100, 100, 150])
    alike = figures.ratio(*cells)
    assert (alike.low, alike.high) == (1.0, 1.0)  # the same kernels have the same error
    apart = figures.time_ms(cells[0]) / figures.time_ms(cells[1])
    assert (apart.low, apart.high) == pytest.approx((100 / 150, 150 / 100))


def test_the_end_of_an_interval_may_be_a_share_of_none_or_of_all():
    """GEMMs take nothing to all that is modelled."""
    figures = MatrixFigures(
        {KERNELS: row([("mcmc", "gemm", 30.0), ("", "elementwise", 70.0)])},
        errors=TimeErrors({"gemm": (0.0, 1.0)}, (1.0, 1.0), launch_us=0.0),
    )
    share = figures.modelled_share(KERNELS, lambda group: group.family == "gemm")
    assert (share.low, share.high) == (0.0, 0.3)
    rest = figures.modelled_share(KERNELS, lambda group: group.family == "elementwise")
    assert (rest.low, rest.high) == (0.7, 1.0)
    nothing = figures.modelled_share(KERNELS, lambda group: False)
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 0.0)


def test_a_contradiction_without_a_cause_names_the_kernels_in_question():
    rows = {
        Cell("psiformer", molecule, program, "a5000"): row([("laplacian", "gemm", us), ("mcmc", "layout", us / 4)])
        for molecule, us in (("LiH", 1.0), ("C4H4", 100.0))
        for program in ("inference-step", "train-step")
    }
    found = {one.claim.statement: one for one in judge_all(CLAIMS, MatrixFigures(rows))}
    grown = found["Psiformer's grows mildly (A5000)"]
    assert grown.finding.verdict == "contradicted"
    assert grown.kernels.startswith(
        "psiformer C4H4: gemm in stage B of laplacian (80 %, 10 launches), layout in stage B of"
    )
    assert grown.to_json()["kernels"] == grown.kernels


def test_the_kernels_in_question_are_of_a_cell_that_the_record_has():
    """Training alone is measured, and contradicts; a cell without a time decides nothing."""
    rows = {
        Cell("psiformer", molecule, "train-step", "a5000"): row([("laplacian", "gemm", us)])
        for molecule, us in (("LiH", 1.0), ("C4H4", 100.0))
    }
    rows[Cell("psiformer", "LiH", INFERENCE, "a5000")] = row([("mcmc", "gemm", 13.0)], unmodelled_us_launches=3)
    found = {one.claim.statement: one for one in judge_all(CLAIMS, MatrixFigures(rows))}
    grown = found["Psiformer's grows mildly (A5000)"]
    assert grown.finding.verdict == "contradicted"
    assert grown.kernels == "psiformer C4H4: gemm in stage B of laplacian (100 %, 10 launches)"


def test_training_beside_inference_is_a_ratio_with_its_ends():
    cells = [Cell("psiformer", "C2H6", program, "a5000") for program in ("train-step", INFERENCE)]
    groups = [("mcmc", "gemm", 50.0), ("", "elementwise", 50.0)], [("mcmc", "gemm", 40.0), ("", "elementwise", 62.0)]
    rows = {cell: row(one) for cell, one in zip(cells, groups, strict=True)}
    figures = MatrixFigures(rows, errors=TimeErrors({"gemm": (1.0, 2.0)}, (1.0, 1.0), launch_us=0.0))
    said = claims.takes_alike(figures, ["C2H6"], 0.15).ours
    assert said == "psiformer C2H6 0.98x (0.98 to 1.06)"


def test_one_figure_outside_contradicts_and_a_lacking_one_keeps_from_confirming():
    def judge(values):
        def figure(value):
            if value is None:
                raise NotMeasured([KERNELS])
            return exact(value)

        return lambda _: within([(str(v), lambda v=v: figure(v)) for v in values], 8, 9)

    assert verdict_of(judge([8.5, 7.0, 11.0]), EMPTY) == "confirmed"
    assert verdict_of(judge([8.5, None]), EMPTY) == "not measured yet"
    assert verdict_of(judge([8.5, None, 20.0]), EMPTY) == "contradicted"


def test_shares_outside_of_sampling_are_of_everything():
    figures = MatrixFigures(
        {KERNELS: row([("mcmc", "gemm", 13.0), ("laplacian", "elementwise", 52.0), ("", "gemm", 35.0)])}
    )
    found = {one.claim.statement: one.finding for one in judge_all(CLAIMS, figures)}
    assert found["PauliNet: sampling's share of kernel time"].ours == "13.0 %"
    assert found["PauliNet: fused elementwise outside of sampling, of everything"].ours == "52.0 %"
    assert found["PauliNet: GEMM outside of sampling, of everything"].verdict == "contradicted"
    assert found["FermiNet: sampling's share of kernel time"].verdict == "not measured yet"


def test_an_empty_record_decides_nothing():
    found = judge_all(CLAIMS, EMPTY)
    assert {one.finding.verdict for one in found} == {"not measured yet", "not testable here"}
    assert all(one.finding.lacking for one in found if one.finding.verdict == "not measured yet")
    for table in (*matrix_tables(EMPTY), *ratio_tables(EMPTY), *share_tables(EMPTY)):
        for line in table.rows:
            assert set(line[table.words :]) <= {"-", "", "1.1-2.9", "1.7-5.8"} or "-" in line


def test_a_launch_without_a_time_leaves_the_sum_unknown():
    groups = row([("mcmc", "gemm", 13.0)], unmodelled_us_launches=3)
    groups["groups"]["rows"][0][7] = 3
    figures = MatrixFigures({KERNELS: groups})
    with pytest.raises(NotMeasured):
        figures.model_ms(KERNELS)
    with pytest.raises(NotMeasured):
        figures.share(KERNELS, lambda group: True)


def test_more_memory_than_the_card_has_confirms_that_it_does_not_fit():
    rows = {
        Cell("orbformer", molecule, program, "a5000"): row([], temp_bytes=30 * 2**30)
        for molecule in ("C2H6", "C4H4")
        for program in ("inference-step", "train-step")
    }
    assert MatrixFigures(rows).memory_bytes(next(iter(rows))) == 30 * 2**30 + 2  # what the device must hold
    fits = judge_of("Orbformer does not fit into the A5000 on C2H6 and C4H4")
    assert fits(rows).verdict == "confirmed"
    rows[Cell("orbformer", "C2H6", "train-step", "a5000")] = row([], temp_bytes=2**30)
    unknown = fits(rows)
    assert unknown.verdict == "not testable here"
    assert "C2H6 training needs at least 1.0 of 24 GiB" in unknown.ours


def test_the_gap_on_lih_is_confirmed_by_one_ansatz():
    rows = {cell: row([("mcmc", "gemm", 10.0)]) for cell in EVERY if cell.molecule == "LiH"}
    larger = judge_of("their gap is larger for some ansätze on LiH (A5000)")
    assert larger(rows).verdict == "contradicted"
    rows[Cell("paulinet", "LiH", "train-step", "a5000")] = row([("mcmc", "gemm", 12.0)])
    assert larger(rows).verdict == "confirmed"


def test_measured_times_are_those_of_the_program_as_it_stands():
    record = {
        "workload": {"name": "paulinet", "molecule": "CH4", "program": "inference-step", "walkers": 8, "variant": []},
        "device": {"platform": "gpu", "name": "NVIDIA H200"},
        "variants": [{"pipeline": "", "device_time": {"sum_us": [10.0, 14.0]}}],
    }
    cell = Cell("paulinet", "CH4", "inference-step", "h200")
    assert measured_times([record], 8) == {cell: 12.0}
    assert measured_times([record], 1024) == {}
    assert measured_times([{**record, "device": {"platform": "cpu", "name": "H200"}}], 8) == {}
    rewritten = {**record, "variants": [{**record["variants"][0], "pipeline": "batch-replay"}]}
    assert measured_times([rewritten], 8) == {}
    titles = [table.title for table in matrix_tables(MatrixFigures({cell: row([])}, {cell: 12.0}))]
    assert "Time of one step (ms, measured)" in titles


def test_a_slower_gpu_is_not_faster_however_wide_the_range():
    rows = {cell: row([("mcmc", "gemm", 10.0)]) for cell in EVERY}
    faster = judge_of("the A100 is faster than the A5000")
    assert faster(rows).verdict == "contradicted"
    rows |= {cell: row([("mcmc", "gemm", 9.5)]) for cell in EVERY if cell.target == "a100"}
    assert faster(rows).verdict == "confirmed"


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [((10, 40, 120, 240), "confirmed"), ((10, 40, 41, 400), "contradicted"), ((40, 40, 40, 40), "contradicted")],
)
def test_a_jump_is_not_smooth(sizes, verdict):
    size_of = dict(zip(("LiH", "CH4", "C2H6", "C4H4"), sizes, strict=True))
    smooth = judge_of("PauliNet's and FermiNet's memory grows smoothly with the molecule (A5000)")
    assert smooth({cell: row([], temp_bytes=size_of[cell.molecule]) for cell in EVERY}).verdict == verdict


def test_a_loop_of_another_length_is_not_one_forward_pass():
    one = judge_of("Psiformer's Stage E is one forward pass, no replay")
    for trips, verdict in ((1, "confirmed"), (7, "contradicted"), (30, "contradicted")):
        rows = {cell: row([], most_laplacian_trips=trips) for cell in EVERY}
        assert one(rows).verdict == verdict


def of_two(statement, psiformer, orbformer):
    cells = {"psiformer": psiformer, "orbformer": orbformer}
    rows = {Cell(name, "CH4", INFERENCE, "a5000"): row(groups) for name, groups in cells.items()}
    return judge_of(statement)(rows)


MUCH = [("mcmc", "gemm", 60.0), ("mcmc", "layout", 10.0), ("", "gemm", 20.0), ("", "elementwise", 10.0)]
HALF = [("mcmc", "gemm", 30.0), ("mcmc", "elementwise", 40.0), ("", "gemm", 10.0), ("", "elementwise", 20.0)]


@pytest.mark.parametrize(
    ("statement", "confirming", "contradicting"),
    [
        ("GEMM's share of Orbformer is about half of that of Psiformer, in both phases", (MUCH, HALF), (MUCH, MUCH)),
        ("Orbformer has more elementwise outside of sampling than Psiformer", (MUCH, HALF), (HALF, MUCH)),
        ("Orbformer has less transposition within sampling than Psiformer", (MUCH, HALF), (HALF, MUCH)),
        ("GEMM is Psiformer's largest component outside of sampling", (MUCH, HALF), (HALF, MUCH)),
        (
            "sampling has a slightly larger share of Orbformer than of Psiformer",
            (MUCH, [*HALF, ("mcmc", "reduction", 10.0)]),
            (MUCH, MUCH),
        ),
    ],
)
def test_comparisons_go_by_the_figures(statement, confirming, contradicting):
    assert of_two(statement, *confirming).verdict == "confirmed"
    assert of_two(statement, *contradicting).verdict == "contradicted"


def test_comparisons_name_both_figures():
    less = of_two("Orbformer has less GEMM within sampling than Psiformer", MUCH, HALF)
    assert (less.verdict, less.ours) == ("confirmed", "Orbformer 42.9 % against Psiformer 85.7 %")
    inside = of_two("GEMM dominates Psiformer's sampling", MUCH, HALF)
    assert (inside.verdict, inside.ours) == ("confirmed", "gemm 86 %, layout 14 %")


def test_more_memory_bound_is_fewer_flops_per_byte():
    bound, free = row([("mcmc", "gemm", 40.0)]), row([("mcmc", "gemm", 40.0)])
    free["groups"]["rows"][0][4] = 10**5  # FLOPs
    cells = [Cell(name, "CH4", INFERENCE, "a5000") for name in ("orbformer", "psiformer")]
    judge = judge_of("Orbformer is more memory-bound than Psiformer")
    found = judge(dict(zip(cells, (bound, free), strict=True)))
    assert (found.verdict, found.ours) == ("confirmed", "Orbformer 2.0 against Psiformer 100.0 FLOP/byte")
    assert judge(dict(zip(cells, (free, bound), strict=True))).verdict == "contradicted"


def test_every_claim_is_said_once_and_has_its_place():
    statements = [one.statement for one in CLAIMS]
    assert len(set(statements)) == len(statements) > 40
    table = claims_table(judge_all(CLAIMS, MatrixFigures({KERNELS: row([("mcmc", "gemm", 1.0)])})))
    assert len(table.rows) == len(CLAIMS)
    assert intensity_table(MatrixFigures({KERNELS: row([("mcmc", "gemm", 1.0)])})).rows[0][1].startswith("2 (")


def test_every_judge_is_named_by_a_claim_and_every_cause_too():
    entries = claims._CONTENT["claim"]
    assert {one["judge"] for one in entries if "judge" in one} == set(claims._JUDGES)
    causes = {one.get("differs") for entry in entries for one in (entry, *entry.get("shares", ()))}
    assert causes - {None} == set(claims._CONTENT["differs"])
