"""``fusionlab launches``: the ledger of a compiled program, for one target or several side by side.

What is printed is one ``facts.launch_facts.LaunchFacts`` per target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, make_all

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.codegen.targets import Target
    from fusionlab.facts.launch_facts import LaunchFacts
    from fusionlab.study import Circumstances


@click.command("launches")
@options.source
@options.targets
@options.by("scope[:depth], op, source, caller, transform, stage, role, phase, family, kind, loop, ...")
@click.option("--groups", default=30, show_default=True, type=click.IntRange(min=0), help="How many groups to list.")
@click.option(
    "--sites", default=15, show_default=True, type=click.IntRange(min=0), help="How many launch sites to list."
)
@click.option("--kernels", is_flag=True, help="Times and reads by the code of kernels (GPUs; slower).")
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    by: tuple[str, ...],
    groups: int,
    sites: int,
    kernels: bool,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> dict[str, Any]:
    """List kernel launches by scope, op or source line, with costs."""
    loaded, given, targets = load_facts(source, several=True, **where)
    return launches(loaded, targets, by, sites, given, console, groups=groups, kernels=kernels, verbose=verbose)


def launches(
    source: Source,
    targets: Sequence[Target],
    by: Sequence[str],
    sites: int,
    given: Circumstances,
    console: Console,
    *,
    groups: int = 30,
    kernels: bool = False,
    verbose: bool = False,
) -> dict[str, Any]:
    """Print the verdict, totals ``by`` views and the ``sites`` slowest launch sites (0: none), if there are launches.

    Without ``by``, the view is the first of ``views.DEFAULTS`` that says something. At most ``groups`` of the totals
    are printed (0: all); ``kernels`` adds what the code of the sites does, and times by it; ``verbose`` adds the origin
    of the figures. Returns the ``--json`` document for one target, ``{"targets": [...]}`` for several.
    InputError for an unknown view, before anything is compiled, and for ``kernels`` where there is no code of kernels.
    The document is a ledger that ``diff`` reads.
    """
    from fusionlab.facts.launch_facts import LaunchFacts
    from fusionlab.ledger.views import require_views

    require_views(by)
    made = make_all(source, targets, given, ptx=kernels)
    found = [LaunchFacts.of(one.compiled, one.program, by, one.notes, kernels=kernels) for one in made]
    if len(found) == 1:
        _print_one(found[0], sites, groups, verbose, console)
    else:
        _print_several(found, groups, verbose, console)
    documents = [one.to_dict() for one in found]
    return documents[0] if len(documents) == 1 else {"targets": documents}


def _print_one(found: LaunchFacts, sites: int, most: int, verbose: bool, console: Console) -> None:
    console.print(found.verdict, style="bold", soft_wrap=True, markup=False)
    found.table(most).print(console)
    _not_shown(len(found.groups), most, console)
    if sites and found.rows:
        found.site_table(sites).print(console)
    _print_notes((*found.legend(sites=bool(sites)), *(found.notes if verbose else found.qualifications)), console)


def _not_shown(groups: int, most: int, console: Console) -> None:
    from fusionlab.report.tables import note

    if most and groups > most:
        note(console, f"{groups - most} more groups; --groups 0 shows all, --by scope:1 has fewer")


def _print_several(found: Sequence[LaunchFacts], most: int, verbose: bool, console: Console) -> None:
    from fusionlab.facts.launch_facts import time_cell
    from fusionlab.ledger.launch_rows import Totals
    from fusionlab.ledger.views import totals_by
    from fusionlab.report.tables import print_rows
    from fusionlab.units import TIMES, unit_for

    unit, per = unit_for(max(one.totals.model_us or 0.0 for one in found), TIMES)
    names, by = [one.record.target for one in found], found[0].by
    grouped = [totals_by(one.rows, by) for one in found]
    keys = list(dict.fromkeys(key for groups in grouped for key in groups))
    sums = [(" ".join(key), [groups.get(key, Totals()) for groups in grouped]) for key in keys[: most or None]]
    sums.append(("all", [one.totals for one in found]))
    columns = [f"{name} {what}" for name in names for what in ("launches", f"model {unit}")]
    body = [
        [name, *(cell for one in of for cell in (f"{one.dynamic_launches:,}", time_cell(one, per)))]
        for name, of in sums
    ]
    for one in found:
        console.print(one.verdict, style="bold", soft_wrap=True, markup=False)
    print_rows("", (" ".join(by), *columns), body, console)
    _not_shown(len(keys), most, console)
    noted = [one.notes if verbose else one.qualifications for one in found]
    shared = [line for line in noted[0] if all(line in other for other in noted)]
    of_one = [
        f"{one.record.target}: {line}"
        for one, lines in zip(found, noted, strict=True)
        for line in lines
        if line not in shared
    ]
    _print_notes((*found[0].legend(sites=False), *shared, *of_one), console)


def _print_notes(lines: Sequence[str], console: Console) -> None:
    from fusionlab.report.tables import note

    for line in lines:
        note(console, line)
