"""The tables beside the characterisation's Figures 4, 5 and 6, and the page (``page.md``) with them and the claims."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fusionlab.characterisation.claims import (
    PAPER_JAX,
    SHARES,
    TARGET,
    VERDICTS,
    WORDS,
    JudgedClaim,
    Share,
    kernel_cell,
    scaling,
    share_of,
    speedup,
    stated,
)
from fusionlab.characterisation.deciding import version_may_explain
from fusionlab.characterisation.figures import SAMPLING, LaunchGroup, MatrixFigures, NotMeasured
from fusionlab.characterisation.matrix import MODELS, MOLECULES, PROGRAMS, TARGETS, Cell, MatrixSetup
from fusionlab.characterisation.modelled import ModelledFigure
from fusionlab.characterisation.old_compiler import OLD_JAX, ClaimOfCompiler
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.time.constants import ESTIMATED_FAMILIES

NOTHING = "-"


@dataclass(frozen=True)
class PaperTable:
    """A title, a line of explanation, columns (the first ``words`` hold words), rows of text."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def matrix_tables(figures: MatrixFigures) -> list[PaperTable]:
    """Beside Figure 4: time, launches and memory of every cell, and the measured times where there are any."""
    tables = [
        _matrix(
            "Time of one step (ms, model)",
            "Sum of the modelled times of all kernels.",
            lambda cell: f"{figures.model_ms(cell):,.1f}",
        ),
        _matrix(
            "Kernel launches of one step",
            "XLA's thunk list, trips multiplied; copies and memsets are not launches.",
            lambda cell: f"{figures.row(cell)['dynamic_launches']:,}",
        ),
        _matrix(
            "Memory (GiB)",
            "Arguments, results and temporaries by XLA's buffer assignment.",
            lambda cell: f"{figures.memory_bytes(cell) / 2**30:,.2f}",
        ),
    ]
    if any(figures.measured_ms(cell) is not None for cell in figures.rows):
        tables.append(
            _matrix(
                "Time of one step (ms, measured)",
                "Device time from the records of `fusionlab bench`, mean of the runs.",
                lambda cell: _number(figures.measured_ms(cell), 1),
            )
        )
    return tables


def ratio_tables(figures: MatrixFigures) -> list[PaperTable]:
    """Beside Figure 4: growth from LiH to C4H4, and gains over the A5000."""
    grown, gained = stated("scales", "model"), stated("speeds-up", "target")
    pairs = [(program, target) for program in PROGRAMS for target in TARGETS]
    faster = [(program, target) for program, target in pairs if target != "a5000"]
    growth = [
        (model, grown[model], *(_figure(partial(scaling, figures, model, *pair), "{:.1f}") for pair in pairs))
        for model in MODELS
    ]
    gains = [
        (model, molecule, *(_figure(partial(speedup, figures, model, molecule, *pair), "{:.2f}") for pair in faster))
        for model in MODELS
        for molecule in MOLECULES
    ]
    ranges = ("characterisation", "", *(gained[target] for _, target in faster))
    return [
        PaperTable(
            "Time on C4H4 over time on LiH (model)",
            "The characterisation's range is over training and inference on the A5000.",
            ("", "characterisation", *(f"{WORDS[p]} {t}" for p, t in pairs)),
            tuple(growth),
        ),
        PaperTable(
            "Time on the A5000 over time on the other GPUs (model)",
            "The characterisation's ranges are over everything it ran.",
            ("", "molecule", *(f"{WORDS[p]} {t}" for p, t in faster)),
            (*gains, ranges),
            words=2,
        ),
    ]


def share_tables(figures: MatrixFigures) -> list[PaperTable]:
    """Beside Figure 5: shares of modelled time, where the characterisation states one, and of all our families."""

    def stated(share: Share) -> tuple[str, ...]:
        ours = _or_nothing(lambda: f"{100 * share_of(figures, share).value:.1f}")
        part = share.part if share.family else "all"
        return share.model, part, share.family or "sampling", f"{100 * share.share:g}", ours

    return [
        PaperTable(
            f"Shares of kernel time that the characterisation gives (%, CH4, inference, {TARGET})",
            "Outside of sampling (rest) as a share of everything, within sampling as a share of sampling.",
            ("ansatz", "part", "family", "characterisation", "ours (model)"),
            tuple(map(stated, SHARES)),
            words=3,
        ),
        _every_share(figures),
    ]


