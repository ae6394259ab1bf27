"""Tables in a terminal and as Markdown, and the verdicts and figures that they show."""

import io
import math

import pytest
from rich.console import Console

from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.verdict import OracleAgreement, OutputError, Verdict
from fusionlab.ledger.footprint import Footprint
from fusionlab.passes.interface import Declined
from fusionlab.report.tables import (
    Table,
    column_groups,
    field,
    milliseconds,
    number,
    print_rows,
)
from fusionlab.report.tables.programs import print_events, print_footprint, print_verdict
from fusionlab.report.tables.records import peak_words, print_run
from fusionlab.units import BYTES, FLOPS, TIMES, counted, fixed, flop_words, time_words, unit_for
from tests.measure.made import record, variant


@pytest.fixture
def console():
    """A wide console that keeps what is printed: ``console.file.getvalue()``."""
    return Console(file=io.StringIO(), width=200)


def errors(name, error, tolerance=1.0):
    return OutputError(name, error, tolerance, 0.0, 1e-9, False)


def test_of_many_outputs_those_nearest_to_their_tolerance_are_told():
    outputs = tuple(errors(f"output {i}", 0.01 * (i % 7)) for i in range(10))
    ten, two = (Verdict("within-bound", some, 16).line for some in (outputs, outputs[:2]))
    assert [i for i in range(10) if f"output {i}:" in ten] == [3, 4, 5, 6]
    assert ten.endswith("6 other outputs are further from their tolerance")
    assert [i for i in range(2) if f"output {i}:" in two] == [0, 1]
    assert "other outputs" not in two


@pytest.mark.parametrize(
    ("error", "used"),
    [
        (errors("a", 0.25), 0.25),
        (errors("a", 0.0, 0.0), 0.0),
        (errors("a", 1e-30, 0.0), math.inf),
        (errors("a", math.nan), math.inf),
        (OutputError("a", 0.0, 1.0, 3.0, 2.0, False), 1.5),
        (OutputError("a", 0.0, 1.0, 0.0, 2.0, False, mean_shift=-3.0, mean_tolerance=1.0), 3.0),
    ],
)
def test_how_much_of_a_tolerance_an_error_takes(error, used):
    assert error.used == used


def test_a_small_figure_is_not_shown_as_nothing(console):
    figures = {
        "name": "small", "target": "a100", "walkers": None, "static_launches": 1, "dynamic_launches": 1,
        "dynamic_copies": 0, "temp_bytes": 0, "argument_bytes": 1024, "flops": 2.5e6, "bytes_accessed": 2**30,
        "compile_s": 0.1, "stablehlo_ops": 3, "unknown_trip_loops": 0, "launch_source": "",
    }  # fmt: skip
    print_footprint(Footprint(**figures), console)
    lines = filter(str.strip, console.file.getvalue().splitlines())
    rows = {line.strip().rpartition("  ")[0].strip(): line.strip().rpartition("  ")[2] for line in lines}
    assert rows["argument memory"] == "1.0 KiB"
    assert rows["FLOPs (model)"] == "2.5 MFLOP"
    assert rows["temp memory"] == "0 B"
    assert rows["accessed (model)"] == "1.0 GiB"


def test_only_0_is_printed_as_0():
    assert [fixed(value, 2) for value in (0, 0.004, 0.006, -0.001, 1234.5)] == [
        "0", "<0.01", "0.01", ">-0.01", "1,234.50",
    ]  # fmt: skip
    assert [flop_words(flops) for flops in (0, 96, 8.2e6, 352e9, 4.5e12)] == [
        "0 FLOP", "96 FLOP", "8.2 MFLOP", "352.0 GFLOP", "4.5 TFLOP",
    ]  # fmt: skip
    assert [counted(count, "copy", "copies") for count in (0, 1, 1000)] == ["0 copies", "1 copy", "1,000 copies"]
    assert [time_words(us) for us in (0.08, 12, 1250)] == ["80.0 ns", "12.0 us", "1.25 ms"]


IDENTICAL = Identity("identical", 144, 2, 1e-301, "")


def verdict_of(*outputs, word="within-bound", **more):
    return Verdict(word, outputs, 16, **more)


@pytest.mark.parametrize(
    ("verdict", "lines"),
    [
        (
            verdict_of(OutputError("output 0", 4.5e-5, 2.1e-4, 0.0, 1e-9, False, original_abs_error=4.4e-5),
                       exact=IDENTICAL),
            ["verdict: within-bound; identical in exact arithmetic (chance of error < 1e-301)",
             "floating point at 16 walkers: error 4.5e-05 of output 0, the original's own 4.4e-05 (allowed 0.00021)"],
        ),
        (
            verdict_of(errors("a", 0.1), OutputError("b", 0.1, 1.0, 3.0, 2.0, False), word="different", worst="seed 2",
                       exact=Identity("not-identical", 1, 1, 1.0, "output 0 differs", "stablehlo.add at a.py:3")),
            ["verdict: different; not-identical: output 0 differs; the first value that differs: stablehlo.add at "
             "a.py:3", "floating point at 16 walkers: error 3 of b in float64 (allowed 2); worst: seed 2"],
        ),
        (
            Verdict("not-checked", reason="time limit", exact=IDENTICAL),
            ["verdict: not-checked; identical in exact arithmetic (chance of error < 1e-301)",
             "floating point: not-checked: time limit"],
        ),
        (Verdict("equal", reason="no pass applied"), ["verdict: equal: no pass applied"]),
        (
            verdict_of(OutputError("a", 0.0, 1.0, 0.0, 2.0, False, mean_shift=-3.0, mean_tolerance=1.0)),
            ["verdict: within-bound at 16 walkers: mean of a off by -3 (allowed 1)"],
        ),
    ],
)  # fmt: skip
def test_a_verdict_takes_two_lines_and_its_evidence_is_behind_verbose(verdict, lines, console):
    print_verdict(verdict, console, verbose=False)
    assert console.file.getvalue().splitlines() == lines
    print_verdict(verdict, console, verbose=True)
    *_, said = console.file.getvalue().partition(f"check: {verdict.line}")
    assert all(output.name in said for output in verdict.outputs)


