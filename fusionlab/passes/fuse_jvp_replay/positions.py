"""The positions x and the functions F that directions may be pushed through: which values are tried, in which order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fusionlab.hlo import ops
from fusionlab.hlo.dependence import reached, sources_of
from fusionlab.hlo.loops import Stacked, Sum
from fusionlab.hlo.view import FunctionView, Node, Value, reads
from fusionlab.passes.fuse_jvp_replay.directions import Place
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NoMatch
from fusionlab.passes.refusals import Ground


def positions_of(flat: FunctionView, places: Sequence[Place], extent: int) -> list[tuple[Value, int, list[Value]]]:
    """Values of ``extent`` coordinates behind some leading axes, the number of these, and the candidates for F.

    They are those on which most of the values read beside the directions depend: the last two of them, and the first;
    then those on which fewer do (coordinates that are scaled before and after); then the same of values that all
    walkers share, as nuclei. Constants are none, where others are.
    """
    directed = reached(flat, [s.value for p in places if p.loop is None for s in p.seeds])
    ends = [value.type.shape for value in flat.returns if value.is_array]
    for place in places:
        if (loop := place.loop) is not None:
            directed |= reached(flat, loop.node.results)
            ends += [loop.node.results[i].type.shape for i in loop.indices(Sum)]
            ends += [role.term_shape for role in loop.roles if isinstance(role, Stacked)]
    before = [node for node in flat.nodes if directed.isdisjoint(node.results)]
    every = [value for node in flat.nodes if not directed.isdisjoint(node.results) for value in reads(node)]
    read = [value for value in dict.fromkeys(every) if value not in directed]
    values = [*flat.arguments, *(v for node in before for v in node.results)]
    given = reached(flat, flat.arguments)
    reason = NoMatch(Ground.POSITIONS_NOT_FOUND, f"no value of the program has {extent} coordinates per walker")
    for found in (_of_extent([v for v in values if v in given], extent), _of_extent(values, extent)):
        dependent = sources_of(flat, list(found))
        counts = {x: sum(dependent.get(v, 0) >> i & 1 for v in read) for i, x in enumerate(found)}
        if not any(counts.values()):
            continue
        outputs = {
            x: [
                v
                for n in before
                for v in n.results
                if v.dtype == x.dtype and v is not x and dependent.get(v, 0) >> i & 1
            ]
            for i, x in enumerate(found)
        }
        chosen: dict[Value, tuple[Value, int, list[Value]]] = {}
        for shared in (False, True):
            best: dict[int, list[tuple[Value, int, list[Value]]]] = {}
            for x, leading in found.items():
                axes = x.type.shape[:leading]
                shapes = {_longer(of) for of in (axes, *ends) if of[:leading] == axes and shared <= bool(of)}
                fitting = [v for v in outputs[x] if _longer(v.type.shape) in shapes]
                fits = (leading == 0 and bool(ends)) if shared else (leading > 0 or x in given)
                if fitting and fits and counts[x]:
                    best.setdefault(counts[x], []).append((x, leading, fitting))
            for count in sorted(best, reverse=True)[:2]:
                level = best[count]
                for each in (*level[:-3:-1], *level[:-2][:1]):
                    chosen.setdefault(each[0], each)
        if chosen:
            return list(chosen.values())
        none = "no value of one number per walker is computed from the positions before the loop"
        reason = NoMatch(Ground.FUNCTION_NOT_FOUND, none)
    raise reason


def _of_extent(values: Sequence[Value], extent: int) -> dict[Value, int]:
    """Those of ``values`` with ``extent`` elements behind some leading axes, and the number of these; a reshape of one
    of them is the same.

    Where axes of one element may belong to either, the leading ones are those of another value, if there is one.
    """
    found: dict[Value, int] = {}
    shapes = {value.type.shape for value in values if value.is_array}
    for value in values:
        if value.dtype not in ops.WIDE_FLOATS:
            continue
        shape, node = value.type.shape, value.producer
        fitting = [a for a in range(len(shape)) if math.prod(shape[a:]) == extent]
        reshaped = node is not None and node.op is ops.RESHAPE and node.operands[0] in found
        if fitting and not reshaped:
            found[value] = next((a for a in fitting if shape[:a] in shapes), fitting[-1])
    return found


def _longer(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent > 1)


def groups(before: Sequence[Node], outputs: Sequence[Value]) -> Iterator[list[Value]]:
    """Candidates that no other candidate is computed from, then the others."""
    used: set[Value] = set()
    for node in reversed(before):
        if any(value in used or value in outputs for value in node.results):
            used.update(node.operands)
    both = [value for value in outputs if value not in used], [value for value in outputs if value in used]
    yield from filter(None, both)
