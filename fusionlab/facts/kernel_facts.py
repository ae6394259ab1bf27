"""The kernels of a compiled program: what their code takes and does, what is in excess, and where it comes from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.codegen.compile import Compiled
from fusionlab.device_code.annotated import annotated_ptx
from fusionlab.device_code.assembler import INSTALL, find_tool, sass_of, tool_version
from fusionlab.device_code.findings import KINDS, Findings, KernelFinding
from fusionlab.device_code.kernel_rows import KernelRow, kernel_table
from fusionlab.device_code.over_fusion import OverFusion, over_fusions
from fusionlab.errors import InputError, unknown
from fusionlab.facts.interface import Facts, require_code, table_lines
from fusionlab.ledger.launch_rows import LaunchRow, Totals, lower_bounds_words, totals
from fusionlab.ledger.roofline import distance_us, floor_us
from fusionlab.ledger.time.model import (
    XLA,
    Ceilings,
    ceilings_of,
    error_of,
    error_words,
    is_mostly_launching,
    pair_error_of,
)
from fusionlab.report.tables import UNKNOWN, Cell, Table, milliseconds, shown
from fusionlab.time_order import TimeOrder
from fusionlab.units import TIMES, counted, time_words, unit_for

_ROWS = 5
_NAMED = 5
_IN_NOTEBOOK = 15


@dataclass(frozen=True, repr=False)
class KernelFacts(Facts):
    """The kernels of one program on one target, those farthest from their floor first.

    ``rows`` have their facts and ``findings`` what of it is in excess, by HLO name; ``without_code`` are launches whose
    code XLA does not write: library calls. ``over_fusions`` are kernels that would take less in two parts.
    ``program_floor_us`` is the least that ``ceilings`` allow for the program: its arguments read once, its results
    written once, all FLOPs.
    """

    command = "kernels"

    name: str
    target: str
    rows: tuple[KernelRow, ...]
    findings: Mapping[str, tuple[KernelFinding, ...]]
    without_code: tuple[LaunchRow, ...]
    over_fusions: tuple[OverFusion, ...] = ()
    ceilings: Ceilings | None = None
    program_floor_us: float | None = None
    assembler: str = ""
    source_notes: tuple[str, ...] = field(default=())

    @staticmethod
    def of(compiled: Compiled, notes: Sequence[str] = ()) -> KernelFacts:
        """The kernels of ``compiled``. InputError where there is no code: for the CPU, and of HLO text."""
        require_code(compiled)
        table, found = kernel_table(compiled), Findings(compiled.module)
        findings = {row.name: found.of(row) for row in table.rows}
        tool, ceilings = find_tool("ptxas"), ceilings_of(compiled.target)
        return KernelFacts(
            compiled.name,
            compiled.target.name,
            tuple(sorted(table.rows, key=lambda row: -distance_us(row.launch, ceilings))),
            findings,
            table.without_code,
            over_fusions(compiled.target, table.rows, found),
            ceilings,
            _floor_of_program(compiled, (*(row.launch for row in table.rows), *table.without_code), ceilings),
            "" if tool is None else f"ptxas {tool_version(tool)}".rstrip(),
            tuple(notes),
        )

    @property
    def launches(self) -> tuple[LaunchRow, ...]:
        """All launches, those of libraries last."""
        return (*(row.launch for row in self.rows), *self.without_code)

    @property
    def model_us(self) -> float | None:
        """The modelled time of all launches; None where one has none."""
        times = [one.model_us for one in self.launches]
        return None if None in times else sum(one for one in times if one is not None)

    @cached_property
    def _totals(self) -> Totals:
        """The sums over all launches."""
        return totals(self.launches)

    def time_words(self, us: float) -> str:
        """The time of all launches; ``>=`` where that of one is a lower bound."""
        return time_words(us, at_least=self._totals.is_lower_bound)

    def floor_us(self, launch: LaunchRow) -> float | None:
        """The least that the roofs allow for all runs of a launch (``ledger.roofline``)."""
        return floor_us(launch, self.ceilings)

    @cached_property
    def _floors_us(self) -> float | None:
        """The sum of ``floor_us`` over all launches."""
        if self.ceilings is None:
            return None
        return sum(self.floor_us(one) or 0.0 for one in self.launches)

    @cached_property
    def distances(self) -> tuple[tuple[LaunchRow, float], ...]:
        """Microseconds of every launch beyond its floor, the farthest first; those of libraries too."""
        found = [(one, distance_us(one, self.ceilings)) for one in self.launches if one.model_us is not None]
        return tuple(sorted(found, key=lambda pair: -pair[1]))

    @cached_property
    def distance_us(self) -> float:
        """The time of all launches beyond their floors."""
        return sum(beyond for _, beyond in self.distances)

    @cached_property
    def by_kind(self) -> dict[str, tuple[KernelRow, ...]]:
        """The kernels with a finding of each kind that there is, in the order of ``KINDS``."""
        return {
            kind: found
            for kind in KINDS
            if (found := tuple(row for row in self.rows if any(one.kind == kind for one in self.findings[row.name])))
        }

    @property
    def verdict(self) -> str:
        """The kernels with something in excess, and the one farthest from its floor with the reason."""
        where, found = f"{self.name} on {self.target}", [row for row in self.rows if self.findings[row.name]]
        said = f"{where}: {counted(len(self.rows), 'kernel', 'kernels')}"
        if not found:
            return f"{said}, nothing in excess"
        worst = found[0]
        finding = self.findings[worst.name][0]
        place = f", from {finding.place}" if finding.place else ""
        return f"{said}, {len(found)} with something in excess; worst {_titled(worst)}: {finding.words}{place}"

    @property
    def model_error(self) -> float | None:
        """The tested error of ``model_us``, as a share; None where estimates of XLA's or lower bounds are in it,
        and where most of it is launching."""
        return error_of(one for one in self.launches if one.dynamic_launches)

    @property
    def limit(self) -> str:
        """The time by the model, the floor of the kernels, and the kernels that hold half of the distance."""
        if self.model_us is None or self._floors_us is None:
            return "no modelled time: the rates of this target are not known"
        held, names = 0.0, list[str]()
        for one, beyond in self.distances:
            if held >= self.distance_us / 2:
                break
            held += beyond
            names.append(one.name)
        most = ", ".join(names[:_NAMED]) + ", ..." * (len(names) > _NAMED)
        said = f"{self.time_words(self.model_us)}{error_words(self.model_error)} by model; "
        said += f"{time_words(self._floors_us)} if every kernel reached memory's or arithmetic's rate"
        return f"{said}; half of the distance: {counted(len(names), 'kernel', 'kernels')} ({most})" if names else said

    def with_other(self, other: KernelFacts) -> TimeOrder | None:
        """The time of ``other`` beside this one's, the same kernels at other rates; None without one of them."""
        errors = (pair_error_of(row for row in one.launches if row.dynamic_launches) for one in (self, other))
        bounds = self._totals.is_lower_bound and other._totals.is_lower_bound
        return TimeOrder.of(other.model_us, self.model_us, *errors, are_bounds=bounds)

    @property
    def over_fusion_verdict(self) -> str:
        """How many kernels XLA fused at a loss, and what that costs."""
        where, found = f"{self.name} on {self.target}", self.over_fusions
        if not found:
            return f"{where}: XLA fused no sum or product at a loss"
        lost = time_words(sum(one.lost_us for one in found))
        whole = "" if self.model_us is None else f" of {self.time_words(self.model_us)}"
        return f"{where}: {counted(len(found), 'kernel', 'kernels')} fused at a loss of at most {lost}{whole} (model)"

    @property
    def over_fusion_lines(self) -> tuple[str, ...]:
        """The kernels that would take less in two parts, a line each, the costliest first."""
        return tuple(map(over_fusion_words, self.over_fusions))

    @property
    def _origin_of_times(self) -> str:
        if any(one.model_source == XLA for one in self.launches):
            return "XLA's estimate where the list of launches does not say how many threads a kernel has"
        said = "by the code of kernels and the tiles of products, fitted on an H100"
        if self.model_error is not None:
            said += f",{error_words(self.model_error)} for a program"
        elif is_mostly_launching(self.launches):
            said += "; most of it is launching, whose error is not known"
        return f"{said} (docs/time-model.md)"

    @property
    def notes(self) -> tuple[str, ...]:
        """The source of the figures, and what is not known."""
        lines = [
            "reads, sectors and strides: index arithmetic of the PTX executed for up to 128 warps of each kernel",
            f"time: {self._origin_of_times}; floor: operands once, results once, FLOPs",
        ]
        if self.assembler:
            lines.append(f"registers and spills: {self.assembler}")
        else:
            lines.append(
                f"registers and spills are not known, and occupancy is an upper bound, without ptxas: {INSTALL}"
            )
        if bounds := lower_bounds_words(self.launches):
            lines.append(bounds)
        if self.without_code:
            lines.append(f"{counted(len(self.without_code), 'launch', 'launches')} without PTX (library calls)")
        if partly := [row.name for row in self.rows if not row.complete]:
            lines.append(f"counts are lower bounds, because loops are long: {', '.join(partly)}")
        if guarded := [row.name for row in self.rows if row.data_branches]:
            lines.append(
                f"branches on data count as not taken in {', '.join(guarded[:6])}{', ...' * (len(guarded) > 6)}"
            )
        return (*lines, *self.source_notes)

    def lines(self) -> Sequence[str]:
        """The launches that are farthest from their floor."""
        return table_lines(self.table(_ROWS))

    def tables(self) -> Sequence[Table]:
        """The launches that are farthest from their floor."""
        return (self.table(_IN_NOTEBOOK),)

    def table(self, most: int = 0, title: str = "") -> Table:
        """At most ``most`` launches (0: all), those farthest from their floor first, with the worst finding of each and
        the figures of its code; those of libraries have neither."""
        launches = sorted(self.launches, key=lambda one: -distance_us(one, self.ceilings))
        time, per = unit_for(max((one.model_us or 0.0 for one in launches), default=0.0), TIMES)
        columns: dict[str, Cell] = {
            "kernel": lambda one: one.name,
            "in excess": lambda one: next((found.words for found in self._findings_of(one)), UNKNOWN),
            "from": self._place,
            f"model {time}": lambda one: milliseconds(one.model_us, incomplete=one.is_lower_bound, per=per),
            "floor": lambda one: milliseconds(self.floor_us(one), per=per),
            "of distance": lambda one: shown(self._share_of_distance(one), spec=".0%"),
            "reads/need": self._of_code(lambda row: shown(row.reads_per_needed, 1)),
            "sectors": self._of_code(lambda row: shown(row.loads.sectors_over_least, 1)),
            "registers": self._of_code(lambda row: shown(row.resources.registers if row.resources else None)),
            "spills": self._of_code(lambda row: shown(row.spill_bytes)),
            "occupancy": self._of_code(lambda row: shown(row.occupancy.share if row.occupancy else None, spec=".0%")),
        }
        return Table.of(title, launches[: most or None], columns, words=3)

    @cached_property
    def _by_launch(self) -> Mapping[int, KernelRow]:
        return {id(row.launch): row for row in self.rows}

    def _of_code(self, cell: Callable[[KernelRow], str]) -> Cell:
        """A cell of the kernel of a launch; ``-`` for a library call."""
        return lambda one: cell(row) if (row := self._by_launch.get(id(one))) is not None else UNKNOWN

    def _findings_of(self, launch: LaunchRow) -> tuple[KernelFinding, ...]:
        row = self._by_launch.get(id(launch))
        return () if row is None else self.findings[row.name]

    def _place(self, launch: LaunchRow) -> str:
        """The op and line of the worst finding, else those of the launch."""
        found = next((one.place for one in self._findings_of(launch)), "")
        return found or " at ".join(filter(None, (launch.op, launch.source))) or UNKNOWN

    def _share_of_distance(self, launch: LaunchRow) -> float | None:
        """The part of ``distance_us`` that a launch holds."""
        if launch.model_us is None or not self.distance_us:
            return None
        return distance_us(launch, self.ceilings) / self.distance_us

    def kernel(self, name: str) -> KernelRow:
        """The kernel of that HLO or PTX name. InputError with the nearest names."""
        found = next((row for row in self.rows if name in (row.name, row.kernel)), None)
        if found is not None:
            return found
        if any(row.name == name for row in self.without_code):
            raise InputError(f"{name} is a library call: XLA writes no code for it")
        raise unknown("kernel", name, sorted({row.name for row in self.rows}))

    def code(self, name: str) -> str:
        """The PTX of a kernel with its memory requests beside it. InputError for an unknown kernel."""
        return annotated_ptx(self.kernel(name))

    def sass(self, name: str) -> str | None:
        """The machine code of a kernel; None without ``ptxas`` and ``nvdisasm``. InputError for an unknown kernel."""
        return sass_of(self.kernel(name).code)

    def records(self) -> list[dict[str, Any]]:
        """A row per kernel, with every field of ``KernelRow`` and its findings."""
        return [self.record(row) for row in self.rows]

    def record(self, row: KernelRow) -> dict[str, Any]:
        """One kernel, ready for ``json.dumps``."""
        return {
            **row.to_json(),
            "floor_us": self.floor_us(row.launch),
            "findings": [dataclasses.asdict(one) for one in self.findings[row.name]],
        }

    def fields(self) -> dict[str, Any]:
        """The fields of ``kernels --json``."""
        return {
            "name": self.name,
            "target": self.target,
            "verdict": self.verdict,
            "assembler": self.assembler,
            "model_us": self.model_us,
            "model_error": self.model_error,
            "at_least_us_launches": self._totals.at_least_us_launches,
            "floor_us": self._floors_us,
            "program_floor_us": self.program_floor_us,
            "distances": [{"name": one.name, "distance_us": beyond} for one, beyond in self.distances],
            "over_fusions": [one.to_json() for one in self.over_fusions],
            "kernels": self.records(),
            "by_kind": {kind: [row.name for row in rows] for kind, rows in self.by_kind.items()},
            "without_code": [row.name for row in self.without_code],
            "notes": list(self.notes),
        }


