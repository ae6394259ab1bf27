"""The launches of a function compiled for a target, which may be absent, and assertions about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fusionlab import jax_setup
from fusionlab.bytesize import ByteSize, size_words
from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import Compiled, compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError, unknown
from fusionlab.hlo.name_stacks import frames
from fusionlab.hlo.program import Program
from fusionlab.hlo.source_text import source_text
from fusionlab.hlo.stages import LEGEND
from fusionlab.ledger.dataflow import members
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.ledger import LaunchCounts, LaunchSite, count_launches, launches
from fusionlab.ledger.memory import MemoryRecord, memory_record
from fusionlab.ledger.refusals import refusals
from fusionlab.ledger.saved import ledger_record
from fusionlab.ledger.views import default_views, is_staged, place, require_views, totals_by
from fusionlab.testing.lowered import program_of
from fusionlab.testing.noted import ledgers_of_test
from fusionlab.units import counted

LIBRARY = frozenset(
    {"gemm", "triangular-solve", "factorisation", "attention", "sort", "rng", "fft", "collective", "custom"}
)
"""Families whose launches are calls of a library or kernels of their own: XLA fuses nothing into them."""
_MOST_ROWS = 40
_MOST_SHOWN = 12
"""The rows of a ledger's text, and of an assertion's message."""
_MOST_CODE = 80
"""Characters of a source line in a message."""


@dataclass(frozen=True, repr=False)
class Ledger:
    """The launches of a compiled function. ``rows`` are its launch sites in XLA's order, copies apart.

    ``counts`` has static and dynamic launches and copies (trips of loops multiplied, those of unknown count as one).
    ``is_own``: the program was lowered here, so that the files it names are the user's and may be quoted.
    """

    program: Program
    compiled: Compiled
    is_own: bool = False

    def __repr__(self) -> str:
        return f"<ledger of {self.title}>"

    @property
    def title(self) -> str:
        """The function and the target, e.g. ``loss on a100``."""
        return f"{self.program.name} on {self.compiled.target.name}"

    @cached_property
    def code(self) -> dict[str, str]:
        """The text of the function's source lines, by ``model.py:12``; none of a program that was not lowered here."""
        return source_text(self.program) if self.is_own else {}

    @property
    def dynamic_launches(self) -> int:
        """Kernel launches of one call, trips of loops multiplied; copies and memsets are none."""
        return self.counts.dynamic_launches

    @property
    def temp_bytes(self) -> int:
        """XLA's temporary memory, bytes."""
        return self.compiled.memory.temp_bytes

    @cached_property
    def memory(self) -> MemoryRecord:
        """Temporary memory buffer by buffer; for the CPU this compiles once more. InputError where XLA says nothing."""
        if self.compiled.buffer_assignment:
            return memory_record(self.compiled)
        return memory_record(compile_program(self.program, self.compiled.target, dump=True, cache=default_cache()))

    @cached_property
    def counts(self) -> LaunchCounts:
        """The totals."""
        return count_launches(self.compiled)

    @cached_property
    def rows(self) -> tuple[LaunchRow, ...]:
        """One row per launch site."""
        return launch_rows(self.compiled)

    @cached_property
    def sites(self) -> tuple[LaunchSite, ...]:
        """Every launch and copy."""
        return launches(self.compiled)

    @cached_property
    def scopes(self) -> dict[str, frozenset[str]]:
        """By launch name, the names of every ``jax.named_scope`` and function that contributes to that launch."""
        found = {}
        for site in self.sites:
            place_ = self.compiled.module.find(site.computation, site.hlo_name)
            names = [member.op_name for member in members(self.compiled.module, place_[1])] if place_ else []
            found[site.hlo_name] = frozenset(frame.name for name in names for frame in frames(name))
        return found

    def launches_by(self, *views: str) -> dict[tuple[str, ...], int]:
        """Dynamic launches by ``views``: ``scope`` (``scope:2``: the outermost two), ``source``, ``op``, ``transform``,
        ``stage``, ``family``, ...; without any, by the first that says something about this function. The most first.

        InputError for an unknown view.
        """
        require_views(views)
        groups = totals_by(self.rows, views or default_views(self.rows))
        counts = {key: found.dynamic_launches for key, found in groups.items()}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    def text(self, *, without: Collection[str] = ()) -> str:
        """The ledger as a table: totals, launches by family and by origin, and the sites that run most often.

        Sites named in ``without`` are left out.
        """
        counts = self.counts
        views = default_views(self.rows)
        unknown_trips = counts.unknown_trip_loops
        return "\n".join(
            [
                f"{self.title}: {counted(counts.dynamic_launches, 'launch', 'launches')} of "
                f"{counted(counts.static_launches, 'site', 'sites')}, "
                f"{counted(counts.dynamic_copies, 'copy or memset', 'copies and memsets')}, "
                f"{size_words(self.temp_bytes)} of temp memory "
                f"(launches: {counts.launch_source})",
                *([f"loops of unknown trip count, taken as one trip: {unknown_trips}"] if unknown_trips else []),
                *(
                    f"{total.dynamic_launches:>8,}  {family}"
                    for (family,), total in totals_by(self.rows, ["family"]).items()
                ),
                f"by {', '.join(views)}:",
                *(f"{count:>8,}  {' '.join(key)}" for key, count in [*self.launches_by(*views).items()][:_MOST_ROWS]),
                "other launch sites:" if without else "launch sites:",
                *_lines([row for row in self.rows if row.name not in without], _MOST_ROWS, self.code),
            ]
        )

    def _failure(self, what: str, rows: Sequence[LaunchRow], more: Iterable[str] = ()) -> AssertionError:
        """The failure of an assertion on ``rows``, those that run most often shown with their source lines."""
        lines = [f"{self.title}: {what}", *_lines(rows, _MOST_SHOWN, self.code), *list(more)[:_MOST_SHOWN]]
        return AssertionError(LedgerMessage(lines, self, [row.name for row in _most(rows)[:_MOST_SHOWN]]))

    def _of_scope(self, scope: str | None) -> tuple[LaunchRow, ...]:
        if scope is None:
            return self.rows
        found = tuple(row for row in self.rows if scope in self.scopes.get(row.name, ()))
        if not found:
            raise unknown("scope of a launch", scope, sorted(set().union(*self.scopes.values())))
        return found


