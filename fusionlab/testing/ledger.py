"""The ledger of a function on a target, which may be absent, and its text form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fusionlab import quiet_start
from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import Compiled, compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.program import Program
from fusionlab.hlo.stages import frames
from fusionlab.ledger.dataflow import members
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows, totals_by
from fusionlab.ledger.ledger import LaunchCounts, LaunchSite, count_launches, launches
from fusionlab.testing.lowered import program_of

_MOST_ROWS = 40
_made: list[Ledger] = []


@dataclass(frozen=True, repr=False)
class Ledger:
    """The launches of a compiled function. ``rows`` are its launch sites in XLA's order, copies apart.

    ``counts`` has static and dynamic launches and copies (trips of loops multiplied, those of unknown count as one).
    """

    program: Program
    compiled: Compiled

    def __repr__(self) -> str:
        return f"<ledger of {self.program.name} on {self.compiled.target.name}>"

    @property
    def dynamic_launches(self) -> int:
        """Kernel launches of one call, trips of loops multiplied; copies and memsets are none."""
        return self.counts.dynamic_launches

    @property
    def temp_bytes(self) -> int:
        """XLA's temporary memory, bytes."""
        return self.compiled.memory.temp_bytes

    @cached_property
    def counts(self) -> LaunchCounts:
        """The totals."""
        return count_launches(self.compiled)

    @cached_property
    def rows(self) -> tuple[LaunchRow, ...]:
        """One row per launch site."""
        return launch_rows(self.compiled)

    @cached_property
    def sites(self) -> tuple[LaunchSite, ...]:
        """Every launch and copy."""
        return launches(self.compiled)

    @cached_property
    def scopes(self) -> dict[str, frozenset[str]]:
        """By launch name, the names of every ``jax.named_scope`` and function that contributes to that launch."""
        found = {}
        for site in self.sites:
            computation = self.compiled.module.computations.get(site.computation)
            one = computation.by_name.get(site.hlo_name) if computation else None
            names = [member.op_name for member in members(self.compiled.module, one)] if one else []
            found[site.hlo_name] = frozenset(frame.name for name in names for frame in frames(name))
        return found

    def text(self) -> str:
        """The ledger as a table: totals, launches by family, and the launch sites that run most often."""
        counts = self.counts
        lines = [
            f"{self.program.name} on {self.compiled.target.name}: {counts.dynamic_launches:,} launches of "
            f"{counts.static_launches:,} sites, {counts.dynamic_copies:,} copies and memsets, "
            f"{self.temp_bytes / 2**20:,.1f} MiB temp (launches: {counts.launch_source})"
        ]
        if counts.unknown_trip_loops:
            lines.append(f"loops of unknown trip count, taken as one trip: {counts.unknown_trip_loops}")
        groups = totals_by(self.rows, ["family"]).items()
        lines += [f"{total.dynamic_launches:>8,}  {family}" for (family,), total in groups]
        most = sorted(self.rows, key=lambda row: -row.dynamic_launches)
        lines += ["launch sites:", *map(line_of, most[:_MOST_ROWS])]
        if len(most) > _MOST_ROWS:
            lines.append(f"          and {len(most) - _MOST_ROWS} more")
        return "\n".join(lines)


def ledger(fn: Any, args: Sequence[Any] = (), *, target: str = "a100") -> Ledger:
    """Lower and compile ``fn`` for ``target`` and count its launches; nothing runs, and no GPU is needed.

    ``fn`` is a function (jitted or not) of ``args``, which may be ``jax.ShapeDtypeStruct``; or a ``jax.stages.Traced``,
    a Workload or a Program, without ``args``. ``target`` is ``a100``, ``a5000``, ``h200``, ``cpu``, ``gpu`` (the
    attached one) or a spec file. InputError for an unknown target, or where JAX's CUDA plugin is missing; CompileError
    where XLA fails.
    """
    quiet_start.load_jax()
    chosen = load_target(target)
    program = program_of(fn, args, chosen.kind)
    made = Ledger(program, compile_program(program, chosen, cache=default_cache()))
    _made.append(made)
    return made


def take_made() -> list[Ledger]:
    """The ledgers made since the last call; the pytest plugin prints them."""
    taken = list(_made)
    _made.clear()
    return taken


def line_of(row: LaunchRow) -> str:
    """One launch site as a line: its count, name and origin."""
    loop = f" in {row.loop}" if row.loop else ""
    place = ", ".join(filter(None, (row.stage and f"stage {row.stage}", row.role, row.source)))
    return f"{row.dynamic_launches:>8,}  {row.name} ({row.family}{', ' + place if place else ''}){loop}"
