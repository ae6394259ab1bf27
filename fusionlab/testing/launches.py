"""Assertions about the launches of a function compiled for a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionlab.errors import unknown
from fusionlab.ledger.launch_rows import LaunchRow
from fusionlab.ledger.refusals import refusals
from fusionlab.testing.ledger import Ledger, ledger, line_of

LIBRARY = frozenset(
    {"gemm", "triangular-solve", "factorisation", "attention", "sort", "rng", "fft", "collective", "custom"}
)
"""Families whose launches are calls of a library or kernels of their own: XLA fuses nothing into them."""
_SHOWN = 12


def assert_launches(fn: Any, args: Sequence[Any] = (), *, at_most: int, target: str = "a100") -> Ledger:
    """AssertionError where one call of ``fn`` launches more than ``at_most`` kernels on ``target``.

    Trips of loops are multiplied; copies and memsets are no launches. A loop whose trip count is not known at compile
    time fails. ``fn``, ``args`` and ``target`` are as for ``ledger``, whose result is returned.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    made = ledger(fn, args, target=target)
    if made.counts.unknown_trip_loops:
        raise AssertionError(_said(made, "its launches are not known: a loop has no known trip count", made.rows))
    if made.dynamic_launches > at_most:
        raise AssertionError(_said(made, f"{made.dynamic_launches:,} launches, at most {at_most:,} allowed", made.rows))
    return made


def assert_no_layout_copies(
    fn: Any, args: Sequence[Any] = (), *, at_most: int = 0, scope: str | None = None, target: str = "a100"
) -> Ledger:
    """AssertionError where kernels of ``fn`` only move data: transpositions, concatenations, copies of arrays.

    Counted are launches of the family ``layout`` and XLA's copies on the device, trips of loops multiplied, not
    memsets. ``scope`` (a ``jax.named_scope``) restricts it to kernels with an op of that scope; ops that XLA introduced
    belong to no scope. InputError for a scope that no launch carries.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    made = ledger(fn, args, target=target)
    rows = [row for row in _of_scope(made, scope) if row.family == "layout" and row.dynamic_launches]
    copies = [site for site in made.sites if site.kind == "kCopy" and site.dynamic and scope is None]
    count = sum(row.dynamic_launches for row in rows) + sum(site.dynamic for site in copies)
    if count > at_most:
        where = f" in scope {scope}" if scope else ""
        text = _said(made, f"{count:,} kernels and copies{where} only move data, at most {at_most:,} allowed", rows)
        raise AssertionError("\n".join([text, *(f"{s.dynamic:>8,}  copy {s.hlo_name}" for s in copies[:_SHOWN])]))
    return made


def assert_fused(
    fn: Any, args: Sequence[Any] = (), *, scope: str = "stage_e", at_most: int = 1, target: str = "a100"
) -> Ledger:
    """AssertionError where the ops of ``fn`` under ``jax.named_scope(scope)`` are more than ``at_most`` launches.

    Counted are launches with an op of the scope, trips of loops multiplied, except those of a library (``LIBRARY``:
    contractions, factorisations, solves), which XLA cannot fuse. So a replay that is still a loop fails by its trips.
    The message has XLA's reasons for the remaining boundaries. Ops that XLA introduced belong to no scope. InputError
    for a scope that no launch carries.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    made = ledger(fn, args, target=target)
    rows = [row for row in _of_scope(made, scope) if row.family not in LIBRARY and row.dynamic_launches]
    count = sum(row.dynamic_launches for row in rows)
    if count > at_most:
        text = _said(made, f"scope {scope} is {count:,} launches beside libraries', at most {at_most:,} allowed", rows)
        raise AssertionError("\n".join([text, *_reasons(made, {row.name for row in rows})]))
    return made


def _of_scope(made: Ledger, scope: str | None) -> tuple[LaunchRow, ...]:
    if scope is None:
        return made.rows
    found = tuple(row for row in made.rows if scope in made.scopes.get(row.name, ()))
    if not found:
        raise unknown("scope of a launch", scope, sorted(set().union(*made.scopes.values())))
    return found


def _said(made: Ledger, what: str, rows: Sequence[LaunchRow]) -> str:
    most = sorted(rows, key=lambda row: -row.dynamic_launches)
    lines = [f"{made.program.name} on {made.compiled.target.name}: {what}", *map(line_of, most[:_SHOWN])]
    return "\n".join([*lines, *([f"          and {len(most) - _SHOWN} more"] if len(most) > _SHOWN else [])])


def _reasons(made: Ledger, kernels: set[str]) -> list[str]:
    known = refusals(made.compiled, made.rows)
    if known is None:
        return []
    lines = [f"XLA kept {one.kernel} apart: {one.cause}" for one in known.found if one.kernel in kernels]
    return list(dict.fromkeys(lines))[:_SHOWN]
