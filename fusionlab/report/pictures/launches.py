"""Launches of a compiled program: their graph, the picture by clusters, and the picture of one kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import networkx as nx

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import InputError, unknown
from fusionlab.hlo.clusters import Cluster
from fusionlab.hlo.optimised.kernel_cost import family_of_kernel
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.hlo.stages import attribute
from fusionlab.ledger.launch_clusters import launch_clusters
from fusionlab.ledger.launch_rows import LaunchRow, Totals, launch_rows, totals
from fusionlab.ledger.traffic import reads_of
from fusionlab.report.pictures.dot import bytes_text, flops_text
from fusionlab.report.pictures.drawing import Box, Drawing, DrawingGroup, Flow, PictureBlock, boxes_of, gathered

_VIEWS = ("bitcast", "get-tuple-element", "reshape", "tuple", "copy", "copy-start", "copy-done", "opt-barrier")
_FACTS = {
    "loop": "loop", "phase": "phase", "stage": "stage", "role": "role", "family": "family",
    "launches": "dynamic_launches", "trips": "trip_count", "flops": "flops", "bytes": "bytes", "model_us": "model_us",
    "scope": "op_name", "source": "source",
}  # fmt: skip
"""Attribute of a node to the field of the launch that it holds."""
_INVISIBLE = ("bitcast", "get-tuple-element", "tuple")
_MOST = 80


def launch_graph(compiled: Compiled, rows: tuple[LaunchRow, ...] | None = None) -> nx.DiGraph:
    """One node per launch site that runs, by the name of its HLO instruction, in XLA's order.

    Node attributes: ``kind`` (``launch``), ``name``, ``computation``, ``loop``, ``phase``, ``stage``, ``role``,
    ``family``, ``launches`` (of all trips), ``trips``, ``flops``, ``bytes``, ``model_us`` (of all trips; -1.0:
    unknown), ``scope``, ``source``, ``order``. Edge attribute ``bytes``: bytes of the other's result that one run
    reads, times the reader's trips. Edges are within one computation, through views and copies.
    """
    found = nx.DiGraph()
    by_name: dict[str, LaunchRow] = {}
    for row in launch_rows(compiled) if rows is None else rows:
        if row.dynamic_launches:
            by_name.setdefault(row.name, row)
    places = {one.name: part for part in compiled.module.computations.values() for one in part.instructions}
    for row in by_name.values():
        inside = places[row.name].name if row.name in places else ""
        facts = {name: getattr(row, of) for name, of in _FACTS.items()}
        facts["model_us"] = -1.0 if row.model_us is None else row.model_us
        order = found.number_of_nodes()
        found.add_node(row.name, kind="launch", name=row.name, computation=inside, **facts, order=order)
    for name, row in by_name.items():
        if name in places:
            read = reads_of(compiled.module, places[name], places[name].by_name[name])
            for operand, size in read.items():
                for maker in dict.fromkeys(_makers(places[name], operand)):
                    if maker in found and maker != name:
                        before = found.get_edge_data(maker, name, {"bytes": 0})["bytes"]
                        found.add_edge(maker, name, bytes=before + size * row.trip_count)
    return found


def _makers(computation: Computation, name: str, views: Sequence[str] = _VIEWS) -> Iterator[str]:
    """The instructions that ``name`` is a view or a copy of."""
    pending, seen = [name], set[str]()
    while pending:
        one = computation.by_name.get(pending.pop(0))
        if one is None or one.name in seen:
            continue
        seen.add(one.name)
        operands = one.operands
        if one.opcode == "get-tuple-element" and operands:
            inner = computation.by_name.get(operands[0])
            index = int(one.attributes.get("index", "0"))
            if inner is not None and inner.opcode == "tuple" and index < len(inner.operands):
                operands = (inner.operands[index],)
        if one.opcode in views:
            pending = [*operands, *pending]
        else:
            yield one.name


def cluster_drawing(compiled: Compiled, most: int = 8) -> Drawing:
    """The ``most`` clusters of launches that can save most time, each a block, and all else by stage and family.

    Loops are frames; the rest that moves less than a hundredth of all bytes is one block per loop.
    """
    rows = tuple(row for row in launch_rows(compiled) if row.dynamic_launches)
    clusters = launch_clusters(compiled, rows)
    view = launch_graph(compiled, rows)
    by_name = {row.name: row for row in reversed(rows)}
    whole = totals(rows)
    rank = {name: i for i, one in enumerate(clusters[:most]) for name in one.units}
    members: dict[tuple[str, int | tuple[str, str, str]], list[str]] = defaultdict(list)
    for name in view:
        members[by_name[name].loop, rank[name] if name in rank else _rest(by_name[name], whole)].append(name)
    position = {name: i for i, inside in enumerate(members.values()) for name in inside}
    trips: dict[str, int] = {}
    for row in by_name.values():
        trips[row.loop] = max(trips.get(row.loop, 0), row.trip_count)
    blocks = []
    for (loop, owner), inside in members.items():
        if isinstance(owner, int):
            stages = clusters[owner].stages
            stage = max(stages, key=stages.__getitem__).removeprefix("?")
            title, role, notes = f"cluster {owner + 1}", "", _cluster_notes(clusters[owner])
        else:
            title, stage, role = owner
            times = [by_name[name].model_us for name in inside]
            time = None if None in times else sum(us for us in times if us is not None)
            notes = (f"{_ms(time)} (model)",)
        boxes = boxes_of(view.nodes[name] for name in inside)
        blocks.append(PictureBlock(title, (loop,) if loop else (), tuple(boxes), stage, role, notes))
    edges = view.edges(data="bytes")
    return Drawing(
        f"{compiled.name} on {compiled.target.name}: clusters of elementwise and layout launches",
        (
            f"{whole.dynamic_launches:,} launches, {bytes_text(whole.bytes)} accessed, {_ms(whole.model_us)} (model); "
            f"{min(most, len(clusters))} of {len(clusters)} clusters are drawn, the first gives back most",
        ),
        {loop: DrawingGroup(f"loop {loop}, {trips[loop]:,} trips", "loop") for loop, _ in members if loop},
        tuple(blocks),
        gathered((position[one], position[other], (one, other), size) for one, other, size in edges),
        counted="launches",
        notes=("numbered blocks are clusters: nothing else lies between their members, so each could be one kernel",),
    )


def _rest(row: LaunchRow, whole: Totals) -> tuple[str, str, str]:
    """Title, stage and role of the block that a launch outside the drawn clusters is in."""
    if row.family in ("elementwise", "layout"):
        return "other elementwise and layout", row.stage, row.role
    large = row.bytes >= 0.005 * whole.bytes
    return row.family if large else "smaller work", row.stage, row.role


def _cluster_notes(found: Cluster) -> tuple[str, ...]:
    notes = (
        f"{len(found.units)} launches, {found.runs:,} runs each: {found.units[0]} ...",
        f"as one kernel: {bytes_text(found.least_bytes)} of {bytes_text(found.bytes)}",
    )
    if found.gain_us is None:
        return notes
    return (*notes, f"gives back at most {found.gain_us / 1e3:,.2f} of {_ms(found.us)} (model)")


def _ms(us: float | None, digits: int = 2) -> str:
    return "time not known" if us is None else f"{us / 1e3:,.{digits}f} ms"


def kernel_drawing(compiled: Compiled, name: str) -> Drawing:
    """The kernel ``name`` (its HLO name, as in the ledger): its instructions in a frame, its neighbours around it.

    A fusion of more than 80 instructions is drawn with its largest ones. InputError with the nearest names when there
    is no such launch.
    """
    rows = {row.name: row for row in reversed(launch_rows(compiled)) if row.dynamic_launches}
    if name not in rows:
        raise unknown("kernel", name, sorted(rows))
    view = launch_graph(compiled, tuple(rows[one] for one in reversed(list(rows))))
    row = rows[name]
    before, after = list(view.predecessors(name)), list(view.successors(name))
    computation = compiled.module.computations.get(view.nodes[name]["computation"])
    if computation is None:
        raise InputError(f"kernel {name} has no instruction in the optimised HLO: there is nothing to draw")
    instruction = computation.by_name[name]
    inside, edges = _inside(compiled.module, instruction)
    start = len(before)
    position = {one.name: start + i for i, one in enumerate(inside)}
    flows = [Flow(position[a], position[b], size, 1) for a, b, size in edges]
    first = next((i for i, one in enumerate(inside) if one.opcode == "parameter"), 0)
    root = max((i for i, one in enumerate(inside) if one.is_root), default=len(inside) - 1)
    entry = _parameters(computation, instruction, before, inside)
    for i, maker in enumerate(before):
        size = view.edges[maker, name]["bytes"] // row.trip_count
        flows.append(Flow(i, start + entry.get(maker, first), size, 1))
    for i, reader in enumerate(after, start + len(inside)):
        flows.append(Flow(start + root, i, view.edges[name, reader]["bytes"] // rows[reader].trip_count, 1))
    time = _ms(row.model_us, 3) + ("" if row.model_us is None else f" ({row.model_source})")
    return Drawing(
        f"{name} on {compiled.target.name}",
        (
            f"{row.family}, {row.dynamic_launches:,} launches: {flops_text(row.flops)}, {bytes_text(row.bytes)}, "
            f"{row.intensity_flop_per_byte:,.2f} FLOP/byte, {time}",
            row.op_name,
        ),
        {"kernel": DrawingGroup(f"{name}: one kernel", "kernel")},
        (*_neighbours(before, view), *map(_member, inside), *_neighbours(after, view)),
        tuple(flows),
        counted="instructions",
        notes=("sizes inside are results of one run; neighbours are whole launches with all their runs",),
    )


def _neighbours(names: Iterable[str], view: nx.DiGraph) -> Iterator[PictureBlock]:
    for name, facts in ((name, view.nodes[name]) for name in names):
        role = facts["role"] if facts["stage"] or facts["phase"] else ""
        notes = (f"{facts['launches']:,} launches",)
        yield PictureBlock(name, (), tuple(boxes_of([facts])), facts["stage"], role, notes)


def _member(one: Instruction) -> PictureBlock:
    shape = one.shape_text.partition("{")[0]
    if one.opcode == "parameter":
        size = (bytes_text(one.shape.byte_size),)
        return PictureBlock(f"parameter {one.operand_text.strip('()')} {shape}", ("kernel",), notes=size, look="gate")
    box = Box((family_of_kernel(one.name, one.opcode, one.custom_call_target),), 1, 0, one.shape.byte_size)
    return PictureBlock(f"{one.opcode} {shape}", ("kernel",), (box,), attribute(one.op_name).stage)


def _inside(module: HloModule, instruction: Instruction) -> tuple[list[Instruction], list[tuple[str, str, int]]]:
    """The instructions of the kernel, without views, and the reads between them (with the bytes of the value)."""
    if not (instruction.is_fusion or instruction.opcode == "call") or not instruction.called:
        return [instruction], []
    body = module.computations[instruction.called[0]]
    every = [one for one in body.instructions if one.opcode not in _INVISIBLE]
    if len(every) > _MOST:
        largest = sorted(every, key=lambda one: (one.is_root, one.opcode == "parameter", one.shape.byte_size))[-_MOST:]
        every = [one for one in every if one in largest]
    kept = {one.name for one in every}
    read = dict.fromkeys(
        (maker, one.name) for one in every for operand in one.operands for maker in _makers(body, operand, _INVISIBLE)
    )
    return every, [(maker, name, body.by_name[maker].shape.byte_size) for maker, name in read if maker in kept]


def _parameters(
    computation: Computation, instruction: Instruction, before: Sequence[str], inside: Sequence[Instruction]
) -> dict[str, int]:
    """The parameter (position in ``inside``) that each producer of an operand feeds."""
    numbers = {one.operand_text.strip("()"): i for i, one in enumerate(inside) if one.opcode == "parameter"}
    found: dict[str, int] = {}
    for number, operand in enumerate(instruction.operands):
        for maker in _makers(computation, operand):
            if maker in before and str(number) in numbers:
                found.setdefault(maker, numbers[str(number)])
    return found
