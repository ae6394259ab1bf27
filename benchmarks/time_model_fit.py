"""Fit the models of time to the table of ``benchmarks/time_model.py``, and test them: each program left out of its fit.

    python benchmarks/time_model_fit.py [--record studies/time-model.json] [--page docs/time-model.md]

Prints the constants of ``fusionlab/ledger/time/constants.py`` and the tables of ``docs/time-model.md``, which
``--page`` puts behind the mark in that file. Nothing is compiled: it takes seconds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from laplacian_tables import markdown_table
from scipy.optimize import least_squares

from fusionlab.codegen.targets import load_target
from fusionlab.device_code.kernel_time import KernelDemand, kernel_us, terms_of
from fusionlab.hlo.optimised.products import MatrixProduct
from fusionlab.ledger.time.constants import KernelConstants, ProductConstants
from fusionlab.ledger.time.model import LAUNCH_US, ceilings_of
from fusionlab.ledger.time.products import product_us

TARGET = load_target("h100")
LEAST_US = 2.0
"""Kernels that take less count for the time of a program, and not for the fit: a launch is most of them."""
CLOSE = 0.03
"""Variants whose measured times differ by less have no order."""
_KERNELS_FROM, _KERNELS_TO = (2.0, 1.1, 1.0, 1.0, 2.0, 0.5), ((0.5, 1.0, 0, 0, 0, 0), (2.5, 8.0, 20, 20, 20, 20))
_PRODUCTS_FROM, _PRODUCTS_TO = (
    (2.0, 1.07, 0.75, 0.9, 0.2, 0.3),
    ((1.0, 0.9, 0.3, 0.3, 0.05, 0.05), (3.0, 2, 1, 1, 1, 1)),
)
MARK = "<!-- Below: printed by benchmarks/time_model_fit.py -->"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Site:
    """A launch site of a program of the table: measured microseconds of one run, None where a record merges it."""

    program: str
    row: Row

    @property
    def model(self) -> str:
        """The ansatz."""
        return self.program.partition(" ")[0]

    @property
    def runs(self) -> int:
        """How often it runs."""
        return int(self.row["launches"])

    @property
    def us(self) -> float | None:
        """Measured, one run."""
        return None if self.row["us"] is None else self.row["us"] / self.runs

    @property
    def demand(self) -> KernelDemand | None:
        """What its kernel asks for; None for a library call."""
        row = self.row
        if "block" not in row:
            return None
        return KernelDemand.of(
            row["needed"],
            row["written"],
            row["warp_sectors"],
            row["requests"],
            row["executed"],
            row["occupancy"],
        )

    @property
    def moved_bytes(self) -> int:
        """Bytes of operands and results of one run."""
        return int(self.row["bytes"]) // self.runs

    @property
    def product(self) -> MatrixProduct | None:
        """The product that it is, if it is one."""
        return MatrixProduct(**self.row["product"]) if self.row.get("product") else None


@dataclass(frozen=True)
class Models:
    """The constants of both models, from some programs."""

    kernels: KernelConstants
    products: ProductConstants

    def us(self, site: Site) -> float:
        """The modelled time of one run."""
        if (demand := site.demand) is not None:
            terms = terms_of(TARGET, demand)
            assert terms is not None
            return kernel_us(terms, self.kernels)
        if (product := site.product) is not None:
            us = product_us(TARGET, product, site.moved_bytes, self.products)
            assert us is not None
            return us
        return float(site.row["xla_us"] or 0.0) / site.runs


def fit(sites: Sequence[Site]) -> Models:
    """The constants that fit the measured sites best: logarithms of ratios, weighted by the root of time."""
    timed = [one for one in sites if one.us is not None and one.us >= LEAST_US]
    kernels = [(one, terms) for one in timed if one.demand and (terms := terms_of(TARGET, one.demand))]
    products = [(one, product) for one in timed if (product := one.product)]
    found_kernels = _fitted(
        [one for one, _ in kernels],
        lambda given: [kernel_us(terms, KernelConstants(*given)) for _, terms in kernels],
        _KERNELS_FROM,
        _KERNELS_TO,
    )
    found_products = _fitted(
        [one for one, _ in products],
        lambda given: [
            product_us(TARGET, each, one.moved_bytes, ProductConstants(*given)) or 0.0 for one, each in products
        ],
        _PRODUCTS_FROM,
        _PRODUCTS_TO,
    )
    return Models(KernelConstants(*found_kernels), ProductConstants(*found_products))


def _fitted(
    sites: Sequence[Site],
    model: Callable[[Sequence[float]], list[float]],
    start: Sequence[float],
    limits: tuple[Sequence[float], Sequence[float]],
) -> list[float]:
    measured = np.array([one.us for one in sites])
    weights = np.sqrt(measured * [one.runs for one in sites])
    weights /= weights.mean()

    def residuals(given: Any) -> Any:
        return (np.log(model(given)) - np.log(measured)) * weights

    found = least_squares(residuals, start, bounds=limits, loss="soft_l1", f_scale=0.2)
    return [float(f"{value:.3g}") for value in found.x]


@dataclass(frozen=True)
class Errors:
    """Errors of kernels one by one: their number, the median, the mean weighted by time, and the sum's ratio."""

    number: int
    median: float
    weighted: float
    ratio: float

    @staticmethod
    def of(pairs: Iterable[tuple[float, float, int]]) -> Errors | None:
        """Of (modelled, measured, runs)."""
        found = list(pairs)
        if not found:
            return None
        modelled, measured, runs = (np.array(column, float) for column in zip(*found, strict=True))
        error, time = np.abs(modelled / measured - 1), measured * runs
        ratio = float((modelled * runs).sum() / time.sum())
        return Errors(len(found), float(np.median(error)), float((error * time).sum() / time.sum()), ratio)

    def cells(self) -> list[str]:
        """The cells of a table."""
        return [f"{self.number}", f"{self.median:.0%}", f"{self.weighted:.0%}", f"{self.ratio:.2f}"]


