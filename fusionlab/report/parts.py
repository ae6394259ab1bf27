"""Layers without scopes of their own: the same sequence of operations, three times or more in a row within a stage.

PauliNet's and FermiNet's layers have names (``interaction_0``). Those of Psiformer, Orbformer and most foreign programs
have not, but a layer lowers to the same operations on the same shapes each time. Such a sequence is found as a *tandem
repeat*: operation ``i`` is that of ``i + period`` for as long as possible. Twice is no layer yet: that is what the two
spins do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

import networkx as nx
import numpy as np

_LEAST_OPERATIONS = 10
_LEAST_PARTS = 3
_LEAST_SHARE = 0.5
_MOST_OPERATIONS = 20_000
"""Of one stage: every period is tried, which takes the square of this."""
_NUMBERED = re.compile(r"[A-Za-z].*?[_.]?\d+")


def parts_of_stage(done: Sequence[Hashable], scopes: Sequence[tuple[str, ...]]) -> list[int]:
    """For every operation of a stage the part that it is in, from 1; 0 for all where layers have scopes of their own.

    ``done`` says what each does (equal: the same), ``scopes`` the names of the scopes in the stage that it is in.
    """
    if have_numbers(scope[0] for scope in scopes if scope):
        return [0] * len(scopes)
    return part_numbers([*zip(done, scopes, strict=True)])


def part_numbers(operations: Sequence[Hashable]) -> list[int]:
    """For every operation of a sequence the part that it is in, from 1; 0 before and after what repeats.

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
    covered, period, start = max(
        _longest(tokens, period) for period in range(_LEAST_OPERATIONS, count // _LEAST_PARTS + 1)
    )
    if covered < max(_LEAST_SHARE * count, 1):
        return found
    for i in range(covered):
        found[start + i] = 1 + i // -period
    return found


def have_numbers(names: Iterable[str]) -> bool:
    """Whether two of ``names`` differ in a number at their end alone: then layers have scopes of their own."""
    stems = [re.sub(r"[_.]?\d+$", "", name) for name in set(names) if _NUMBERED.fullmatch(name)]
    return len(set(stems)) < len(stems)


def _longest(tokens: np.ndarray, period: int) -> tuple[int, int, int]:
    """Operations in whole parts of the longest repeat (0: none), minus ``period``, and the position of the first."""
    same = np.concatenate(([False], tokens[:-period] == tokens[period:], [False]))
    edges = np.flatnonzero(same[1:] != same[:-1])
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    if not len(lengths) or lengths.max() < (_LEAST_PARTS - 1) * period:
        return 0, -period, 0
    at = int(lengths.argmax())
    return (int(lengths[at]) // period + 1) * period, -period, int(starts[at])


def with_parts(
    view: nx.DiGraph, paths: Mapping[str, tuple[str, ...]], groups: Mapping[str, Hashable]
) -> dict[str, tuple[str, ...]]:
    """New scopes, with a ``part_1``, ``part_2``, ... in them, of operations whose stage has layers without scopes.

    ``paths`` are the scopes of the operations of ``view``, in program order; only those of one stage and of one of
    ``groups`` are compared. Operations that are in no part, and constants, are not in what comes back.
    """
    stages: dict[tuple[str, Hashable], list[str]] = defaultdict(list)
    for node, path in paths.items():
        if path and path[0].startswith("stage_") and view.nodes[node]["family"] != "constant":
            stages[path[0], groups[node]].append(node)
    found: dict[str, tuple[str, ...]] = {}
    for (stage, _), nodes in stages.items():
        inner = [paths[node][1:] for node in nodes]
        done = [(view.nodes[node]["name"], view.nodes[node]["type"]) for node in nodes]
        for node, path, part in zip(nodes, inner, parts_of_stage(done, inner), strict=True):
            if part:
                found[node] = (stage, f"part_{part}", *path)
    return found