def _floor_of_program(compiled: Compiled, launches: Sequence[LaunchRow], ceilings: Ceilings | None) -> float | None:
    if ceilings is None:
        return None
    moved = compiled.memory.argument_bytes + compiled.memory.output_bytes
    return ceilings.least_us(sum(one.flops for one in launches), moved, sum(one.tf32_flops for one in launches))


def what_if_words(now: KernelFacts, then: KernelFacts) -> str:
    """The time of the same kernels at other rates, and whether that is less."""
    found = now.with_other(then)
    if found is None:
        return f"{then.target}: no modelled time"
    said = f"{then.target}, the same kernels: {then.time_words(found.us)}{error_words(then.model_error)} by model"
    decided = f"{found.order}: {found.us / found.other_us:.2f} of {now.time_words(found.other_us)}"
    return f"{said}, {found.undecided or decided}"


def over_fusion_words(one: OverFusion) -> str:
    """What a kernel computes several times, what it takes, and what two kernels would."""
    first, more = one.parts[0], len(one.parts) - 1
    others = f" and {counted(more, 'other', 'others')}" if more else ""
    now, apart = time_words(one.us), time_words(one.rest_us + one.parts_us)
    said = f"{first.place}{others} computed {first.times:.1f} times for each value"
    return f"{one.row.name}: {said}; {now} by model, apart at least {apart}"


