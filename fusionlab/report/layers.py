"""Layers of a network drawn once: alike scopes side by side get one name (``interaction 0 to 2`` for three layers).

What is alike is told by ``repeats``; layers without scopes of their own get some by ``parts``. What repeats inside of
such a layer is found too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import networkx as nx

from fusionlab.report.parts import with_parts
from fusionlab.report.repeats import Scope, find_repeats

Path = tuple[str, ...]

_EACH = "*"
"""After the stem it is the name of alike layers in a path, however many a role has of them; no scope has it."""


@dataclass(frozen=True)
class Layer:
    """``count`` alike scopes under one name, ``title`` for readers, the one at ``depth`` of a path (0: the outermost).

    ``sizes`` are the operations, but constants, of the smallest and the largest; ``identical`` means
    the same operations on the same shapes.
    """

    depth: int
    title: str
    count: int
    identical: bool
    sizes: tuple[int, int]

    @property
    def words(self) -> str:
        """``3 times, identical`` or ``3 times, alike: 146 to 195 operations each``."""
        few, many = self.sizes
        each = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        return f"{self.count} times, " + ("identical" if self.identical else f"alike: {each} operations each")


Layers = Mapping[tuple[Path, str], tuple[Layer, ...]]
"""Scope and role to the layers that it is or is in, the outermost first; scopes outside of all layers lack."""


def drawn_once(view: nx.DiGraph, side: Mapping[str, str], paths: Mapping[str, Path]) -> tuple[dict[str, Path], Layers]:
    """``paths`` (operations of ``view`` to their scopes) with alike layers under one name, and these layers.

    ``side`` gives each operation its role; only scopes of one role are compared. Constants keep their path.
    """
    in_order = {node: paths[node] for node in sorted(paths, key=lambda node: view.nodes[node]["order"])}
    named = dict(paths) | with_parts(view, in_order, side)
    computing = [node for node in named if view.nodes[node]["family"] != "constant"]
    layers: dict[tuple[Path, str], tuple[Layer, ...]] = {}
    for depth in range(max(map(len, named.values()), default=0)):
        siblings: dict[tuple[Path, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for node in computing:
            if len(path := named[node]) > depth:
                siblings[path[:depth], side[node]][path[depth]].append(node)
        for (around, role), scopes in siblings.items():
            outer = layers.get((around, role), ())
            for name, members, layer in _merged(view, scopes, depth):
                found = (*outer, *layer)
                if found:
                    layers[(*around, name), role] = found
                for node in members:
                    named[node] = (*around, name, *named[node][depth + 1 :])
    return named, layers


def _merged(
    view: nx.DiGraph, scopes: Mapping[str, list[str]], depth: int
) -> Iterator[tuple[str, list[str], tuple[Layer, ...]]]:
    """Neighbouring scopes, alike ones in one: the name, the operations, and the layer where it stands for several."""
    contents = {name: Scope.of([view.nodes[node] for node in members]) for name, members in scopes.items()}
    single = dict(scopes)
    for repeat in find_repeats(contents):
        sizes = [contents[name].size for name in repeat.names]
        layer = Layer(depth, repeat.title, len(repeat.names), repeat.identical, (min(sizes), max(sizes)))
        yield f"{repeat.stem} {_EACH}", [node for name in repeat.names for node in single.pop(name)], (layer,)
    yield from ((name, members, ()) for name, members in single.items())
