"""The ledger as a table: one row per launch site with its origin, kind and costs; totals. Groups are in ``views``.

Rows sum to XLA's launch counts. ``flops``, ``bytes`` and ``model_us`` of a row are those of all its runs (trips
multiplied). Launches are XLA's; FLOPs and bytes are fusionlab's rules; time is a model (``time.model``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.kernel_cost import HEAVY_FAMILIES, Work, family_of_kernel, work_of
from fusionlab.hlo.optimised.parser import HloModule, Instruction
from fusionlab.hlo.optimised.products import MatrixProduct, product_of
from fusionlab.ledger.dataflow import members
from fusionlab.ledger.ledger import LaunchSite, Reading
from fusionlab.ledger.origins import Origin, Origins
from fusionlab.ledger.thunks import captured_thunks
from fusionlab.ledger.time.model import AT_LEAST, Ceilings, TimeModel, time_model
from fusionlab.units import counted

_MOST_NAMED = 4


@dataclass(frozen=True)
class LaunchRow:
    """One launch site.

    ``op_name`` is its name stack, of which ``scope`` is the path of scopes, ``op`` the primitive and ``transform`` the
    differentiation (``hlo.name_stacks``). ``source`` is the innermost line of the user, ``caller`` the innermost one
    outside of installed packages. ``scopes`` and ``sources`` are those of everything fused into it, the heaviest first,
    and ``parts`` its ops as ``scope/op (source)``.
    ``stage_share`` is the share of the fused ops that agrees with this origin; ``attributed_by`` is where it comes from
    (``origins.BY``: ``members``, ``readers`` of an op that XLA introduced; "" for unknown). ``loop`` names the
    loops around it, outermost first; ``in_cuda_graph`` is None where XLA does not report it (the CPU). ``unmodelled``
    names its ops without a FLOP rule. ``model_us`` is None without an estimate; ``model_source`` is the origin of the
    estimate (``time.model``: ``xla``, ``product``, ``code``, ``roofline``, ``at-least`` for a roofline that is only a
    lower bound, ``measured`` for the roofline of measured ceilings). ``tf32_flops`` is the part of ``flops`` that the
    library may compute in TF32.
    """

    phase: str
    stage: str
    role: str
    family: str
    name: str
    kind: str
    loop: str
    trip_count: int
    static_launches: int
    dynamic_launches: int
    in_cuda_graph: bool | None
    flops: int
    bytes: int
    model_us: float | None
    model_source: str
    stage_share: float
    op_name: str
    source: str
    attributed_by: str
    unmodelled: tuple[str, ...] = ()
    tf32_flops: int = 0
    scope: str = ""
    op: str = ""
    transform: str = ""
    caller: str = ""
    scopes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOPs per byte; 0 when no bytes move."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def is_lower_bound(self) -> bool:
        """True if ``model_us`` is the least that a library's call takes."""
        return self.model_source == AT_LEAST

    @property
    def is_staged(self) -> bool:
        """True if phase or stage is known."""
        return bool(self.phase or self.stage)

    @property
    def is_attributed(self) -> bool:
        """True if phase, stage and role are known; a phase without stages (potential, mcmc) needs none."""
        return bool(self.phase and self.role and (self.stage or self.phase not in ("laplacian", "wavefunction")))

    def to_json(self) -> dict[str, Any]:
        """The fields by name, with the intensity, ready for ``json.dumps``."""
        return {**dataclasses.asdict(self), "intensity_flop_per_byte": self.intensity_flop_per_byte}


@dataclass(frozen=True)
class Totals:
    """Sums over rows.

    ``model_us`` is None when no row has a time, and excludes ``unmodelled_us_launches`` when some have none; of
    ``at_least_us_launches`` it has a lower bound. ``attributed_launches`` carry phase, stage and role, some of them
    those of their readers; ``scoped_launches`` carry a scope and ``sourced_launches`` a source line.
    ``unmodelled_bytes`` are bytes of launches with an op without a FLOP rule.
    """

    static_launches: int = 0
    dynamic_launches: int = 0
    flops: int = 0
    bytes: int = 0
    model_us: float | None = None
    attributed_launches: int = 0
    attributed_by_readers_launches: int = 0
    unmodelled_bytes: int = 0
    unmodelled_us_launches: int = 0
    tf32_flops: int = 0
    scoped_launches: int = 0
    sourced_launches: int = 0
    at_least_us_launches: int = 0

    def __add__(self, other: Totals) -> Totals:
        counts = (one.name for one in dataclasses.fields(self) if one.name != "model_us")
        sums = {name: getattr(self, name) + getattr(other, name) for name in counts}
        times = [one.model_us for one in (self, other) if one.model_us is not None]
        return Totals(**sums, model_us=sum(times) if times else None)

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOPs per byte; 0 when no bytes move."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def is_lower_bound(self) -> bool:
        """True if ``model_us`` lacks some launches, or has a lower bound of some."""
        return self.unmodelled_us_launches > 0 or self.at_least_us_launches > 0

    def to_json(self) -> dict[str, Any]:
        """The fields by name, with the intensity."""
        return {**dataclasses.asdict(self), "intensity_flop_per_byte": self.intensity_flop_per_byte}


