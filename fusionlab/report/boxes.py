"""Collapse a graph of thousands of operations into few boxes: by scope, role and op family.

A *panel* is a scope prefix with a role (``stage_b`` run forward, ``electron_gnn_layer_1`` in reverse); its boxes are
the op families in it. Scope prefixes start short and the panel with most operations is split into the scopes below
it for as long as the number of boxes stays within the limit.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from fusionlab.hlo.stages import Frame, frames
from fusionlab.report.layers import Layer, Layers, drawn_once

BOX_FAMILIES = {
    "constant": "layout",
    "sort": "gather-scatter",
    "custom": "other",
    "unknown": "other",
    "rng": "other",
    "fft": "other",
    "collective": "other",
}
"""Families that share a box with a larger one."""

_NO_SCOPE = frozenset(("while", "body", "cond", "closed_call", "stage_e", ""))
_NAME = re.compile(r"[A-Za-z]\w*")
_SMALLEST_SHARE = 0.03
_DETAILS = (0.02, 0.05, 0.1, 0.15)


@dataclass(frozen=True)
class Box:
    """Operations of one family in a panel (of several small ones): how many, and what one run of them costs.

    Figures follow the conventions of ``cost``.
    """

    families: tuple[str, ...]
    ops: int
    flops: int
    bytes: int
    unmodelled: int


@dataclass
class Panel:
    """Operations of one scope and role; ``stage`` is the one most of them have; ``members`` are graph node ids.

    ``layers`` are those of the scope that stand for several, the outermost first.
    """

    scope: tuple[str, ...]
    role: str
    stage: str
    members: list[str] = field(default_factory=list)
    boxes: tuple[Box, ...] = ()
    layers: tuple[Layer, ...] = ()

    @property
    def title(self) -> str:
        """The innermost name of the scope, behind those that stand for several: ``interaction 0 to 2 ×3, edges``."""
        several = {layer.depth: f"{layer.title} ×{layer.count}" for layer in self.layers}
        last = len(self.scope) - 1
        return ", ".join(several.get(i, name) for i, name in enumerate(self.scope) if i in several or i == last)


@dataclass(frozen=True)
class Flow:
    """Bytes and values that pass from one panel to another (positions in the list of panels)."""

    source: int
    target: int
    bytes: int
    values: int


def scope_path(op_name: str) -> tuple[str, ...]:
    """The scopes of an operation without transformations, loop parts and the operation's own name."""
    root, *inner = frames(op_name) or (Frame((), ""),)
    path = [frame.name for frame in inner[:-1] if frame != root]
    for position, name in enumerate(path):
        if name.startswith("stage_") and name != "stage_e":
            return tuple(path[position:])
    return tuple(name for name in path if name not in _NO_SCOPE)


def named_scopes(op_name: str) -> tuple[str, ...]:
    """The scopes of an operation that have a name of their own: not those of a contraction, ``hij,jhd->ihd``."""
    return tuple(name for name in scope_path(op_name) if _NAME.fullmatch(name))


def panels(view: nx.DiGraph, side: Mapping[str, str], most_boxes: int, *, expand: bool = False) -> list[Panel]:
    """The panels of ``view``'s operations with at most ``most_boxes`` boxes (one per panel at least), in program order.

    ``side`` names for each operation what plays the part of its role (operations without an entry are left out).
    Alike layers are one scope; with ``expand`` each is its own.
    """
    paths = {node: named_scopes(view.nodes[node]["scope"]) for node in side}
    layers: Layers = {}
    if not expand:
        paths, layers = drawn_once(view, side, paths)
    side = dict(side)
    adopt_constants(view, paths, side)
    kept = {scope for scope, _ in layers}
    prefixes: set[tuple[str, ...]] = {(), *(path[:1] for path in paths.values())}
    settled: set[tuple[str, ...]] = set()
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
        panel.layers = layers.get((panel.scope, panel.role), ())
    return found