def _titled(row: KernelRow) -> str:
    time = "" if row.launch.model_us is None else f" ({time_words(row.launch.model_us)} by model)"
    return f"{row.name}{time}"


def figures(row: KernelRow) -> list[list[str]]:
    """The facts of one kernel as names and values, for people."""
    found = [
        ["grid and block", f"{' x '.join(map(str, row.grid))} blocks of {row.threads_per_block:,} threads"],
        ["registers", UNKNOWN if row.resources is None else f"{row.resources.registers} a thread"],
        ["spills", UNKNOWN if row.spill_bytes is None else f"{row.spill_bytes:,} bytes a thread"],
        ["shared memory", f"{row.shared_bytes:,} bytes a block, {row.shared.conflict_ways:.1f} turns an access"],
        *_of_occupancy(row),
        ["loads a thread", _widths(row.loads_by_bytes)],
        ["stores a thread", _widths(row.stores_by_bytes)],
        ["reads", f"{size_words(row.read_bytes)} asked for, {size_words(row.needed_bytes)} needed"],
        ["writes", size_words(row.written_bytes)],
        [
            "sectors",
            f"reads {row.loads.sectors_over_least:.1f}, writes {row.stores.sectors_over_least:.1f} of the least",
        ],
        ["instructions", f"{row.instructions_per_thread:,.0f} a thread"],
        ["special functions", f"{row.special_functions / max(1, row.threads):.1f} a thread"],
    ]
    found += [["tensor cores", f"{row.tensor_instructions:,} instructions"]] if row.tensor_instructions else []
    for one in row.atomics:
        found.append(["atomics", f"{one.operation} of {one.type}, scope {one.scope}, {one.space}: {one.executed:,}"])
    for each in row.operands:
        stride = "" if each.stride_bytes is None else f", stride {each.stride_bytes} bytes"
        said = f"{size_words(each.read_bytes)} asked for, {size_words(each.needed_bytes)} needed{stride}"
        found.append([f"reads of %{each.name}", said])
    return found


def _of_occupancy(row: KernelRow) -> list[list[str]]:
    held = row.occupancy
    if held is None:
        return [["occupancy", UNKNOWN]]
    bound = "" if row.resources else "at most "
    return [
        ["occupancy", f"{bound}{held.share:.0%}: {held.blocks_per_sm} blocks an SM, limited by {held.limit}"],
        ["waves", f"{held.waves:.2f}"],
    ]


def _widths(counts: Mapping[int, float]) -> str:
    return ", ".join(f"{count:.3g} of {width} bytes" for width, count in counts.items()) or "none"
