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
from fusionlab.report.pictures.scopes import Layers, Path, Repeat, adopt_constants, drawn_once, named_scopes

_SMALLEST_SHARE = 0.03
_DETAILS = (0.02, 0.05, 0.1, 0.15)


@dataclass
class Panel:
    """Operations of one scope and role; ``stage`` is the one most of them have; ``members`` are graph node ids.

    ``layers`` are the repeats in its scope, by their depth in it.
    """

    scope: Path
    role: str
    stage: str = ""
    members: list[str] = field(default_factory=list)
    boxes: tuple[Box, ...] = ()
    layers: Mapping[int, Repeat] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The innermost name of the scope, after those that stand for several: ``interaction 0 to 2 ×3, edges``."""
        several = {depth: f"{layer.title} ×{len(layer.names)}" for depth, layer in self.layers.items()}
        last = len(self.scope) - 1
        return ", ".join(several.get(i, name) for i, name in enumerate(self.scope) if i in several or i == last)

    @property
    def column(self) -> int:
        """0 for forward passes, 1 for reverse passes."""
        return 1 if "cotangent" in self.role else 0


def panels(view: nx.DiGraph, side: Mapping[str, str], most_boxes: int, *, expand: bool = False) -> list[Panel]:
    """The panels of ``view``'s operations with at most ``most_boxes`` boxes (one per panel at least), in program order.

    ``side`` maps each operation to the substitute for its role (operations without an entry are left out). Alike layers
    are one scope; with ``expand`` each is its own.
    """
    paths = {node: named_scopes(view.nodes[node]["scope"]) for node in side}
    layers: Layers = {}
    if not expand:
        paths, layers = drawn_once(view, side, paths)
    side = dict(side)
    adopt_constants(view, paths, side)
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
        if new and _count(collect(view, side, finer, _DETAILS[-1])) <= most_boxes:
            prefixes |= new
    choices = [collect(view, side, owners, detail) for detail in (*_DETAILS, 1.0)]
    found = next((found for found in choices if _count(found) <= most_boxes), choices[-1])
    for panel in found:
        panel.layers = layers.get((panel.scope, panel.role), {})
    return found


def collect(
    view: nx.DiGraph, side: Mapping[str, str], owners: Mapping[str, Path], detail: float = _DETAILS[0]
) -> list[Panel]:
    """One panel per owner and side, with its boxes; panels in the order of their first operation.

    Families with less than the share ``detail`` of a panel's bytes and FLOPs share one box; above the finest detail, so
    do all of a panel that moves less than a hundredth of all bytes.
    """
    whole = sum(view.nodes[node]["bytes"] for node in owners)
    found: dict[tuple[Path, str], Panel] = {}
    for node in sorted(owners, key=lambda node: view.nodes[node]["order"]):
        key = owners[node], side[node]
        found.setdefault(key, Panel(*key)).members.append(node)
    for panel in found.values():
        facts = [view.nodes[node] for node in panel.members]
        stages = Counter(fact["stage"] for fact in facts if fact["family"] != "constant")
        panel.stage = stages.most_common(1)[0][0] if stages else ""
        panel.boxes = _few(boxes_of(facts), detail, whole // 100 if detail > _DETAILS[0] else 0)
    return list(found.values())


def flows(view: nx.DiGraph, of: Iterable[Panel]) -> tuple[Flow, ...]:
    """The flows between panels: every value once per panel that reads it."""
    at = {node: i for i, panel in enumerate(of) for node in panel.members}
    edges = view.edges(data="bytes")
    return gathered(
        (at[source], at[target], source, size) for source, target, size in edges if {source, target} <= at.keys()
    )


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
