"""Thousands of operations folded to few panels: those of one scope in one group (a role, the loops around them).

Alike layers are one panel, and so is a negligible scope with the one around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import networkx as nx

from fusionlab.report.pictures.drawing import Flow, PictureBlock, boxes_of, gathered
from fusionlab.report.pictures.scopes import (
    Layers,
    Path,
    Repeats,
    adopt_constants,
    drawn_once,
    named_scopes,
    with_parts,
)

G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True)
class Panel(Generic[G]):
    """Operations of one scope and group; ``members`` are graph node ids, ``stage`` is the one most of them have.

    ``repeats`` are what the scope is or is in.
    """

    group: G
    scope: Path
    members: tuple[str, ...]
    stage: str
    repeats: Repeats

    def block(
        self, view: nx.DiGraph, role: str, title: str, *, groups: tuple[str, ...] = (), runs: int = 1
    ) -> PictureBlock:
        """The block with a box per op family, figures of ``runs`` runs, the largest first."""
        last = len(self.scope) - 1
        notes: tuple[str, ...] = ()
        if self.repeats:  # what is inside of a layer is not necessarily in each: that is not counted
            counted = list(self.repeats) == [last]
            notes = (f"{self.repeats[last].words if counted else 'inside of alike layers'}; figures are of all",)
        repeats = len(self.repeats[last].names) if last in self.repeats else 1
        boxes = tuple(boxes_of(working(view, self.members), runs, few=True))
        return PictureBlock(title, groups, boxes, self.stage, role, notes, repeats)


class Fold(Generic[G]):
    """The operations of ``view`` in ``groups`` by their scopes; ``expand`` keeps what repeats apart.

    ``homes`` maps an operation inside of another one (a small loop) to that; others are their own. ``paths`` are the
    scopes of operations, by default those of their names.
    """

    def __init__(
        self,
        view: nx.DiGraph,
        groups: Mapping[str, G],
        homes: Mapping[str, str] | None = None,
        paths: Mapping[str, Path] | None = None,
        *,
        expand: bool = False,
    ) -> None:
        self._view, self._groups = view, groups
        self._homes = homes or {node: node for node in groups}
        own = dict.fromkeys(self._homes.values())
        self._paths: dict[str, Path]
        if paths is None:
            self._paths = with_parts(view, groups, {node: named_scopes(view.nodes[node]["scope"]) for node in own})
        else:
            self._paths = {node: paths[node] for node in own}
        self._layers: Layers = {}
        if not expand:
            self._paths, self._layers = drawn_once(view, groups, self._paths)

    def down_to(self, depth: int) -> set[Path]:
        """All scopes down to ``depth`` (1: stages; 2: their scopes; ...)."""
        return {(), *(path[: i + 1] for path in self._paths.values() for i in range(depth))}

    def largest(self, most_panels: int) -> set[Path]:
        """Scopes with at most ``most_panels`` panels: the first of every path, and for as long as there is room those
        in the scope with most operations, each a thirtieth of all operations or more."""
        alike = {scope for scope, _ in self._layers}
        scopes: set[Path] = {(), *(path[:1] for path in self._paths.values())}
        settled: set[Path] = set()
        while True:
            owners = [_owner(path, scopes) for path in self._paths.values()]
            sizes = Counter(owner for owner in owners if owner not in settled)
            if not sizes:
                return scopes
            largest = max(sizes, key=lambda scope: (sizes[scope], scope))
            settled.add(largest)
            inner = [path for path, owner in zip(self._paths.values(), owners, strict=True) if owner == largest]
            new = scopes | _branches(largest, inner, len(self._paths) / 30, alike)
            if len({(_owner(path, new), self._groups[node]) for node, path in self._paths.items()}) <= most_panels:
                scopes = new

    def panels(
        self, scopes: Set[Path], least_share: float = 0.0, runs: Callable[[G], int] = lambda _: 1
    ) -> list[Panel[G]]:
        """A panel per group and innermost of ``scopes``, in the order of their first operations.

        A scope with less than ``least_share`` of all bytes is part of its parent; ``runs`` of a group multiply them.
        """
        keys = {node: (self._groups[node], _owner(self._paths[home], scopes)) for node, home in self._homes.items()}
        adopt_constants(self._view, keys)
        found: dict[tuple[G, Path], list[str]] = {}
        for node, key in keys.items():
            found.setdefault(key, []).append(node)
        size = {
            key: runs(key[0]) * sum(one["bytes"] for one in working(self._view, members))
            for key, members in found.items()
        }
        least = least_share * sum(size.values())
        for key in sorted(found, key=lambda key: -len(key[1])):
            group, scope = key
            parent = group, scope[:-1]
            if scope and not scope[-1].startswith("stage_") and size[key] < least and parent in found:
                found[parent] += found.pop(key)
                size[parent] += size[key]
        return [self._panel(*key, members) for key, members in found.items()]

    def _panel(self, group: G, scope: Path, members: Sequence[str]) -> Panel[G]:
        stage = Counter(self._view.nodes[node]["stage"] for node in members).most_common(1)[0][0]
        return Panel(group, scope, tuple(members), stage, self._layers.get((scope, group), {}))


def working(view: nx.DiGraph, members: Iterable[str]) -> list[Mapping[str, Any]]:
    """The attributes of ``members`` without loops and branches, whose costs are those of what they hold."""
    facts = (view.nodes[node] for node in members)
    return [one for one in facts if one["family"] != "control"]


def flows(view: nx.DiGraph, of: Iterable[Panel[Any]]) -> tuple[Flow, ...]:
    """The flows between panels: every value once per panel that reads it."""
    at = {node: i for i, panel in enumerate(of) for node in panel.members}
    edges = view.edges(data="bytes")
    return gathered(
        (at[source], at[target], source, size) for source, target, size in edges if {source, target} <= at.keys()
    )


def _owner(path: Path, scopes: Set[Path]) -> Path:
    return next(path[:depth] for depth in range(len(path), -1, -1) if path[:depth] in scopes)


def _branches(scope: Path, paths: Iterable[Path], least: float, alike: Set[Path]) -> set[Path]:
    """Scopes below ``scope`` with ``least`` operations or more, at the first depth with two, or with one of layers."""
    depth = len(scope) + 1
    deeper = [path for path in paths if len(path) >= depth and path[: len(scope)] == scope]
    large = {inner for inner, size in Counter(path[:depth] for path in deeper).items() if size >= least}
    return _branches(next(iter(large)), deeper, least, alike) if len(large) == 1 and not large & alike else large
