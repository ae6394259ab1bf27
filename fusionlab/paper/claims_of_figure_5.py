"""Sections III-C to III-F, Figure 5: what share of kernel time which family has, inside and outside of sampling.

The characterisation gives what is outside of sampling as a share of everything (its slices and that of sampling make
the whole), and what is inside as a share of sampling. CH4, inference, A5000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fusionlab.paper.claim import QUARTER, Claim, Finding, Judge, Statements, Values, all_within, holds, share_is
from fusionlab.paper.figures import SAMPLING, Figures, Group, NotMeasured
from fusionlab.paper.matrix import INFERENCE, MODELS, MOLECULES, TARGETS, Cell

_NAMES = {"paulinet": "PauliNet", "ferminet": "FermiNet", "psiformer": "Psiformer", "orbformer": "Orbformer"}
_SECTIONS = {"paulinet": "III-C", "ferminet": "III-D", "psiformer": "III-E", "orbformer": "III-F"}
FAMILIES_OF = {
    "fused elementwise": ("elementwise",),
    "GEMM": ("gemm",),
    "TRSM": ("triangular-solve",),
    "transpose": ("layout",),
    "slice and reduce": ("reduction", "gather-scatter"),
    "FlashAttention (mhsea)": ("attention",),
}
"""The characterisation's families to ours. Our layout family has copies, concatenations and broadcasts beside
transposes."""


@dataclass(frozen=True)
class Share:
    """A share that the characterisation gives: of ``part`` (``sampling``, or ``rest``: outside of it), 0 to 1.

    Without a ``family`` it is the share of sampling itself.
    """

    model: str
    part: str
    family: str
    share: float


SHARES = (
    Share("paulinet", "sampling", "", 0.13),
    Share("paulinet", "rest", "fused elementwise", 0.52),
    Share("paulinet", "rest", "GEMM", 0.20),
    Share("paulinet", "rest", "TRSM", 0.05),
    Share("ferminet", "sampling", "", 0.28),
    Share("ferminet", "rest", "fused elementwise", 0.29),
    Share("ferminet", "rest", "GEMM", 0.30),
    Share("psiformer", "sampling", "", 0.57),
    Share("psiformer", "sampling", "GEMM", 0.62),
    Share("psiformer", "sampling", "fused elementwise", 0.24),
    Share("psiformer", "sampling", "transpose", 0.09),
    Share("psiformer", "sampling", "TRSM", 0.032),
    Share("psiformer", "sampling", "slice and reduce", 0.01),
    Share("psiformer", "rest", "GEMM", 0.19),
    Share("psiformer", "rest", "fused elementwise", 0.14),
    Share("orbformer", "sampling", "", 0.59),
    Share("orbformer", "sampling", "GEMM", 0.31),
    Share("orbformer", "sampling", "fused elementwise", 0.38),
    Share("orbformer", "sampling", "FlashAttention (mhsea)", 0.11),
    Share("orbformer", "sampling", "transpose", 0.015),
    Share("orbformer", "rest", "GEMM", 0.093),
    Share("orbformer", "rest", "fused elementwise", 0.172),
    Share("orbformer", "rest", "FlashAttention (mhsea)", 0.036),
)
"""Observation 1 of each section."""

_NO_FLASH = "our orbformer has plain attention: no such kernel (orbformer-flash has one, for sampling only)"
_PLAIN = "our orbformer has plain attention, whose products and softmax count as GEMM, elementwise and layout"
_LANGEVIN = "our paulinet samples by Langevin transitions, each with a gradient (DeepQMC's default for it)"
_FORWARD = "our forward Laplacian is folx's, dense: its kernels decide what share is left for the rest"
_AT_ROOF = "GEMMs are modelled at the roof, the shortest that they can take; small ones take longer on a GPU"
_NO_SOLVE = "our sampling has no triangular solve: its log-determinants need LU factors alone"


def kernel_cell(model: str, target: str = "a5000") -> Cell:
    """The cell of the characterisation's kernel tables."""
    return Cell(model, "CH4", INFERENCE, target)


