"""One folding of a program for every picture: the groups around each op, from its name stack, its line and its place.

Groups nest like this, each left out where it says nothing:

    loop or branch > transformation (or stage and role) > layer > scope > source line > run of ops

A program with stages of a wavefunction has these; any other one has the transformation around its ops (``primal``,
``jvp``, ``transpose``) and their scopes. Layers without scopes are found by what they do (``part_1``, ``part_2``, ...);
siblings whose names differ in a number alone form one *repeat* (``layer ×3``). Many ops of one group are divided by
source line, and members of a group that are still too many into runs of neighbours. So no group has more than
``MOST_MEMBERS`` members, whatever the program.

A constant belongs to its first reader.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fusionlab.hlo import ops
from fusionlab.hlo.diff.numbering import is_literal
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.source_text import source_name
from fusionlab.hlo.stages import Attribution, attribute_nodes, has_stages
from fusionlab.hlo.view import FunctionView, Node, Region, reads, source_of
from fusionlab.report.pictures.scopes import have_numbers, parts_of_stages, scope_path, unnumbered

MOST_MEMBERS = 40
"""The members of a group, at most; a constant and its reader are one."""
_MANY_OPS = 24
"""A group with more ops of its own than this is divided by source line."""
_LOOP_PARTS = frozenset(("while", "body", "cond", "closed_call", ""))
_ONE_FLOW = frozenset(("laplacian", "wavefunction", ""))
"""Phases whose stages are siblings; the others (sampling, optimiser, potential) contain their own."""
_FLOW_KINDS = ("loop", "branch")
_BASE_KINDS = ("stage", "transform", *_FLOW_KINDS)
_TRANSFORMS = {"primal": "values", "jvp": "forward pass", "transpose": "reverse pass"}


@dataclass(frozen=True)
class PathStep:
    """One part of a path: ``kind`` is ``loop``, ``branch``, ``stage``, ``transform``, ``scope``, ``repeat``, ``source``
    or ``run``.

    ``node`` is the op that a loop or branch is, ``number`` tells runs of one group apart.
    """

    kind: str
    label: str
    stage: str = ""
    role: str = ""
    node: Node | None = None
    number: int = 0


Steps = tuple[PathStep, ...]


@dataclass(frozen=True)
class Folding:
    """Of every op that is no literal, in program order: its ``paths``, how often it ``runs``, its ``attributions``.

    ``staged``: its scopes are stages of a wavefunction. Without stages, attributions are empty.
    """

    paths: Mapping[Node, Steps]
    runs: Mapping[Node, int]
    attributions: Mapping[Node, Attribution]
    staged: bool


def fold(flat: FunctionView) -> Folding:
    """The folding of a whole program, private calls inlined."""
    folder = _Folder(flat)
    nodes = [node for node in flat.walk() if node in folder.paths]
    paths = {node: folder.paths[node] for node in nodes if node.family != "constant" or node not in folder.readers}
    paths = _bounded(_by_source(_with_repeats(_with_parts(paths, folder.staged))))
    for node in reversed(nodes):
        if node not in paths:
            paths[node] = _beside(folder.readers[node], paths)
    unknown = Attribution("", "", "")
    attributions = folder.attributions if folder.staged else dict.fromkeys(nodes, unknown)
    return Folding({node: paths[node] for node in nodes}, folder.runs, attributions, folder.staged)


def _beside(reader: Node, paths: Mapping[Node, Steps]) -> Steps:
    """The path of what ``reader`` reads: a loop or branch reads from outside of itself."""
    path = paths[reader]
    return next((path[:depth] for depth, step in enumerate(path) if step.node is reader), path)


def is_hidden(node: Node) -> bool:
    """True for constants and broadcasts, which pictures show only on request."""
    return node.family == "constant" or node.op in ops.BROADCASTS


def transform_label(transform: str) -> str:
    """A transformation of ``name_stacks`` with its meaning: ``jvp (forward pass)``."""
    return f"{transform} ({_TRANSFORMS[transform]})" if transform in _TRANSFORMS else transform


class _Folder:
    """The paths that name stacks and loops give."""

    def __init__(self, flat: FunctionView) -> None:
        self.attributions = attribute_nodes(flat)
        self.staged = has_stages({node.scope for node in flat.walk()})
        self.paths: dict[Node, Steps] = {}
        self.runs: dict[Node, int] = {}
        self.readers: dict[Node, Node] = {}
        named = {read_name(node.scope).transform for node in flat.walk() if node.scope and node.family != "constant"}
        self._transformed = len(named) > 1
        self._assign(flat, (), 1)

    def _assign(self, region: Region, inside: Steps, runs: int) -> None:
        """Assign every op of ``region`` its path; constants that of their first reader."""
        own = [node for node in region.nodes if not is_literal(node)]
        for node in own:
            self.runs[node] = runs
            self.paths[node] = (*inside, *self._steps(node, inside))
        readers: dict[Node, Node] = {}
        for node in own:
            for value in reads(node):
                if value.producer is not None:
                    readers.setdefault(value.producer, node)
        self.readers |= {maker: reader for maker, reader in readers.items() if maker in self.paths}
        for node in own:
            if node.op.control_flow:
                self._enter(node, inside, runs)

    def _enter(self, node: Node, inside: Steps, runs: int) -> None:
        """Descend into a loop or branch. In a program with stages, one without a stage of the network is a sibling of
        the stages."""
        is_loop = node.op is ops.WHILE
        trips = analyse(node).trips if is_loop else None
        stage = self.attributions[node].stage if self.staged else ""
        before = inside if self.staged and stage in ("", "E") else self.paths[node]
        held = (*before, PathStep("loop" if is_loop else "branch", node.op.mnemonic, stage, node=node))
        self.paths[node] = held
        for position, region in enumerate(node.regions):
            label = f"branch {position}" if not is_loop else "condition" if position == 0 else ""
            self._assign(region, (*held, PathStep("scope", label)) if label else held, runs * (trips or 1))

    def _steps(self, node: Node, inside: Steps) -> Steps:
        if self.staged:
            return _stage_steps(node.scope, self.attributions[node])
        stack = read_name(node.scope)
        steps = [PathStep("transform", transform_label(stack.transform))] if self._transformed else []
        steps += [PathStep("scope", name) for name in _distinct(stack.scopes)]
        for step in inside:  # inside of a loop, what is around the loop is said already
            if steps and step == steps[0]:
                del steps[0]
        return tuple(steps)


def _stage_steps(scope: str, found: Attribution) -> Steps:
    """Stage and scopes of an op with name stack ``scope``, the parts that loops add to names left out."""
    names = [name for name in scope_path(scope) if name not in _LOOP_PARTS]
    steps = []
    if found.phase not in _ONE_FLOW:
        steps.append(PathStep("stage", found.phase))
        names = [name for name in names if name != found.phase]
    if found.stage:
        names = [name for name in names if not re.fullmatch(r"stage_[a-e]", name)]
        steps.append(PathStep("stage", f"{found.stage} {found.role}", found.stage, found.role))
    if not steps:
        steps.append(PathStep("stage", "outside of every stage"))
    return (*steps, *(PathStep("scope", name, found.stage, found.role) for name in _distinct(names)))


def _distinct(names: Sequence[str]) -> list[str]:
    """The names without repetitions in a row, and without contractions, which ``einsum`` opens as scopes."""
    return [name for i, name in enumerate(names) if "->" not in name and (i == 0 or names[i - 1] != name)]


def _with_parts(paths: Mapping[Node, Steps], staged: bool) -> dict[Node, Steps]:
    """The paths, in program order, with a scope ``part_1``, ``part_2``, ... where layers have no scopes."""
    members: dict[Steps, list[tuple[Node, Hashable, tuple[str, ...]]]] = defaultdict(list)
    for node, path in paths.items():
        base = path[: max((i for i, step in enumerate(path, 1) if step.kind in _BASE_KINDS), default=0)]
        if not node.op.control_flow and (not staged or (base and base[-1].stage)):
            members[base].append((node, done(node), tuple(step.label for step in path[len(base) :])))
    members = {base: inside for base, inside in members.items() if not _has_layers(scopes for *_, scopes in inside)}
    parts = parts_of_stages(members.values())
    found = dict(paths)
    for base, inside in members.items():
        stage, role = (base[-1].stage, base[-1].role) if base else ("", "")
        for node in (node for node, *_ in inside if node in parts):
            step = PathStep("scope", f"part_{parts[node]}", stage, role)
            found[node] = (*base, step, *paths[node][len(base) :])
    return found


def _has_layers(paths: Iterable[tuple[str, ...]]) -> bool:
    """True if scopes somewhere in ``paths`` are numbered."""
    siblings: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for path in set(paths):
        for depth, name in enumerate(path):
            siblings[path[:depth]].add(name)
    return any(have_numbers(names) for names in siblings.values())


def _with_repeats(paths: Mapping[Node, Steps]) -> dict[Node, Steps]:
    """The paths with a ``repeat`` step before every scope that has numbered neighbours of the same name."""
    neighbours: dict[tuple[Steps, str], set[str]] = defaultdict(set)
    for path in set(paths.values()):
        for depth, step in enumerate(path):
            if step.kind == "scope" and unnumbered(step.label) != step.label:
                neighbours[path[:depth], unnumbered(step.label)].add(step.label)

    def widened(path: Steps) -> Iterator[PathStep]:
        for depth, step in enumerate(path):
            stem = unnumbered(step.label)
            same = neighbours.get((path[:depth], stem), ()) if step.kind == "scope" else ()
            if step.label in same and len(same) > 1:
                yield PathStep("repeat", f"{stem} ×{len(same)}", step.stage, step.role)
            yield step

    known = {path: tuple(widened(path)) for path in set(paths.values())}
    return {node: known[path] for node, path in paths.items()}


def _by_source(paths: Mapping[Node, Steps]) -> dict[Node, Steps]:
    """The paths with the source line of the ops of groups that have many of their own, from several lines."""
    own: dict[Steps, list[Node]] = defaultdict(list)
    for node, path in paths.items():
        own[path].append(node)
    found = dict(paths)
    for path, members in own.items():
        if len(members) <= _MANY_OPS:
            continue
        lines = {node: source_line(node) for node in members if not node.op.control_flow}
        if len(set(lines.values()) - {""}) > 1:
            stage, role = (path[-1].stage, path[-1].role) if path else ("", "")
            found |= {node: (*path, PathStep("source", line, stage, role)) for node, line in lines.items() if line}
    return found


def source_line(node: Node) -> str:
    """The innermost line of the user that an op is from, ``model.py:12``; "" where it is not known."""
    place = source_of(node.operation)
    return source_name(place) if place else ""


def _bounded(paths: Mapping[Node, Steps]) -> dict[Node, Steps]:
    """The paths with runs of neighbours in groups of more than ``MOST_MEMBERS`` members."""
    found = dict(paths)
    pending: list[tuple[int, list[Node]]] = [(0, list(paths))]
    while pending:
        depth, inside = pending.pop()
        members: dict[PathStep | Node, list[Node]] = defaultdict(list)
        for node in inside:
            path = found[node]
            members[path[depth] if depth < len(path) else node].append(node)
        runs = _runs([*members])
        for number, run in enumerate(runs if len(runs) > 1 else ()):
            step = _run_step(run, number, found[members[run[0]][0]][:depth])
            for node in (node for member in run for node in members[member]):
                found[node] = (*found[node][:depth], step, *found[node][depth:])
        if len(runs) > 1:  # the runs may be too many, too
            pending.append((depth, inside))
        else:
            pending += [(depth + 1, nodes) for member, nodes in members.items() if isinstance(member, PathStep)]
    return found


def _runs(members: Sequence[PathStep | Node]) -> list[Sequence[PathStep | Node]]:
    """Runs of neighbours, of about the same size; one where the members are few enough."""
    count = -(-len(members) // MOST_MEMBERS)
    bounds = [len(members) * i // count for i in range(count + 1)] if count else [0]
    return [members[start:end] for start, end in itertools.pairwise(bounds)]


def _run_step(run: Sequence[PathStep | Node], number: int, around: Steps) -> PathStep:
    """``layer_0 to layer_39``, ``40 × while (rnn.py:7)``, or the most frequent names: ``multiply, add, ...``."""
    stage, role = (around[-1].stage, around[-1].role) if around else ("", "")
    names = [one.label if isinstance(one, PathStep) else one.op.mnemonic for one in run]
    first, last = names[0].partition(" to ")[0], names[-1].rpartition(" to ")[2]
    if all(isinstance(one, PathStep) for one in run) and first != last:
        label = f"{first} to {last}"
    elif len(set(names)) == 1 and len(run) > 1:
        label = f"{len(run)} × {names[0]}{_lines_of(run)}"
    else:
        common = [name for name, _ in Counter(names).most_common(3)]
        label = ", ".join(common) + (", ..." if len(set(names)) > len(common) else "")
    return PathStep("run", label, stage, role, number=number)


def _lines_of(run: Sequence[PathStep | Node]) -> str:
    """The first and the last source line of loops, branches or ops: `` (rnn.py:7 … rnn.py:9)``; "" where unknown."""
    nodes = [one.node if isinstance(one, PathStep) else one for one in run]
    lines = list(dict.fromkeys(filter(None, (source_line(node) for node in nodes if node is not None))))
    return f" ({' … '.join(dict.fromkeys((lines[0], lines[-1])))})" if lines else ""


def done(node: Node) -> tuple[str, ...]:
    """The name of an op and the types of its results: ops for which these are equal compute the same."""
    return (node.name, *(str(value.handle.type) for value in node.results))
