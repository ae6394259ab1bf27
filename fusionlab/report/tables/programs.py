"""One program's figures, before and after passes, the verdict of a check, and the front of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from fusionlab.equivalence.verdict import OracleAgreement, OutputError, Verdict
from fusionlab.ledger.footprint import Footprint
from fusionlab.passes.interface import Applied, Event, told_fallbacks
from fusionlab.report.tables import UNKNOWN, Cell, Table, field, milliseconds, number
from fusionlab.search.best import SearchResult
from fusionlab.study import StudyResult

_ROWS: tuple[tuple[str, str, int | None, float], ...] = (
    ("StableHLO ops", "stablehlo_ops", None, 1),
    ("launches, static", "static_launches", None, 1),
    ("launches, dynamic", "dynamic_launches", None, 1),
    ("copies and memsets, dynamic", "dynamic_copies", None, 1),
    ("temp memory (MiB)", "temp_bytes", 1, 2**20),
    ("argument memory (MiB)", "argument_bytes", 1, 2**20),
    ("GFLOP (model)", "flops", 1, 1e9),
    ("GiB accessed (model)", "bytes_accessed", 2, 2**30),
    ("compile (s)", "compile_s", 1, 1),
)
"""Label, field of a Footprint, digits after the point (None: an integer), and unit."""


def print_footprint(found: Footprint, console: Console) -> None:
    """One program's figures, a row each."""
    _figures_of(found).print(console)
    _note_compilation([found], console)


def _figures_of(found: Footprint) -> Table:
    columns = {"": lambda row: row[0], found.target: lambda row: _figure(row, found)}
    return Table.of(f"{found.name} on {found.target}", _ROWS, columns)


def print_outcome(outcome: StudyResult, console: Console) -> None:
    """Passes that were undone, any fallbacks, the verdict, before and after side by side, and the events.

    Where nothing was applied, one column.
    """
    for one in outcome.undone:
        console.print(f"undone: {one.by}: {one.reason}; --keep-worse keeps it", soft_wrap=True, markup=False)
    if fallbacks := told_fallbacks(outcome.events):
        console.print(f"fallback: {fallbacks}", soft_wrap=True)
    console.print(f"equivalence: {outcome.equivalence.line}", soft_wrap=True)
    before, after = outcome.before, outcome.after if outcome.applied else None
    if before is not None and not outcome.applied:
        _figures_of(before).print(console)
    elif before is not None:

        def ratio(row: tuple[str, str, int | None, float]) -> str:
            old, new = getattr(before, row[1]), getattr(after, row[1], None)
            return f"{new / old:.3f}" if old and new is not None else UNKNOWN

        columns: dict[str, Cell] = {
            "": lambda row: row[0],
            "before": lambda row: _figure(row, before),
            "after": lambda row: _figure(row, after),
            "after / before": ratio,
        }
        Table.of(f"{before.name} on {before.target}", _ROWS, columns).print(console)
    console.print(f"pipeline: {outcome.pipeline} ({outcome.pass_s:.1f} s without XLA's compiles)", soft_wrap=True)
    print_events(outcome.events, console)
    _note_compilation([side for side in (before, after) if side], console)


def print_events(events: Sequence[Event], console: Console) -> None:
    """The event of each pass, a line each: its change, or the reason for none, with a line of what could be written."""
    for event in events:
        place = f", at {event.location}" if event.location else ""
        if isinstance(event, Applied):
            console.print(f"  applied  {event.pass_name}: {event.what}{place}", soft_wrap=True)
        else:
            console.print(f"  declined {event.pass_name} ({event.kind}): {event.reason}{place}", soft_wrap=True)
            if event.explained:
                console.print(f"           {event.explained}", soft_wrap=True)


def print_refusals(events: Sequence[Event], console: Console) -> None:
    """Any fallbacks; all events where nothing was applied."""
    if fallbacks := told_fallbacks(events):
        console.print(f"fallback: {fallbacks}", soft_wrap=True)
    if not any(isinstance(event, Applied) for event in events):
        print_events(events, console)


def _figure(row: tuple[str, str, int | None, float], of: Footprint | None) -> str:
    """A figure with its digits; with two significant ones if a small figure would show as zero."""
    _, name, digits, unit = row
    value = getattr(of, name, None)
    if value is None or digits is None:
        return UNKNOWN if value is None else f"{value:,}"
    scaled = value / unit
    return f"{scaled:.2g}" if unit != 1 and 0 < scaled < 0.5 * 10**-digits else f"{scaled:,.{digits}f}"


def _note_compilation(found: Sequence[Footprint], console: Console) -> None:
    """The conditions under which these figures can be compared with others."""
    sources = sorted({one.launch_source for one in found if one.launch_source})
    console.print(f"launches: {', '.join(sources)}; compiled without autotuning when the GPU is absent", style="dim")
    if (devices := max((one.devices for one in found), default=1)) > 1:
        collectives = " and ".join(f"{one.dynamic_collectives:,}" for one in found)
        console.print(f"of each of {devices} devices; collectives among its launches: {collectives}", style="dim")
        if any(one.target == "cpu" for one in found):
            console.print("on the CPU each holds the whole of all arguments, and gathers all results", style="dim")


