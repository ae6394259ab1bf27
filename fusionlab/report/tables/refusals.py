"""Refused fusions, for a terminal and a notebook: causes, boundaries, and the words about both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.ledger.refusals import FusionRefusal, boundary_bytes
from fusionlab.report.tables import UNKNOWN, Table, shown
from fusionlab.units import BYTES, TIMES, time_words, unit_for

_MOST_READERS = 3


def cause_table(causes: Sequence[Mapping[str, Any]], title: str = "") -> Table:
    """Refusals by cause (``ledger.refusals.by_cause``), in the unit of time that fits the costliest; of bytes where no
    boundary has a time (the CPU)."""
    timed = any(group["boundary_us"] is not None for group in causes)
    what, units = ("boundary_us", TIMES) if timed else ("boundary_bytes", BYTES)
    unit, per = unit_for(max((group[what] or 0.0 for group in causes), default=0.0), units)
    rows = [
        [
            f"{group['cause']}{weighed(group['xla'])}",
            f"{group['refusals']:,}",
            f"{group['dynamic_launches']:,}",
            shown(group[what], 2, per),
        ]
        for group in causes
    ]
    return Table(title, ("cause", "refusals", "launches", f"boundary {unit}"), rows)


def boundary_table(title: str, found: Sequence[FusionRefusal], ops: Mapping[str, str]) -> Table:
    """A row per boundary: the kernel, its readers, the origin, the cause and the cost."""
    rows = [
        [one.kernel, readers_words(one), _op(one, ops), one.source, one.scope, one.cause + xla_times(one), _cost(one)]
        for one in found
    ]
    return Table(title, ("kernel", "readers", "op", "source", "scope", "cause", "boundary"), rows, words=6)


def refusal_lines(one: FusionRefusal, ops: Mapping[str, str], *, staged: bool) -> list[str]:
    """One boundary in three lines: cost, kernel and readers; op and origin; cause."""
    runs = f"{one.dynamic_launches} x {size_words(one.result_bytes)}"
    where = f"stage {one.stage or '?'} {one.role}" if staged else f"{one.scope or '?'}, {one.transform or '?'}"
    place = f" at {one.source}" if one.source else ""
    return [
        f"  {_cost(one)}  {one.kernel} ({runs}) -> {readers_words(one)}",
        f"      {_op(one, ops) or '?'}{place}, {where}: {one.op_name}",
        f"      {one.cause}{xla_times(one)}",
    ]


def refusal_notes(document: Mapping[str, Any]) -> list[str]:
    """The price of all boundaries, XLA's own estimates, and the coverage of XLA's record; of ``explain``'s document."""
    known = [group["boundary_us"] for group in document["causes"] if group["boundary_us"] is not None]
    join, xla = document["join"], document["xla_estimates"]
    stages = f", {join['with_stage']} to a stage" if document["staged"] else ""
    priced = [
        f"boundaries: {time_words(sum(known)) if known else UNKNOWN} in all, of {document['dynamic_launches']:,} "
        "launches (model: 1 us per launch, and the producer's result written and read once at the target's bandwidth)",
        f"XLA's own estimates: it weighed {xla['refusals_with']} of {join['joined']} refusals"
        f"{weighed(xla)}; of the other {xla['refusals_without']} it says nothing about time",
    ]
    moved = sum(group["boundary_bytes"] for group in document["causes"])
    on_cpu = [
        f"boundaries: {size_words(moved)} written and read, of {document['dynamic_launches']:,} launches (model)",
        "XLA:CPU decides about each producer and reader by rules, without times; it records nothing about what loops, "
        "conditionals, calls and arguments read or give",
    ]
    return [
        *(on_cpu if document["target"] == "cpu" else priced),
        f"joined: {join['joined']} of {join['producers']} refused producers to a launch ({join['merged']} were merged "
        f"with all their readers later, {join['results']} are results of the program or a loop, {join['idle']} never "
        f"run, {join['not_joined']} are not found again); of these "
        f"{join['with_stablehlo_op']} to a StableHLO op, {join['with_scope']} to a scope, {join['with_source']} to a "
        f"source line{stages}; {join['launches_refused']} of {join['launches']} launch sites "
        "have a refusal on record",
    ]


def weighed(xla: Mapping[str, Any]) -> str:
    """XLA's estimates over all trips in brackets, with a space before them; "" where it made none."""
    if xla["us_lost"] is None:
        return ""
    lost = f"{time_words(abs(xla['us_lost']))} {'lost' if xla['us_lost'] > 0 else 'saved'} by refusing"
    return f" (XLA: {time_words(xla['us_fused'])} fused, {time_words(xla['us_unfused'])} unfused: {lost})"


def xla_times(one: FusionRefusal) -> str:
    """XLA's estimates in words, with a space before them; "" where it made none."""
    if one.us_unfused is None or one.us_fused is None:
        return ""
    return f" ({one.us_fused:,.1f} us fused against {one.us_unfused:,.1f} us, per run)"


def readers_words(one: FusionRefusal) -> str:
    """The kernels that read the result, the first three by name."""
    more = len(one.consumers) - _MOST_READERS
    named = ", ".join(one.consumers[:_MOST_READERS]) + (f" and {more} more" if more > 0 else "")
    return named or "nothing"


def _op(one: FusionRefusal, ops: Mapping[str, str]) -> str:
    return ops.get(one.op_name, "") or one.op


def _cost(one: FusionRefusal) -> str:
    return size_words(boundary_bytes(one)) if one.boundary_us is None else time_words(one.boundary_us)
