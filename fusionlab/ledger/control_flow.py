"""What control flow costs: round trips to the host, branches, copies per trip, and updates in place.

A GPU's ``while`` whose trip count is not known at compile time copies its predicate to the host before each trip, and a
``conditional`` its index: the host waits for the device, unless a CUDA graph holds them. A CPU reads both where they
are. A ``cond`` whose predicate is batched by ``vmap`` is no conditional any more: JAX makes it a ``select_n`` by an
integer, and every branch runs. A ``jnp.select`` under ``vmap`` looks the same, and runs all its cases, too. XLA makes
one kernel of a small loop for the CPU, whose trips are no launches then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fusionlab.bytesize import size_words
from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.parser import HloModule
from fusionlab.ledger.buffer_copies import buffer_copies
from fusionlab.ledger.dataflow import instructions, members
from fusionlab.ledger.ledger import ControlSite, LaunchSite, Reading
from fusionlab.ledger.origins import Origin, Origins
from fusionlab.ledger.traffic import updates_in_place
from fusionlab.units import counted

HOST_TRIP, BRANCHES, EVERY_BRANCH, ONE_KERNEL, COPY_PER_TRIP, IN_PLACE = (
    "host round trip",
    "counted branch",
    "every branch runs",
    "loop in one kernel",
    "copy per trip",
    "update in place",
)
"""The kinds of facts, in the order in which they are printed."""


@dataclass(frozen=True)
class ControlFact:
    """One fact, of a ``kind``, about the HLO instruction ``name``; ``words`` say it in a line, without its place.

    ``runs`` are the times that it happens in a call, a loop of unknown trip count taken as one trip; ``bytes`` those of
    one run: copied, updated, or read by the host. ``array_bytes`` is the whole array of an update in place, else 0.
    """

    kind: str
    name: str
    loop: str
    runs: int
    bytes: int
    array_bytes: int
    words: str
    scope: str
    op: str
    source: str


def control_facts(compiled: Compiled, origins: Origins, reading: Reading | None = None) -> tuple[ControlFact, ...]:
    """The facts about ``compiled``, whose origins are ``origins``: kind by kind, each in the program's order.

    A ``reading`` of ``compiled`` saves another one.
    """
    reading = Reading(compiled) if reading is None else reading
    sites, launched = reading.control_sites, reading.launches
    loops = {one.hlo_name: one for one in sites if one.is_loop}
    return (
        *(_host_trips(compiled, sites, loops, origins) if compiled.target.kind == "cuda" else ()),
        *_counted_branches(compiled.module, sites, origins),
        *_every_branch(compiled.module, origins),
        *_loops_in_kernels(compiled.module, launched, origins),
        *_copies_per_trip(compiled, launched, loops, origins),
        *_updates(compiled.module, launched, loops, origins),
    )


def _fact(
    kind: str, name: str, path: tuple[str, ...], runs: int, words: str, origin: Origin, **size: int
) -> ControlFact:
    return ControlFact(
        kind=kind,
        name=name,
        loop="/".join(path),
        runs=runs,
        bytes=size.get("moved", 0),
        array_bytes=size.get("whole", 0),
        words=words,
        scope=read_name(origin.op_name).scope,
        op=origin.op,
        source=origin.source,
    )


def _host_trips(
    compiled: Compiled, sites: tuple[ControlSite, ...], loops: dict[str, ControlSite], origins: Origins
) -> Iterator[ControlFact]:
    for site in sites:
        if not site.runs or site.in_cuda_graph or (site.is_loop and site.trips is not None):
            continue
        moved, what = (1, "predicate") if site.is_loop else _index(compiled.module, site)
        often = "before each trip" if site.is_loop else _trips(site.path, loops) or _times(site.runs)
        unless = ", unless a CUDA graph holds it" if site.in_cuda_graph is None else ""
        words = f"{site.hlo_name}: its {what} goes to the host {often}, and the host waits for it{unless}"
        origin = _origin(compiled.module, site, origins)
        yield _fact(HOST_TRIP, site.hlo_name, site.path, site.runs, words, origin, moved=moved)


def _index(module: HloModule, site: ControlSite) -> tuple[int, str]:
    """The size and name of what a conditional goes by."""
    place = module.find(site.computation, site.hlo_name)
    index = place[0].by_name.get(place[1].operands[0]) if place and place[1].operands else None
    if index is None or index.shape.dtype == "pred":
        return 1, "predicate"
    return index.shape.byte_size, "branch index"


def _counted_branches(module: HloModule, sites: tuple[ControlSite, ...], origins: Origins) -> Iterator[ControlFact]:
    for site in sites:
        if site.is_loop or not site.branches:
            continue
        names = _branch_names(module, site)
        counts = {label: count for label, _, count in site.branches}
        most = counted(counts[site.counted], "launch", "launches")
        words = f"{site.hlo_name}: {names[site.counted]}, the longest, with {most}"
        others = [f"{names[label]} has {count:,}" for label, count in counts.items() if label != site.counted]
        origin = _origin(module, site, origins)
        yield _fact(BRANCHES, site.hlo_name, site.path, site.runs, "; ".join([words, *others]), origin)


def _branch_names(module: HloModule, site: ControlSite) -> dict[str, str]:
    """JAX's names of the branches by XLA's: ``branch_0_fun`` is the false function of a ``cond``.

    The ops of a branch say it. Where none do, and no other branch contradicts, it is the order of JAX's ``cond``.
    """
    place = module.find(site.computation, site.hlo_name)
    op_name = place[1].op_name if place else ""
    named = re.compile(re.escape(op_name) + r"/(branch_\d+_fun)(/|$)")
    found = dict[str, str]()
    for label, where, _ in site.branches:
        inside = module.computations[where].instructions if where else ()
        own = {match[1] for each in inside if (match := named.match(each.op_name))}
        if len(own) == 1:
            found[label] = own.pop()
    if read_name(op_name).op == "cond":
        in_order = {label: _in_order(label) for label, where, _ in site.branches if where}
        if found.items() <= in_order.items():
            found = in_order
    return {label: found.get(label, label) for label, _, _ in site.branches}


def _in_order(label: str) -> str:
    """JAX's name of a branch of its own ``cond``, whose index XLA may have made a predicate."""
    return {"false_branch": "branch_0_fun", "true_branch": "branch_1_fun"}.get(label, f"{label}_fun")


