"""One program's figures, before and after passes, the verdict of a check, and the front of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from fusionlab.bytesize import size_words
from fusionlab.equivalence.verdict import OracleAgreement, OutputError, Verdict
from fusionlab.hlo.cost import Cost
from fusionlab.ledger.footprint import Footprint
from fusionlab.passes.interface import Applied, Event, faults, told_fallbacks
from fusionlab.passes.pipeline import why_nothing_applied
from fusionlab.report.tables import UNKNOWN, Cell, Table, field, milliseconds, number
from fusionlab.search.best import SearchResult
from fusionlab.search.costs import Costs
from fusionlab.study import StudyResult
from fusionlab.time_order import share_words
from fusionlab.units import BYTES, TIMES, counted, flop_words, unit_for

Row = tuple[str, str, Callable[[float], str]]
_ROWS: tuple[Row, ...] = (
    ("StableHLO ops", "stablehlo_ops", "{:,}".format),
    ("launches, static", "static_launches", "{:,}".format),
    ("launches, dynamic", "dynamic_launches", "{:,}".format),
    ("copies and memsets, dynamic", "dynamic_copies", "{:,}".format),
    ("temp memory", "temp_bytes", size_words),
    ("argument memory", "argument_bytes", size_words),
    ("FLOPs (model)", "flops", flop_words),
    ("accessed (model)", "bytes_accessed", size_words),
    ("compile", "compile_s", "{:,.1f} s".format),
)
"""Label, field of a Footprint, and its words."""


def print_footprint(found: Footprint, console: Console) -> None:
    """One program's figures, a row each."""
    _figures_of(found).print(console)
    _note_compilation([found], console)
    _note_devices([found], console)


def _figures_of(found: Footprint) -> Table:
    columns: dict[str, Cell] = {"": lambda row: row[0], found.target: lambda row: _figure(row, found)}
    return Table.of(f"{found.name} on {found.target}", _ROWS, columns)


def print_outcome(outcome: StudyResult, console: Console, *, verbose: bool) -> None:
    """Passes that were undone, any fallbacks, what was applied, the verdict, and before and after side by side.

    Where nothing was applied both sides are the same, and the reason stands alone. ``verbose`` adds all of the check,
    the pipeline, every event, and how the figures come about.
    """
    for one in outcome.undone:
        console.print(f"undone: {one.by}: {one.reason}; --keep-worse keeps it", soft_wrap=True, markup=False)
    if fallbacks := told_fallbacks(outcome.events):
        console.print(f"fallback: {fallbacks}", soft_wrap=True)
    print_rewriting(outcome, console)
    first, *others = outcome.equivalence.lines
    for line in (f"equivalence: {first}", *others):
        console.print(line, soft_wrap=True, markup=False)
    if outcome.applied or verbose:
        _print_sides(outcome, console)
    if verbose:
        console.print(f"check: {outcome.equivalence.line}", soft_wrap=True, markup=False)
        console.print(f"pipeline: {outcome.pipeline} ({outcome.pass_s:.1f} s without XLA's compiles)", soft_wrap=True)
        print_events(outcome.events, console)
        _note_compilation([side for side in (outcome.before, outcome.after) if side], console)


def print_rewriting(outcome: StudyResult, console: Console) -> None:
    """What was applied, or why nothing was: a line."""
    done = [event for event in outcome.events if isinstance(event, Applied)]
    if done:
        more = f" (and {len(done) - 1} more; --verbose lists them)" if len(done) > 1 else ""
        line = f"applied {done[0].pass_name}: {done[0].what}{more}"
    elif faults(outcome.events):  # told on stderr
        line = "nothing applied: a pass failed"
    else:
        line = f"nothing applied: {why_nothing_applied(outcome.events, outcome.original)}"
    console.print(line, soft_wrap=True, markup=False)


def print_sparsity(
    events: Sequence[Event], time: Callable[[Cost], float | None], console: Console, *, verbose: bool
) -> None:
    """Where the directions of each forward Laplacian become dense: a line, with ``verbose`` one for each op.

    ``time`` models the cost of the directions that are lost, by rows.
    """
    for event in events:
        if isinstance(event, Applied) and event.sparsity is not None:
            first, *others = event.sparsity.lines(time)
            more = "; --verbose lists what to write instead" if others and not verbose else ""
            console.print(f"sparsity: {first}{more}", soft_wrap=True, markup=False)
            for line in others if verbose else ():
                console.print(f"  {line}", soft_wrap=True, markup=False)


