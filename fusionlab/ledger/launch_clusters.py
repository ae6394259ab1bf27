"""The launches of a compiled program as units for ``clusters``, with an upper bound of the time a cluster saves."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.clusters import Cluster, Unit, find_clusters
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.ledger.dataflow import VIEWS, behind_views, members
from fusionlab.ledger.launch_rows import LaunchRow
from fusionlab.ledger.time.model import LAUNCH_US, ceilings_of
from fusionlab.ledger.traffic import reads_of, traffic_of
from fusionlab.ledger.views import is_staged

_CONVERSIONS = frozenset(("transpose", "copy", "concatenate", "pad", "slice", "reverse", "gather"))


def launch_clusters(compiled: Compiled, rows: tuple[LaunchRow, ...]) -> list[Cluster]:
    """Clusters of at least two launches in one computation, in descending order of the time they can save."""
    by_name = {row.name: row for row in rows if row.dynamic_launches}
    staged = is_staged(rows)
    found: list[Cluster] = []
    for computation in compiled.module.computations.values():
        if any(one.name in by_name for one in computation.instructions):
            found += _of_computation(compiled.module, computation, by_name, staged)
    found = [_with_gain(one, compiled) for one in found]
    return sorted(found, key=lambda one: (-(one.gain_us or 0.0), -one.saved_bytes, one.units))


def _of_computation(
    module: HloModule, computation: Computation, rows: Mapping[str, LaunchRow], staged: bool
) -> list[Cluster]:
    units: list[Unit] = []
    sizes: dict[Hashable, int] = {}
    escaping: set[Hashable] = set()
    for one in computation.instructions:
        if one.opcode in (*VIEWS, "parameter", "constant"):
            continue
        if one.name in rows:
            unit = _unit(module, computation, one, rows[one.name], staged)
            units.append(unit)
            for operand in one.operands:
                value = behind_views(computation, operand)
                sizes[value] = _size(computation, value)
        else:
            values = [behind_views(computation, operand) for operand in one.operands if operand in computation.by_name]
            escaping.update(values)
            if one.opcode != "tuple":
                units.append(_barrier(computation, one, values))
    return find_clusters(units, sizes, escaping)


def _unit(module: HloModule, computation: Computation, one: Instruction, row: LaunchRow, staged: bool) -> Unit:
    moved = traffic_of(module, computation, one)
    reads: dict[Hashable, int] = {}
    for operand, amount in reads_of(module, computation, one).items():
        value = behind_views(computation, operand)
        reads[value] = reads.get(value, 0) + amount
    runs = row.dynamic_launches
    return Unit(
        name=one.name,
        family=row.family,
        stage=row.stage,
        region=computation.name,
        runs=runs,
        flops=row.flops // runs,
        bytes=row.bytes // runs,
        us=None if row.model_us is None else row.model_us / runs,
        converts_layout=any(member.opcode in _CONVERSIONS for member in members(module, one)),
        reads=reads,
        writes=_results(one, moved.result_bytes),
        place=row.stage if staged else row.scope,
        scope=row.scope,
        source=row.source,
    )


def _barrier(computation: Computation, one: Instruction, values: list[tuple[str, int]]) -> Unit:
    """A unit that is no launch of the ledger (a loop, a copy): nothing is grouped across it."""
    reads: dict[Hashable, int] = {value: _size(computation, value) for value in values}
    return Unit(one.name, "control", "", computation.name, 1, 0, 0, None, False, reads, _results(one, None))


def _results(one: Instruction, whole: int | None) -> dict[Hashable, int]:
    if not one.shape.is_tuple:
        return {(one.name, 0): one.shape.byte_size if whole is None else whole}
    return {(one.name, index): part.byte_size for index, part in enumerate(one.shape.elements)}


def _size(computation: Computation, value: tuple[str, int]) -> int:
    name, index = value
    one = computation.by_name.get(name)
    if one is None:
        return 0
    return one.shape.elements[index].byte_size if one.shape.is_tuple and one.shape.elements else one.shape.byte_size


def _with_gain(found: Cluster, compiled: Compiled) -> Cluster:
    ceilings = ceilings_of(compiled.target)
    if ceilings is None or found.us is None:
        return found
    one_kernel = LAUNCH_US + ceilings.least_us(found.flops / found.runs, found.least_bytes / found.runs)
    return dataclasses.replace(found, gain_us=max(0.0, found.us - one_kernel * found.runs))