def adopt_constants(view: nx.DiGraph, *places: dict[str, Any]) -> None:
    """Constants have no scope of their own: in every dict of ``places``, give them the entry of their first reader."""
    for node in reversed(list(places[0])):
        readers = [reader for reader in view.successors(node) if reader in places[0]]
        if view.nodes[node]["family"] == "constant" and readers:
            first = min(readers, key=lambda reader: view.nodes[reader]["order"])
            for entries in places:
                entries[node] = entries[first]


def collect(
    view: nx.DiGraph, side: Mapping[str, str], owners: Mapping[str, tuple[str, ...]], detail: float = _DETAILS[0]
) -> list[Panel]:
    """One panel per owner and side, with its boxes; panels in the order of their first operation.

    Families that have less than the share ``detail`` of a panel's bytes and FLOPs have one box together; above the
    finest detail, so has all of a panel that moves less than a hundredth of all bytes.
    """
    whole = sum(view.nodes[node]["bytes"] for node in owners)
    found: dict[tuple[tuple[str, ...], str], Panel] = {}
    for node in sorted(owners, key=lambda node: view.nodes[node]["order"]):
        key = owners[node], side[node]
        if key not in found:
            found[key] = Panel(*key, stage="")
        found[key].members.append(node)
    for panel in found.values():
        facts = [view.nodes[node] for node in panel.members]
        stages = Counter(fact["stage"] for fact in facts if fact["family"] != "constant")
        panel.stage = stages.most_common(1)[0][0] if stages else ""
        panel.boxes = _boxes(view, panel.members, detail, whole // 100 if detail > _DETAILS[0] else 0)
    return list(found.values())


def flows(view: nx.DiGraph, of: Iterable[Panel]) -> list[Flow]:
    """What passes between panels: every value once per panel that reads it."""
    where = {node: i for i, panel in enumerate(of) for node in panel.members}
    moved: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for source, target, data in view.edges(data=True):
        if source in where and target in where and where[source] != where[target]:
            pair = where[source], where[target]
            moved[pair][source] = max(moved[pair][source], data["bytes"])
    return [Flow(*pair, bytes=sum(values.values()), values=len(values)) for pair, values in sorted(moved.items())]


def _branches(
    prefix: tuple[str, ...], paths: Iterable[tuple[str, ...]], least: float, kept: Set[tuple[str, ...]]
) -> set[tuple[str, ...]]:
    """Scopes below ``prefix`` with ``least`` operations or more, at the first depth with two, or with one ``kept``."""
    depth = len(prefix) + 1
    deeper = [path for path in paths if len(path) >= depth and path[: len(prefix)] == prefix]
    large = {scope for scope, size in Counter(path[:depth] for path in deeper).items() if size >= least}
    return _branches(next(iter(large)), deeper, least, kept) if len(large) == 1 and not large & kept else large


def _count(of: Iterable[Panel]) -> int:
    return sum(len(panel.boxes) for panel in of)


def _owner(path: tuple[str, ...], prefixes: set[tuple[str, ...]]) -> tuple[str, ...]:
    return next(path[:depth] for depth in range(len(path), -1, -1) if path[:depth] in prefixes)


def _boxes(view: nx.DiGraph, members: list[str], share: float, least_bytes: int) -> tuple[Box, ...]:
    """A box per family; those under ``share`` of bytes and FLOPs together (all, if the whole is under the least)."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for node in members:
        family = view.nodes[node]["family"]
        grouped[BOX_FAMILIES.get(family, family)].append(node)
    boxes = sorted((_box(view, (family,), nodes) for family, nodes in grouped.items()), key=lambda box: -box.bytes)
    whole = _box(view, (), members)
    tiny = whole.bytes < least_bytes
    small = [box for box in boxes if tiny or (box.bytes < share * whole.bytes and box.flops <= share * whole.flops)]
    if len(small) < 2:
        return tuple(boxes)
    rest = _box(view, tuple(box.families[0] for box in small), [n for box in small for n in grouped[box.families[0]]])
    return (*(box for box in boxes if box not in small), rest)


def _box(view: nx.DiGraph, families: tuple[str, ...], nodes: list[str]) -> Box:
    def total(fact: str) -> int:
        return sum(view.nodes[node][fact] for node in nodes)

    return Box(families, len(nodes), total("flops"), total("bytes"), total("unmodelled"))