def share_of(figures: Figures, share: Share, target: str = "a5000") -> float:
    """Our figure for ``share``."""
    cell, families = kernel_cell(share.model, target), FAMILIES_OF.get(share.family, ())
    sampling = share.part == "sampling"

    def of_family(group: Group) -> bool:
        return group.family in families

    if not share.family:
        return figures.share(cell, _in_sampling)
    if sampling:
        return figures.share(cell, of_family, _in_sampling)
    return figures.share(cell, lambda group: of_family(group) and not _in_sampling(group))


def _in_sampling(group: Group) -> bool:
    return group.phase == SAMPLING


def _claim(share: Share) -> Claim:
    name = _NAMES[share.model]
    if not share.family:
        statement = f"{name}: sampling's share of kernel time"
    elif share.part == "sampling":
        statement = f"{name}: {share.family} within sampling"
    else:
        statement = f"{name}: {share.family} outside of sampling, of everything"
    where = f"{_SECTIONS[share.model]} Obs. 1"
    return Claim(
        where, statement, f"{100 * share.share:g} %", share_is(share.share, partial(_share, share)), _differs(share)
    )


def _share(share: Share, figures: Figures) -> float:
    return share_of(figures, share)


def _differs(share: Share) -> str:
    if "mhsea" in share.family:
        return _NO_FLASH
    if share.model == "paulinet" and share.part == "sampling":
        return _LANGEVIN
    if share.model == "psiformer" and share.part == "sampling" and share.family:
        return _NO_SOLVE if share.family == "TRSM" else _AT_ROOF
    if share.model == "orbformer" and share.part == "sampling" and share.family:
        return _PLAIN
    return _FORWARD if share.model in ("psiformer", "orbformer") else ""


def _compare(model: str, more: bool, than: str, part: str, family: str = "") -> Judge:
    """The share of ``family`` in ``part`` is larger (or smaller) in ``model`` than in the model ``than``."""

    def statements(figures: Figures) -> Statements:
        def differ() -> tuple[bool, str]:
            ours, other = (share_of(figures, Share(name, part, family, 0.0)) for name in (model, than))
            words = f"{_NAMES[model]} {100 * ours:.1f} % against {_NAMES[than]} {100 * other:.1f} %"
            return (ours > other if more else ours < other), words

        return [("", differ)]

    return holds(statements)


def _halved(model: str, than: str, family: str) -> Judge:
    """In both phases the share of ``family`` in ``model`` is half of that in the model ``than``, within a quarter."""

    def of(figures: Figures) -> Values:
        def ratio(part: str) -> float:
            ours, other = (share_of(figures, Share(name, part, family, 0.0)) for name in (model, than))
            if not other:
                raise NotMeasured([kernel_cell(than)])
            return ours / other

        return [(part, partial(ratio, part), kernel_cell(model)) for part in ("sampling", "rest")]

    return all_within(0.5, 0.5, of, " of it")


def _rises_slightly(model: str, than: str) -> Judge:
    """Sampling's share is larger in ``model`` than in the model ``than``, by at most a quarter."""

    def statements(figures: Figures) -> Statements:
        def differ() -> tuple[bool, str]:
            ours, other = (share_of(figures, Share(name, "sampling", "", 0.0)) for name in (model, than))
            words = f"{_NAMES[model]} {100 * ours:.1f} % against {_NAMES[than]} {100 * other:.1f} %"
            return other < ours <= (1 + QUARTER) * other, words

        return [("", differ)]

    return holds(statements)


def _replays(model: str, as_replay: bool) -> Callable[[Figures], Finding]:
    """The Laplacian runs its loop 3 N_e times, or nothing of it runs more than once."""

    def statements(figures: Figures) -> Statements:
        def trips(molecule: str) -> tuple[bool, str]:
            cells = [Cell(model, molecule, INFERENCE, target) for target in TARGETS]
            row = figures.row(next((cell for cell in cells if figures.has(cell)), cells[0]))
            expected, found = 3 * row["electrons"], row["most_laplacian_trips"]
            return found == (expected if as_replay else 1), f"{found} {'trip' if found == 1 else 'trips'}"

        return [(molecule, partial(trips, molecule)) for molecule in MOLECULES]

    return holds(statements)


