"""Two ledgers side by side, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from fusionlab.bytesize import size_words
from fusionlab.ledger.changes import LedgerChange, LedgerDiff
from fusionlab.report.tables import UNKNOWN, Table, note
from fusionlab.units import counted, time_words

_WORDS = {
    "launches": "launches", "copies": "copies and memsets", "bytes": "bytes (model)", "temp_bytes": "temp memory",
    "refusals": "refused fusions", "conditionals": "conditionals", "model_us": "time (model)",
}  # fmt: skip
_ALWAYS = ("launches", "copies", "bytes", "temp_bytes", "refusals", "model_us")
_MOST_KERNELS = 3
_MOST_CAUSES = 5


def print_diff(found: LedgerDiff, most: int, console: Console, failures: Sequence[str] = ()) -> None:
    """The verdict in a line and ``failures`` after it, the totals, the ``most`` largest changes and their causes."""
    console.print(verdict(found), style="bold", soft_wrap=True, markup=False)
    for line in failures:
        console.print(f"failed: {line}", soft_wrap=True, markup=False)
    totals_table(found).print(console)
    for line in _said(found):
        console.print(line, soft_wrap=True, markup=False)
    if found.changes and most:
        shown = found.changes[:most]
        console.print(f"the {len(shown)} largest of {len(found.changes)} changes", style="bold")
        for one in shown:
            console.print(f"  {change_line(one)}", soft_wrap=True, markup=False)
            for why in one.why:
                console.print(f"      {why}", soft_wrap=True, markup=False)
    for cause, old, new in found.refused[:_MOST_CAUSES]:
        console.print(f"refusals {old} -> {new}: {cause}", soft_wrap=True, markup=False)
    for line in (matched_words(found), *found.notes):
        note(console, line)


def diff_markdown(found: LedgerDiff, most: int, failures: Sequence[str]) -> str:
    """The comparison as Markdown: verdict, totals, changes; limits that were exceeded come first."""
    lines = [f"### {_escaped(verdict(found))}", ""]
    lines += [f"- :x: {_escaped(line)}" for line in failures] + [""] * bool(failures)
    lines += [totals_table(found).markdown(), "", *(f"- {_escaped(line)}" for line in _said(found)), ""]
    if found.changes and most:
        rows = [
            [one.what, _delta(one), f"`{_code(one.label)}`", f"`{_code(one.source)}`" if one.source else "",
             _escaped("; ".join(one.why))]
            for one in found.changes[:most]
        ]  # fmt: skip
        lines += [Table("", ("change", "launches", "scope and op", "source", "why"), rows).markdown(), ""]
        if len(found.changes) > most:
            lines += [f"and {len(found.changes) - most} smaller changes", ""]
    lines += [f"- {_escaped(line)}" for line in (matched_words(found), *found.notes)]
    return "\n".join(lines)


def verdict(found: LedgerDiff) -> str:
    """What happened, in one line."""
    old, new = found.before, found.after
    sides = f"{old.name} -> {new.name}" if old.name != new.name else old.name
    on = f"on {old.target}" if old.target == new.target else f"on {old.target} -> {new.target}"
    if found.is_same:
        alike = "launches, copies and memory" if found.is_memory_known else "launches and copies; memory is not known"
        return f"{sides} {on}: the same {old.dynamic_launches:,} {alike}"
    more = new.dynamic_launches - old.dynamic_launches
    launches = "launch becomes" if old.dynamic_launches == 1 else "launches become"
    counts = f"{old.dynamic_launches:,} {launches} {new.dynamic_launches:,} ({more:+,})"
    if more:
        return f"{sides} {on}: {counts}"
    line = f"{sides} {on}: {counted(old.dynamic_launches, 'launch', 'launches')} on both sides"
    if (times := found.time_order) is None or times.order == "not decidable":
        return line
    return f"{line}; {time_words(times.other_us)} become {time_words(times.us)} (model)"


def undecided_words(found: LedgerDiff) -> str:
    """That the model cannot say which side takes less; "" where it can, and of equal times."""
    times = found.time_order
    return "" if times is None or times.us == times.other_us or not times.undecided else f"times: {times.undecided}"


def _said(found: LedgerDiff) -> list[str]:
    """The lines behind the totals: what qualifies the times, and what happened to loops and conditionals."""
    return [*filter(None, [undecided_words(found)]), *found.summary]


def matched_words(found: LedgerDiff) -> str:
    """How much of both sides was matched."""
    return (
        f"matched by scope, source and structure: {found.matched[0]:,} of {found.before.dynamic_launches:,} launches "
        f"with {found.matched[1]:,} of {found.after.dynamic_launches:,}"
    )


def diff_lines(found: LedgerDiff, most: int, reasons: int | None = None) -> list[str]:
    """The totals that differ, what happened to loops and conditionals, and the ``most`` largest changes, each with at
    most ``reasons`` (None: all); the verdict comes before them."""
    lines = [figures_line(found), *_said(found)]
    for one in found.changes[:most]:
        lines += [change_line(one), *(f"    {why}" for why in one.why[:reasons])]
    more = len(found.changes) - most
    return [*lines, *([f"and {counted(more, 'more change', 'more changes')}"] if more > 0 else [])]


def figures_line(found: LedgerDiff) -> str:
    """The totals that differ, in one line; all of them are the same where none does."""
    said = [(_WORDS[name], _figure(name, old), _figure(name, new)) for name, old, new in found.figures() if old != new]
    parts = (f"{name} {old} -> {new}" for name, old, new in said if old != new)
    return "; ".join(parts) or "all totals are the same"


def change_table(shown: Sequence[LedgerChange], title: str) -> Table:
    """A row per change: what, launches, scope and op, source, reasons."""
    rows = [[one.what, one.label, one.source, "; ".join(one.why), _delta(one)] for one in shown]
    return Table(title, ("change", "scope and op", "source", "why", "launches"), rows, words=4)


def totals_table(found: LedgerDiff) -> Table:
    """The totals of both sides, with change and ratio."""
    rows = [
        [_WORDS[name], _figure(name, old), _figure(name, new), _more(name, old, new), _ratio(old, new)]
        for name, old, new in found.figures()
        if name in _ALWAYS or old or new
    ]
    return Table("", ("", "before", "after", "change", "ratio"), rows)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if name in ("bytes", "temp_bytes"):
        return size_words(value)
    if name == "model_us":
        return time_words(value)
    return f"{value:,.0f}"


def _more(name: str, old: float | None, new: float | None) -> str:
    if old is None or new is None:
        return UNKNOWN
    return "0" if old == new else ("+" if new > old else "-") + _figure(name, abs(new - old))


def _ratio(old: float | None, new: float | None) -> str:
    return f"{new / old:.3f}" if old and new is not None else UNKNOWN


def _delta(one: LedgerChange) -> str:
    more = one.more_launches
    count = f"{more:+,}" if more else "0"
    return f"{count} ({one.launches[0]:,} to {one.launches[1]:,})"


def change_line(one: LedgerChange) -> str:
    """One change: launches, what happened, scope and op, source, kernels."""
    what = "copies" if one.kind == "copy" else "launches"
    size = "" if one.more_launches else f", {_more('bytes', *one.bytes)}"
    at = f" at {one.source}" if one.source else ""
    names = ", ".join(one.kernels[:_MOST_KERNELS]) + (" ..." if len(one.kernels) > _MOST_KERNELS else "")
    return f"{_delta(one)} {what}{size}  {one.what}: {one.label}{at} [{names}]"


def _escaped(text: str) -> str:
    """Text of a program for Markdown: no table cells, tags or links of its own."""
    found = "".join(f"\\{character}" if character in "\\`*_[]|~#" else character for character in text)
    return " ".join(found.replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;").split())


def _code(text: str) -> str:
    """Text of a program inside backticks of a table's cell."""
    return " ".join(text.replace("`", "'").replace("|", "\\|").split())
