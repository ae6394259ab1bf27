"""The study document: all numbers of ``fusionlab study`` as one JSON document; ``report.html`` only presents it.

``lines`` holds every op shown anywhere, once; other parts name ops by their position there. ``programs`` are levels of
detail (``pictures.scope_tree``), ``targets`` the measurements before and after for each target.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import InputError
from fusionlab.hlo.clusters import op_clusters
from fusionlab.hlo.diff.hunks import compare_programs
from fusionlab.hlo.diff.lines import Names, line_of
from fusionlab.hlo.diff.numbering import Digests
from fusionlab.hlo.diff.records import Hunk, ModuleDiff, OpLine
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.program import Program
from fusionlab.hlo.source_text import text_of_lines
from fusionlab.hlo.view import Node, source_of
from fusionlab.ledger.dataflow import members
from fusionlab.ledger.footprint import Footprint
from fusionlab.ledger.launch_clusters import launch_clusters
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows, totals
from fusionlab.ledger.memory import Buffer, MemoryRecord, memory_record
from fusionlab.ledger.refusals import by_cause, launches_refused, refusals, xla_estimates
from fusionlab.ledger.roofline import family_points, kernel_points
from fusionlab.ledger.time.model import ceilings_of
from fusionlab.ledger.views import default_views, label, totals_by
from fusionlab.measure.comparison import Comparison, compare_record, kernels_of, latest, measured_by
from fusionlab.measure.records import Record
from fusionlab.report.kernels import kernels_document
from fusionlab.report.pictures.folding import source_line
from fusionlab.report.pictures.scope_tree import ScopeGroup, ScopeTree, scope_tree
from fusionlab.report.tables.memory import memory_verdict
from fusionlab.study import StudyResult, event_documents
from fusionlab.workload import Workload

ORIGINAL = "original.mlir"
_FORMAT = "fusionlab-study-1"
_OP_COLUMNS = (
    "line", "group", "family", "phase", "stage", "role", "transform", "runs", "flops", "bytes", "unmodelled", "hidden",
)  # fmt: skip
_FLOW_KINDS = ("data", "residual", "carried")
_MOST_CLUSTERS = 30
_MOST_BUFFERS = 50
_BUFFERS_DRAWN = 24
"""Buffers of the table, of those alive at the peak, and of the picture, of all temporaries; the largest."""

LAUNCH_FIELDS = (
    "name", "family", "phase", "stage", "role", "loop", "trip_count", "static_launches", "dynamic_launches", "flops",
    "bytes", "model_us", "model_source", "in_cuda_graph", "stage_share", "op_name", "source", "attributed_by",
    "unmodelled", "ops", "scope", "op", "transform", "scopes", "place",
)  # fmt: skip
"""The fields of a launch; ``ops`` are positions of its StableHLO ops among the program's, ``place`` is its group in the
target's view (``by_view_family``), the others are those of ``ledger.launch_rows``."""


@dataclass(frozen=True)
class Studied:
    """The outcome for one target, and both programs compiled by XLA; ``after`` is None if not measured."""

    outcome: StudyResult
    before: Compiled
    after: Compiled | None

    @cached_property
    def rows(self) -> tuple[LaunchRow, ...]:
        """The launches of the original program."""
        return launch_rows(self.before)

    @property
    def view(self) -> str:
        """The view that groups the launches of the original program: the stage where there are stages."""
        views = default_views(self.rows)
        return "stage" if "stage" in views else views[0]


def study_document(source: Workload | Program, studied: Sequence[Studied], beside: Mapping[str, Any]) -> dict[str, Any]:
    """The document; ``beside`` are its parts that do not follow from the outcomes (replays, commands, ...)."""
    writer = _Writer()
    targets = [writer.target(one) for one in studied]
    original = studied[0].outcome.original
    workload = None
    if isinstance(source, Workload):
        same = ("molecule", "electrons", "program", "laplacian", "walkers", "dtype")
        fields = {name: getattr(source, name) for name in same}
        workload = {"model": source.name, **fields, "arguments": list(source.argument_names)}
    return {
        "format": _FORMAT,
        "study": {"name": original.name, "provenance": original.provenance, "workload": workload},
        "targets": targets,
        "programs": writer.programs,
        "lines": writer.lines.to_json(),
        "source_lines": writer.lines.source_lines() if workload else {},
        **beside,
    }