class LedgerMessage(str):
    """The message of a failed assertion on a ``ledger``; ``shown`` are the names of the launch sites in it."""

    ledger: Ledger
    shown: frozenset[str]

    def __new__(cls, lines: Iterable[str], ledger: Ledger, shown: Iterable[str]) -> LedgerMessage:
        """The message of ``lines``."""
        made = super().__new__(cls, "\n".join(lines))
        made.ledger, made.shown = ledger, frozenset(shown)
        return made


def _most(rows: Sequence[LaunchRow]) -> list[LaunchRow]:
    """The launch sites, those that run most often first."""
    return sorted(rows, key=lambda row: -row.dynamic_launches)


def _lines(rows: Sequence[LaunchRow], most: int, code: Mapping[str, str]) -> list[str]:
    """The launch sites that run most often, a line each: count, name, origin and the text of the source line. A legend
    where the origin is a stage."""
    lines, staged = [], is_staged(rows)
    for row in _most(rows)[:most]:
        loop = f" in {row.loop}" if row.loop else ""
        where = place(row, staged)
        words = ", ".join(filter(None, (row.family, where, "" if staged else row.transform, row.source)))
        lines.append(f"{row.dynamic_launches:>8,}  {row.name} ({words}){loop}{_quoted(row.source, code)}")
    more = [f"          and {len(rows) - most} more"] if len(rows) > most else []
    return [*lines, *more, *([LEGEND] if staged else [])]


def _quoted(source: str, code: Mapping[str, str]) -> str:
    """The text of a source line, after what it belongs to; "" where it is not known."""
    text = code.get(source, "")
    return f"  | {text[:_MOST_CODE]}{'...' * (len(text) > _MOST_CODE)}" if text else ""


def ledger(fn: Any, args: Sequence[Any] = (), *, target: str = "a100") -> Ledger:
    """Lower and compile ``fn`` for ``target`` and count its launches; nothing runs, and no GPU is needed.

    ``fn`` is a function (jitted or not) of ``args``, which may be ``jax.ShapeDtypeStruct``; or a ``jax.stages.Traced``,
    a Workload or a Program, without ``args``. ``target`` is ``a100``, ``a5000``, ``h100``, ``h200``, ``cpu``,
    ``gpu`` (the attached one) or a spec file. InputError for an unknown target, or where JAX's CUDA plugin is missing;
    CompileError where XLA fails.
    """
    jax_setup.load_jax()
    chosen = load_target(target)
    program = program_of(fn, args, chosen.kind)
    made = Ledger(program, compile_program(program, chosen, cache=default_cache()), not isinstance(fn, Program))
    if (noted := ledgers_of_test.get()) is not None:
        noted.append(made)
    return made


