"""Clusters: groups of elementwise and layout work that could be one kernel, with the three criteria as numbers.

A *unit* is a StableHLO op or a launch. Units are grouped when values flow between them and nothing else (a matrix
product, a reduction, a solve) lies on any path from one to the other: every unit has a level, the largest number of
other operations on a path to it, and a cluster is a connected group of one level. So a cluster can be one kernel: none
of its inputs depends on its results.

The criteria (characterisation, Section IV-A): arithmetic intensity; the size of one unit against how often it runs;
layout conversions at stage boundaries. The bytes it moves are set against those it would move as one kernel.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from networkx.utils import UnionFind

from fusionlab.hlo import ops
from fusionlab.hlo.cost import array_bytes, node_cost
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.stages import Attribution, attribute_nodes, has_stages
from fusionlab.hlo.view import Node, Region, free_values, source_of

ELIGIBLE = ("elementwise", "layout")
SOURCES = ("constant",)
"""Families that are neither work nor barriers."""


@dataclass(frozen=True)
class Unit:
    """One op or launch. ``reads`` and ``writes`` map values to the bytes of them that one run reads or writes.

    ``region`` is the region that holds it (units of different regions are never grouped); ``runs`` its number of runs;
    ``us`` its time per run (None: not known); ``converts_layout`` is True if it permutes data in memory. ``place`` is
    the scope that decides what a boundary is: the stage in a program with stages.
    """

    name: str
    family: str
    stage: str
    region: str
    runs: int
    flops: int
    bytes: int
    us: float | None
    converts_layout: bool
    reads: Mapping[Hashable, int] = field(hash=False)
    writes: Mapping[Hashable, int] = field(hash=False)
    place: str = ""
    scope: str = ""
    source: str = ""


@dataclass(frozen=True)
class Cluster:
    """A group of units; FLOPs, bytes and times are of all its runs.

    ``bytes`` are moved by the units as they are and ``least_bytes`` by one kernel: values that come from outside, and
    values that are read outside. ``gain_us`` is an upper bound on the time that one kernel saves (None without times).
    ``boundary_conversions`` are runs of units that convert layout next to a unit of another place. ``stages``,
    ``scopes`` and ``sources`` count the units of each. ``boundary_values`` is the number of values that cross its
    boundary in one run.
    """

    units: tuple[str, ...]
    stages: Mapping[str, int]
    region: str
    runs: int
    invocations: int
    flops: int
    bytes: int
    least_bytes: int
    boundary_values: int
    boundary_conversions: int
    us: float | None
    gain_us: float | None = None
    scopes: Mapping[str, int] = field(default_factory=dict, hash=False)
    sources: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def intensity_flop_per_byte(self) -> float:
        """FLOPs per byte, unfused; 0 when nothing moves."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def saved_bytes(self) -> int:
        """Bytes that one kernel would not move."""
        return max(0, self.bytes - self.least_bytes)

    @property
    def bytes_per_invocation(self) -> float:
        """Mean size of one run of a unit."""
        return self.bytes / self.invocations if self.invocations else 0.0

    @property
    def us_per_invocation(self) -> float | None:
        """Mean time of one run of a unit."""
        return None if self.us is None or not self.invocations else self.us / self.invocations

    def to_json(self) -> dict[str, Any]:
        """The fields and the derived numbers by name."""
        return {
            **dataclasses.asdict(self),
            "units": list(self.units),
            "intensity_flop_per_byte": self.intensity_flop_per_byte,
            "bytes_per_invocation": self.bytes_per_invocation,
            "us_per_invocation": self.us_per_invocation,
            "saved_bytes": self.saved_bytes,
        }


def find_clusters(
    units: Sequence[Unit], sizes: Mapping[Hashable, int], escaping: Iterable[Hashable] = (), least: int = 2
) -> list[Cluster]:
    """The clusters of at least ``least`` units, those that save most bytes first.

    ``units`` are ordered so that every value is written before it is read; ``sizes`` are the bytes of whole values;
    ``escaping`` values have readers other than units.
    """
    producer = {value: i for i, unit in enumerate(units) for value in unit.writes}
    consumers: dict[Hashable, list[int]] = {}
    for i, unit in enumerate(units):
        for value in unit.reads:
            consumers.setdefault(value, []).append(i)
    groups = _groups(units, producer)
    outside = set(escaping)
    found = [_cluster(units, group, producer, consumers, sizes, outside) for group in groups if len(group) >= least]
    return sorted((one for one in found if one.bytes), key=lambda one: (-one.saved_bytes, one.units))


def _groups(units: Sequence[Unit], producer: Mapping[Hashable, int]) -> list[list[int]]:
    levels: list[int] = []
    joined = UnionFind(i for i, unit in enumerate(units) if unit.family in ELIGIBLE)
    for i, unit in enumerate(units):
        makers = [producer[value] for value in unit.reads if value in producer and producer[value] < i]
        makers = [j for j in makers if units[j].family not in SOURCES]
        is_member = unit.family in ELIGIBLE
        levels.append(max((levels[j] + (is_member and units[j].family not in ELIGIBLE) for j in makers), default=0))
        if is_member:
            for j in makers:
                if units[j].family in ELIGIBLE and levels[j] == levels[i] and units[j].region == unit.region:
                    joined.union(j, i)
    return [sorted(group) for group in joined.to_sets()]