def _every_branch(module: HloModule, origins: Origins) -> Iterator[ControlFact]:
    """A selection by an integer compares it, under the name of the selection; one by a truth value does not.

    Without ``vmap`` it is the program's own: ``lax.select_n``, ``jnp.select``.
    """
    seen = set[tuple[str, str]]()
    for _, one in instructions(module):
        name = read_name(one.op_name)
        if one.opcode != "compare" or name.op != "select_n" or not name.batched:
            continue
        origin = origins.of_members(one)
        if (key := (name.scope, origin.source)) in seen:
            continue
        seen.add(key)
        words = "a batched cond or switch, or a jnp.select, became a select; the launches of all its branches count"
        yield _fact(EVERY_BRANCH, one.name, (), 1, words, origin)


def _loops_in_kernels(module: HloModule, sites: tuple[LaunchSite, ...], origins: Origins) -> Iterator[ControlFact]:
    for site in sites:
        place = module.find(site.computation, site.hlo_name)
        for loop in members(module, place[1]) if place and place[1].opcode == "call" else ():
            if loop.opcode == "while":
                words = f"{site.hlo_name}: the loop {loop.name} runs inside this kernel; its trips are no launches"
                yield _fact(ONE_KERNEL, site.hlo_name, site.path, site.dynamic, words, origins.of_members(loop))


def _copies_per_trip(
    compiled: Compiled, launched: tuple[LaunchSite, ...], loops: dict[str, ControlSite], origins: Origins
) -> Iterator[ControlFact]:
    for copy in buffer_copies(compiled, origins, launched):
        path = tuple(filter(None, copy.loop.split("/")))
        if not copy.runs or not copy.is_copy or copy.to_host or not (trips := _trips(path, loops)):
            continue
        cause = f": {copy.cause}" if copy.cause else ""
        words = f"{copy.name}: {size_words(copy.bytes)} copied {trips}{cause}"
        yield ControlFact(
            COPY_PER_TRIP, copy.name, copy.loop, copy.runs, copy.bytes, 0, words, copy.scope, copy.op, copy.source
        )


def _updates(
    module: HloModule, sites: tuple[LaunchSite, ...], loops: dict[str, ControlSite], origins: Origins
) -> Iterator[ControlFact]:
    for site in sites:
        place = module.find(site.computation, site.hlo_name)
        if place is None or not site.dynamic or site.is_copy:
            continue
        computation, one = place
        for update in updates_in_place(module, computation, one):
            moved, whole, often = update.bytes, update.array_bytes, _trips(site.path, loops)
            of_it = f"writes {size_words(moved)} of" if moved <= whole else f"applies {size_words(moved)} of updates to"
            words = f"{one.name}: {of_it} {size_words(whole)} in place {often}".rstrip()
            origin = origins.of(computation, one)
            yield _fact(IN_PLACE, one.name, site.path, site.dynamic, words, origin, moved=moved, whole=whole)


def _trips(path: tuple[str, ...], loops: dict[str, ControlSite]) -> str:
    """How often something inside the loops of ``path`` runs, in words; "" outside of loops."""
    inner = next((loops[name] for name in reversed(path) if name in loops), None)
    if inner is None:
        return ""
    count = "each trip" if inner.trips is None else f"each of {inner.trips:,} trips"
    return f"in {count} of {inner.hlo_name}"


def _times(runs: int) -> str:
    return "once" if runs == 1 else f"{runs:,} times"


def _origin(module: HloModule, site: ControlSite, origins: Origins) -> Origin:
    place = module.find(site.computation, site.hlo_name)
    return origins.of_members(place[1]) if place else Origin()
