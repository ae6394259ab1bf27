"""Name stacks folded to scopes: the path of an operation, scopes that repeat, and layers that have no scope.

Two sibling scopes are *alike* when their names differ by the number at the end alone, they have the same families of
matrix products, solves and reductions, and the larger has at most twice the operations of the smaller: a first layer
that reads the features, or a last one that passes no message on, is still that layer. *Identical* means the same number
of operations by name and result types.

PauliNet's and FermiNet's layers have names (``interaction_0``). Those of Psiformer, Orbformer and most foreign programs
have not, but a layer lowers to the same operations on the same shapes each time. Such a sequence is found as a *tandem
repeat*: operation ``i`` is that of ``i + period`` for as long as possible, three times or more. Two repetitions are no
layers yet: the two spins repeat so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import networkx as nx
import numpy as np

from fusionlab.hlo.name_stacks import Frame, frames
from fusionlab.report.pictures.looks import STAGE_WORDS

Path = tuple[str, ...]
N = TypeVar("N")

_NO_SCOPE = frozenset(("while", "body", "cond", "closed_call", "stage_e", ""))
_NAME = re.compile(r"[A-Za-z]\w*")
_NUMBERED = re.compile(r"(.+?)_?(\d+)")
_COMPUTING = {"gemm", "triangular-solve", "factorisation", "attention", "reduction"}
_EACH = "*"
"""The suffix to the stem that names alike layers in a path, whatever their number in a role; no scope has it."""
_LEAST_OPERATIONS = 10
_LEAST_PARTS = 3
_LEAST_SHARE = 0.5
_MOST_OPERATIONS = 20_000
"""The limit per stage: every period is tried, at a cost quadratic in it."""


def scope_path(op_name: str) -> Path:
    """The scopes of an operation without transformations, loop parts and the operation's own name."""
    root, *inner = frames(op_name) or (Frame((), ""),)
    path = [frame.name for frame in inner[:-1] if frame != root]
    for position, name in enumerate(path):
        if name.startswith("stage_") and name != "stage_e":
            return tuple(path[position:])
    return tuple(name for name in path if name not in _NO_SCOPE)


def named_scopes(op_name: str) -> Path:
    """The scopes of an operation with a name of their own: not a contraction's, ``hij,jhd->ihd``."""
    return tuple(name for name in scope_path(op_name) if _NAME.fullmatch(name))


def adopt_constants(view: nx.DiGraph, *places: dict[str, Any]) -> None:
    """Constants have no scope of their own: in every dict of ``places``, they get the entry of their first reader."""
    for node in reversed(list(places[0])):
        readers = [reader for reader in view.successors(node) if reader in places[0]]
        if view.nodes[node]["family"] == "constant" and readers:
            first = min(readers, key=lambda reader: view.nodes[reader]["order"])
            for entries in places:
                entries[node] = entries[first]


@dataclass(frozen=True)
class Repeat:
    """Alike scopes ``names``, in order, which all begin with ``stem``; ``title`` names them all (``layer 0 to 2``).

    ``sizes`` are their operations; ``identical`` means the same operations on the same shapes.
    """

    names: tuple[str, ...]
    stem: str
    title: str
    sizes: tuple[int, ...]
    identical: bool

    @property
    def words(self) -> str:
        """``3 times, identical`` or ``3 times, alike: 146 to 195 operations each``."""
        few, many = min(self.sizes), max(self.sizes)
        each = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        return f"{len(self.names)} times, " + ("identical" if self.identical else f"alike: {each} operations each")


Repeats = Mapping[int, Repeat]
"""The repeats that a scope is or is in, by their depth in its path."""
Layers = Mapping[tuple[Path, Hashable], Repeats]
"""The repeats of scopes of each group; no scopes outside all layers."""


def find_repeats(scopes: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Repeat]:
    """The repeats among sibling scopes; every name is in one at most, single ones in none.

    ``scopes`` maps a name to the attributes (as in ``hlo.graph``) of the operations of that scope.
    """
    stems: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in scopes:
        if match := _NUMBERED.fullmatch(name):
            stems[match[1]].append((int(match[2]), name))
    found = []
    for stem, numbered in stems.items():
        numbers, names = zip(*sorted(numbered), strict=True)
        kinds = [_COMPUTING & {one["family"] for one in scopes[name]} for name in names]
        sizes = tuple(len(scopes[name]) for name in names)
        if len(names) > 1 and all(kind == kinds[0] for kind in kinds) and max(sizes) <= 2 * min(sizes):
            together = numbers == tuple(range(numbers[0], numbers[-1] + 1))
            range_ = f"{numbers[0]} to {numbers[-1]}" if together else ", ".join(map(str, numbers))
            done = [Counter((one["name"], one["type"]) for one in scopes[name]) for name in names]
            found.append(Repeat(names, stem, f"{stem} {range_}", sizes, all(one == done[0] for one in done)))
    return found