def _cluster(
    units: Sequence[Unit],
    group: Sequence[int],
    producer: Mapping[Hashable, int],
    consumers: Mapping[Hashable, list[int]],
    sizes: Mapping[Hashable, int],
    escaping: set[Hashable],
) -> Cluster:
    inside = set(group)
    members = [units[i] for i in group]
    runs = max(unit.runs for unit in members)
    read: Counter[Hashable] = Counter()
    for unit in members:
        for value, amount in unit.reads.items():
            if producer.get(value) not in inside:
                read[value] += amount
    written = {
        value: amount
        for unit in members
        for value, amount in unit.writes.items()
        if value in escaping or any(i not in inside for i in consumers.get(value, ()))
    }
    entering = sum(min(sizes.get(value, amount), amount) for value, amount in read.items())
    known = [unit.us * unit.runs for unit in members if unit.us is not None]
    return Cluster(
        units=tuple(unit.name for unit in members),
        stages=dict(Counter(unit.stage or "?" for unit in members).most_common()),
        region=members[0].region,
        runs=runs,
        invocations=sum(unit.runs for unit in members),
        flops=sum(unit.flops * unit.runs for unit in members),
        bytes=sum(unit.bytes * unit.runs for unit in members),
        least_bytes=(entering + sum(written.values())) * runs,
        boundary_values=len(read) + len(written),
        boundary_conversions=sum(
            unit.runs for unit in members if unit.converts_layout and _at_boundary(unit, units, producer, consumers)
        ),
        us=sum(known) if len(known) == len(members) else None,
        scopes=_counted(unit.scope for unit in members),
        sources=_counted(unit.source for unit in members),
    )


def _counted(labels: Iterable[str]) -> dict[str, int]:
    return dict(Counter(filter(None, labels)).most_common())


def _at_boundary(
    unit: Unit, units: Sequence[Unit], producer: Mapping[Hashable, int], consumers: Mapping[Hashable, list[int]]
) -> bool:
    """True if a neighbour belongs to another known place."""
    around = [producer[value] for value in unit.reads if value in producer]
    around += [i for value in unit.writes for i in consumers.get(value, ())]
    here, there = unit.place or unit.stage, {units[i].place or units[i].stage for i in around}
    return bool(here) and bool(there - {"", here})


_CONVERSIONS = (
    ops.BROADCAST_IN_DIM, ops.CONCATENATE, ops.GATHER, ops.PAD, ops.REVERSE, ops.SLICE, ops.TRANSPOSE
)  # fmt: skip


def op_clusters(program: Program) -> list[Cluster]:
    """The clusters of the StableHLO of ``program``, in every region; those that save most bytes first."""
    flat = program_view(program)
    attributions = attribute_nodes(flat)
    staged = has_stages(node.scope for node in flat.walk())
    found: list[Cluster] = []
    pending: list[tuple[Region, str, int]] = [(flat, "main", 1)]
    while pending:
        region, path, runs = pending.pop()
        units = [_unit(node, attributions[node], staged, path, runs) for node in region.nodes]
        values = [value for node in region.nodes for value in (*node.operands, *node.results)]
        sizes: dict[Hashable, int] = {value: array_bytes(value) for value in values}
        found += find_clusters(units, sizes, escaping=region.returns)
        for node in region.nodes:
            if node.op.control_flow:
                trips = analyse(node).trips if node.op is ops.WHILE else 1
                inner = runs * (1 if trips is None else trips)
                pending += [(body, f"{path}/{node.scope}", inner) for body in node.regions]
    return sorted(found, key=lambda one: (-one.saved_bytes, one.units))


def _unit(node: Node, attribution: Attribution, staged: bool, region: str, runs: int) -> Unit:
    is_loop = node.op.control_flow
    cost = None if is_loop else node_cost(node)
    captured = [value for inner in node.regions for value in free_values(inner)]
    results = sum(map(array_bytes, node.results))
    reads: dict[Hashable, int] = {value: array_bytes(value) for value in (*node.operands, *captured)}
    if node.op.partial and node.operands:
        reads[node.operands[0]] = results
    scope = read_name(node.scope).scope
    return Unit(
        name=f"{node.op.mnemonic} %{node.id}",
        family="control" if is_loop else node.family,
        stage=attribution.stage,
        region=region,
        runs=runs,
        flops=cost.flops if cost else 0,
        bytes=cost.bytes if cost else 0,
        us=None,
        converts_layout=node.op in _CONVERSIONS,
        reads=reads,
        writes={value: array_bytes(value) for value in node.results},
        place=attribution.stage if staged else scope,
        scope=scope,
        source=f"{line[0].rpartition('/')[2]}:{line[1]}" if (line := source_of(node.operation)) else "",
    )
