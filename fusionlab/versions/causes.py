"""The pass or the flag of XLA that accounts for a difference between two versions.

Two experiments. On the newer side each pass that changes the program is switched off, and each flag set as the older
version has it, one at a time: what makes an older figure return accounts for it. If nothing does, the same pass is
switched off on both sides: where both versions then have the same figure, the pass itself has changed. For passes that
only the older version ran, the older side is looked at: without the pass it has the newer figure.
"""

from __future__ import annotations

import functools
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fusionlab.codegen.targets import Target
from fusionlab.errors import CompileError
from fusionlab.hlo.program import Program
from fusionlab.versions.compiling import FULL_CONFIGURATION, Options, compiles, default_options
from fusionlab.versions.environments import JaxEnvironment

Figures = Mapping[str, float | None]
"""Name to value, of one compile; None for what is not known."""

RETURNS, ALIKE, GONE = "returns", "alike", "gone"
_DISABLED = "xla_disable_hlo_passes"
_LISTING: dict[str, str | int | bool] = {"xla_dump_hlo_pass_re": ".*", **FULL_CONFIGURATION}
_PASS = re.compile(r"\.after_([\w.-]+?)(?:\.before_[\w.-]+)?\.txt$")
_FLAG = re.compile(r"^  (xla_\w+): (.*)$", re.MULTILINE)
_FLAG_NAME = re.compile(rb"xla_gpu_[a-z0-9_]+")
_NOT_PASSES = ("pipeline-start", "pipeline-end")
_NOT_CAUSES = re.compile(
    r"dump|profile|cache|log|print|dir|_path|parallelism|threads|timeout|autotun|deviceless|cuda_data|nccl"
)
"""Flags that change no code, or that a device decides."""
_LEAST_SHARE = 0.02
"""A figure differs by more than this share of it, launches and copies by any number."""
_COUNTS = ("launches", "copies", "cas_loops")
_MOST_LEFT = 0.1
"""The share of a difference that may be left when a figure counts as returned."""


@dataclass(frozen=True)
class Cause:
    """The answer for one ``figure`` that went from ``older`` to ``newer``.

    ``by`` names passes and flags, the one that returns most figures first, empty for none of the ``tried``. ``how`` is
    RETURNS (``trial`` is the newer side without it), ALIKE (both sides are the same without it: ``trial`` is that
    figure) or GONE (the older side without it has the newer figure).
    """

    figure: str
    older: float
    newer: float
    by: tuple[str, ...]
    how: str
    trial: float | None
    tried: int


@dataclass(frozen=True)
class Candidate:
    """One thing to try: a pass to switch off, or a flag to set; ``label`` is its name for people."""

    label: str
    options: Options


@dataclass(frozen=True)
class Side:
    """One version, with the ``figures`` of its default compile, the passes that change the program, its ``flags`` that
    are not zero, and the names of those ``unset``."""

    where: JaxEnvironment
    figures: Figures
    passes: tuple[str, ...]
    flags: Mapping[str, str]
    unset: tuple[str, ...] = ()


Measure = Callable[[JaxEnvironment, Sequence[Options]], Iterator[Figures | None]]
"""The figures of the program compiled there with each of the options; None where XLA cannot."""


def listed(program: Program, target: Target, where: JaxEnvironment, figures: Figures) -> Side:
    """The passes of that version that change ``program``, in order, and its flags, both from its own dump."""
    with compiles(program, target, where, [{**default_options(where), **_LISTING}]) as made:
        first = next(made)
        if first.compiled is None:
            raise CompileError(first.reason)
        flags = flags_in(first.folder)
        unset = sorted(set(flag_names(first.plugin)) - set(flags))
        return Side(where, figures, passes_in(first.folder), flags, tuple(unset))


def passes_in(folder: Path) -> tuple[str, ...]:
    """The passes that changed the module, in order, by the names of dumped files."""
    found = (_PASS.search(path.name) for path in sorted(folder.iterdir()))
    return tuple(dict.fromkeys(match[1] for match in found if match and match[1] not in _NOT_PASSES))


