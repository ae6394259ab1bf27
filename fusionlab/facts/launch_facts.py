"""The launches of a compiled program: the ledger, its totals by any views, and the launch sites."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.codegen.compile import Compiled
from fusionlab.device_code.kernel_rows import KernelRow, kernel_table
from fusionlab.facts.interface import Facts, require_code, table_lines
from fusionlab.hlo.program import Program
from fusionlab.hlo.stages import LEGEND
from fusionlab.ledger.launch_rows import LaunchRow, Totals, lower_bounds_words, totals
from fusionlab.ledger.ledger import LaunchCounts, Reading
from fusionlab.ledger.saved import LedgerRecord, ledger_record
from fusionlab.ledger.time.model import XLA, error_of, error_words
from fusionlab.ledger.views import coverage_words, default_views, is_staged, label, totals_by
from fusionlab.report.tables import UNKNOWN, Cell, Table, field, milliseconds, number, shown
from fusionlab.report.tables.control_flow import control_lines
from fusionlab.units import BYTES, FLOPS, TIMES, counted, time_words, unit_for

_GROUPS = 6
_GROUPS_OF_NOTEBOOK = 30
_SITES_OF_NOTEBOOK = 15
"""Groups in ``repr``; groups and launch sites in a notebook, as the command lists them."""


@dataclass(frozen=True, repr=False)
class LaunchFacts(Facts):
    """The launches of one program on one target, grouped ``by`` views.

    ``record`` has every launch site and copy, ``counts`` their totals; ``devices`` is 1 without a ``shard_map``, and
    figures are those of each device. ``on_gpu``: XLA's lists say which launches are in CUDA graphs. ``kernels`` are the
    facts of the code of launch sites by name, None unless asked for.
    """

    command = "launches"

    record: LedgerRecord
    counts: LaunchCounts
    by: tuple[str, ...]
    devices: int = 1
    on_gpu: bool = True
    source_notes: tuple[str, ...] = ()
    kernels: Mapping[str, KernelRow] | None = None

    @staticmethod
    def of(
        compiled: Compiled,
        program: Program | None,
        by: Sequence[str] = (),
        notes: Sequence[str] = (),
        *,
        kernels: bool = False,
    ) -> LaunchFacts:
        """The launches of ``compiled``; ``program`` is None for HLO text, whose memory is not known.

        ``by`` are views, which exist (``views.require_views``); without any, the first that says something. With
        ``kernels`` times are those of the kernels' code; InputError where there is none: for the CPU, and of HLO text.
        """
        if kernels:
            require_code(compiled)
        reading = Reading(compiled)
        record = ledger_record(compiled, reading, memory_known=program is not None)
        table = kernel_table(compiled, reading) if kernels else None
        if table is not None:
            record = dataclasses.replace(record, rows=table.launches)
        return LaunchFacts(
            record,
            reading.counts,
            tuple(by) or default_views(record.rows),
            devices=1 if program is None else program.devices,
            on_gpu=compiled.target.kind == "cuda",
            source_notes=tuple(notes),
            kernels=None if table is None else {row.name: row for row in table.rows},
        )

    @property
    def rows(self) -> tuple[LaunchRow, ...]:
        """One row per launch site, in XLA's order."""
        return self.record.rows

    @cached_property
    def totals(self) -> Totals:
        """The sums over all launches."""
        return totals(self.rows)

    @cached_property
    def groups(self) -> dict[tuple[str, ...], Totals]:
        """The sums per combination of the views ``by``, the slowest first."""
        return totals_by(self.rows, self.by)

    @property
    def dynamic_launches(self) -> int:
        """Kernel launches of one call, trips of loops multiplied; copies and memsets are none."""
        return self.totals.dynamic_launches

    @property
    def verdict(self) -> str:
        """Launches at one trip of loops of unknown count, copies, time, memory, and the group with most launches."""
        record, found = self.record, self.totals
        said = [counted(found.dynamic_launches, "launch", "launches")]
        said += [counted(self.counts.dynamic_copies, "copy", "copies")]
        run = [row for row in self.rows if row.dynamic_launches]
        error = "" if self.kernels is None else error_words(error_of(run))
        if found.model_us is not None:
            said.append(f"{time_words(found.model_us, at_least=found.is_lower_bound)}{error} (model)")
        said += [] if record.temp_bytes is None else [f"{size_words(record.temp_bytes)} of temp memory"]
        if loops := self.counts.unknown_trip_loops:
            said[0] += f" at one trip of {counted(loops, 'loop', 'loops')} of unknown trip count"
        line = f"{record.name} on {record.target}: {', '.join(said)}"
        most = max((group.dynamic_launches for group in self.groups.values()), default=0)
        keys = [key for key, group in self.groups.items() if group.dynamic_launches == most]
        if len(self.groups) < 2 or len(keys) > 1:
            return line
        return f"{line}; most in {' '.join(keys[0])} ({most:,} of {found.dynamic_launches:,})"

    @property
    def notes(self) -> tuple[str, ...]:
        """The origin of the figures, and what is not known of them."""
        return (*self._sources_of_figures, *self._graphs, *self.qualifications)

    @property
    def qualifications(self) -> tuple[str, ...]:
        """What is not known of the figures of this program, and what they are of."""
        return (*self._qualifications(), *self.source_notes, *self._notes_of_devices)

    @property
    def _notes_of_devices(self) -> tuple[str, ...]:
        return (f"of each of {self.devices} devices",) if self.devices > 1 else ()

    @property
    def unknown_cuda_graph_launches(self) -> int:
        """Launches of which XLA does not say whether a CUDA graph holds them; 0 on the CPU, which has none."""
        return sum(row.dynamic_launches for row in self.rows if self.on_gpu and row.in_cuda_graph is None)

    @property
    def _sources_of_figures(self) -> tuple[str, ...]:
        """Where launches, FLOPs, bytes and time come from."""
        found, counts = self.totals, self.counts
        by_model = "by XLA's cost model where it has one, else the target's roofline, plus 1 us per launch"
        if self.kernels is not None:
            by_model = (
                "by the code of kernels and the tiles of products, else the target's roofline (docs/time-model.md)"
            )
        time = "no time" if found.model_us is None else f"time {by_model}"
        return (
            f"launches: {self.record.launch_source}; "
            f"{counted(counts.dynamic_copies, 'copy or memset', 'copies and memsets')} beside them; "
            f"{coverage_words(self.rows)}; "
            f"{found.unmodelled_bytes / max(1, found.bytes):.1%} of bytes have no FLOP rule",
            f"model: FLOPs and bytes by fusionlab's rules, trips multiplied; {time}",
        )

    @property
    def _graphs(self) -> tuple[str, ...]:
        unknown = self.unknown_cuda_graph_launches
        said = f"whether a CUDA graph holds them is not known of {counted(unknown, 'launch', 'launches')}"
        return (said,) if unknown else ()

    def _qualifications(self) -> list[str]:
        found, lines = self.totals, list[str]()
        if self.on_gpu and found.tf32_flops:
            lines.append(self._tf32())
        by_xla = sum(row.dynamic_launches for row in self.rows if row.model_source == XLA)
        if self.kernels is not None and by_xla:
            lines.append(f"{counted(by_xla, 'launch has', 'launches have')} XLA's estimate of time, not their code's")
        if unmodelled := found.unmodelled_us_launches:
            lines.append(f"{counted(unmodelled, 'launch has', 'launches have')} no modelled time")
        if bounds := lower_bounds_words(self.rows):
            lines.append(bounds)
        return [*lines, *control_lines(self.record.control_flow)]

    def _tf32(self) -> str:
        """The part of the FLOPs that XLA lets a library compute in TF32."""
        found = self.totals
        sites = sum(row.dynamic_launches for row in self.rows if row.tf32_flops)
        share = "all" if found.tf32_flops == found.flops else f"{min(0.99, found.tf32_flops / found.flops):.0%}"
        return (
            f"TF32 on tensor cores: {counted(sites, 'launch', 'launches')} with {share} of the FLOPs "
            "(float32 at JAX's default precision; precision='highest' computes in float32)"
        )

    def legend(self, *, sites: bool) -> tuple[str, ...]:
        """What the letters of stages mean, where they are shown: in groups, or in a table of ``sites``."""
        return (LEGEND,) if is_staged(self.rows) and (sites or "stage" in self.by) else ()

    def lines(self) -> Sequence[str]:
        """The groups as the command prints them, the slowest first."""
        more = len(self.groups) - _GROUPS
        return [*table_lines(self.table(_GROUPS)), *([f"and {more} more groups"] if more > 0 else [])]

    def tables(self) -> Sequence[Table]:
        """Groups and the slowest launch sites."""
        return (self.table(_GROUPS_OF_NOTEBOOK), *([self.site_table(_SITES_OF_NOTEBOOK)] if self.rows else []))

    def table(self, most: int, title: str = "") -> Table:
        """The totals of at most ``most`` groups (0: all) and of all launches."""
        numbers = self._numbers()
        groups = [*list(self.groups.items())[: most or None], (("all",), self.totals)]
        body = [[" ".join(key), *(cell(group) for cell in numbers.values())] for key, group in groups]
        return Table(title, (" ".join(self.by), *numbers), body)

    def _numbers(self) -> dict[str, Cell]:
        """The columns of numbers, in units that fit the totals."""
        found = self.totals
        flop, byte, time = unit_for(found.flops, FLOPS), unit_for(found.bytes, BYTES), unit_for(found.model_us, TIMES)
        return {
            "static": number("static_launches"),
            "dynamic": number("dynamic_launches"),
            flop[0]: functools.partial(_flops_cell, name="flops", per=flop[1]),
            byte[0]: number("bytes", 3, byte[1]),
            "FLOP/byte": functools.partial(_flops_cell, name="intensity_flop_per_byte"),
            **self._time(f"model {time[0]}", time[1]),
        }

    def _time(self, label: str, per: float) -> dict[str, Cell]:
        """The column of modelled times; none where no launch has one (the CPU)."""
        return {} if self.totals.model_us is None else {label: functools.partial(time_cell, per=per)}

    def site_table(self, most: int) -> Table:
        """The ``most`` slowest launch sites with their origins; in XLA's order where none has a time."""
        rows = self.rows
        byte, time = unit_for(self.totals.bytes, BYTES), unit_for(self.totals.model_us, TIMES)
        slowest = sorted(rows, key=lambda row: -(row.model_us or 0.0))[:most]
        named = [name for name in ("scope", "op", "transform", "source") if any(getattr(row, name) for row in slowest)]
        places = ["stage", "role", "source"] if is_staged(rows) else named
        columns: dict[str, Cell] = {
            "launch": field("name"),
            "family": field("family"),
            **{place: functools.partial(label, view=place) for place in places if place == "stage"},
            **{place: field(place) for place in places if place != "stage"},
            "trips": field("trip_count"),
            byte[0]: number("bytes", 3, byte[1]),
            **self._time(*time),
            **self._of_kernels(),
        }
        timed = f"the {len(slowest)} slowest of {len(rows)} launch sites (model)"
        title = f"launch sites, {len(slowest)} of {len(rows)}" if self.totals.model_us is None else timed
        return Table.of(title, slowest, columns, words=2 + len(places))

    def _of_kernels(self) -> dict[str, Cell]:
        """The columns of the code of each site; ``-`` for library calls."""
        if self.kernels is None:
            return {}
        known = self.kernels
        columns: dict[str, Cell] = {
            "reads/need": lambda row: shown(row.reads_per_needed, 1),
            "sectors": lambda row: shown(row.loads.sectors_over_least, 1),
            "registers": lambda row: shown(row.resources.registers if row.resources else None),
        }

        def of_site(row: LaunchRow, cell: Cell) -> str:
            return cell(known[row.name]) if row.name in known else UNKNOWN

        return {label: functools.partial(of_site, cell=cell) for label, cell in columns.items()}

    def records(self) -> list[dict[str, Any]]:
        """A row per launch site, with every field of ``LaunchRow``; FLOPs, bytes and microseconds of all its runs."""
        return [row.to_json() for row in self.rows]

    def fields(self) -> dict[str, Any]:
        """The fields of ``launches --json``: a ledger that ``diff`` reads."""
        counts = self.counts
        return {
            **self.record.to_json(),
            "devices": self.devices,
            "notes": [*self.source_notes, *self._notes_of_devices],
            "totals": {
                **self.totals.to_json(),
                "dynamic_copies": counts.dynamic_copies,
                "dynamic_collectives": counts.dynamic_collectives,
                "unknown_trip_loops": counts.unknown_trip_loops,
                "conditionals": counts.conditionals,
                "unknown_cuda_graph_launches": self.unknown_cuda_graph_launches,
            },
            **({} if self.kernels is None else {"kernels": [one.to_json() for one in self.kernels.values()]}),
            "by": list(self.by),
            "groups": [
                {**dict(zip(self.by, key, strict=True)), **group.to_json()} for key, group in self.groups.items()
            ],
        }


def _flops_cell(found: Totals, name: str, per: float = 1) -> str:
    """A number made of FLOPs; ``-`` where none is known, ``>=`` before a sum that lacks some."""
    if found.unmodelled_bytes and not found.flops:
        return UNKNOWN
    cell = shown(getattr(found, name), 2, per)
    if not found.unmodelled_bytes:
        return cell
    return ">0" if cell.startswith("<") else f">={cell}"


def time_cell(found: Totals | LaunchRow, per: float) -> str:
    """The modelled time in units of ``per`` microseconds; ``>=`` before a sum that lacks some launches, and before a
    lower bound."""
    return milliseconds(found.model_us, incomplete=found.is_lower_bound, per=per)
