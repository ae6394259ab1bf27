"""The picture of a compiled program by clusters: what could be one kernel, between the work that cannot be in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.clusters import Cluster
from fusionlab.ledger.launch_clusters import launch_clusters
from fusionlab.ledger.launch_rows import LaunchRow, Totals, launch_rows, totals
from fusionlab.report.boxes import Flow
from fusionlab.report.dot import bytes_text
from fusionlab.report.drawing import Block, Drawing, Group, Row
from fusionlab.report.launch_graph import launch_graph


def cluster_drawing(compiled: Compiled, most: int = 8) -> Drawing:
    """The ``most`` clusters of launches that can give back most time, each a block, and all else by stage and family.

    Loops are frames; what of the rest moves less than a hundredth of all bytes is one block per loop.
    """
    rows = tuple(row for row in launch_rows(compiled) if row.dynamic_launches)
    clusters = launch_clusters(compiled, rows)
    shown = clusters[:most]
    view = launch_graph(compiled, rows)
    by_name = {row.name: row for row in reversed(rows)}
    owner: dict[str, tuple[str, ...]] = {}
    for rank, cluster in enumerate(shown, 1):
        owner |= {name: ("cluster", f"{rank}", "") for name in cluster.units if name in view}
    whole = totals(rows)
    for name in view:
        owner.setdefault(name, _rest(by_name[name], whole))
    keys = list(dict.fromkeys((by_name[name].loop, owner[name]) for name in view))
    members: dict[tuple[str, tuple[str, ...]], list[LaunchRow]] = defaultdict(list)
    for name in view:
        members[by_name[name].loop, owner[name]].append(by_name[name])
    blocks = tuple(_block(key, members[key], shown) for key in keys)
    position = {name: keys.index((by_name[name].loop, owner[name])) for name in view}
    groups = {loop: Group(_loop_title(loop, members), "loop") for loop, _ in keys if loop}
    return Drawing(
        f"{compiled.name} on {compiled.target.name}: clusters of elementwise and layout launches",
        (
            f"{whole.dynamic_launches:,} launches, {bytes_text(whole.bytes)} accessed, {_ms(whole.model_us)} (model); "
            f"{len(shown)} of {len(clusters)} clusters are drawn, the first gives back most",
        ),
        groups,
        blocks,
        _flows(view, position),
        counted="launches",
        notes=("numbered blocks are clusters: nothing else lies between their members, so each could be one kernel",),
    )


def _rest(row: LaunchRow, whole: Totals) -> tuple[str, ...]:
    if row.family in ("elementwise", "layout"):
        return ("other elementwise and layout", row.stage, row.role)
    large = row.bytes >= 0.005 * whole.bytes
    return (row.family if large else "smaller work", row.stage, row.role)


def _block(key: tuple[str, tuple[str, ...]], rows: Sequence[LaunchRow], shown: Sequence[Cluster]) -> Block:
    loop, (what, name, role) = key
    families: dict[str, list[LaunchRow]] = defaultdict(list)
    for row in rows:
        families[row.family].append(row)
    lines = tuple(
        Row(
            family,
            sum(row.dynamic_launches for row in ones),
            sum(row.flops for row in ones),
            sum(row.bytes for row in ones),
        )
        for family, ones in sorted(families.items(), key=lambda item: -sum(row.bytes for row in item[1]))
    )
    groups = (loop,) if loop else ()
    if what == "cluster":
        found = shown[int(name) - 1]
        stage = max(found.stages, key=lambda one: found.stages[one])
        notes = [f"{len(found.units)} launches, {found.runs:,} runs each: {found.units[0]} ..."]
        notes.append(f"as one kernel: {bytes_text(found.least_bytes)} of {bytes_text(found.bytes)}")
        if found.gain_us is not None:
            notes.append(f"gives back at most {found.gain_us / 1e3:,.2f} of {_ms(found.us)} (model)")
        return Block(f"cluster {name}", groups, lines, "" if stage == "?" else stage, "", tuple(notes))
    times = [row.model_us for row in rows]
    time = None if None in times else sum(us for us in times if us is not None)
    return Block(what, groups, lines, name, role, (f"{_ms(time)} (model)",))


def _loop_title(loop: str, members: dict[tuple[str, tuple[str, ...]], list[LaunchRow]]) -> str:
    trips = {row.trip_count for (name, _), rows in members.items() if name == loop for row in rows}
    return f"loop {loop}, {max(trips):,} trips"


def _flows(view: object, position: dict[str, int]) -> tuple[Flow, ...]:
    moved: dict[tuple[int, int], list[int]] = defaultdict(list)
    for source, target, data in view.edges(data=True):  # type: ignore[attr-defined]  # networkx has no types
        if position[source] != position[target]:
            moved[position[source], position[target]].append(data["bytes"])
    return tuple(Flow(*pair, bytes=sum(sizes), values=len(sizes)) for pair, sizes in sorted(moved.items()))


def _ms(us: float | None) -> str:
    return "time not known" if us is None else f"{us / 1e3:,.2f} ms"