def flags_in(folder: Path) -> dict[str, str]:
    """The flags that are not zero, with their values as text, by the dumped configuration of the module."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*config.pbtxt")):
        for name, value in _FLAG.findall(path.read_text("utf-8", "replace")):
            found[name] = f"{found[name]},{value.strip(chr(34))}" if name in found else value.strip(chr(34))
    return found


@functools.cache
def flag_names(plugin: Path) -> frozenset[str]:
    """The names in the CUDA plugin that look like those of flags for GPUs: its dump has none that are false."""
    found: set[bytes] = set()
    for path in plugin.glob("*.so"):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found |= set(_FLAG_NAME.findall(content))
    return frozenset(name.decode() for name in found)


def candidates(older: Side, newer: Side) -> list[Candidate]:
    """What to try on the newer side: flags whose values differ, then passes, those that only it runs first."""
    flags = [*_flags(older.flags, newer.flags)] if older.flags else []  # JAX 0.4 does not say its own
    names = sorted(newer.passes, key=lambda name: name in older.passes)
    return [*flags, *(_without(name, newer.flags) for name in names)]


def switches(newer: Side) -> list[Candidate]:
    """All switches of the newer side, the other way round: what is true off, what is not set on."""
    on = [name for name, value in newer.flags.items() if value == "true" and name.startswith("xla_gpu")]
    names = [(name, False) for name in on] + [(name, True) for name in newer.unset]
    return [
        Candidate(f"{name}={str(value).lower()}", {name: value})
        for name, value in names
        if not _NOT_CAUSES.search(name)
    ]


def _flags(older: Mapping[str, str], newer: Mapping[str, str]) -> Iterator[Candidate]:
    for name in sorted({*older, *newer}):
        old, new = older.get(name), newer.get(name)
        if old == new or _NOT_CAUSES.search(name) or name == _DISABLED:
            continue
        # A flag that is not in the text has the zero of its type.
        value = (
            old if old is not None else {"true": "false"}.get(str(new), "0" if str(new).lstrip("-").isdigit() else "")
        )
        yield Candidate(f"{name}={value or chr(34) * 2}", {name: {"true": True, "false": False}.get(value, value)})


def _without(name: str, flags: Mapping[str, str]) -> Candidate:
    kept = [one for one in flags.get(_DISABLED, "").split(",") if one]
    return Candidate(f"pass {name}", {_DISABLED: ",".join([*kept, name])})


def differing(older: Figures, newer: Figures) -> dict[str, tuple[float, float]]:
    """The figures that differ enough to look for a cause, with both values."""
    found = {}
    for name, new in newer.items():
        old = older.get(name)
        if old is None or new is None or old == new:
            continue
        if name in _COUNTS or abs(new - old) > _LEAST_SHARE * max(abs(old), abs(new)):
            found[name] = (old, new)
    return found


def causes(older: Side, newer: Side, measure: Measure, *, all_switches: bool = True) -> tuple[Cause, ...]:
    """A cause, or none, for each figure that differs between the sides.

    ``all_switches``: where no pass and no flag with another default accounts for a figure, try every switch of XLA:GPU.
    """
    gaps = differing(older.figures, newer.figures)
    trials, found, tried = _Trials(measure), dict[str, Cause](), 0
    for experiment in (_returning, _gone, *([_switched] if all_switches else []), _alike):
        left = {name: gap for name, gap in gaps.items() if name not in found}
        if not left:
            break
        how, count, named = experiment(older, newer, left, trials)
        tried += count
        found |= {name: _cause(name, left[name], by, how, tried) for name, by in named.items() if by}
    none = {name: Cause(name, *gap, (), "", None, tried) for name, gap in gaps.items()}
    return tuple(found.get(name, cause) for name, cause in none.items())


_Named = list[tuple[Candidate, float | None]]
"""Candidates that account for a figure, the likeliest first, each with the figure of its trial."""
_Gaps = Mapping[str, tuple[float, float]]


@dataclass
class _Trials:
    """Compiles that were made once."""

    measure: Measure
    known: dict[tuple[str, str], Figures | None] = field(default_factory=dict)

    def of(self, side: Side, tried: Sequence[Candidate]) -> list[Figures | None]:
        """The figures of each of ``tried`` on that side."""
        version = side.where.version
        new = [one for one in tried if (version, one.label) not in self.known]
        made = self.measure(side.where, [one.options for one in new]) if new else ()
        self.known |= {(version, one.label): each for one, each in zip(new, made, strict=True)}
        return [self.known[version, one.label] for one in tried]


def _returning(older: Side, newer: Side, gaps: _Gaps, trials: _Trials) -> tuple[str, int, dict[str, _Named]]:
    """A pass or a flag of ``candidates`` that makes an older figure return on the newer side."""
    return RETURNS, *_tried(newer, candidates(older, newer), gaps, older.figures, trials)


def _gone(older: Side, newer: Side, gaps: _Gaps, trials: _Trials) -> tuple[str, int, dict[str, _Named]]:
    """Passes that only the older side runs, without which it has a newer figure."""
    tried = [_without(name, older.flags) for name in older.passes if name not in newer.passes]
    return GONE, *_tried(older, tried, {name: gap[::-1] for name, gap in gaps.items()}, newer.figures, trials)


def _switched(older: Side, newer: Side, gaps: _Gaps, trials: _Trials) -> tuple[str, int, dict[str, _Named]]:
    """Any switch that makes an older figure return on the newer side."""
    return RETURNS, *_tried(newer, switches(newer), gaps, older.figures, trials)


def _tried(
    side: Side, tried: Sequence[Candidate], gaps: _Gaps, wanted: Figures, trials: _Trials
) -> tuple[int, dict[str, _Named]]:
    """The number of ``tried``, and those of them by which that side has the ``wanted`` figure of each gap."""
    made = trials.of(side, tried)
    return len(tried), {name: _reaching(name, gap, tried, made, wanted) for name, gap in gaps.items()}


def _alike(older: Side, newer: Side, gaps: _Gaps, trials: _Trials) -> tuple[str, int, dict[str, _Named]]:
    """Passes of both sides, without which both have the same figure."""
    tried = [_without(name, newer.flags) for name in newer.passes if name in older.passes]
    pairs = [*zip(tried, trials.of(older, tried), trials.of(newer, tried), strict=True)]
    found = {
        name: [
            (one, new[name])
            for one, old, new in pairs
            if old is not None and new is not None and _left(old.get(name), new.get(name), gap) <= _MOST_LEFT
        ]
        for name, gap in gaps.items()
    }
    return ALIKE, 0, found


def _reaching(
    name: str,
    gap: tuple[float, float],
    tried: Sequence[Candidate],
    figures: Sequence[Figures | None],
    wanted: Figures,
) -> _Named:
    """The candidates by which the figure ``name`` returns to the first of ``gap``, those first by which most other
    figures return, too."""
    found = []
    for one, each in zip(tried, figures, strict=True):
        if each is not None and _left(wanted.get(name), each.get(name), gap) <= _MOST_LEFT:
            others = sum(each.get(other) == value for other, value in wanted.items())
            found.append((-others, one, each.get(name)))
    return [(one, value) for _, one, value in sorted(found, key=lambda each: each[0])]


def _left(one: float | None, other: float | None, gap: tuple[float, float]) -> float:
    """The difference of two figures as a share of ``gap``."""
    return 1.0 if one is None or other is None else abs(one - other) / abs(gap[1] - gap[0])


def _cause(name: str, gap: tuple[float, float], by: _Named, how: str, tried: int) -> Cause:
    return Cause(name, *gap, tuple(one.label for one, _ in by), how, by[0][1], tried)