def drawn_once(
    view: nx.DiGraph, groups: Mapping[str, Hashable], paths: Mapping[str, Path]
) -> tuple[dict[str, Path], Layers]:
    """``paths`` (operations of ``view`` to their scopes) with alike layers under one name, and these layers.

    Only scopes of one of ``groups`` (roles, for example) are compared. Constants keep their path. Repeats inside a
    layer are found too.
    """
    named = dict(paths)
    computing = [node for node in named if view.nodes[node]["family"] != "constant"]
    layers: dict[tuple[Path, Hashable], Repeats] = {}
    for depth in range(max(map(len, named.values()), default=0)):
        siblings: dict[tuple[Path, Hashable], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for node in computing:
            if len(path := named[node]) > depth:
                siblings[path[:depth], groups[node]][path[depth]].append(node)
        for (around, group), scopes in siblings.items():
            outer = layers.get((around, group), {})
            repeats = find_repeats({name: [view.nodes[node] for node in nodes] for name, nodes in scopes.items()})
            for repeat in repeats:
                scope = (*around, f"{repeat.stem} {_EACH}")
                layers[scope, group] = {**outer, depth: repeat}
                for node in (node for name in repeat.names for node in scopes[name]):
                    named[node] = (*scope, *named[node][depth + 1 :])
            if outer:
                merged = {name for repeat in repeats for name in repeat.names}
                layers |= {((*around, name), group): outer for name in scopes if name not in merged}
    return named, layers


def scope_title(scope: Path, repeats: Repeats, stage: str, *, inner: bool = False) -> str:
    """``B: interaction 1``, ``A: features``, ``potential``: the stage's letter, and the scopes or its meaning.

    A scope around the innermost that stands for several has their number (``B: layer 0 to 2 ×3, edges``); with
    ``inner`` the others are left out.
    """
    last = len(scope) - 1
    words = []
    for depth, name in enumerate(scope):
        repeat = repeats.get(depth)
        if repeat is not None:
            words.append(repeat.title if depth == last else f"{repeat.title} ×{len(repeat.names)}")
        elif name != f"stage_{stage.lower()}" and (depth == last or not inner):
            words.append(name)
    title = ", ".join(words).replace("_", " ")
    return f"{stage}: {title or STAGE_WORDS[stage]}" if stage else title


def with_parts(view: nx.DiGraph, groups: Mapping[str, Hashable], paths: Mapping[str, Path]) -> dict[str, Path]:
    """``paths`` with a scope ``part_1``, ``part_2``, ... in stages whose layers have no scopes for them.

    Only operations of one of ``groups`` are compared. Those outside all parts, and constants, keep their path.
    """
    stages: dict[tuple[str, Hashable], list[tuple[str, Hashable, Path]]] = defaultdict(list)
    for node in sorted(paths, key=lambda node: view.nodes[node]["order"]):
        facts, path = view.nodes[node], paths[node]
        if path and path[0].startswith("stage_") and facts["family"] != "constant":
            stages[path[0], groups[node]].append((node, (facts["name"], facts["type"]), path[1:]))
    parts = parts_of_stages(stages.values())
    return {
        node: (path[0], f"part_{parts[node]}", *path[1:]) if node in parts else path for node, path in paths.items()
    }


def parts_of_stages(stages: Iterable[Sequence[tuple[N, Hashable, Path]]]) -> dict[N, int]:
    """The part, from 1, of the operations that are in one, in stages whose layers have no scopes of their own.

    Every stage lists its operations in program order: the operation, a key (equal keys: same computation), and its
    scopes in the stage.
    """
    found: dict[N, int] = {}
    for stage in stages:
        if not have_numbers(scopes[0] for _, _, scopes in stage if scopes):
            parts = part_numbers([(done, scopes) for _, done, scopes in stage])
            found |= {node: part for (node, *_), part in zip(stage, parts, strict=True) if part}
    return found


def part_numbers(operations: Sequence[Hashable]) -> list[int]:
    """For every operation of a sequence the part that it is in, from 1; 0 before and after the repeat.

    What compares equal is the same operation. All 0 unless there are three parts or more, of 10 operations or more each
    and half of the sequence together; of several repeats the one with most operations counts, and of its periods the
    shortest.
    """
    count = len(operations)
    found = [0] * count
    if not _LEAST_PARTS * _LEAST_OPERATIONS <= count <= _MOST_OPERATIONS:
        return found
    known: dict[Hashable, int] = {}
    tokens = np.array([known.setdefault(one, len(known)) for one in operations])
    periods = range(_LEAST_OPERATIONS, count // _LEAST_PARTS + 1)
    covered, period, start = max(_longest(tokens, period) for period in periods)
    if covered >= max(_LEAST_SHARE * count, 1):
        found[start : start + covered] = [1 + i // -period for i in range(covered)]
    return found


def _longest(tokens: np.ndarray, period: int) -> tuple[int, int, int]:
    """Operations in whole parts of the longest repeat (0: none), minus ``period``, and the position of the first."""
    same = np.concatenate(([False], tokens[:-period] == tokens[period:], [False]))
    edges = np.flatnonzero(same[1:] != same[:-1])
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    if not len(lengths) or lengths.max() < (_LEAST_PARTS - 1) * period:
        return 0, -period, 0
    at = int(lengths.argmax())
    return (int(lengths[at]) // period + 1) * period, -period, int(starts[at])


def have_numbers(names: Iterable[str]) -> bool:
    """True if two of ``names`` differ in a number at their end alone: then layers have scopes of their own."""
    stems = [unnumbered(name) for name in set(names) if re.fullmatch(r"[A-Za-z].*?[_.]?\d+", name)]
    return len(set(stems)) < len(stems)


def unnumbered(name: str) -> str:
    """``name`` without the number at its end."""
    return re.sub(r"[_.]?\d+$", "", name)
