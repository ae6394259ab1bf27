"""The claims of the characterisation, which are data in ``claims.toml``, judged by our figures.

A verdict is ``confirmed``, ``contradicted``, ``not decidable`` (it hangs on the error of the model of time), ``not
testable here`` (a compiler cannot decide it) or ``not measured yet`` (a cell is not in the record). A figure agrees
when it is within a quarter of the characterisation's, a share also when it is within 2 percentage points and between
half and twice of it; a range agrees when all our figures lie in it, its ends widened by a quarter. A modelled time is
an interval (``modelled``): a claim is confirmed where all of it agrees, and contradicted where none does.

Each judge below is a predicate that claims name, with their parameters. Scaling and memory are of Section III-B and
Figure 4; shares of Figure 5, of kernel time on CH4, inference, A5000: work outside sampling as a share of everything,
work inside as a share of sampling; intensities of Figure 6, where ours are FLOPs over the operand and result bytes of
each launch, and the characterisation's are hardware counters, which include the effect of caches.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from fusionlab.characterisation.figures import SAMPLING, LaunchGroup, MatrixFigures, NotMeasured
from fusionlab.characterisation.matrix import INFERENCE, MODELS, MOLECULES, PROGRAMS, TARGETS, TRAINING, Cell
from fusionlab.characterisation.modelled import ModelledFigure, Truth, every, opposite
from fusionlab.codegen.targets import Peaks, load_target
from fusionlab.ledger.launch_rows import Totals

Verdict = Literal["confirmed", "contradicted", "not decidable", "not testable here", "not measured yet"]
VERDICTS: tuple[Verdict, ...] = ("confirmed", "contradicted", "not decidable", "not testable here", "not measured yet")

PAPER_JAX = "0.4.28"
"""The characterisation's JAX (Section III-A)."""

NOT_SHOWN = "cause not shown"
"""The beginning of ``Claim.differs`` where there is no evidence for a cause."""

QUARTER, POINTS, TWICE = 0.25, 0.02, 2.0
_MOST_LISTED, _MOST_GROUPS = 8, 3
TARGET = "a5000"
WORDS = {INFERENCE: "inference", TRAINING: "training"}


@dataclass(frozen=True)
class Finding:
    """The verdict of our figures, our figure as text, the cells that it lacks, and those that decide it."""

    verdict: Verdict
    ours: str
    lacking: tuple[Cell, ...] = ()
    deciding: tuple[Cell, ...] = ()


Judge = Callable[[MatrixFigures], Finding]
Values = Iterable[tuple[str, Callable[[], ModelledFigure]]]
"""Figures by name."""
Statements = Iterable[tuple[str, Callable[[], tuple[Truth, str]]]]
"""Statements by name: whether it holds, and the figure behind it."""


