"""The figures that tables and claims read from the rows of the matrix: times, memory, shares, intensities.

A figure of a missing cell raises NotMeasured; it is never estimated. Times have the errors of their model: each is an
``ModelledFigure``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fusionlab.characterisation.matrix import GROUP_FIGURES, Cell, Row
from fusionlab.characterisation.modelled import Factors, ModelledFigure, corners
from fusionlab.ledger.launch_rows import Totals
from fusionlab.ledger.time.constants import ESTIMATED_FAMILIES, PRODUCTS
from fusionlab.ledger.time.model import LAUNCH_US

SAMPLING = "mcmc"


class NotMeasured(Exception):
    """A cell that a figure needs is not in the record."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self.cells = tuple(cells)
        super().__init__(", ".join(map(str, self.cells)))


@dataclass(frozen=True)
class LaunchGroup:
    """The launches of one phase, stage and family in a cell; figures are of all runs, time is modelled."""

    phase: str
    stage: str
    family: str
    dynamic_launches: int
    flops: int
    bytes: int
    model_us: float | None
    unmodelled_us_launches: int
    unmodelled_bytes: int


@dataclass(frozen=True)
class TimeErrors:
    """The errors of modelled times: by family, the least and the largest of measured over modelled, ``unknown`` for a
    family that was not measured; and microseconds that a launch may take beyond the model's."""

    families: Mapping[str, Factors]
    unknown: Factors
    launch_us: float


EXACT = TimeErrors({}, (1.0, 1.0), 0.0)
"""Times as they are modelled."""
LAUNCH_MODEL = TimeErrors(
    ESTIMATED_FAMILIES,
    (min(least for least, _ in ESTIMATED_FAMILIES.values()), max(most for _, most in ESTIMATED_FAMILIES.values())),
    PRODUCTS.launch_us - LAUNCH_US,
)
"""Those of the rows: XLA's estimates, rooflines of library calls, and 1 us per launch."""