def read(path: Path) -> tuple[dict[str, Row], list[Site]]:
    """The programs of the table that were compiled, and all their sites."""
    rows = {name: row for name, row in json.loads(path.read_text())["rows"].items() if "failed" not in row}
    return rows, [Site(name, one) for name, row in rows.items() for one in row["sites"]]


def page(programs: Mapping[str, Row], sites: Sequence[Site]) -> str:
    """The tables, each program modelled without those of its own ansatz."""
    us_of = without_own_ansatz(sites)
    us = {id(one): us_of(one) / one.runs for one in sites}
    whole = whole_times(programs, sites, us_of)
    parts = ["## Whole programs", "", _whole_table(programs, sites, whole), ""]
    parts += ["## Kernels", "", _kernel_table(programs, sites, us), ""]
    parts += ["## XLA's estimates by family", "", _family_table(programs, sites), ""]
    parts += ["## Pairs of variants", "", *_pairs(programs, whole), ""]
    parts += ["## The worst kernels", "", _worst_table(sites, us), ""]
    return "\n".join(parts)


def without_own_ansatz(sites: Sequence[Site]) -> Callable[[Site], float]:
    """The modelled time of all runs of a site, fitted without the programs of its own ansatz."""
    ansatze = sorted({one.model for one in sites})
    left_out = {name: fit([one for one in sites if one.model != name]) for name in ansatze}
    return lambda one: left_out[one.model].us(one) * one.runs


def whole_times(programs: Iterable[str], sites: Sequence[Site], us_of: Callable[[Site], float]) -> dict[str, float]:
    """The modelled time of each program."""
    return {name: sum(us_of(one) for one in sites if one.program == name) for name in programs}


def least_decidable(programs: Mapping[str, Row], whole: Mapping[str, float]) -> float:
    """The largest modelled difference, as a share, of two variants of an ansatz that the clock orders the other way."""
    wrong = [0.0]
    for first, second in _of_one_ansatz(programs):
        clocks = _clock(programs[first], programs[second]), _clock(programs[second], programs[first])
        if (clocks[0] < clocks[1]) != (whole[first] < whole[second]):
            wrong.append(max(whole[first], whole[second]) / min(whole[first], whole[second]) - 1)
    return max(wrong)


def _of_one_ansatz(programs: Iterable[str]) -> Iterator[tuple[str, str]]:
    pairs = itertools.combinations(programs, 2)
    return (pair for pair in pairs if pair[0].split(" ")[0] == pair[1].split(" ")[0])


def _whole_table(programs: Mapping[str, Row], sites: Sequence[Site], whole: Mapping[str, float]) -> str:
    lines = []
    for name, row in programs.items():
        estimate = sum(estimate_us(one) for one in sites if one.program == name)
        same = "yes" if row["temp_bytes"] == row["recorded_temp_bytes"] else "no"
        measured = row["measured_us"]
        clock = measured or row["wall_us"]
        said = "" if measured else " (wall)"
        lines.append(
            [
                _titled(name),
                f"{clock / 1e3:.2f}{said}",
                f"{whole[name] / 1e3:.2f}",
                f"{whole[name] / clock - 1:+.0%}",
                f"{estimate / clock - 1:+.0%}",
                same,
            ]
        )
    return markdown_table(["program", "measured ms", "model ms", "error", "XLA's estimates", "same temp bytes"], lines)