class _Lines:
    """A growing table of lines of ops; scopes and sources are stored apart, since many lines share them."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], int] = {}
        self._rows: list[list[Any]] = []
        self._scopes: dict[str, int] = {}
        self._sources: dict[str, int] = {}
        self._places: dict[str, tuple[str, int]] = {}

    def of_node(self, node: Node, viewed: _Viewed) -> int:
        """The position of the line of ``node``, an op of the program ``viewed``."""
        names, origins = viewed.names, viewed.view.origins
        line = line_of(node, names, lambda value: origins.get(value, value), "")
        place, source = source_of(node.operation), source_line(node)
        if place:
            self._places.setdefault(source, place)
        return self._position(names.name(node.results[0]) if node.results else "", line.text, line.scope, source)

    def of_line(self, line: OpLine) -> int:
        """The position of a line of a diff (without a source, unless a program with that op was added before)."""
        return self._position(line.results[0] if line.results else "", line.text, line.scope, "")

    def _position(self, name: str, text: str, scope: str, source: str) -> int:
        if (text, scope) not in self._at:
            self._at[text, scope] = len(self._rows)
            scope_at = self._scopes.setdefault(scope, len(self._scopes))
            self._rows.append([name, text, scope_at, self._sources.setdefault(source, len(self._sources))])
        return self._at[text, scope]

    def source_lines(self) -> dict[str, str]:
        """The text of every source line whose file can be read. For programs of our own only (``hlo.source_text``)."""
        return text_of_lines(self._places)

    def to_json(self) -> dict[str, Any]:
        """``rows`` of ``columns``; scope and source are positions in ``scopes`` and ``sources`` ("file.py:12")."""
        columns = ["name", "text", "scope", "source"]
        return {"columns": columns, "rows": self._rows, "scopes": [*self._scopes], "sources": [*self._sources]}


@dataclass(frozen=True)
class _Viewed:
    """A program with its view, and the names that its values have in the diffs."""

    program: Program
    view: Digests
    names: Names

    @cached_property
    def tree(self) -> ScopeTree:
        """Its levels of detail."""
        return scope_tree(self.view.flat)

    @cached_property
    def places(self) -> dict[Node, int]:
        """Position of every op among the program's."""
        return {leaf.node: i for i, leaf in enumerate(self.tree.leaves)}

    @cached_property
    def ops_of_scopes(self) -> dict[str, list[int]]:
        """Name stack to the positions of its ops."""
        found: dict[str, list[int]] = {}
        for node, position in self.places.items():
            if node.scope:
                found.setdefault(node.scope, []).append(position)
        return found


