"""One program by several versions of the compiler: figures per version, what changed, and what accounts for it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.facts.interface import Facts, table_lines
from fusionlab.report.tables import UNKNOWN, Cell, Table, shown
from fusionlab.report.tables.changes import diff_lines, verdict
from fusionlab.units import BYTES, TIMES, counted, time_words, unit_for
from fusionlab.versions.causes import ALIKE, GONE, Cause
from fusionlab.versions.drift import Drift, VersionRow, VersionStep

WORDS = {
    "launches": "launches", "copies": "copies", "bytes": "bytes", "temp_bytes": "temp memory",
    "model_us": "time (model)", "cas_loops": "compare-and-swap loops",
}  # fmt: skip
_MOST_NAMED = 4
_OF_FUSIONS = ("launches", "bytes", "temp_bytes", "model_us")
"""Figures that change where XLA fuses less."""


@dataclass(frozen=True, repr=False)
class DriftFacts(Facts):
    """The versions of one program on one target; ``changes`` are the changes listed per step."""

    command = "drift"

    found: Drift
    changes: int = 4

    @property
    def verdict(self) -> str:
        """The first and the last version that compiled it, and the largest step between."""
        found = self.found
        where, known = f"{found.name} on {found.target}", found.compiled
        if not known:
            return f"{where}: none of {len(found.rows)} versions compiles it: {found.rows[-1].reason}"
        first, last = known[0], known[-1]
        if len(known) == 1:
            return f"{where}: {_launches(first)} with JAX {first.version}, the only version that compiles it"
        if all(step.is_same for step in found.steps):
            return f"{where}: the same in JAX {first.version} to {last.version}: {_launches(first)}"
        step = max(found.steps, key=_weight)
        if not _weight(step):
            kernels = counted(sum(len(one.changes.changes) for one in found.steps), "change", "changes")
            return (
                f"{where}: the same figures in JAX {first.version} to {last.version}: {_launches(first)}; "
                f"{kernels} among the kernels"
            )
        figure = _most_changed(step)
        most = f"; the largest step is {step.before.version} -> {step.after.version}"
        return (
            f"{where}: {_launches(first)} with JAX {first.version}, {last.figures['launches']:,.0f} with {last.version}"
            f"{most}: {_change(figure, step)}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What qualifies the figures."""
        counted = [row.version for row in self.found.compiled if row.record and "hlo" in row.record.launch_source]
        lines = [
            "one program text for all versions; no autotuning; bytes and time are one model, the target's roofline"
        ]
        if counted:
            lines.append(f"launches of {', '.join(counted)} are counted from its HLO: its thunk list has no names")
        if any(row.cas_loops is None for row in self.found.compiled):
            lines.append("- in `cas`: from JAX 0.11 on XLA writes kernel code on request: --kernels (slower)")
        return tuple(lines)

    def table(self) -> Table:
        """A row per version."""
        known = [row.record for row in self.found.compiled if row.record is not None]
        size, per = unit_for(max((one.temp_bytes or 0 for one in known), default=0), BYTES)
        moved, of = unit_for(max((one.bytes_accessed for one in known), default=0), BYTES)
        time, us = unit_for(max((one.model_us or 0.0 for one in known), default=0.0), TIMES)
        columns: dict[str, Cell] = {"JAX": lambda row: row.version}
        if failed := len(known) < len(self.found.rows):
            columns["not compiled"] = lambda row: row.reason
        return Table.of(
            "",
            self.found.rows,
            {
                **columns,
                "launches": lambda row: shown(row.figures.get("launches")),
                "copies": lambda row: shown(row.figures.get("copies")),
                f"{moved} (model)": lambda row: shown(row.figures.get("bytes"), 2, of),
                f"temp {size}": lambda row: shown(row.figures.get("temp_bytes"), 2, per),
                f"model {time}": lambda row: shown(row.figures.get("model_us"), 2, us),
                "cas": lambda row: shown(row.figures.get("cas_loops")),
                "compile s": lambda row: shown(row.compile_s, 1) if row.record else UNKNOWN,
            },
            words=1 + failed,
        )

    def step_lines(self, step: VersionStep) -> list[str]:
        """What changed in one step: its totals, its largest changes with their reasons."""
        changed = [] if step.changes.is_same else diff_lines(step.changes, self.changes)
        return [*changed, *_cas_lines(step)]

    def cause_lines(self, step: VersionStep) -> list[str]:
        """The cause of each figure that differs, and what was not looked for."""
        return [*(cause_words(one, step) for one in step.causes or ()), *filter(None, [step.cause_note])]

    def lines(self) -> Sequence[str]:
        """The table."""
        return table_lines(self.table())

    def tables(self) -> Sequence[Table]:
        """The table."""
        return (self.table(),)

    def records(self) -> list[dict[str, Any]]:
        """A row per version."""
        return [row.to_json() for row in self.found.rows]

    def fields(self) -> dict[str, Any]:
        """The fields of ``drift --json``."""
        return {
            "name": self.found.name,
            "target": self.found.target,
            "verdict": self.verdict,
            "rows": self.records(),
            "steps": [_step_json(step) for step in self.found.steps],
            "notes": list(self.notes),
        }