class MatrixFigures:
    """The figures of a matrix of ``rows``, whose times have ``errors``; ``measured_us`` are device times of cells,
    where records have any."""

    def __init__(
        self, rows: Mapping[Cell, Row], measured_us: Mapping[Cell, float] | None = None, errors: TimeErrors = EXACT
    ) -> None:
        self.rows, self.errors = rows, errors
        self._measured_us = measured_us or {}

    def has(self, *cells: Cell) -> bool:
        """True if all of ``cells`` are measured."""
        return all(cell in self.rows for cell in cells)

    def has_time(self, cell: Cell) -> bool:
        """True if ``cell`` is measured, and all of its launches have a modelled time."""
        row = self.rows.get(cell)
        return row is not None and row["model_us"] is not None and not row["unmodelled_us_launches"]

    def row(self, cell: Cell) -> Row:
        """The row of ``cell``, or NotMeasured."""
        if cell not in self.rows:
            raise NotMeasured([cell])
        return self.rows[cell]

    def model_ms(self, cell: Cell) -> float:
        """Modelled milliseconds of one step; NotMeasured also where some launches have no modelled time."""
        row = self.row(cell)
        if not self.has_time(cell):
            raise NotMeasured([cell])
        return float(row["model_us"]) / 1e3

    def measured_ms(self, cell: Cell) -> float | None:
        """Measured milliseconds of device time; None without a record."""
        us = self._measured_us.get(cell)
        return None if us is None else us / 1e3

    def memory_bytes(self, cell: Cell) -> int:
        """Arguments, results and temporaries, by XLA's buffer assignment: the least that the device must hold."""
        row = self.row(cell)
        return int(row["argument_bytes"] + row["output_bytes"] + row["temp_bytes"] - row["alias_bytes"])

    def groups(self, cell: Cell) -> list[LaunchGroup]:
        """The cell's launches by phase, stage and family, the slowest first."""
        table = self.row(cell)["groups"]
        return [LaunchGroup(**dict(zip(table["columns"], row, strict=True))) for row in table["rows"]]

    def time_ms(self, cell: Cell) -> ModelledFigure:
        """``model_ms`` with its error."""
        value = self.model_ms(cell)
        if self.errors is EXACT:
            return ModelledFigure.exact(value)
        found = self.time_us(cell, lambda _: True)
        return ModelledFigure(value, found.low / 1e3, found.high / 1e3)

    def ratio(self, cell: Cell, other: Cell) -> ModelledFigure:
        """The time of ``cell`` over that of ``other``, a program of nearly the same kernels: a family has the same
        error on both sides."""
        value = self.model_ms(cell) / self.model_ms(other)
        sides = [self.by_family(one) for one in (cell, other)]
        families = sorted({name for side in sides for name in side})
        found = []
        for factors in corners([self._factors(name) for name in families]):
            for launch_us in (0.0, self.errors.launch_us):
                above, below = (
                    sum(
                        factor * (side[name].model_us or 0.0) + launch_us * side[name].dynamic_launches
                        for name, factor in zip(families, factors, strict=True)
                        if name in side
                    )
                    for side in sides
                )
                found.append(above / below)
        return ModelledFigure(value, min(found), max(found)) if found else ModelledFigure.exact(value)

    def time_us(self, cell: Cell, wanted: Callable[[LaunchGroup], bool]) -> ModelledFigure:
        """The modelled time of the ``wanted`` groups, with its error."""
        groups = [group for group in self.groups(cell) if wanted(group)]
        least, most = (sum(self._us(group, end) for group in groups) for end in (0, 1))
        return ModelledFigure(sum(group.model_us or 0.0 for group in groups), least, most)

    def modelled_share(
        self, cell: Cell, wanted: Callable[[LaunchGroup], bool], of: Callable[[LaunchGroup], bool] = lambda _: True
    ) -> ModelledFigure:
        """``share`` with its error."""
        value = self.share(cell, wanted, of)
        own = self.time_us(cell, lambda group: of(group) and wanted(group))
        rest = self.time_us(cell, lambda group: of(group) and not wanted(group))
        pairs = ((own.low, rest.high), (own.high, rest.low))
        ends = [part / (part + others) for part, others in pairs if part + others]
        return ModelledFigure(value, min(ends, default=0.0), max(ends, default=0.0))

    def _factors(self, family: str) -> Factors:
        return self.errors.families.get(family, self.errors.unknown)

    def _us(self, group: LaunchGroup, end: int) -> float:
        """The least (0) or the most (1) microseconds of a group."""
        return (group.model_us or 0.0) * self._factors(group.family)[end] + (
            end * self.errors.launch_us * group.dynamic_launches
        )

    def share(
        self, cell: Cell, wanted: Callable[[LaunchGroup], bool], of: Callable[[LaunchGroup], bool] = lambda _: True
    ) -> float:
        """The part of the modelled time of the groups ``of`` that the ``wanted`` ones have; NotMeasured: no time."""
        inside = [group for group in self.groups(cell) if of(group)]
        if any(group.unmodelled_us_launches for group in inside):
            raise NotMeasured([cell])
        whole = sum(group.model_us or 0.0 for group in inside)
        if not whole:
            raise NotMeasured([cell])
        return sum(group.model_us or 0.0 for group in inside if wanted(group)) / whole

    def by_family(self, cell: Cell, wanted: Callable[[LaunchGroup], bool] = lambda _: True) -> dict[str, Totals]:
        """Family to the sums over the ``wanted`` groups, the slowest first."""
        found: dict[str, Totals] = {}
        for one in self.groups(cell):
            if wanted(one):
                sums = {name: getattr(one, name) for name in GROUP_FIGURES}
                found[one.family] = found.get(one.family, Totals()) + Totals(**sums)
        return dict(sorted(found.items(), key=lambda item: -(item[1].model_us or 0.0)))


def measured_times(records: Iterable[Mapping[str, Any]], walkers: int) -> dict[Cell, float]:
    """Mean device time (microseconds) of unchanged programs, from records of `bench` on a GPU that is one of ours.

    The first variant of a record is the program as it stands; of several records of one cell the last counts.
    """
    from fusionlab.codegen.targets import target_of_device

    found: dict[Cell, float] = {}
    for record in records:
        workload, device = record["workload"], record["device"]
        target = target_of_device(str(device["name"])) if device["platform"] != "cpu" else None
        if target is None or workload["walkers"] != walkers or workload["variant"]:
            continue
        first = record["variants"][0] if record["variants"] else {}
        sums = (first.get("device_time") or {}).get("sum_us")
        if sums and first["pipeline"] == "":
            cell = Cell(workload["name"], workload["molecule"], workload["program"], target.name)
            found[cell] = sum(sums) / len(sums)
    return found