@dataclass(frozen=True)
class Claim:
    """``where`` is the section and observation, ``paper`` its figure; ``differs`` is the relevant difference between
    the two sides besides the compiler's version, printed where the claim is contradicted."""

    where: str
    statement: str
    paper: str
    judge: Judge
    differs: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and its finding."""

    claim: Claim
    finding: Finding
    kernels: str = ""
    """The kernels in question, where a contradiction has no cause that was shown."""

    def to_json(self) -> dict[str, Any]:
        """Words and figures, ready for ``json.dumps``."""
        return {
            "where": self.claim.where,
            "statement": self.claim.statement,
            "paper": self.claim.paper,
            "verdict": self.finding.verdict,
            "ours": self.finding.ours,
            "differs": self.claim.differs if self.finding.verdict == "contradicted" else "",
            "kernels": self.kernels,
            "lacking": [str(cell) for cell in self.finding.lacking],
        }


def judge_all(claims: Iterable[Claim], figures: MatrixFigures) -> list[JudgedClaim]:
    """Every claim with its finding, in their order."""
    found = ((claim, _judged(claim.judge, figures)) for claim in claims)
    return [JudgedClaim(claim, finding, _kernels_in_question(claim, finding, figures)) for claim, finding in found]


def _kernels_in_question(claim: Claim, finding: Finding, figures: MatrixFigures) -> str:
    """The groups of launches with most of the time in the first cell that decides and is measured."""
    cell = next(filter(figures.has_time, finding.deciding), None)
    if finding.verdict != "contradicted" or not claim.differs.startswith(NOT_SHOWN) or cell is None:
        return ""
    groups = sorted(figures.groups(cell), key=lambda group: -(group.model_us or 0.0))[:_MOST_GROUPS]
    whole = figures.model_ms(cell) * 1e3
    named = (
        f"{group.family} in {_place(group)} "
        f"({100 * (group.model_us or 0.0) / whole:.0f} %, {group.dynamic_launches:,} launches)"
        for group in groups
    )
    return f"{cell.model} {cell.molecule}: {', '.join(named)}"


def _place(group: LaunchGroup) -> str:
    stage = f"stage {group.stage}" if group.stage else ""
    return " of ".join(filter(None, (stage, group.phase))) or "no stage"


def _judged(judge: Judge, figures: MatrixFigures) -> Finding:
    try:
        return judge(figures)
    except NotMeasured as missing:
        return Finding("not measured yet", "", missing.cells)


def near(expected: float, ours: ModelledFigure) -> Finding:
    """A share (0 to 1) is within a quarter of the expected one; or within 2 points, and between half and twice of it: a
    share of 0 is not near one of 1 %."""
    least = min((1 - QUARTER) * expected, max(expected - POINTS, expected / TWICE))
    most = max((1 + QUARTER) * expected, min(expected + POINTS, expected * TWICE))
    return Finding(_verdict([ours.lies(least, most)], lacking=False), _percent(ours))


def within(values: Values, low: float, high: float, unit: str = "", above: float = -math.inf) -> Finding:
    """Every figure lies between ``low`` and ``high``, widened by a quarter, and is larger than ``above``.

    One outside contradicts, even if others are missing; to confirm, all must be present and inside.
    """
    there, lacking = _measured(values)
    bound = ModelledFigure.exact(above)
    found = [every([_lies_about(value, low, high), value.exceeds(bound)]) for _, value in there]
    return Finding(_verdict(found, bool(lacking)), _listed(there, unit), lacking)


def _lies_about(value: ModelledFigure, low: float, high: float) -> Truth:
    """Whether it lies between ``low`` and ``high``, widened by a quarter."""
    return value.lies(low * (1 - QUARTER), high * (1 + QUARTER))


def _is_outside(figure: Callable[[], ModelledFigure], low: float, high: float) -> bool:
    """True for a measured figure that does not lie between ``low`` and ``high``, widened by a quarter."""
    there, _ = _measured([("", figure)])
    return any(_lies_about(value, low, high) is False for _, value in there)


def holds(statements: Statements) -> Finding:
    """Every statement holds; missing cells as in ``within``."""
    there, lacking = _measured(statements)
    found = [true for _, (true, _) in there]
    words = "; ".join(f"{name} {said}".strip() for name, (_, said) in there)
    if len(there) > _MOST_LISTED:
        parts = [f"{found.count(True)} of {len(there)} hold"]
        for title, truth in (("not", False), ("not decidable", None)):
            named = [f"{name} {said}" for name, (true, said) in there if true is truth]
            more = f"; and {len(named) - _MOST_LISTED} more" * (len(named) > _MOST_LISTED)
            parts += [f"{title}: {'; '.join(named[:_MOST_LISTED])}{more}"] if named else []
        words = "; ".join(parts)
    return Finding(_verdict(found, bool(lacking)), words, lacking)


def _measured(named: Iterable[tuple[str, Callable[[], Any]]]) -> tuple[list[tuple[str, Any]], tuple[Cell, ...]]:
    """The available figures by name, and the cells missing for the rest."""
    there: list[tuple[str, Any]] = []
    lacking: list[Cell] = []
    for name, figure in named:
        try:
            there.append((name, figure()))
        except NotMeasured as missing:
            lacking += missing.cells
    return there, tuple(lacking)


def _verdict(found: Sequence[Truth], lacking: bool) -> Verdict:
    if False in found:
        return "contradicted"
    if lacking:
        return "not measured yet"
    return "not decidable" if None in found else "confirmed"


def _listed(there: Sequence[tuple[str, ModelledFigure]], unit: str) -> str:
    """Each figure by name, or the least and the most of many."""
    if len(there) > _MOST_LISTED:
        least, most = (choose(there, key=lambda one: one[1].value) for choose in (min, max))
        ends = [f"{one[1].words(_text(one[1].value))}" for one in (least, most)]
        return f"{ends[0]} ({least[0]}) to {ends[1]}{unit} ({most[0]}), {len(there)} figures"
    return "; ".join(f"{name} {value.words(_text(value.value) + unit)}" for name, value in there)


def _percent(share: ModelledFigure, digits: int = 1) -> str:
    return share.words(f"{100 * share.value:.{digits}f} %", 100)


def _text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 1 else f"{value:.1f}"


def scaling(figures: MatrixFigures, model: str, program: str, target: str) -> ModelledFigure:
    """Modelled time on C4H4 over that on LiH."""
    large, small = (Cell(model, molecule, program, target) for molecule in ("C4H4", "LiH"))
    return figures.time_ms(large) / figures.time_ms(small)


def speedup(figures: MatrixFigures, model: str, molecule: str, program: str, target: str) -> ModelledFigure:
    """Modelled time on the A5000 over that on ``target``."""
    slow, fast = (Cell(model, molecule, program, where) for where in (TARGET, target))
    return figures.ratio(slow, fast)


def untestable(figures: MatrixFigures, reason: str) -> Finding:
    """No figure of ours can decide it, for ``reason``."""
    return Finding("not testable here", reason)


def scales(figures: MatrixFigures, model: str, low: float, high: float) -> Finding:
    """The growth from LiH to C4H4 lies in the range, in both programs."""
    named = {p: partial(scaling, figures, model, p, TARGET) for p in PROGRAMS}
    found = within([(WORDS[p], figure) for p, figure in named.items()], low, high, "x")
    outside = [p for p, figure in named.items() if _is_outside(figure, low, high)]
    return replace(found, deciding=tuple(Cell(model, m, p, TARGET) for p in outside for m in ("C4H4", "LiH")))


def takes(figures: MatrixFigures, molecules: Sequence[str], low: float, high: float) -> Finding:
    """A step of every ansatz takes milliseconds in the range."""
    cells = [Cell(model, molecule, p, TARGET) for molecule in molecules for model in MODELS for p in PROGRAMS]
    named = [(f"{one.model} {one.molecule} {WORDS[one.program]}", partial(figures.time_ms, one)) for one in cells]
    found = within(named, low, high, " ms")
    return replace(found, deciding=tuple(one for one in cells if _is_outside(partial(figures.time_ms, one), low, high)))


def speeds_up(figures: MatrixFigures, target: str, low: float, high: float) -> Finding:
    """Every step is faster on ``target``, by a factor in the range."""
    every = itertools.product(MOLECULES, MODELS, PROGRAMS)
    named = [(f"{a} {m} {WORDS[p]}", partial(speedup, figures, a, m, p, target)) for m, a, p in every]
    return within(named, low, high, "x", above=1.0)


def ranks(figures: MatrixFigures, molecules: Sequence[str], model: str, place: int) -> Finding:
    """``model`` has that rank by inference time on each of ``molecules``: 0 is the fastest, -1 the slowest."""

    def statement(molecule: str) -> tuple[Truth, str]:
        times = {name: figures.time_ms(Cell(name, molecule, INFERENCE, TARGET)) for name in MODELS}
        order = sorted(times, key=lambda name: times[name].value)
        faster = [times[model].exceeds(time) for name, time in times.items() if name != model]
        surely, maybe, wanted = faster.count(True), faster.count(None), place % len(MODELS)
        found = None if surely <= wanted <= surely + maybe else False
        words = (f"{name} {times[name].words(f'{times[name].value:,.0f} ms')}" for name in order)
        return True if not maybe and surely == wanted else found, " < ".join(words)

    return holds((f"{molecule}:", partial(statement, molecule)) for molecule in molecules)


def gains_most(figures: MatrixFigures, molecule: str) -> Finding:
    """The speedup of inference over the A5000 is largest on ``molecule``."""

    def statement(model: str, target: str) -> tuple[Truth, str]:
        found = {m: speedup(figures, model, m, INFERENCE, target) for m in MOLECULES}
        best = max(found, key=lambda name: found[name].value)
        largest = every(opposite(one.exceeds(found[molecule])) for m, one in found.items() if m != molecule)
        return largest, f"most on {best} ({_times(found[best])}; {molecule} {_times(found[molecule])})"

    return holds((f"{m} {t}", partial(statement, m, t)) for t in TARGETS if t != TARGET for m in MODELS)


def _times(ratio: ModelledFigure) -> str:
    return ratio.words(f"{ratio.value:.1f}x")


def training_holds_more(figures: MatrixFigures) -> Finding:
    """Training needs more memory than inference, everywhere."""

    def statement(*where: str) -> tuple[Truth, str]:
        model, molecule, target = where
        more, less = (figures.memory_bytes(Cell(model, molecule, p, target)) for p in (TRAINING, INFERENCE))
        return more > less, f"{more / less:.2f}x"

    return holds((" ".join(one), partial(statement, *one)) for one in itertools.product(MODELS, MOLECULES, TARGETS))


def takes_alike(figures: MatrixFigures, molecules: Sequence[str], most: float) -> Finding:
    """Training and inference differ by at most ``most`` of the shorter."""

    def statement(model: str, molecule: str) -> tuple[Truth, str]:
        ratio = figures.ratio(*(Cell(model, molecule, program, TARGET) for program in (TRAINING, INFERENCE)))
        return ratio.lies(1 / (1 + most), 1 + most), ratio.words(f"{ratio.value:.2f}x", digits=2)

    return holds((f"{a} {m}", partial(statement, a, m)) for m in molecules for a in MODELS)


def differs_more(figures: MatrixFigures, molecules: Sequence[str], most: float) -> Finding:
    """The opposite of ``takes_alike``: for some ansatz they differ by more."""
    finding = takes_alike(figures, molecules, most)
    turned: dict[Verdict, Verdict] = {"confirmed": "contradicted", "contradicted": "confirmed"}
    return replace(finding, verdict=turned.get(finding.verdict, finding.verdict))


def does_not_fit(figures: MatrixFigures, model: str, molecules: Sequence[str]) -> Finding:
    """More than the card has confirms it; less decides nothing, for the process holds more than a buffer assignment."""
    memory = _peaks().memory_bytes

    def statement(molecule: str, program: str) -> tuple[Truth, str]:
        need = figures.memory_bytes(Cell(model, molecule, program, TARGET))
        return need > memory, f"needs at least {need / 2**30:.1f} of {memory / 2**30:.0f} GiB"

    finding = holds((f"{m} {WORDS[p]}", partial(statement, m, p)) for m in molecules for p in PROGRAMS)
    if finding.verdict == "contradicted":
        return Finding("not testable here", f"{finding.ours}: a buffer assignment is a lower bound", finding.lacking)
    return finding


def grows_smoothly(figures: MatrixFigures, models: Sequence[str]) -> Finding:
    """Memory grows with every molecule, and no step is larger by more than a quarter than the one before: the
    electrons' ratios fall (2.5, 1.8, 1.6). The characterisation does not define smooth."""

    def statement(model: str, program: str) -> tuple[Truth, str]:
        sizes = [figures.memory_bytes(Cell(model, molecule, program, TARGET)) for molecule in MOLECULES]
        steps = [later / earlier for earlier, later in itertools.pairwise(sizes)]
        even = all(later <= (1 + QUARTER) * earlier for earlier, later in itertools.pairwise(steps))
        return even and min(steps) > 1, " ".join(f"{size / 2**30:.2g}" for size in sizes) + " GiB"

    return holds((f"{a} {WORDS[p]}", partial(statement, a, p)) for a in models for p in PROGRAMS)


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
_NAMES = {"paulinet": "PauliNet", "ferminet": "FermiNet", "psiformer": "Psiformer", "orbformer": "Orbformer"}
_SECTIONS = {"paulinet": "III-C", "ferminet": "III-D", "psiformer": "III-E", "orbformer": "III-F"}