def launch_rows(
    compiled: Compiled, measured: Ceilings | None = None, reading: Reading | None = None, *, tiles: bool = False
) -> tuple[LaunchRow, ...]:
    """Every launch site of ``compiled`` in XLA's order, those that never run included; copies are no launches.

    With ``measured`` ceilings, times are their roofline; with ``tiles`` those of products are of their tiles. A
    ``reading`` of ``compiled`` saves another one.
    """
    graphs = captured_thunks(compiled)
    facts = functools.cache(functools.partial(_facts, compiled.module, Origins(compiled.module)))
    model = time_model(compiled, measured, tiles=tiles)
    return tuple(
        _row(site, facts(site.computation, site.hlo_name), model, graphs.get(site.thunk_id))
        for site in (Reading(compiled) if reading is None else reading).launches
        if not site.is_copy
    )


def lower_bounds_words(rows: Iterable[LaunchRow]) -> str:
    """The calls of which only a lower bound of the time is known, by op; "" without any."""
    found = [row for row in rows if row.is_lower_bound and row.dynamic_launches]
    ops = list(dict.fromkeys(row.op for row in found))
    named = ", ".join([*ops[:_MOST_NAMED], *["..."] * (len(ops) > _MOST_NAMED)])
    counts = counted(sum(row.dynamic_launches for row in found), "launch", "launches")
    return f"time of {counts} ({named}) is at least the roofline's: there is no model of it" if found else ""


def totals(rows: Iterable[LaunchRow]) -> Totals:
    """The sums over ``rows``."""
    return sum((totals_of(row) for row in rows), Totals())


@dataclass(frozen=True)
class _Facts:
    instruction: Instruction | None = None
    work: Work = field(default_factory=Work)
    origin: Origin = field(default_factory=Origin)
    family: str = "unknown"
    product: MatrixProduct | None = None


def _facts(module: HloModule, origins: Origins, computation_name: str, name: str) -> _Facts:
    if (place := module.find(computation_name, name)) is None:
        return _Facts(work=Work(0, ("no HLO instruction",)))
    computation, one = place
    work = work_of(module, computation, one)
    product = product_of(module, computation, one)
    return _Facts(one, work, origins.of(computation, one), _family(module, one, work), product)


def _family(module: HloModule, one: Instruction, work: Work) -> str:
    """The family by name; of a fusion without one that of a sort, product or the like inside.

    A fusion that XLA named after data movement but that computes is elementwise.
    """
    family = family_of_kernel(one.name, one.opcode, one.custom_call_target)
    if one.is_fusion and family in ("layout", "constant", "unknown"):
        inside = {family_of_kernel(member.name, member.opcode) for member in members(module, one)}
        if family == "unknown" and (heavy := next((name for name in HEAVY_FAMILIES if name in inside), "")):
            return heavy
        if work.flops:
            return "elementwise"
        if family == "unknown":
            return next((name for name in ("elementwise", "gather-scatter", "layout") if name in inside), "layout")
    return family


def _row(site: LaunchSite, found: _Facts, model: TimeModel, in_graph: bool | None) -> LaunchRow:
    origin, moved = found.origin, site.operand_bytes + site.result_bytes
    name = read_name(origin.op_name)
    us, source = None, ""
    if found.instruction:
        us, source = model.time(found.instruction, found.work, moved, found.product)
    return LaunchRow(
        phase=origin.phase,
        stage=origin.stage,
        role=origin.role,
        family=found.family,
        name=site.hlo_name or site.kind,
        kind=site.kind,
        loop="/".join(site.path),
        trip_count=site.trip_count,
        static_launches=site.static,
        dynamic_launches=site.dynamic,
        in_cuda_graph=in_graph,
        flops=found.work.flops * site.dynamic,
        bytes=moved * site.dynamic,
        model_us=None if us is None else us * site.dynamic,
        model_source=source,
        stage_share=origin.share,
        op_name=origin.op_name,
        source=origin.source,
        attributed_by=origin.by,
        unmodelled=found.work.unmodelled,
        tf32_flops=found.work.tf32_flops * site.dynamic,
        scope=name.scope,
        op=origin.op,
        transform=name.transform if origin.op_name else "",
        caller=origin.caller,
        scopes=origin.scopes,
        sources=origin.sources,
        parts=origin.parts,
    )


def totals_of(row: LaunchRow) -> Totals:
    """The sums of one row."""
    return Totals(
        static_launches=row.static_launches,
        dynamic_launches=row.dynamic_launches,
        flops=row.flops,
        bytes=row.bytes,
        model_us=row.model_us,
        attributed_launches=row.dynamic_launches if row.is_attributed else 0,
        attributed_by_readers_launches=(
            row.dynamic_launches if row.is_attributed and row.attributed_by == "readers" else 0
        ),
        unmodelled_bytes=row.bytes if row.unmodelled else 0,
        unmodelled_us_launches=row.dynamic_launches if row.model_us is None else 0,
        tf32_flops=row.tf32_flops,
        scoped_launches=row.dynamic_launches if row.scope else 0,
        sourced_launches=row.dynamic_launches if row.source else 0,
        at_least_us_launches=row.dynamic_launches if row.is_lower_bound else 0,
    )