def intensity_table(figures: MatrixFigures) -> PaperTable:
    """Beside Figure 6: FLOP per byte of the families, and the share of the compute roof that each reaches."""
    peaks = load_target(TARGET).peaks
    assert peaks is not None
    families = _families(figures)

    def cell_of(model: str, family: str) -> str:
        work = figures.by_family(kernel_cell(model)).get(family)
        if work is None or not work.bytes:
            return NOTHING
        near = work.flops / (work.model_us * 1e-6) / peaks.fp32_flops_per_s if work.model_us else 0.0
        return f"{work.intensity_flop_per_byte:.3g} ({100 * near:.0f} %)"

    rows = [(family, *(_or_nothing(partial(cell_of, model, family)) for model in MODELS)) for family in families]
    ridge = peaks.fp32_flops_per_s / peaks.memory_bytes_per_s
    return PaperTable(
        f"FLOP per byte by family, in brackets of the compute roof (CH4, inference, {TARGET}, model)",
        f"Under {ridge:.0f} FLOP/byte, where the roofs meet, the memory bounds. GEMMs are modelled at the roof.",
        ("family", *MODELS),
        tuple(rows),
    )


def claims_table(judged: Sequence[JudgedClaim]) -> PaperTable:
    """Each claim with the characterisation's figure, ours and the verdict."""
    return PaperTable(
        "Claims of the characterisation",
        "",
        ("where", "claim", "characterisation", "ours", "verdict"),
        tuple(
            (one.claim.where, one.claim.statement, one.claim.paper, _ours(one), one.finding.verdict) for one in judged
        ),
        words=5,
    )


def _ours(one: JudgedClaim) -> str:
    finding = one.finding
    if finding.verdict == "not measured yet":
        some = f"{finding.ours}; " if finding.ours else ""
        return f"{some}{len(finding.lacking)} {'cell' if len(finding.lacking) == 1 else 'cells'} lacking"
    return finding.ours


def _every_share(figures: MatrixFigures) -> PaperTable:
    def text(model: str, family: str, sampling: bool) -> str:
        cell = kernel_cell(model)

        def wanted(group: LaunchGroup) -> bool:
            return group.family == family and (group.phase == SAMPLING) == sampling

        found = figures.share(cell, wanted)
        return f"{100 * found:.1f}" if found else NOTHING

    families = _families(figures)
    rows = [
        (model, part, *(_or_nothing(partial(text, model, family, part == "sampling")) for family in families))
        for model in MODELS
        for part in ("sampling", "rest")
    ]
    return PaperTable(
        f"Shares of everything by our families (%, CH4, inference, {TARGET}, model)",
        "Each ansatz within sampling and outside of it.",
        ("", "part", *families),
        tuple(rows),
        words=2,
    )


def _families(figures: MatrixFigures) -> list[str]:
    """The families that any ansatz launches, those with most time first."""
    time: dict[str, float] = {}
    for model in MODELS:
        if figures.has(kernel_cell(model)):
            for family, work in figures.by_family(kernel_cell(model)).items():
                time[family] = time.get(family, 0.0) + (work.model_us or 0.0)
    return sorted(time, key=lambda family: -time[family])


def _matrix(title: str, note: str, text: Callable[[Cell], str]) -> PaperTable:
    pairs = [(program, target) for program in PROGRAMS for target in TARGETS]
    rows = [
        (model, molecule, *(_or_nothing(partial(text, Cell(model, molecule, *pair))) for pair in pairs))
        for model in MODELS
        for molecule in MOLECULES
    ]
    return PaperTable(title, note, ("", "molecule", *(f"{WORDS[p]} {t}" for p, t in pairs)), tuple(rows), words=2)


def _figure(figure: Callable[[], ModelledFigure], form: str) -> str:
    return _or_nothing(lambda: form.format(figure().value))