_ERRORS = (
    ("off truth", "max_abs_error"), ("tolerance", "tolerance"), ("in float64", "max_abs_error_float64"),
    ("tolerance", "tolerance_float64"), ("most ULP", "max_ulp"), ("mean shift", "mean_shift"),
    ("Monte-Carlo error", "standard_error"),
)  # fmt: skip
_VERDICT = (("", field("name")), *((label, number(name, spec=".3g")) for label, name in _ERRORS))


def print_verdict(verdict: Verdict, console: Console) -> None:
    """The verdict in the first line, a row per output, its histograms, and the oracles."""
    console.print(f"verdict: {verdict.line}", soft_wrap=True)
    if verdict.outputs:
        Table.of("rewritten against original", verdict.outputs, _VERDICT).print(console)
    for line in (line for output in verdict.outputs for line in _histograms(output)):
        console.print(line, soft_wrap=True)
    for oracle in verdict.oracles:
        console.print(f"oracle: {_said(oracle)}", soft_wrap=True)


def _histograms(output: OutputError) -> Iterator[str]:
    if any(output.ulp_histogram):
        bins = [f"{_ulps(k, len(output.ulp_histogram))}: {n:,}" for k, n in enumerate(output.ulp_histogram) if n]
        yield f"{output.name}, elements by ULP from the original: {', '.join(bins)}"
    if output.abs_histogram:
        bins = [f"1e{decade:+d}: {count:,}" for decade, count in output.abs_histogram]
        yield f"{output.name}, elements by |difference| of at least: {', '.join(bins)}"


def _ulps(bin_: int, bins: int) -> str:
    if bin_ == bins - 1:
        return "not finite"
    if bin_ < 2:
        return str(bin_)
    return f"{2 ** (bin_ - 1):,}-{2**bin_ - 1:,}" if bin_ < 20 else f"over 2^{bin_ - 1}"


def _said(oracle: OracleAgreement) -> str:
    if oracle.agrees is None:
        return f"{oracle.name} was not asked: {oracle.reason}"
    word = "agrees with" if oracle.agrees else "does not agree with"
    return f"{oracle.name} {word} the original: off by {oracle.max_abs_error:.3g} (tolerance {oracle.tolerance:.3g})"


_AS_IT_IS = "(the program as it is)"
_TRIAL: dict[str, Cell] = {
    "launches": number("launches"),
    "GiB accessed": number("bytes_accessed", 2, 2**30),
    "temp MiB": number("temp_bytes", 0, 2**20),
    "model ms": lambda costs: milliseconds(costs.model_us, incomplete=costs.unmodelled_launches > 0),
    "compile s": number("compile_s", 1),
}


def print_search(found: SearchResult, console: Console) -> None:
    """The original program, the front with its best marked, the trials, and the pipeline to repeat."""
    start, goal = found.trials[0], found.goal
    named = [(f"{start.pipeline} (fixed)" if start.pipeline else _AS_IT_IS, start)]
    named += [(f"{'* ' if one is found.best else '  '}{one.pipeline or _AS_IT_IS}", one) for one in found.front]
    if found.best not in found.front:
        named.append((f"* {found.best.pipeline or _AS_IT_IS}", found.best))

    def cell(of: Cell) -> Cell:
        return lambda row: UNKNOWN if row[1].costs is None else of(row[1].costs)

    within = f" within {goal.memory_budget}" if goal.memory_budget is not None else ""
    title = f"Pareto front{within}: launches, bytes, temp memory, time; * least {goal.objective}"
    columns: dict[str, Cell] = {"pipeline": lambda row: row[0], **{label: cell(of) for label, of in _TRIAL.items()}}
    Table.of(title, named, columns).print(console)
    recorded = sum(trial.recorded for trial in found.trials)
    ended = "nothing was left to try" if found.complete else "the time was up; the same command goes on from here"
    console.print(
        f"{len(found.trials)} pipelines in {found.seconds:.0f} s ({recorded} recorded before), {ended}; "
        f"compiled {found.count('measured')}, the same program {found.count('same')}; "
        f"nothing applied {found.count('nothing')}, failed {found.count('failed')}",
        soft_wrap=True,
    )
    for trial in found.trials:
        if trial.status in ("failed", "unfinished"):
            console.print(f"  {trial.status} {trial.pipeline}: {trial.reason}", soft_wrap=True, markup=False)
    chosen = f'--pipeline "{found.best.pipeline}"' if found.best.pipeline else "no pass: none makes it better"
    console.print(f"best: {chosen}", soft_wrap=True, style="bold", markup=False)