def _largest(model: str, family: str, wanted: Callable[[Group], bool] = lambda _: True) -> Judge:
    """``family`` (ours) has more time than any other among the groups that are wanted (all of the step)."""

    def statements(figures: Figures) -> Statements:
        def largest() -> tuple[bool, str]:
            cell = kernel_cell(model)
            figures.share(cell, wanted)  # NotMeasured where a time is lacking
            found = figures.by_family(cell, wanted)
            whole = sum(work.model_us for work in found.values())
            if not whole:
                raise NotMeasured([cell])
            order = list(found)
            words = (f"{name} {100 * found[name].model_us / whole:.0f} %" for name in order[:2])
            return order[0] == family, ", ".join(words)

        return [("", largest)]

    return holds(statements)


def _memory_work(least: float) -> Judge:
    """Elementwise and data movement have at least that share of each ansatz."""
    families = ("elementwise", "layout", "gather-scatter", "reduction")

    def statements(figures: Figures) -> Statements:
        def share(model: str) -> tuple[bool, str]:
            ours = figures.share(kernel_cell(model), lambda group: group.family in families)
            return ours >= least, f"{100 * ours:.0f} %"

        return [(model, partial(share, model)) for model in MODELS]

    return holds(statements)


_OUT, _IN = "rest", "sampling"
CLAIMS = (
    *(
        Claim("II-B, Figure 2", f"{name}'s Stage E replays 3 N_e times", "3 N_e", _replays(model, True))
        for model, name in (("paulinet", "PauliNet"), ("ferminet", "FermiNet"))
    ),
    *(
        Claim("II-C", f"{name}'s Stage E is one forward pass, no replay", "1 pass", _replays(model, False))
        for model, name in (("psiformer", "Psiformer"), ("orbformer", "Orbformer"))
    ),
    *(_claim(share) for share in SHARES),
    Claim("III-C", "fused elementwise kernels have most of PauliNet's time", "largest",
          _largest("paulinet", "elementwise")),
    Claim("III-D Obs. 1", "FermiNet has more GEMM outside of sampling than PauliNet", "30 % > 20 %",
          _compare("ferminet", True, "paulinet", _OUT, "GEMM")),
    Claim("III-D Obs. 1", "FermiNet has less elementwise outside of sampling than PauliNet", "29 % < 52 %",
          _compare("ferminet", False, "paulinet", _OUT, "fused elementwise")),
    Claim("III-E Obs. 1", "GEMM dominates Psiformer's sampling", "62 %", _largest("psiformer", "gemm", _in_sampling),
          _AT_ROOF),
    Claim("III-E Obs. 1", "GEMM is Psiformer's largest component outside of sampling", "19 %",
          _largest("psiformer", "gemm", lambda group: not _in_sampling(group)), _FORWARD),
    Claim("III-E", "sampling has a larger share of Psiformer than of FermiNet", "57 % > 28 %",
          _compare("psiformer", True, "ferminet", _IN), _FORWARD),
    Claim("III-F Obs. 1", "Orbformer has less GEMM within sampling than Psiformer", "31 % < 62 %",
          _compare("orbformer", False, "psiformer", _IN, "GEMM"), _PLAIN),
    Claim("III-F Obs. 1", "GEMM's share of Orbformer is about half of that of Psiformer, in both phases",
          "31 of 62 %, 9.3 of 19 %", _halved("orbformer", "psiformer", "GEMM"), _PLAIN),
    Claim("III-F Obs. 1", "Orbformer has more elementwise within sampling than Psiformer", "38 % > 24 %",
          _compare("orbformer", True, "psiformer", _IN, "fused elementwise"), _PLAIN),
    Claim("III-F Obs. 1", "Orbformer has more elementwise outside of sampling than Psiformer", "17.2 % > 14 %",
          _compare("orbformer", True, "psiformer", _OUT, "fused elementwise"), _FORWARD),
    Claim("III-F Obs. 1", "sampling has a slightly larger share of Orbformer than of Psiformer", "59 % > 57 %",
          _rises_slightly("orbformer", "psiformer"), _FORWARD),
    Claim("III-F Obs. 1", "Orbformer has less transposition within sampling than Psiformer", "1.5 % < 9 %",
          _compare("orbformer", False, "psiformer", _IN, "transpose"), _PLAIN),
    Claim("IV, Table I", "elementwise and data movement dominate in all four", "dominate", _memory_work(0.5)),
)  # fmt: skip