@dataclass(frozen=True)
class Share:
    """A share that the characterisation states: of ``part`` (``sampling``, or ``rest``: outside it), 0 to 1.

    Without a ``family`` it is the share of sampling itself.
    """

    model: str
    part: str
    family: str
    share: float

    @property
    def statement(self) -> str:
        """The claim in words."""
        if not self.family:
            return f"{_NAMES[self.model]}: sampling's share of kernel time"
        where = "within sampling" if self.part == "sampling" else "outside of sampling, of everything"
        return f"{_NAMES[self.model]}: {self.family} {where}"


def kernel_cell(model: str) -> Cell:
    """The cell of the characterisation's kernel tables."""
    return Cell(model, "CH4", INFERENCE, TARGET)


def share_of(figures: MatrixFigures, share: Share) -> ModelledFigure:
    """Our figure for ``share``."""
    cell, families = kernel_cell(share.model), FAMILIES_OF.get(share.family, ())
    if not share.family:
        return figures.modelled_share(cell, _in_sampling)
    if share.part == "sampling":
        return figures.modelled_share(cell, lambda group: group.family in families, _in_sampling)
    return figures.modelled_share(cell, lambda group: group.family in families and not _in_sampling(group))


def _in_sampling(group: LaunchGroup) -> bool:
    return group.phase == SAMPLING


