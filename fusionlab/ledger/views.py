"""Views of the ledger: what launches are grouped by. One table for every command.

A view reads one label from a row. ``scope`` has a depth (``scope:2``: the two outermost scopes); phase, stage and role
are the view of wavefunction programs, whose scopes are stages.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fusionlab.errors import InputError, unknown
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.stages import has_stages
from fusionlab.ledger.launch_rows import LaunchRow, Totals, totals, totals_of

UNATTRIBUTED = "unattributed"


@dataclass(frozen=True)
class LaunchView:
    """One way to group launches: ``label`` reads the group of a row, "" where it is unknown."""

    label: Callable[[LaunchRow], str]
    meaning: str


def _field(name: str, meaning: str) -> LaunchView:
    return LaunchView(lambda row: str(getattr(row, name)), meaning)


def _stage(row: LaunchRow) -> str:
    return row.stage or ("-" if row.is_attributed else "")


def _in_cuda_graph(row: LaunchRow) -> str:
    return {True: "graph", False: "alone", None: "unknown"}[row.in_cuda_graph]


VIEWS: dict[str, LaunchView] = {
    "scope": _field("scope", "named scopes and jitted functions, as a path; scope:N is the outermost N"),
    "op": _field("op", "the JAX primitive (without a name: the HLO opcode)"),
    "source": _field("source", "the innermost line of user code"),
    "caller": _field("caller", "the innermost line outside of installed packages"),
    "transform": _field("transform", "primal, jvp, transpose, as they nest"),
    "batched": LaunchView(lambda row: str(read_name(row.op_name).batched) if row.op_name else "", "vmap around it"),
    "phase": _field("phase", "mcmc, laplacian, potential, wavefunction or optimiser"),
    "stage": LaunchView(_stage, "A to E"),
    "role": _field("role", "primal, tangent, cotangent, tangent-of-cotangent"),
    "family": _field("family", "the kind of kernel"),
    "name": _field("name", "the HLO instruction"),
    "kind": _field("kind", "XLA's thunk"),
    "loop": LaunchView(lambda row: row.loop or "outside", "the loops around it"),
    "trip_count": _field("trip_count", "runs"),
    "in_cuda_graph": LaunchView(_in_cuda_graph, "inside a CUDA graph, or alone"),
    "model_source": _field("model_source", "where the modelled time comes from"),
    "attributed_by": _field("attributed_by", "how the origin was found"),
}
"""Every name of ``--by``."""

DEFAULTS: tuple[tuple[str, ...], ...] = (("phase", "stage", "role"), ("scope",), ("source",), ("op",))
"""The views by default: the first that says something."""
_ENOUGH = 0.5
"""A view says something if at least this share of the launches has a label of its own."""
_MOST_GROUPS = 30
"""The default depth of scopes is the greatest that makes no more groups than this."""


def parse_view(text: str) -> LaunchView:
    """The view that ``--by`` names, with its depth. InputError for an unknown one."""
    name, colon, depth = text.partition(":")
    if name not in VIEWS:
        raise unknown("view", name, tuple(VIEWS))
    if not colon:
        return VIEWS[name]
    if name != "scope" or re.fullmatch(r"[1-9]\d{0,3}", depth, re.ASCII) is None:
        raise InputError(f"--by {text}: a depth is a positive number, and only scope has one, as in scope:2")
    return LaunchView(functools.partial(_scope_to, int(depth)), VIEWS[name].meaning)


def require_views(names: Sequence[str]) -> None:
    """InputError for a name that is no view."""
    for name in names:
        parse_view(name)


def default_views(rows: Sequence[LaunchRow]) -> tuple[str, ...]:
    """The first of DEFAULTS that says something about ``rows``: stages where scopes are stages, else the scope where
    most launches have one, else the source line where there are several, else the op."""
    if is_staged(rows):
        return DEFAULTS[0]
    runs = sum(row.dynamic_launches for row in rows)
    scoped, sourced = (
        runs and sum(row.dynamic_launches for row in rows if says(row)) >= _ENOUGH * runs
        for says in (lambda row: read_name(row.op_name).scopes, lambda row: row.source)
    )
    if scoped:
        return (_scopes_that_fit(rows),)
    return DEFAULTS[2] if sourced and len({row.source for row in rows}) > 1 else DEFAULTS[3]


def _scopes_that_fit(rows: Sequence[LaunchRow]) -> str:
    names = [read_name(row.op_name) for row in rows]
    deepest = max((len(name.scopes) for name in names), default=0)
    fitting = (
        depth for depth in range(deepest, 0, -1) if len({name.scope_to(depth) for name in names}) <= _MOST_GROUPS
    )
    depth = next(fitting, 1)
    return "scope" if depth >= deepest else f"scope:{depth}"


def is_staged(rows: Iterable[LaunchRow]) -> bool:
    """True if scopes of the program are stages of a wavefunction."""
    return has_stages(row.op_name for row in rows)


def label(row: LaunchRow, view: str) -> str:
    """The text of a table's cell: the group of ``row``, with a word for an unknown origin."""
    return parse_view(view).label(row) or UNATTRIBUTED


def place(row: LaunchRow, staged: bool) -> str:
    """The origin of one launch in few words: stage and role in a program with stages, else scope and op."""
    if staged:
        return " ".join(filter(None, (row.stage and f"stage {row.stage}", row.role)))
    return "/".join(filter(None, (row.scope, row.op)))


def totals_by(rows: Iterable[LaunchRow], views: Sequence[str]) -> dict[tuple[str, ...], Totals]:
    """Sums per combination of ``views``, the slowest first (by launches where there is no time).

    InputError for a name that is no view.
    """
    read = [parse_view(name).label for name in views]
    groups: dict[tuple[str, ...], Totals] = {}
    for row in rows:
        key = tuple(one(row) or UNATTRIBUTED for one in read)
        groups[key] = groups.get(key, Totals()) + totals_of(row)
    return dict(sorted(groups.items(), key=lambda item: (-(item[1].model_us or 0), -item[1].dynamic_launches, item[0])))


def coverage_words(rows: Sequence[LaunchRow]) -> str:
    """The share of launches whose origin is known, as a sentence: by stages where there are stages."""
    found = totals(rows)
    runs = max(1, found.dynamic_launches)
    if is_staged(rows):
        return (
            f"{found.attributed_launches / runs:.1%} of dynamic launches carry phase, stage and role "
            f"({found.attributed_by_readers_launches / runs:.1%} those of their readers)"
        )
    return (
        f"{found.scoped_launches / runs:.1%} of dynamic launches carry a scope, "
        f"{found.sourced_launches / runs:.1%} a source line"
    )


def _scope_to(depth: int, row: LaunchRow) -> str:
    return read_name(row.op_name).scope_to(depth)
