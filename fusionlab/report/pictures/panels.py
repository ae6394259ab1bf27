"""Collapse a graph of thousands of operations into few boxes: by scope, role and op family.

A *panel* is a scope prefix with a role (``stage_b`` run forward, ``electron_gnn_layer_1`` in reverse); its boxes are
the op families in it. Scope prefixes start short and the panel with most operations is split into the scopes below
it for as long as the number of boxes stays within the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import networkx as nx

from fusionlab.report.pictures.drawing import Box, Flow, boxes_of, gathered
from fusionlab.report.pictures.scopes import (
    Layers,
    Path,
    Repeats,
    adopt_constants,
    drawn_once,
    named_scopes,
    with_parts,
)

_SMALLEST_SHARE = 0.03
_DETAILS = (0.02, 0.05, 0.1, 0.15)


@dataclass
class Panel:
    """Operations of one scope and role; ``stage`` is the one most of them have; ``members`` are graph node ids."""

    scope: Path
    role: str
    stage: str = ""
    members: list[str] = field(default_factory=list)
    boxes: tuple[Box, ...] = ()
    repeats: Repeats = field(default_factory=dict)


def panels(view: nx.DiGraph, roles: Mapping[str, str], most_boxes: int, *, expand: bool = False) -> list[Panel]:
    """The panels of ``view``'s operations with at most ``most_boxes`` boxes (one per panel at least), in program order.

    ``roles`` maps each operation to its role (operations without an entry are left out). Alike layers are one scope;
    with ``expand`` each is its own.
    """
    paths = with_parts(view, roles, {node: named_scopes(view.nodes[node]["scope"]) for node in roles})
    layers: Layers = {}
    if not expand:
        paths, layers = drawn_once(view, roles, paths)
    roles = dict(roles)
    adopt_constants(view, paths, roles)
    kept = {scope for scope, _ in layers}
    prefixes: set[Path] = {(), *(path[:1] for path in paths.values())}
    settled: set[Path] = set()
    while True:
        owners = {node: _owner(path, prefixes) for node, path in paths.items()}
        sizes = Counter(owner for owner in owners.values() if owner not in settled)
        if not sizes:
            break
        largest = max(sizes, key=lambda prefix: (sizes[prefix], prefix))
        settled.add(largest)
        inner = [paths[node] for node, owner in owners.items() if owner == largest]
        new = _branches(largest, inner, _SMALLEST_SHARE * len(paths), kept)
        finer = {node: _owner(path, prefixes | new) for node, path in paths.items()}
        if new and _count(_collected(view, roles, finer, _DETAILS[-1])) <= most_boxes:
            prefixes |= new
    choices = [_collected(view, roles, owners, detail) for detail in (*_DETAILS, 1.0)]
    found = next((found for found in choices if _count(found) <= most_boxes), choices[-1])
    for panel in found:
        panel.repeats = layers.get((panel.scope, panel.role), {})
    return found


def flows(view: nx.DiGraph, members: Iterable[Sequence[str]]) -> tuple[Flow, ...]:
    """The flows between groups of operations: every value once per group that reads it."""
    at = {node: i for i, group in enumerate(members) for node in group}
    edges = view.edges(data="bytes")
    return gathered(
        (at[source], at[target], source, size) for source, target, size in edges if {source, target} <= at.keys()
    )


def _collected(view: nx.DiGraph, roles: Mapping[str, str], owners: Mapping[str, Path], detail: float) -> list[Panel]:
    """One panel per owner and role, with its boxes; panels in the order of their first operation.

    Families with less than the share ``detail`` of a panel's bytes and FLOPs share one box; above the finest detail, so
    do all of a panel that moves less than a hundredth of all bytes.
    """
    whole = sum(view.nodes[node]["bytes"] for node in owners)
    found: dict[tuple[Path, str], Panel] = {}
    for node in sorted(owners, key=lambda node: view.nodes[node]["order"]):
        key = owners[node], roles[node]
        found.setdefault(key, Panel(*key)).members.append(node)
    for panel in found.values():
        facts = [view.nodes[node] for node in panel.members]
        stages = Counter(fact["stage"] for fact in facts if fact["family"] != "constant")
        panel.stage = stages.most_common(1)[0][0] if stages else ""
        panel.boxes = _few(boxes_of(facts), detail, whole // 100 if detail > _DETAILS[0] else 0)
    return list(found.values())


def _branches(prefix: Path, paths: Iterable[Path], least: float, kept: Set[Path]) -> set[Path]:
    """Scopes below ``prefix`` with ``least`` operations or more, at the first depth with two, or with one ``kept``."""
    depth = len(prefix) + 1
    deeper = [path for path in paths if len(path) >= depth and path[: len(prefix)] == prefix]
    large = {scope for scope, size in Counter(path[:depth] for path in deeper).items() if size >= least}
    return _branches(next(iter(large)), deeper, least, kept) if len(large) == 1 and not large & kept else large


def _count(of: Iterable[Panel]) -> int:
    return sum(len(panel.boxes) for panel in of)


def _owner(path: Path, prefixes: Set[Path]) -> Path:
    return next(path[:depth] for depth in range(len(path), -1, -1) if path[:depth] in prefixes)


def _few(boxes: Sequence[Box], share: float, least_bytes: int) -> tuple[Box, ...]:
    """Boxes under ``share`` of bytes and FLOPs in one (all boxes, if they have less than ``least_bytes``)."""
    whole = Box.total(boxes)
    tiny = whole.bytes < least_bytes
    small = [box for box in boxes if tiny or (box.bytes < share * whole.bytes and box.flops <= share * whole.flops)]
    if len(small) < 2:
        return tuple(boxes)
    rest = Box.total(small, tuple(box.families[0] for box in small))
    return (*(box for box in boxes if box not in small), rest)