def is_share(figures: MatrixFigures, share: Share) -> Finding:
    """Our share is near the characterisation's."""
    return replace(near(share.share, share_of(figures, share)), deciding=(kernel_cell(share.model),))


def compares(figures: MatrixFigures, model: str, how: str, than: str, part: str, family: str = "") -> Finding:
    """The share of ``family`` in ``part`` is ``more`` or ``less`` in ``model`` than in the model ``than``; ``slightly
    more`` is by at most a quarter."""

    def statement() -> tuple[Truth, str]:
        ours, other = (share_of(figures, Share(name, part, family, 0.0)) for name in (model, than))
        words = f"{_NAMES[model]} {_percent(ours)} against {_NAMES[than]} {_percent(other)}"
        more, widened = ours.exceeds(other), ModelledFigure(*((1 + QUARTER) * end for end in astuple(other)))
        slightly = every([more, opposite(ours.exceeds(widened))])
        return {"more": more, "less": other.exceeds(ours), "slightly more": slightly}[how], words

    return holds([("", statement)])


def halves(figures: MatrixFigures, model: str, than: str, family: str) -> Finding:
    """In both phases the share of ``family`` in ``model`` is half of that in the model ``than``, within a quarter."""

    def ratio(part: str) -> ModelledFigure:
        ours, other = (share_of(figures, Share(name, part, family, 0.0)) for name in (model, than))
        if not other.low:
            raise NotMeasured([kernel_cell(than)])
        return ours / other

    return within([(part, partial(ratio, part)) for part in ("sampling", "rest")], 0.5, 0.5, " of it")