class _Writer:
    def __init__(self) -> None:
        self.lines = _Lines()
        self.programs: dict[str, Any] = {}
        self._keys: dict[str, str] = {}

    def target(self, one: Studied) -> dict[str, Any]:
        """The part of one target; programs shared with another target are stored once."""
        outcome, target = one.outcome, one.before.target
        assert outcome.before is not None
        compared = compare_programs([outcome.original, *(step.program for step in outcome.steps)])
        first = _Viewed(outcome.original, compared.views[0], compared.names)
        last = _Viewed(outcome.rewritten, compared.views[-1], compared.names)
        original = self._key("original", target.name, first)
        rewritten = self._key("rewritten", target.name, last) if outcome.applied else original
        after = None
        if outcome.applied and outcome.after is not None and one.after is not None:
            after = _side(outcome.after, one.after, launch_rows(one.after), last.ops_of_scopes, one.view)
        return {
            "name": target.name,
            "kind": target.kind,
            "compute_capability": target.sm,
            "attached": target.attached,
            "source": target.source if target.attached else Path(target.source).name,
            "peaks": asdict(target.peaks) if target.peaks else None,
            "original": original,
            "rewritten": rewritten,
            "pipeline": outcome.pipeline,
            "pass_s": outcome.pass_s,
            "events": event_documents(outcome.events, target),
            "equivalence": outcome.equivalence.to_json(),
            "before": _side(outcome.before, one.before, one.rows, first.ops_of_scopes, one.view),
            "after": after,
            "diffs": [self._diff(*pair) for pair in zip([s.by for s in outcome.steps], compared.diffs, strict=True)],
        }

    def _key(self, word: str, target: str, viewed: _Viewed) -> str:
        """The key of a program among ``programs``, to which it is added if missing."""
        digest = viewed.program.digest
        if digest not in self._keys:
            key = word if word == "original" and word not in self.programs else f"{word}-{target}"
            self._keys[digest] = key
            self.programs[key] = self._program(viewed)
        return self._keys[digest]

    def _program(self, viewed: _Viewed) -> dict[str, Any]:
        """``groups``, ``ops`` (rows of ``columns``) and ``flows`` ([source op, target op, bytes, kind]).

        FLOPs and bytes are of all runs (model, nothing fused); private calls are inlined. ``hidden`` ops (constants
        and broadcasts) are drawn only on request. A source -1 is an
        argument; -1 of ``returns``, the ops that make the results, also what a loop or branch returns.
        """
        program, tree, places = viewed.program, viewed.tree, viewed.places
        rows = [
            [self.lines.of_node(leaf.node, viewed), leaf.group, leaf.family, leaf.attribution.phase,
             leaf.attribution.stage, leaf.attribution.role, read_name(leaf.node.scope).transform, leaf.runs, leaf.flops,
             leaf.bytes, int(leaf.unmodelled), int(leaf.hidden)]
            for leaf in tree.leaves
        ]  # fmt: skip
        returned = (value.producer for value in viewed.view.flat.returns)
        return {
            "name": program.name,
            "stablehlo_ops": program.ops,
            "platform": program.platform,
            "inputs": [str(type_) for type_ in program.inputs],
            "outputs": [str(type_) for type_ in program.outputs],
            "groups": [self._group(group, viewed) for group in tree.groups],
            "ops": {"columns": list(_OP_COLUMNS), "rows": rows},
            "flow_kinds": list(_FLOW_KINDS),
            "flows": [[flow.source, flow.target, flow.bytes, _FLOW_KINDS.index(flow.kind)] for flow in tree.flows],
            "returns": [places.get(node, -1) if node else -1 for node in returned],
            "clusters": _op_clusters(viewed),
        }

    def _group(self, group: ScopeGroup, viewed: _Viewed) -> dict[str, Any]:
        figures = ("label", "kind", "parent", "stage", "role", "ops", "flops", "bytes", "unmodelled")
        found = {figure: getattr(group, figure) for figure in figures}
        found["families"] = dict(sorted(group.family_bytes.items(), key=lambda item: -item[1]))
        if group.kind == "loop":
            found["trips"] = group.trips
        if group.kind == "repeat":
            found |= {"repeats": group.repeats, "identical": group.identical}
        if group.node is not None:
            found["line"] = self.lines.of_node(group.node, viewed)
        return found

    def _diff(self, name: str, diff: ModuleDiff) -> dict[str, Any]:
        """The changes made by the pass ``name``: counts, and hunks whose ops are positions in ``lines``."""
        counts = {what: diff.count(what) for what in ("removed", "added", "moved", "rewired")}
        hunks = [self._hunk(hunk) for hunk in diff.hunks]
        return {"pass": name, **counts, "unchanged": diff.unchanged, "hunks": hunks}

    def _hunk(self, hunk: Hunk) -> dict[str, Any]:
        return {
            "scope": hunk.scope,
            "loop": hunk.loop,
            "reads": [self.lines.of_line(line) for line in hunk.reads],
            "removed": [self.lines.of_line(line) for line in hunk.removed],
            "added": [self.lines.of_line(line) for line in hunk.added],
            "moved": [{"line": self.lines.of_line(one.op), "to": one.to} for one in hunk.moved],
            "rewired": [{"line": self.lines.of_line(one.op), "text": one.text} for one in hunk.rewired],
        }


def _op_clusters(viewed: _Viewed) -> list[dict[str, Any]]:
    """The clusters of StableHLO ops that could save most bytes."""
    nodes = {str(node.id): node for node in viewed.view.flat.walk()}
    found = []
    for one in op_clusters(viewed.program)[:_MOST_CLUSTERS]:
        inside = [nodes[unit.rpartition("%")[2]] for unit in one.units]
        ops = [viewed.places[node] for node in inside if node in viewed.places]
        found.append({**one.to_json(), "units": len(one.units), "ops": ops})
    return found


