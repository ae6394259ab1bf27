"""The fusions that XLA refused in a compiled program, by cause and one by one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.codegen.compile import Compiled
from fusionlab.errors import InputError
from fusionlab.facts.interface import Facts, table_lines
from fusionlab.hlo.ops import CONSTANT
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.stages import LEGEND
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.refusals import (
    FusionRefusal,
    Refusals,
    boundary_bytes,
    by_cause,
    launches_refused,
    refusals,
    xla_estimates,
)
from fusionlab.ledger.views import is_staged
from fusionlab.report.tables import Table
from fusionlab.report.tables.refusals import boundary_table, cause_table, refusal_lines, refusal_notes
from fusionlab.units import counted, time_words

_CAUSES = 4
_BOUNDARIES = 1
_IN_NOTEBOOK = 15
"""Causes and boundaries in ``repr``, and boundaries in a notebook."""


@dataclass(frozen=True, repr=False)
class FusionFacts(Facts):
    """The refused fusions of one program on one target, the costliest boundary first.

    ``ops`` maps a JAX name stack to the StableHLO op lowered under it; ``staged`` where scopes are stages.
    """

    command = "explain"

    name: str
    target: str
    refusals: Refusals
    ops: Mapping[str, str]
    staged: bool

    @staticmethod
    def of(compiled: Compiled, program: Program | None, rows: tuple[LaunchRow, ...] | None = None) -> FusionFacts:
        """The refusals of ``compiled``; ``rows``, if passed, saves recomputing its ledger.

        InputError where XLA wrote no record of its fusions: in HLO text, and for the CPU without ``fusions``.
        """
        rows = launch_rows(compiled) if rows is None else rows
        found = refusals(compiled, rows)
        if found is None:
            raise no_record(compiled.name, compiled.target.name)
        return FusionFacts(compiled.name, compiled.target.name, found, ops_by_scope(program), is_staged(rows))

    @cached_property
    def causes(self) -> list[dict[str, Any]]:
        """Refusals, launches and boundary time by cause, the costliest first."""
        return by_cause(self.refusals.found)

    @property
    def dynamic_launches(self) -> int:
        """Launches of the kernels that XLA refused to fuse into a reader."""
        return launches_refused(self.refusals.found)

    @property
    def verdict(self) -> str:
        """Refusals, their launches and the price of the boundaries."""
        found = self.refusals.found
        where = f"{self.name} on {self.target}"
        if not found:
            return f"{where}: XLA refused no fusion"
        said = f"{where}: XLA refused {counted(len(found), 'fusion', 'fusions')} of "
        said += counted(self.dynamic_launches, "launch", "launches")
        known = [one.boundary_us for one in found if one.boundary_us is not None]
        cost = f"cost {time_words(sum(known))}" if known else f"move {size_words(sum(map(boundary_bytes, found)))}"
        return f"{said}; the boundaries {cost} (model)"

    @property
    def notes(self) -> tuple[str, ...]:
        """The model, XLA's own estimates and the coverage of its record."""
        return (*refusal_notes(self.to_dict()), *([LEGEND] if self.staged else []))

    def lines(self) -> Sequence[str]:
        """The costliest causes, and the costliest boundary."""
        more = len(self.causes) - _CAUSES
        causes = [*table_lines(cause_table(self.causes[:_CAUSES])), *([f"and {more} more causes"] if more > 0 else [])]
        shown = self.refusals.found[:_BOUNDARIES]
        return [*causes, *(line for one in shown for line in refusal_lines(one, self.ops, staged=self.staged))]

    def tables(self) -> Sequence[Table]:
        """Causes and the costliest boundaries."""
        shown = self.refusals.found[:_IN_NOTEBOOK]
        title = f"the {len(shown)} costliest of {len(self.refusals.found)} boundaries"
        return (cause_table(self.causes), boundary_table(title, shown, self.ops))

    def records(self) -> list[dict[str, Any]]:
        """A row per refused fusion, with every field of ``FusionRefusal`` and its StableHLO op."""
        return [refusal_json(one, self.ops) for one in self.refusals.found]

    def fields(self) -> dict[str, Any]:
        """The fields of ``explain --json``."""
        found = self.refusals.found
        return {
            "name": self.name,
            "target": self.target,
            "join": {
                **dataclasses.asdict(self.refusals.coverage),
                "with_stablehlo_op": sum(one.op_name in self.ops for one in found),
                "with_scope": sum(bool(one.op_name) for one in found),
                "with_source": sum(bool(one.source) for one in found),
                "with_stage": sum(bool(one.stage) for one in found),
            },
            "staged": self.staged,
            "xla_estimates": xla_estimates(found),
            "dynamic_launches": self.dynamic_launches,
            "causes": self.causes,
            "refusals": self.records(),
        }


def ops_by_scope(program: Program | None) -> dict[str, str]:
    """JAX name stack to the StableHLO op lowered under it (the last one, which makes the primitive's result).

    Neither a constant nor the combiner of a reduction is what the primitive became.
    """
    if program is None:
        return {}
    found = program_view(program).operations()
    return {node.scope: node.name for node in found if node.op is not CONSTANT}


def refusal_json(one: FusionRefusal, ops: Mapping[str, str]) -> dict[str, Any]:
    """The record of one refusal, with its StableHLO op."""
    return {**dataclasses.asdict(one), "stablehlo_op": ops.get(one.op_name, "")}


def no_record(name: str, target: str) -> InputError:
    """The error where XLA kept no record of its fusions."""
    return InputError(
        f"{name} on {target}: XLA kept no record of its fusion decisions here; name a function, a model or a StableHLO "
        "file, which is compiled with one"
    )