def replays(figures: MatrixFigures, model: str, trips_per_electron: int) -> Finding:
    """The Laplacian runs its loop that often per electron; with 0, no part of it runs more than once."""

    def trips(molecule: str) -> tuple[Truth, str]:
        cells = [Cell(model, molecule, INFERENCE, target) for target in TARGETS]
        row = figures.row(next((cell for cell in cells if figures.has(cell)), cells[0]))
        found = row["most_laplacian_trips"]
        expected = trips_per_electron * row["electrons"] or 1
        return found == expected, f"{found} {'trip' if found == 1 else 'trips'}"

    return holds((molecule, partial(trips, molecule)) for molecule in MOLECULES)


def is_largest(figures: MatrixFigures, model: str, family: str, part: str = "") -> Finding:
    """``family`` (ours) has more time than any other in ``part`` (all of the step, ``sampling`` or ``rest``)."""

    def wanted(group: LaunchGroup) -> bool:
        return not part or _in_sampling(group) == (part == "sampling")

    def statement() -> tuple[Truth, str]:
        cell = kernel_cell(model)
        figures.share(cell, wanted)  # NotMeasured if a time is missing
        names = list(figures.by_family(cell, wanted))
        times = {name: figures.time_us(cell, partial(_is_of, wanted, name)) for name in names}
        shares = {name: figures.modelled_share(cell, partial(_is_of, wanted, name), wanted) for name in names[:2]}
        words = ", ".join(f"{name} {_percent(share, 0)}" for name, share in shares.items())
        if family not in times:
            return False, words
        return every(opposite(time.exceeds(times[family])) for name, time in times.items() if name != family), words

    return holds([("", statement)])


def _is_of(wanted: Callable[[LaunchGroup], bool], family: str, group: LaunchGroup) -> bool:
    return group.family == family and wanted(group)


def moves_memory(figures: MatrixFigures, least: float) -> Finding:
    """Elementwise and data movement have at least that share of each ansatz."""
    families = ("elementwise", "layout", "gather-scatter", "reduction")

    def share(model: str) -> tuple[Truth, str]:
        ours = figures.modelled_share(kernel_cell(model), lambda group: group.family in families)
        return ours.lies(least, 1.0), _percent(ours, 0)

    return holds((model, partial(share, model)) for model in MODELS)


def clusters(figures: MatrixFigures, model: str, low: float, high: float) -> Finding:
    """More than half of the families of ``model`` that compute anything lie between ``low`` and ``high`` FLOP/byte."""

    def most() -> tuple[Truth, str]:
        found = {
            family: work.intensity_flop_per_byte
            for family, work in figures.by_family(kernel_cell(model)).items()
            if work.flops and work.bytes
        }
        inside = [value for value in found.values() if low <= value <= high]
        words = ", ".join(f"{family} {value:.2g}" for family, value in found.items())
        return len(inside) > len(found) / 2, f"{len(inside)} of {len(found)}: {words}"

    return holds([("", most)])