def estimate_us(site: Site) -> float:
    """All runs by XLA's estimate, of a product by the roofline."""
    if site.product is None:
        return float(site.row["xla_us"] or 0.0)
    ceilings = ceilings_of(TARGET)
    assert ceilings is not None
    row = site.row
    return ceilings.least_us(row["flops"], row["bytes"], row["tf32"]) + site.runs * LAUNCH_US


def _kernel_table(programs: Mapping[str, Row], sites: Sequence[Site], us: Mapping[int, float]) -> str:
    lines = []
    for name in (*programs, "all"):
        of = [one for one in sites if name in (one.program, "all") and one.us is not None and one.us >= LEAST_US]
        for kind, chosen in (
            ("kernels", [one for one in of if one.demand]),
            ("products", [one for one in of if one.product]),
        ):
            pairs = [(us[id(one)], one.us or 0.0, one.runs) for one in chosen]
            if (found := Errors.of(pairs)) is not None:
                lines.append([_titled(name), kind, *found.cells()])
    return markdown_table(["program", "of", "number", "median error", "weighted by time", "sum over measured"], lines)


def family_ranges(programs: Iterable[str], sites: Sequence[Site]) -> dict[str, tuple[float, float]]:
    """Measured over modelled time by XLA's estimates and rooflines, by family: the least and the most of the programs.
    Families that several programs have, rounded outwards."""
    ratios: dict[str, list[float]] = {}
    for name in programs:
        of = [one for one in sites if one.program == name and one.us is not None]
        for family in {str(one.row["family"]) for one in of}:
            own = [one for one in of if one.row["family"] == family]
            measured, modelled = sum((one.us or 0.0) * one.runs for one in own), sum(map(estimate_us, own))
            ratios.setdefault(family, []).append(measured / modelled)
    several = sorted(family for family, found in ratios.items() if len(found) > 1)
    return {
        family: (math.floor(100 * min(ratios[family])) / 100, math.ceil(100 * max(ratios[family])) / 100)
        for family in several
    }


def _family_table(programs: Iterable[str], sites: Sequence[Site]) -> str:
    lines = [
        [family, f"{least:.2f}", f"{most:.2f}"] for family, (least, most) in family_ranges(programs, sites).items()
    ]
    return markdown_table(["family", "measured over modelled, least", "most"], lines)


def _pairs(programs: Mapping[str, Row], whole: Mapping[str, float]) -> list[str]:
    """How many pairs of variants of one ansatz that differ by more than CLOSE have the right order, and which not."""
    right, wrong = 0, list[str]()
    for first, second in _of_one_ansatz(programs):
        clocks = [_clock(programs[name], programs[other]) for name, other in ((first, second), (second, first))]
        if abs(clocks[0] / clocks[1] - 1) < CLOSE:
            continue
        if (clocks[0] < clocks[1]) == (whole[first] < whole[second]):
            right += 1
        else:
            said = [
                f"{name} {clock / 1e3:.2f} ({whole[name] / 1e3:.2f})"
                for name, clock in zip((first, second), clocks, strict=True)
            ]
            wrong.append(" and ".join(said))
    return [f"{right} of {right + len(wrong)} are in the right order.", *(f"- Wrong: {one}" for one in wrong)]


def _titled(name: str) -> str:
    return name.replace(" ", ": ", 1).replace("fuse-jvp-replay,", "")


def _clock(row: Row, other: Row) -> float:
    """Device time where both have it, else the wall's."""
    return float(row["measured_us"] if row["measured_us"] and other["measured_us"] else row["wall_us"])


def _worst_table(sites: Sequence[Site], us: Mapping[int, float], most: int = 14) -> str:
    timed = [one for one in sites if one.us is not None and one.us >= LEAST_US]
    worst = sorted(timed, key=lambda one: -abs(us[id(one)] - (one.us or 0.0)) * one.runs)[:most]
    lines = [
        [
            _titled(one.program),
            f"`{one.row['name']}`",
            f"{one.runs}",
            f"{one.us:,.0f}",
            f"{us[id(one)]:,.0f}",
        ]
        for one in worst
    ]
    return markdown_table(["program", "kernel", "runs", "measured us", "model us"], lines)


def main() -> None:
    """Fit, test, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=Path("studies/time-model.json"))
    parser.add_argument("--page", type=Path, help="Replace the tables of this page.")
    given = parser.parse_args()
    programs, sites = read(given.record)
    models = fit(sites)
    print(models.kernels, models.products, family_ranges(programs, sites), sep="\n")
    for name in sorted({one.model for one in sites}):
        left = fit([one for one in sites if one.model != name])
        print(f"without {name}:", *map(astuple, (left.kernels, left.products)))
    text = page(programs, sites)
    if given.page:
        before = given.page.read_text().partition(MARK)[0]
        given.page.write_text(f"{before}{MARK}\n\n{text}")
    print(text)


if __name__ == "__main__":
    main()