def _print_sides(outcome: StudyResult, console: Console) -> None:
    """The figures before and after, and their ratios; one column where nothing was applied."""
    before, after = outcome.before, outcome.after
    if before is not None and not outcome.applied:
        _figures_of(before).print(console)
    elif before is not None:

        def ratio(row: Row) -> str:
            old, new = getattr(before, row[1]), getattr(after, row[1], None)
            return f"{new / old:.3f}" if old and new is not None else UNKNOWN

        columns: dict[str, Cell] = {
            "": lambda row: row[0],
            "before": lambda row: _figure(row, before),
            "after": lambda row: _figure(row, after),
            "after / before": ratio,
        }
        Table.of(f"{before.name} on {before.target}", _ROWS, columns).print(console)
        _note_devices([side for side in (before, after) if side], console)


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


def print_refusals(events: Sequence[Event], console: Console, *, verbose: bool) -> None:
    """Any fallbacks; all events where nothing was applied, or with ``verbose``."""
    if fallbacks := told_fallbacks(events):
        console.print(f"fallback: {fallbacks}", soft_wrap=True)
    if verbose or not any(isinstance(event, Applied) for event in events):
        print_events(events, console)


def _figure(row: Row, of: Footprint | None) -> str:
    value = getattr(of, row[1], None)
    return UNKNOWN if value is None else row[2](value)


def _note_compilation(found: Sequence[Footprint], console: Console) -> None:
    """The conditions under which these figures can be compared with others."""
    sources = sorted({one.launch_source for one in found if one.launch_source})
    console.print(f"launches: {', '.join(sources)}; compiled without autotuning when the GPU is absent", style="dim")


def _note_devices(found: Sequence[Footprint], console: Console) -> None:
    """What figures of several devices are of; nothing for one."""
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


def print_verdict(verdict: Verdict, console: Console, *, verbose: bool) -> None:
    """The verdict in two lines, and any oracle that contradicts; ``verbose`` adds the evidence.

    That is all of the check, a row per output, its histograms, and the oracles.
    """
    first, *others = verdict.lines
    for line in (f"verdict: {first}", *others):
        console.print(line, soft_wrap=True, markup=False)
    if not verbose:
        for oracle in (one for one in verdict.oracles if one.agrees is False):
            console.print(f"oracle: {_said(oracle)}", soft_wrap=True, markup=False)
        return
    console.print(f"check: {verdict.line}", soft_wrap=True, markup=False)
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


def _trial_columns(found: Sequence[Costs]) -> dict[str, Cell]:
    """The columns of the trials ``found``, in units that fit the largest of them."""
    accessed = unit_for(max((one.bytes_accessed for one in found), default=0), BYTES)
    temp = unit_for(max((one.temp_bytes for one in found), default=0), BYTES)
    unit, per = unit_for(max((one.model_us or 0.0 for one in found), default=0), TIMES)
    return {
        "launches": number("launches"),
        f"{accessed[0]} accessed": number("bytes_accessed", 2, accessed[1]),
        f"temp {temp[0]}": number("temp_bytes", 1, temp[1]),
        f"model {unit}": lambda one: milliseconds(one.model_us, incomplete=one.is_lower_bound, per=per),
        "compile s": number("compile_s", 1),
    }


def _undecided(found: SearchResult) -> str:
    """The programs that the model of time cannot tell from the best one."""
    if not found.undecided:
        return ""
    first, *more = found.undecided
    name = f'"{first.trial.pipeline}"' if first.trial.pipeline else "the program as it is"
    others = f" and {counted(len(more), 'other', 'others')}" if more else ""
    apart, needed = share_words(first.apart, first.pair_error)
    return f"; not decidable by the model of time: {name} is {apart} apart{others}, {needed} are needed"


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
    numbers = _trial_columns([costs for _, one in named if (costs := one.costs) is not None])
    columns: dict[str, Cell] = {"pipeline": lambda row: row[0], **{label: cell(of) for label, of in numbers.items()}}
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
    console.print(f"best: {chosen}{_undecided(found)}", soft_wrap=True, style="bold", markup=False)