def _side(
    found: Footprint, compiled: Compiled, rows: tuple[LaunchRow, ...], ops_of: Mapping[str, Sequence[int]], view: str
) -> dict[str, Any]:
    """One program as XLA compiled it for one target, with its launches ``rows``; ``ops_of`` maps a name stack to its
    ops' positions.

    ``launches`` are rows of LAUNCH_FIELDS, ``by_stage_family`` and ``by_view_family`` their totals, the second by
    ``view``, with its groups in the rows' ``field``; the other parts name launches by their name.
    """
    ceilings = ceilings_of(compiled.target)
    roofs = ("flops_per_s", "bytes_per_s", "ridge_flop_per_byte", "source")
    return {
        "footprint": found.to_json(),
        "memory": asdict(compiled.memory),
        "compile": {"options": dict(compiled.options), "versions": compiled.versions, "seconds": compiled.compile_s},
        "totals": totals(rows).to_json(),
        "launches": {"columns": list(LAUNCH_FIELDS), "rows": _launches(compiled, rows, ops_of, view)},
        "by_view_family": _by_view(rows, view),
        "by_stage_family": _totals_by(rows, "stage", "family"),
        "by_phase_role": _totals_by(rows, "phase", "role"),
        "clusters": [one.to_json() for one in launch_clusters(compiled, rows)[:_MOST_CLUSTERS]],
        "refusals": _refusals(compiled, rows),
        "kernels": kernels_document(compiled),
        "buffers": _buffers(compiled),
        "roofline": {
            "ceilings": {name: getattr(ceilings, name) for name in roofs} if ceilings else None,
            "families": [point.to_json() for point in family_points(rows, ceilings)],
            "kernels": [point.to_json() for point in kernel_points(rows, ceilings)],
        },
    }


def _by_view(rows: Sequence[LaunchRow], view: str) -> dict[str, Any]:
    field = "stage" if view == "stage" else "place"
    groups = totals_by(rows, (view, "family")).items()
    found = [{field: place, "family": family, **group.to_json()} for (place, family), group in groups]
    return {"view": view, "field": field, "rows": found}


def _launches(
    compiled: Compiled, rows: Sequence[LaunchRow], ops_of: Mapping[str, Sequence[int]], view: str
) -> list[list[Any]]:
    instructions = {one.name: one for part in compiled.module.computations.values() for one in part.instructions}
    table = []
    for row in rows:
        instruction = instructions.get(row.name)
        inside = members(compiled.module, instruction) if instruction is not None else ()
        scopes = dict.fromkeys([row.op_name, *(member.op_name for member in inside)])
        ops = dict.fromkeys(position for scope in scopes for position in ops_of.get(scope, ()))
        values = {**row.to_json(), "stage": label(row, "stage"), "ops": list(ops), "unmodelled": list(row.unmodelled)}
        values |= {"place": label(row, view), "scopes": list(row.scopes)}
        table.append([values[name] for name in LAUNCH_FIELDS])
    return table


def _totals_by(rows: Sequence[LaunchRow], *by: str) -> list[dict[str, Any]]:
    return [{**dict(zip(by, key, strict=True)), **group.to_json()} for key, group in totals_by(rows, by).items()]


def _refusals(compiled: Compiled, rows: tuple[LaunchRow, ...]) -> dict[str, Any] | None:
    found = refusals(compiled, rows)
    if found is None:
        return None
    return {
        "coverage": asdict(found.coverage),
        "dynamic_launches": launches_refused(found.found),
        "xla_estimates": xla_estimates(found.found),
        "causes": by_cause(found.found),
        "found": [asdict(one) for one in found.found],
    }


def _buffers(compiled: Compiled) -> dict[str, Any]:
    """Temporary memory by buffer; of a program without it only the ``reason``.

    ``held`` are the steps at which the bytes held change, with the bytes from there on.
    """
    if compiled.target.kind == "cpu" and not compiled.buffer_assignment:
        reason = "A study does not read the buffers of a CPU program; fusionlab memory FILE --target cpu does."
        return {"reason": reason}
    try:
        found = memory_record(compiled)
    except InputError as error:
        return {"reason": str(error)}
    peak, held = found.peak, found.held_by_step
    return {
        "reason": "",
        "verdict": memory_verdict(found),
        "temp_bytes": found.temp_bytes,
        "steps": found.steps,
        "launches": found.launches,
        "held": [[step, size] for step, size in enumerate(held) if not step or size != held[step - 1]],
        "peak": {
            "step": peak.step,
            "launch": peak.launch,
            "held_bytes": peak.held_bytes,
            "free_bytes": peak.free_bytes,
            "count": len(peak.buffers),
            "buffers": [_buffer(one, found) for one in peak.buffers[:_MOST_BUFFERS]],
        },
        "count": len(found.temporaries),
        "drawn": [_buffer(one, found) for one in found.temporaries[:_BUFFERS_DRAWN]],
    }