def _or_nothing(figure: Callable[[], str]) -> str:
    try:
        return figure()
    except NotMeasured:
        return NOTHING


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def page(
    record: str,
    given: MatrixSetup,
    versions: Sequence[str],
    measured: int,
    missing: int,
    tables: Sequence[PaperTable],
    judged: Sequence[JudgedClaim],
    exactly: Sequence[JudgedClaim],
    of_compiler: Sequence[ClaimOfCompiler],
) -> str:
    """Markdown. ``given`` are the circumstances of all rows, ``versions`` those of the rows, ``measured`` the number of
    cells with a measured time, ``missing`` that of the 96 cells not in the record. ``exactly`` are the claims judged by
    times without an error, ``of_compiler`` the same by two versions of the compiler, in one order."""
    text = Path(__file__).with_name("page.md").read_text("utf-8")
    filled = text.format(
        given=_given(given),
        record=record,
        paper_jax=PAPER_JAX,
        versions="; ".join(versions) or "unknown",
        measured=""
        if measured
        else "There is no record of a measured step of these programs on one of these GPUs yet.",
        missing=f"{96 - missing} of 96 cells are measured; `-` is a figure that is not there yet." if missing else "",
        counts=counts(judged) + ".",
        surviving=surviving(judged, exactly),
        factors=_factors(),
        claims=markdown(_claims(judged, of_compiler)),
        old_jax=OLD_JAX,
        of_compiler=_of_compiler(judged, of_compiler),
        tables="\n\n".join(map(_section, tables)),
    )
    return re.sub("\n{3,}", "\n\n", "\n".join(map(_wrapped, filled.splitlines()))).rstrip() + "\n"


def counts(judged: Sequence[JudgedClaim]) -> str:
    """The number of claims by verdict."""
    found = Counter(one.finding.verdict for one in judged)
    return f"{len(judged)} claims: " + ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS)


def surviving(judged: Sequence[JudgedClaim], exactly: Sequence[JudgedClaim]) -> str:
    """How many contradictions and confirmations by modelled times are left within their error."""
    said = []
    for verdict, noun in (("contradicted", "contradictions"), ("confirmed", "confirmations")):
        before = [one for one, plain in zip(judged, exactly, strict=True) if plain.finding.verdict == verdict]
        kept = sum(one.finding.verdict == verdict for one in before)
        said.append(f"{kept} of {len(before)} {noun}")
    return f"{' and '.join(said)} by the modelled times as they stand survive the error of the model"


def _factors() -> str:
    """The range of measured over modelled time of each family."""
    named = (f"{family} {least:g} to {most:g}" for family, (least, most) in ESTIMATED_FAMILIES.items())
    return ", ".join(named)


def markdown(table: PaperTable) -> str:
    """The rows as a Markdown table."""
    head = [_row(table.columns), _row(["---"] * table.words + ["---:"] * (len(table.columns) - table.words))]
    return "\n".join([*head, *map(_row, table.rows)])


def _section(table: PaperTable) -> str:
    return f"### {table.title}\n\n{table.note}\n\n{markdown(table)}"


def _claims(judged: Sequence[JudgedClaim], of_compiler: Sequence[ClaimOfCompiler]) -> PaperTable:
    """The table of claims, with the verdicts in bold and the causes of contradictions."""
    table = claims_table(judged)
    rows = [
        (*row[:-1], f"**{row[-1]}**" + (f": {_cause(one, both)}" if one.finding.verdict == "contradicted" else ""))
        for row, one, both in zip(table.rows, judged, of_compiler, strict=True)
    ]
    return replace(table, rows=tuple(rows))


def _given(found: MatrixSetup) -> str:
    size = "" if found.size == "full" else f"{found.size} widths, "
    return f"{size}{found.walkers:,} walkers, {found.dtype}"


def _of_compiler(judged: Sequence[JudgedClaim], of_compiler: Sequence[ClaimOfCompiler]) -> str:
    """How many contradictions are the compiler's, by the older version."""
    pairs = zip(judged, of_compiler, strict=True)
    found = Counter(both.verdict for one, both in pairs if version_may_explain(one.claim, one.finding))
    open_ones = found["not decidable"] + found["agrees"]
    return f"shown for {found['shown']} of {found.total()}, excluded for {found['not']}, open for {open_ones}"


def _cause(one: JudgedClaim, both: ClaimOfCompiler) -> str:
    if not version_may_explain(one.claim, one.finding):
        return "; ".join(filter(None, (one.claim.differs, one.kernels and f"most time of {one.kernels}")))
    causes = [
        one.claim.differs or "times are modelled",
        _COMPILER[both.verdict].format(old=OLD_JAX, why=both.open_because),
    ]
    return "; ".join(causes)


_COMPILER = {
    "shown": "differs by compiler version: JAX {old} confirms it",
    "not": "not XLA's version: JAX {old} contradicts it, too",
    "agrees": "or differs by compiler version (open: by the roofline today's figures do not contradict it)",
    "not decidable": "or differs by compiler version (open: {why})",
}
"""The last cause of a contradiction, by the verdict of two versions."""


def _wrapped(line: str) -> str:
    """A bullet in lines of at most 120 characters."""
    return textwrap.fill(line.rstrip(), 120, subsequent_indent="  ") if line.startswith("- ") else line


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
