"""The kernels of a compiled program: what their code takes and does, what is in excess, and where it comes from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.codegen.compile import Compiled
from fusionlab.device_code.annotated import annotated_ptx
from fusionlab.device_code.assembler import INSTALL, find_tool, sass_of, tool_version
from fusionlab.device_code.findings import KINDS, Findings, KernelFinding, weight
from fusionlab.device_code.kernel_rows import KernelRow, kernel_table
from fusionlab.errors import InputError, unknown
from fusionlab.facts.interface import Facts, table_lines
from fusionlab.ledger.launch_rows import LaunchRow
from fusionlab.report.tables import UNKNOWN, Cell, Table, milliseconds, shown
from fusionlab.units import TIMES, counted, time_words, unit_for

_ROWS = 5
_IN_NOTEBOOK = 15


@dataclass(frozen=True, repr=False)
class KernelFacts(Facts):
    """The kernels of one program on one target, those with the most in excess first.

    ``rows`` have their facts and ``findings`` what of it is in excess, by HLO name; ``without_code`` are launches whose
    code XLA does not write: library calls.
    """

    command = "kernels"

    name: str
    target: str
    rows: tuple[KernelRow, ...]
    findings: Mapping[str, tuple[KernelFinding, ...]]
    without_code: tuple[LaunchRow, ...]
    assembler: str = ""
    source_notes: tuple[str, ...] = field(default=())

    @staticmethod
    def of(compiled: Compiled, notes: Sequence[str] = ()) -> KernelFacts:
        """The kernels of ``compiled``. InputError where there is no PTX: for the CPU, and of HLO text."""
        if not compiled.ptx:
            raise no_code(compiled.name, compiled.target.name)
        table, found = kernel_table(compiled), Findings(compiled.module)
        findings = {row.name: found.of(row) for row in table.rows}
        tool = find_tool("ptxas")
        return KernelFacts(
            compiled.name,
            compiled.target.name,
            tuple(sorted(table.rows, key=lambda row: (-weight(row, findings[row.name]), -(row.launch.model_us or 0)))),
            findings,
            table.without_code,
            "" if tool is None else f"ptxas {tool_version(tool)}".rstrip(),
            tuple(notes),
        )

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
        """The kernels with something in excess, and the worst of them with the reason."""
        where, found = f"{self.name} on {self.target}", [row for row in self.rows if self.findings[row.name]]
        said = f"{where}: {counted(len(self.rows), 'kernel', 'kernels')}"
        if not found:
            return f"{said}, nothing in excess"
        worst = found[0]
        finding = self.findings[worst.name][0]
        place = f", from {finding.place}" if finding.place else ""
        return f"{said}, {len(found)} with something in excess; worst {_titled(worst)}: {finding.words}{place}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The source of the figures, and what is not known."""
        lines = [
            "reads, sectors and strides: index arithmetic of the PTX executed for up to 128 warps of each kernel; "
            "time: XLA's model"
        ]
        if self.assembler:
            lines.append(f"registers and spills: {self.assembler}")
        else:
            lines.append(
                f"registers and spills are not known, and occupancy is an upper bound, without ptxas: {INSTALL}"
            )
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
        """The kernels with the most in excess."""
        return table_lines(self.table(_ROWS))

    def tables(self) -> Sequence[Table]:
        """The kernels with the most in excess."""
        return (self.table(_IN_NOTEBOOK),)

    def table(self, most: int = 0, title: str = "") -> Table:
        """At most ``most`` kernels (0: all) with their worst finding, its origin, and the figures that tell most."""
        rows = self.rows[: most or None]
        time, per = unit_for(max((row.launch.model_us or 0.0 for row in self.rows), default=0.0), TIMES)
        columns: dict[str, Cell] = {
            "kernel": lambda row: row.name,
            "in excess": lambda row: "; ".join(one.words for one in self.findings[row.name][:1]) or UNKNOWN,
            "from": lambda row: (self.findings[row.name][0].place if self.findings[row.name] else "") or UNKNOWN,
            f"model {time}": lambda row: milliseconds(row.launch.model_us, per=per),
            "reads/need": lambda row: shown(row.reads_per_needed, 1),
            "sectors": lambda row: shown(row.loads.sectors_over_least, 1),
            "registers": lambda row: shown(row.resources.registers if row.resources else None),
            "spills": lambda row: shown(row.spill_bytes),
            "occupancy": lambda row: shown(row.occupancy.share if row.occupancy else None, spec=".0%"),
        }
        return Table.of(title, rows, columns, words=3)

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
        return {**row.to_json(), "findings": [dataclasses.asdict(one) for one in self.findings[row.name]]}

    def fields(self) -> dict[str, Any]:
        """The fields of ``kernels --json``."""
        return {
            "name": self.name,
            "target": self.target,
            "verdict": self.verdict,
            "assembler": self.assembler,
            "kernels": self.records(),
            "by_kind": {kind: [row.name for row in rows] for kind, rows in self.by_kind.items()},
            "without_code": [row.name for row in self.without_code],
            "notes": list(self.notes),
        }


def _titled(row: KernelRow) -> str:
    time = "" if row.launch.model_us is None else f" ({time_words(row.launch.model_us)} by model)"
    return f"{row.name}{time}"


def no_code(name: str, target: str) -> InputError:
    """The error where XLA wrote no code of kernels."""
    return InputError(
        f"{name} on {target}: there is no kernel code here; name a GPU target, and a function, a model or a StableHLO "
        "file"
    )


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