def _buffer(one: Buffer, found: MemoryRecord) -> dict[str, Any]:
    names = (
        "title", "producer", "shape", "bytes", "born_step", "died_step", "born_launch", "died_launch", "scope", "op",
        "source",
    )  # fmt: skip
    return {**{name: getattr(one, name) for name in names}, "at_peak": one in found.peak.buffers}


def measured_document(source: Workload | Program, records: Sequence[Record]) -> list[dict[str, Any]]:
    """The newest records of the same model, molecule and program on each device, each with time by stage and family.

    The number of walkers may differ: it is in the record.
    """
    if isinstance(source, Program):
        return []
    wanted = {field: getattr(source, field) for field in ("name", "molecule", "program")}
    same = [one for one in records if all(one["workload"].get(field) == value for field, value in wanted.items())]
    return [_measured(compare_record(record)) for record in latest(same)[0]]


def _measured(found: Comparison) -> dict[str, Any]:
    tables = []
    for one in found.timed:
        times = measured_by(kernels_of(one.variant), ("stage", "family"))
        rows = [{"stage": stage, "family": family, "measured_us": us} for (stage, family), us in times.items()]
        tables.append({"name": one.name, "rows": rows})
    return {**found.to_json(), "by_stage_family": tables}


def rewritten_file(target: str) -> str:
    """The file of a study's folder that holds the program rewritten for ``target``."""
    return f"rewritten-{target}.mlir"


def commands(
    source: str,
    asked: str,
    checking: str,
    pipelines: Mapping[str, str],
    rewritten: Collection[str],
    folder: str,
    view: str = "stage",
) -> list[dict[str, str]]:
    """``{"what", "command"}`` of every table of the study, for the shell.

    ``source``, ``asked`` and ``checking`` are options: the program, the requested passes, the check. ``pipelines`` are
    the passes that were run, by target; ``folder`` holds the program rewritten for each of the targets ``rewritten``;
    ``view`` is what launches are grouped by.
    """
    targets = f"--target {','.join(pipelines)} -o {shlex.quote(folder)}"
    rows: list[tuple[str, tuple[str, ...]]] = [("everything", ("fusionlab study", source, asked, checking, targets))]
    for target, pipeline in pipelines.items():
        on = f"--target {target}"
        apply = (source, f"--pipeline {shlex.quote(pipeline)}", checking, on)
        worse = "--keep-worse" if "--keep-worse" in asked.split() else ""
        rows += [
            (f"totals, events, verdict ({target})", ("fusionlab apply", *apply, worse)),
            (f"what each pass changed ({target})", ("fusionlab apply", *apply, worse, "--diff --diff-lines 0")),
            (f"equivalence, with histograms ({target})", ("fusionlab check", *apply)),
        ]
        sides = {"before": source}
        if target in rewritten:
            sides["after"] = shlex.quote(f"{folder}/{rewritten_file(target)}")
        for side, program in sides.items():
            of = f"({target}, {side})"
            rows += [
                (f"launches by {view} and family {of}", ("fusionlab launches", program, on, f"--by {view},family")),
                (f"clusters {of}", ("fusionlab clusters", program, on)),
                (f"refused fusions {of}", ("fusionlab explain", program, on)),
                (f"kernels {of}", ("fusionlab kernels", program, on)),
                (f"memory by buffer {of}", ("fusionlab memory", program, on)),
                (f"roofline {of}", ("fusionlab roofline", program, on)),
            ]
    rows += [
        ("the replay", ("fusionlab replays", source)),
        ("the replay, drawn", ("fusionlab graph", source, "--view replay")),
        ("measured times", ("fusionlab bench", source)),
    ]
    return [{"what": what, "command": " ".join(filter(None, parts))} for what, parts in rows]