def has_denser_gemms(figures: MatrixFigures, higher: str, lower: Sequence[str]) -> Finding:
    """GEMMs of ``higher`` have more FLOPs per byte than those of each of ``lower``."""

    def more(other: str) -> tuple[Truth, str]:
        ours, theirs = (
            _intensity(model, figures.by_family(kernel_cell(model)).get("gemm", Totals())) for model in (higher, other)
        )
        return ours > theirs, f"{ours:.1f} against {theirs:.1f} ({other})"

    return holds((higher, partial(more, other)) for other in lower)


def is_memory_bound(figures: MatrixFigures, models: Sequence[str]) -> Finding:
    """Most of the modelled time lies in families under the ridge of the A5000."""
    peaks = _peaks()
    ridge = peaks.fp32_flops_per_s / peaks.memory_bytes_per_s

    def statement(model: str) -> tuple[Truth, str]:
        cell = kernel_cell(model)
        works = figures.by_family(cell).items()
        under = {family for family, work in works if work.intensity_flop_per_byte < ridge}
        ours = figures.modelled_share(cell, lambda group: group.family in under)
        return ours.exceeds(ModelledFigure.exact(0.5)), _percent(ours, 0)

    return holds((model, partial(statement, model)) for model in models)


def is_more_memory_bound(figures: MatrixFigures, model: str, than: str) -> Finding:
    """``model`` has fewer FLOPs per byte over all its launches. Time under the ridge would not decide: Psiformer's
    GEMMs together lie on it."""

    def statement() -> tuple[Truth, str]:
        ours, other = (
            _intensity(name, sum(figures.by_family(kernel_cell(name)).values(), start=Totals()))
            for name in (model, than)
        )
        return ours < other, f"{_NAMES[model]} {ours:.1f} against {_NAMES[than]} {other:.1f} FLOP/byte"

    return holds([("", statement)])


def _intensity(model: str, work: Totals) -> float:
    if not work.bytes:
        raise NotMeasured([kernel_cell(model)])
    return work.intensity_flop_per_byte


def _peaks() -> Peaks:
    peaks = load_target(TARGET).peaks
    assert peaks is not None
    return peaks


_JUDGES: Mapping[str, Callable[..., Finding]] = {
    judge.__name__.replace("_", "-"): judge
    for judge in (
        untestable, scales, takes, speeds_up, ranks, gains_most, training_holds_more, takes_alike, differs_more,
        does_not_fit, grows_smoothly, compares, halves, replays, is_largest, moves_memory, clusters, has_denser_gemms,
        is_memory_bound, is_more_memory_bound,
    )
}  # fmt: skip


def _read(content: Mapping[str, Any]) -> Iterator[Claim]:
    for entry in content["claim"]:
        if "shares" in entry:
            for one in entry["shares"]:
                share = _share(one)
                where, paper = f"{_SECTIONS[share.model]} {entry['where']}", f"{100 * share.share:g} %"
                judge = partial(is_share, share=share)
                yield Claim(where, share.statement, paper, judge, content["differs"].get(one.get("differs"), ""))
            continue
        words = {name: entry[name] for name in ("where", "statement", "paper")}
        given = {name: value for name, value in entry.items() if name not in (*words, "judge", "differs")}
        differs = content["differs"][entry["differs"]] if "differs" in entry else ""
        yield Claim(**words, judge=partial(_JUDGES[entry["judge"]], **given), differs=differs)


def _share(one: Mapping[str, Any]) -> Share:
    return Share(one["model"], one["part"], one.get("family", ""), one["share"])


_CONTENT = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))
CLAIMS: tuple[Claim, ...] = tuple(_read(_CONTENT))
SHARES: tuple[Share, ...] = tuple(_share(one) for entry in _CONTENT["claim"] for one in entry.get("shares", ()))
"""Observation 1 of each section."""


def stated(judge: str, key: str) -> dict[str, str]:
    """The characterisation's figures in the claims of one judge, by their parameter ``key``."""
    return {entry[key]: entry["paper"].removesuffix("x") for entry in _CONTENT["claim"] if entry.get("judge") == judge}