def assert_launches(fn: Any, args: Sequence[Any] = (), *, at_most: int, target: str = "a100") -> Ledger:
    """AssertionError where one call of ``fn`` launches more than ``at_most`` kernels on ``target``.

    Trips of loops are multiplied; copies and memsets are no launches. A loop whose trip count is not known at compile
    time fails. ``fn``, ``args`` and ``target`` are as for ``ledger``, whose result is returned.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    made = ledger(fn, args, target=target)
    if made.counts.unknown_trip_loops:
        raise made._failure("its launches are not known: a loop has no known trip count", made.rows)
    if made.dynamic_launches > at_most:
        raise made._failure(
            f"{counted(made.dynamic_launches, 'launch', 'launches')}, at most {at_most:,} allowed", made.rows
        )
    return made


def assert_temp_memory(fn: Any, args: Sequence[Any] = (), *, at_most: int | str, target: str = "a100") -> Ledger:
    """AssertionError where XLA gives ``fn`` more than ``at_most`` of temporary memory on ``target``.

    ``at_most`` is in bytes, or a size as ``"512MiB"``. The message has the largest buffers at the peak with their
    source lines. ``fn``, ``args`` and ``target`` are as for ``ledger``, whose result is returned. InputError for a size
    that is none.
    """
    __tracebackhide__ = True
    most = ByteSize.parse(at_most) if isinstance(at_most, str) else at_most
    made = ledger(fn, args, target=target)
    if made.temp_bytes > most:
        what = f"{size_words(made.temp_bytes)} of temp memory, at most {size_words(most)} allowed"
        raise AssertionError("\n".join([f"{made.title}: {what}", *_held_lines(made)]))
    return made


def _held_lines(made: Ledger) -> list[str]:
    """The largest buffers at the peak of memory, a line each."""
    try:
        found = made.memory
    except InputError as error:
        return [str(error)]
    buffers = found.peak.buffers
    lines = [f"held at launch {found.peak.launch:,} of {found.launches:,}:"]
    for one in buffers[:_MOST_SHOWN]:
        where = f" ({one.place})" if one.place else ""
        lines.append(f"{size_words(one.bytes):>10}  {one.title}{where}{_quoted(one.source, made.code)}")
    return [*lines, *([f"            and {len(buffers) - _MOST_SHOWN} more"] if len(buffers) > _MOST_SHOWN else [])]


def assert_no_layout_copies(
    fn: Any, args: Sequence[Any] = (), *, at_most: int = 0, scope: str | None = None, target: str = "a100"
) -> Ledger:
    """AssertionError where kernels of ``fn`` only move data: transpositions, concatenations, copies of arrays.

    Counted are launches of the family ``layout`` and XLA's copies on the device, trips of loops multiplied, not
    memsets. ``scope`` (a ``jax.named_scope``) restricts it to kernels with an op of that scope; ops that XLA introduced
    belong to no scope. InputError for a scope that no launch carries.
    """
    __tracebackhide__ = True
    made = ledger(fn, args, target=target)
    rows = [row for row in made._of_scope(scope) if row.family == "layout" and row.dynamic_launches]
    copies = [site for site in made.sites if site.kind == "kCopy" and site.dynamic and scope is None]
    count = sum(row.dynamic_launches for row in rows) + sum(site.dynamic for site in copies)
    if count > at_most:
        where = f" in scope {scope}" if scope else ""
        what = f"{count:,} kernels and copies{where} only move data, at most {at_most:,} allowed"
        raise made._failure(what, rows, _copy_lines(made, {site.hlo_name for site in copies}))
    return made


def _copy_lines(made: Ledger, names: Collection[str]) -> list[str]:
    """The copies of these names, a line each."""
    lines = []
    for one in ledger_record(made.compiled).copies:
        if one.name in names:
            where = f" ({one.source})" if one.source else ""
            lines.append(f"{one.dynamic_copies:>8,}  copy {one.name}{where}{_quoted(one.source, made.code)}")
    return lines


def assert_fused(
    fn: Any, args: Sequence[Any] = (), *, scope: str = "stage_e", at_most: int = 1, target: str = "a100"
) -> Ledger:
    """AssertionError where the ops of ``fn`` under ``jax.named_scope(scope)`` are more than ``at_most`` launches.

    Counted are launches with an op of the scope, trips of loops multiplied, except those of a library (``LIBRARY``:
    contractions, factorisations, solves), which XLA cannot fuse. So a replay that is still a loop fails by its trips.
    The message has XLA's reasons for the remaining boundaries. Ops that XLA introduced belong to no scope. InputError
    for a scope that no launch carries.
    """
    __tracebackhide__ = True
    made = ledger(fn, args, target=target)
    rows = [row for row in made._of_scope(scope) if row.family not in LIBRARY and row.dynamic_launches]
    count = sum(row.dynamic_launches for row in rows)
    if count > at_most:
        known, kernels = refusals(made.compiled, made.rows), {row.name for row in rows}
        found = [one for one in known.found if one.kernel in kernels] if known is not None else []
        reasons = dict.fromkeys(
            f"XLA kept {one.kernel}{f' ({one.source})' * bool(one.source)} apart: {one.cause}" for one in found
        )
        what = f"scope {scope} is {counted(count, 'launch', 'launches')} beside libraries', at most {at_most:,} allowed"
        raise made._failure(what, rows, reasons)
    return made
