"""The path from a program to an op: loops, stage and role, scopes; and which neighbouring scopes repeat each other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from fusionlab.hlo.stages import Attribution
from fusionlab.hlo.view import Node
from fusionlab.report.boxes import scope_path
from fusionlab.report.parts import parts_of_stage

_LOOP_PARTS = frozenset(("while", "body", "cond", "closed_call", ""))
_ONE_FLOW = frozenset(("laplacian", "wavefunction", ""))
"""Phases whose stages stand side by side; the others (sampling, optimiser, potential) hold their own."""


@dataclass(frozen=True)
class Step:
    """One part of a path: ``kind`` is ``loop``, ``branch``, ``stage``, ``scope`` or ``repeat``.

    ``node`` is the op that a loop or branch is.
    """

    kind: str
    label: str
    stage: str = ""
    role: str = ""
    node: Node | None = None


Path = tuple[Step, ...]


def scope_steps(scope: str, found: Attribution) -> Path:
    """Stage and scopes of an op with name stack ``scope``, the parts that loops add to names left out."""
    names = [name for name in scope_path(scope) if name not in _LOOP_PARTS]
    steps = []
    if found.phase not in _ONE_FLOW:
        steps.append(Step("stage", found.phase))
        names = [name for name in names if name != found.phase]
    if found.stage:
        names = [name for name in names if not re.fullmatch(r"stage_[a-e]", name)]
        steps.append(Step("stage", f"{found.stage} {found.role}", found.stage, found.role))
    if not steps:
        steps.append(Step("stage", "outside of every stage"))
    distinct = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    return (*steps, *(Step("scope", name, found.stage, found.role) for name in distinct))


def with_parts(paths: Mapping[Node, Path], done: Mapping[Node, Hashable]) -> dict[Node, Path]:
    """The paths with a scope ``part_1``, ``part_2``, ... in stages whose layers have no scopes of their own.

    ``paths`` are in program order; what ``done`` has equal entries for is the same operation, and what it has none for
    (a constant) takes no part in the search, and stays where it is.
    """
    inside: dict[Path, list[Node]] = defaultdict(list)
    for node, path in paths.items():
        stages = [depth for depth, step in enumerate(path) if step.kind == "stage"]
        if stages and path[stages[-1]].stage and node in done:
            inside[path[: stages[-1] + 1]].append(node)
    found = dict(paths)
    for stage, nodes in inside.items():
        inner = [paths[node][len(stage) :] for node in nodes]
        parts = parts_of_stage([done[node] for node in nodes], [tuple(s.label for s in path) for path in inner])
        for node, path, part in zip(nodes, inner, parts, strict=True):
            if part:
                step = Step("scope", f"part_{part}", stage[-1].stage, stage[-1].role)
                found[node] = (*stage, step, *path)
    return found


def with_repeats(paths: Mapping[Node, Path]) -> dict[Node, Path]:
    """The paths with a ``repeat`` step before every scope that has numbered neighbours of the same name."""
    neighbours: dict[tuple[Path, str], set[str]] = defaultdict(set)
    for path in set(paths.values()):
        for depth, step in enumerate(path):
            if step.kind == "scope" and _stem(step.label) != step.label:
                neighbours[path[:depth], _stem(step.label)].add(step.label)

    def widened(path: Path) -> Path:
        steps: list[Step] = []
        for depth, step in enumerate(path):
            same = neighbours.get((path[:depth], _stem(step.label)), ()) if step.kind == "scope" else ()
            if step.label in same and len(same) > 1:
                steps.append(Step("repeat", f"{_stem(step.label)} ×{len(same)}", step.stage, step.role))
            steps.append(step)
        return tuple(steps)

    known = {path: widened(path) for path in set(paths.values())}
    return {node: known[path] for node, path in paths.items()}


def _stem(label: str) -> str:
    return re.sub(r"[_.]?\d+$", "", label)
