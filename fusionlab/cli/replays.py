"""``fusionlab replays``: the inventory of loops: the replays, what they carry, and the outcome of each rewrite."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, require_program

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.codegen.laplacian.sparsity import Time
    from fusionlab.hlo.program import Program
    from fusionlab.hlo.replay import Replay
    from fusionlab.hlo.view import Node
    from fusionlab.study import Circumstances

REWRITES = ("licm", "batch-replay", "transpose-replay", "collapse-replay", "sparsify-directions")
"""The rewrites tried, each alone on the original program; names not in PASSES are left out."""

_SHOWN_BLOCKED = 3
_WHY = ("cause", "op", "instead")


@click.command("replays")
@options.source
@options.targets
@click.option("--rewrites/--no-rewrites", default=True, help="Try each rewrite and say what blocks it.")
@options.verb
def command(source: dict[str, Any], rewrites: bool, console: Console, where: dict[str, Any]) -> dict[str, Any]:
    """List loops: trips, seed, residuals, and what blocks rewriting."""
    loaded, given, _ = load_facts(source, **where)
    return replays(loaded, rewrites, given, console)


def replays(source: Source, rewrites: bool, given: Circumstances, console: Console) -> dict[str, Any]:
    """Print one block per replay and the reasons of the other loops; nothing is compiled.

    With ``rewrites`` every rewrite is tried, and its change or the reason against it printed.
    """
    from fusionlab.hlo.loops import with_numbered_loops
    from fusionlab.hlo.program import program_view
    from fusionlab.hlo.replay import inventory
    from fusionlab.ledger.time.model import time_by_rows
    from fusionlab.study import lower

    program = with_numbered_loops(lower(require_program(source, "replays"), given))
    given.progress(f"inventory: {program.ops:,} ops")
    loops = inventory(program_view(program))
    events = _events(program, given) if rewrites and any(not loop.blockers for loop in loops) else []
    documents = [_document(loop, events) for loop in loops]
    for document in documents:
        if document["is_replay"]:
            _print(document, console, time_by_rows(given.target))
    _print_blocked([document for document in documents if not document["is_replay"]], console)
    if not loops:
        console.print(f"{program.name} has no loop, so no replay")
    return {"name": program.name, "target": given.target.name, "loops": documents}


def _events(program: Program, given: Circumstances) -> list[dict[str, Any]]:
    from fusionlab.hlo.loops import loop_number, without_numbers
    from fusionlab.passes.catalogue import PASSES, find_pass
    from fusionlab.passes.interface import Applied, Setting
    from fusionlab.passes.pipeline import run_pipeline
    from fusionlab.study import event_documents

    found, setting = [], Setting()
    for name in REWRITES:
        if name in PASSES:
            given.progress(f"trying {name}")
            found += [(event, name) for event in run_pipeline(program, [find_pass(name)()], setting).events]
    return [
        {
            "rewrite": name,
            "would": event.what if isinstance(event, Applied) else None,
            "sparsity": document.get("sparsity"),
            "kind": None if isinstance(event, Applied) else event.kind,
            "blocked_by": None if isinstance(event, Applied) else event.reason,
            **{name: None if isinstance(event, Applied) else without_numbers(getattr(event, name)) for name in _WHY},
            "location": without_numbers(event.location),
            "loop_number": loop_number(event.location),
        }
        for (event, name), document in zip(
            found, event_documents([event for event, _ in found], given.target), strict=True
        )
    ]


def _document(loop: Replay, events: list[dict[str, Any]]) -> dict[str, Any]:
    from fusionlab.hlo.cost import program_cost
    from fusionlab.hlo.loops import loop_number, without_numbers
    from fusionlab.hlo.view import Region
    from fusionlab.passes.refusals import Refusal, ground_of_blocker

    whys = [Refusal(ground_of_blocker(one), one.reason, one.node).of("", "") for one in loop.blockers]
    body = list(loop.loop.body.operations())
    pushed = [node for node in body if not loop.varying.isdisjoint(node.results)]
    once = program_cost(loop.loop.body)
    number = loop_number(loop.loop.node.scope)
    return {
        "location": without_numbers(loop.loop.node.scope),
        "loop_number": number,
        "is_replay": not loop.blockers,
        "blockers": [why.reason for why in whys],
        "refusals": [{name: without_numbers(getattr(why, name)) for name in ("reason", *_WHY)} for why in whys],
        "trip_count": loop.trips,
        "trip_count_reason": loop.loop.trips_reason,
        "seed": loop.seed.description if loop.seed else None,
        "accumulated_terms": loop.terms,
        "body_ops": loop.body_ops,
        "direction_ops": len(pushed),
        "direction_families": _families(pushed),
        "recomputed_ops": len(loop.recomputed),
        "recomputed_flops_per_trip": program_cost(Region((), list(loop.recomputed))).flops,
        "recomputed_families": _families(loop.recomputed),
        "residuals": len(loop.residuals),
        "residual_bytes": loop.residual_bytes,
        "shared_values": len(loop.shared),
        "shared_bytes": loop.shared_bytes,
        "flops_per_trip": once.flops,
        "unfused_bytes_per_trip": once.bytes,
        "rewrites": [event for event in events if event["loop_number"] == number],
    }


def _families(nodes: Iterable[Node]) -> dict[str, int]:
    return dict(Counter(node.family for node in nodes).most_common())


def _print(found: dict[str, Any], console: Console, time: Time) -> None:
    from fusionlab.codegen.laplacian.sparsity import Sparsity
    from fusionlab.passes.interface import explained
    from fusionlab.units import flop_words

    recomputed = "nothing"
    if families := found["recomputed_families"]:
        flops = flop_words(found["recomputed_flops_per_trip"])
        recomputed = f"{found['recomputed_ops']:,} ops ({_most(families, 4)}), {flops} per trip"
    rows = [
        ("trips", f"{found['trip_count']:,}"),
        ("seed", found["seed"]),
        ("accumulates", f"{found['accumulated_terms']} term(s) per trip"),
        ("body", f"{found['body_ops']:,} ops, {flop_words(found['flops_per_trip'])} per trip (model)"),
        (
            "linear part: ops that see the direction",
            f"{found['direction_ops']:,} ({_most(found['direction_families'], 6)})",
        ),
        ("invariant but recomputed in every trip", recomputed),
        ("residuals (per walker), read in every trip", _sized(found["residuals"], found["residual_bytes"])),
        ("weights, constants, tables", _sized(found["shared_values"], found["shared_bytes"])),
    ]
    told = set()
    for event in found["rewrites"]:
        words = event["would"] or f"blocked ({event['kind']}): {event['blocked_by']}"
        rows.append((f"rewrite {event['rewrite']}", words))
        if event["sparsity"] and event["rewrite"] == "sparsify-directions":
            first, *lost = Sparsity.from_json(event["sparsity"]).lines(time)
            rows += [("  its directions", first), *(("", line) for line in lost)]
        if (why := explained(*(event[name] for name in _WHY))) and why not in told:
            rows.append(("", why))
            told.add(why)
    console.print(f"replay at {found['location']}", style="bold", soft_wrap=True)
    for label, words in rows:
        console.print(f"  {label:<42} {words}", soft_wrap=True)


def _most(families: dict[str, int], most: int) -> str:
    return ", ".join(f"{count} {name}" for name, count in list(families.items())[:most])


def _sized(count: int, size_bytes: int) -> str:
    from fusionlab.bytesize import size_words

    return f"{count:,} values, {size_words(size_bytes)}"


def _print_blocked(found: list[dict[str, Any]], console: Console) -> None:
    """Print the largest loops that are no replays, with the reasons."""
    from fusionlab.passes.interface import explained

    ordered = sorted(found, key=lambda one: -one["body_ops"])
    for one in ordered[:_SHOWN_BLOCKED]:
        trips = "unknown trips" if one["trip_count"] is None else f"{one['trip_count']} trips"
        reasons = "; ".join((*one["blockers"], explained(*(one["refusals"][0][name] for name in _WHY))))
        words = f"not a replay: a loop of {trips}, {one['body_ops']} ops, at {one['location']}: {reasons}"
        console.print(textwrap.fill(words, 118, subsequent_indent="  ", break_on_hyphens=False), soft_wrap=True)
    if len(ordered) > _SHOWN_BLOCKED:
        console.print(f"and {len(ordered) - _SHOWN_BLOCKED} smaller loops that are no replays (--json lists them)")