def test_an_oracle_that_contradicts_is_no_evidence_but_a_verdict(console):
    print_verdict(verdict_of(errors("a", 0.1), oracles=(OracleAgreement("brute force", False, 2.0, 1.0),
                                                        OracleAgreement("another", True, 0.0, 1.0))),
                  console, verbose=False)  # fmt: skip
    assert "brute force does not agree" in console.file.getvalue()
    assert "another" not in console.file.getvalue()


def test_an_event_without_a_place_names_none(console):
    events = [("there is no loop", ""), ("a token", "while")]
    print_events([Declined("licm", "unsafe", *event) for event in events], console)
    first, second = console.file.getvalue().splitlines()
    assert first.endswith(": there is no loop")
    assert second.endswith(": a token, at while")


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("width", [28, 40, 80, 160])
def test_on_a_narrow_terminal_no_number_is_cut(width, words):
    columns = ("stage", "family", "launches", "GFLOP", "GiB", "FLOP/byte", "model ms", "share")
    rows = [
        ("jit(local_energy)/vmap(stage_e)", "elementwise", *(f"{number},{n:03}.{number}" for n in range(6)))
        for number in range(3)
    ]
    rows = [row if words == 2 else (row[0], "7", *row[2:]) for row in rows]
    console = Console(file=io.StringIO(), width=width)
    print_rows("a table", columns, rows, console, words=words)
    said = console.file.getvalue()
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    for row in rows:
        assert all(cell in said for cell in row[words:])
    assert [said.count(column) for column in columns[words:]] == [1] * (len(columns) - words)
    assert said.count("a table") == 1


def test_the_largest_value_of_a_column_decides_its_unit():
    assert [unit_for(most, BYTES)[0] for most in (0, 5, 3e4, 2**20, 2**30 - 1, 2**30, 2**50)] == [
        "KiB", "KiB", "KiB", "MiB", "MiB", "GiB", "TiB",
    ]  # fmt: skip
    assert [unit_for(most, FLOPS)[0] for most in (0, 2e12, 3e15)] == ["kFLOP", "TFLOP", "PFLOP"]
    assert [unit_for(most, TIMES)[0] for most in (None, 0, 0.2, 999, 1000)] == ["ms", "us", "us", "us", "ms"]
    assert milliseconds(12.5, per=unit_for(12.5, TIMES)[1]) == "12.50"


def test_a_wide_terminal_has_one_table():
    assert column_groups([40, 8, 8, 8], 1, 160) == [[0, 1, 2, 3]]
    assert column_groups([40, 8, 8, 8], 1, 36) == [[0, 1, 2], [0, 3]]
    assert column_groups([40, 60], 2, 20) == [[0, 1]]


def test_text_and_markdown_come_from_one_declaration(console):
    columns = {"kernel": field("name"), "MiB": number("bytes", 1, 2**20), "share": number("share", spec=".0%")}
    records = [
        {"name": "fusion", "bytes": 3 * 2**19, "share": 0.25},
        {"name": "copy", "bytes": 5000 * 2**20, "share": None},
    ]
    table = Table.of("kernels", records, columns)
    assert table.markdown().splitlines() == [
        "| kernel | MiB | share |",
        "| --- | --- | --- |",
        "| fusion | 1.5 | 25% |",
        "| copy | 5,000.0 | - |",
    ]
    table.print(console)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    assert ["fusion", "1.5", "25%"] in lines
    assert ["copy", "5,000.0", "-"] in lines


def test_memory_is_the_allocators_peak_and_else_named_as_buffer_assignment():
    assert peak_words({"peak_bytes": 3 * 2**20, "assigned_bytes": 2**20}) == "3.0 MiB"
    assert peak_words({"peak_bytes": 0, "assigned_bytes": 2**20}) == "0 B"
    assert peak_words({"peak_bytes": None, "assigned_bytes": 2**20}) == "1.0 MiB (XLA)"


def run_on(**device):
    """A record of one variant on a device."""
    one = {**variant(ratio_interval=None), "median_us": 1e3, "dynamic_launches": 7, "compile_s": 1.0}
    one |= {"device_time": {"mean_us": None, "ratio_interval": None}, "flops": 6e9, "bytes_accessed": 9e6}
    given = record(one, protocol={"runs": 11, "dropped": 1, "repeats": 10}, versions={"jax": "jax 1", "python": "3.11"})
    return given | {"device": {"name": "a device", **device}, "log_psi": None}


@pytest.mark.parametrize(
    ("platform", "driver", "said"), [("cuda", None, True), ("cuda", "570.1", False), ("cpu", None, False)]
)
def test_a_gpu_without_nvml_is_said(platform, driver, said, console):
    print_run(run_on(platform=platform, driver=driver), console)
    assert ("NVML does not answer" in console.file.getvalue()) == said


def test_local_energies_have_their_cost_over_that_of_log_psi_per_direction(console):
    given = run_on(platform="cpu", driver=None)
    print_run(given | {"log_psi": {"directions": 30, "flops": 4e8, "bytes_accessed": 2e5}}, console)
    assert "0.50 / 1.50" in console.file.getvalue()
    print_run(given, console)
    assert console.file.getvalue().count("psi per direction") == 1