def step_title(step: VersionStep) -> str:
    """The verdict on one step."""
    return verdict(step.changes)


def cause_words(one: Cause, step: VersionStep) -> str:
    """The cause in a sentence."""
    gap = f"{WORDS[one.figure]} {_value(one.figure, one.older)} -> {_value(one.figure, one.newer)}"
    if not one.by:
        return f"cause of {gap}: none of {one.tried} passes and flags{_refused_more(one, step)}"
    rest = f" (or {', '.join(one.by[1:_MOST_NAMED])}{', ...' * (len(one.by) > _MOST_NAMED)})" if len(one.by) > 1 else ""
    named = f"{one.by[0]}{rest}"
    trial = "" if one.trial is None else _value(one.figure, one.trial)
    if one.how == ALIKE:
        return f"cause of {gap}: {named}; without it both versions have {trial}"
    if one.how == GONE:
        return f"cause of {gap}: {named} of JAX {step.before.version}; without it that version has {trial}, too"
    return (
        f"cause of {gap}: {named}; {'with' if '=' in one.by[0] else 'without'} it JAX {step.after.version} has {trial}"
    )


def _refused_more(one: Cause, step: VersionStep) -> str:
    """The reason that XLA's fusion pass gives most often for what it refuses on the newer side alone; "" for none, and
    for a figure that fusions do not decide."""
    if one.figure not in _OF_FUSIONS:
        return ""
    more = [(new - old, cause) for cause, old, new in step.changes.refused if new > old]
    if not more:
        return ""
    count, cause = max(more)
    return f"; XLA's fusion pass refuses {count} more than before: {cause}"


def _launches(row: VersionRow) -> str:
    count = row.figures["launches"] or 0
    return f"{count:,.0f} launch{'es' * (count != 1)}"


def _weight(step: VersionStep) -> float:
    return max((_share(step, name) for name in step.before.figures), default=0.0)


def _most_changed(step: VersionStep) -> str:
    return max(step.before.figures, key=lambda name: _share(step, name))


def _share(step: VersionStep, name: str) -> float:
    """The change of a figure as a share of the larger side."""
    old, new = step.before.figures[name], step.after.figures[name]
    if old is None or new is None or old == new:
        return 0.0
    return abs(new - old) / max(abs(old), abs(new))


def _change(name: str, step: VersionStep) -> str:
    old, new = step.before.figures[name], step.after.figures[name]
    return f"{WORDS[name]} {_value(name, old)} -> {_value(name, new)}"


def _value(name: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if name in ("bytes", "temp_bytes"):
        return size_words(value)
    return time_words(value) if name == "model_us" else f"{value:,.0f}"


def _cas_lines(step: VersionStep) -> list[str]:
    """The origins whose number of kernels with a loop of compare-and-swap differs: kernels' names change by version."""
    old, new = step.before.cas_loops, step.after.cas_loops
    if old is None or new is None:
        return []
    before, after = (Counter((one.op, one.source) for one in loops) for loops in (old, new))
    lines = []
    for origin in sorted({*before, *after}):
        loop = f"{origin[0]} at {origin[1] or 'an unknown line'}"
        if before[origin] and after[origin]:
            if before[origin] != after[origin]:
                lines.append(f"{loop}: kernels with a compare-and-swap loop {before[origin]} -> {after[origin]}")
            continue
        kernels = [one.kernel for one in (*old, *new) if (one.op, one.source) == origin]
        named = ", ".join([*kernels[:_MOST_NAMED], *["..."] * (len(kernels) > _MOST_NAMED)])
        lines.append(f"{named}: {loop} is {'now' if after[origin] else 'no longer'} a loop of compare-and-swap")
    return lines


def _step_json(step: VersionStep) -> dict[str, Any]:
    changes = step.changes.to_json()
    causes = None if step.causes is None else [dataclasses.asdict(one) for one in step.causes]
    return {
        "before": step.before.version,
        "after": step.after.version,
        **{name: changes[name] for name in ("same", "totals", "changes", "refusals", "summary")},
        "causes": causes,
        "cause_note": step.cause_note or None,
    }
