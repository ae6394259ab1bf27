"""The positions x and the functions F that directions may be pushed through: which values are tried, in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes, reached, sources_of
from fusionlab.hlo.loops import Stacked, Sum
from fusionlab.hlo.view import FunctionView, Node, Value, reads
from fusionlab.passes.fuse_jvp_replay.directions import Place, constant_seeds
from fusionlab.passes.refusals import Ground, Refusal

_MUCH, _NEARLY_NONE = 1.5, 0.1
"""The nodes of a value that is built on another one, as multiple of the other's; and the part of these it may lack."""
_Position = tuple[Value, int, list[Value]]
"""x, the number of its leading axes, and the candidates for F."""


def positions_of(flat: FunctionView, places: Sequence[Place], extent: int) -> list[_Position]:
    """Values of ``extent`` coordinates behind some leading axes, the number of these, and the candidates for F.

    They are those on which most of the values read beside the directions depend: the last two of them, and the first;
    then those on which fewer do (coordinates that are scaled before and after); then the same of values that all
    walkers share, as nuclei. Constants are none, where others are.
    """
    directed, ends = _directed(flat, places)
    before = [node for node in flat.nodes if directed.isdisjoint(node.results)]
    every = [value for node in flat.nodes if not directed.isdisjoint(node.results) for value in reads(node)]
    read = [value for value in dict.fromkeys(every) if value not in directed]
    made = [v for node in before for v in node.results]
    values = [*flat.arguments, *made]
    given = reached(flat, flat.arguments)
    reason = Refusal(Ground.POSITIONS_NOT_FOUND, f"no value of the program has {extent} coordinates per walker")
    for found in (_of_extent([v for v in values if v in given], extent), _of_extent(values, extent)):
        dependent = sources_of(flat, list(found))
        counts = {x: sum(dependent.get(v, 0) >> i & 1 for v in read) for i, x in enumerate(found)}
        if not any(counts.values()):
            continue
        if chosen := _with_outputs(found, counts, dependent, made, ends, given):
            return chosen
        none = "no value of one number per walker is computed from the positions before the loop"
        reason = Refusal(Ground.FUNCTION_NOT_FOUND, none)
    raise reason


def _directed(flat: FunctionView, places: Sequence[Place]) -> tuple[set[Value], list[tuple[int, ...]]]:
    """The values of ``flat`` that depend on directions, and the shapes of its results, of sums and of terms."""
    directed = reached(flat, constant_seeds(places))
    ends = [value.type.shape for value in flat.returns if value.is_array]
    for place in places:
        if (loop := place.loop) is not None:
            directed |= reached(flat, loop.node.results)
            ends += [loop.node.results[i].type.shape for i in loop.indices(Sum)]
            ends += [role.term_shape for role in loop.roles if isinstance(role, Stacked)]
    return directed, ends


def _with_outputs(
    found: Mapping[Value, int], counts: Mapping[Value, int], dependent: Mapping[Value, int], made: Sequence[Value],
    ends: Sequence[tuple[int, ...]], given: Collection[Value],
) -> list[_Position]:  # fmt: skip
    """The positions among those ``found`` with the outputs of each, values that are ``made`` of it: first positions of
    each walker, with outputs of the shape of the walkers, or of an end that begins with it; then positions that all
    walkers share, with outputs of the shape of an end.

    ``dependent`` has bit i of each value that depends on position i.
    """
    bits = {x: i for i, x in enumerate(found)}
    by_shape: dict[tuple[int, ...], dict[Value, int]] = {}
    for at, value in enumerate(made):
        if value.is_array:
            by_shape.setdefault(_longer(value.type.shape), {})[value] = at

    def outputs(x: Value, shapes: Iterable[tuple[int, ...]]) -> list[Value]:
        at = {value: place for shape in set(map(_longer, shapes)) for value, place in by_shape.get(shape, {}).items()}
        own = (v for v in at if v.dtype == x.dtype and v is not x and dependent.get(v, 0) >> bits[x] & 1)
        return sorted(own, key=at.__getitem__)

    def of_walkers(x: Value) -> list[Value]:
        axes = x.type.shape[: found[x]]
        fitting = (axes, *(shape for shape in ends if shape[: found[x]] == axes))
        return outputs(x, fitting) if axes or x in given else []

    def of_shared(x: Value) -> list[Value]:
        return [] if found[x] else outputs(x, filter(None, ends))

    chosen: dict[Value, _Position] = {}
    for outputs_of in (of_walkers, of_shared):
        for x, own in _chosen(counts, outputs_of):
            chosen.setdefault(x, (x, found[x], own))
    return list(chosen.values())


def _chosen(
    counts: Mapping[Value, int], outputs_of: Callable[[Value], list[Value]]
) -> Iterator[tuple[Value, list[Value]]]:
    """The last two and the first of the positions with the highest count that have outputs, and of those with the
    next."""
    levels = 0
    for count in sorted(set(filter(None, counts.values())), reverse=True):
        level = [(x, outputs) for x in counts if counts[x] == count and (outputs := outputs_of(x))]
        yield from (*level[:-3:-1], *level[:-2][:1])
        levels += bool(level)
        if levels == 2:
            return


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


def groups(flat: FunctionView, outputs: Sequence[Value], walkers: Sequence[int]) -> list[list[Value]]:
    """Candidates of one number for each of ``walkers``: those that no other is computed from, without and then with
    those built on another one; the rest; and the same of the others."""
    plain = [value for value in outputs if value.type.shape == tuple(walkers)]
    others = [value for value in outputs if value not in plain]
    return [*_of_each_depth(flat, plain), *_of_each_depth(flat, others)]


def _of_each_depth(flat: FunctionView, outputs: Sequence[Value]) -> Iterator[list[Value]]:
    """Those that no other is computed from, in two groups by ``_built_on_another``; then the rest."""
    used: set[Value] = set()
    for node in reversed(flat.nodes):
        if any(value in used or value in outputs for value in node.results):
            used.update(node.operands)
    last = [value for value in outputs if value not in used]
    built = _built_on_another(flat, last)
    first = [value for value in last if value not in built]
    yield from filter(None, (first, [*built], [value for value in outputs if value in used]))


def _built_on_another(flat: FunctionView, outputs: Sequence[Value]) -> dict[Value, None]:
    """Those of ``outputs`` that need nearly all that another one needs, and much beside it.

    |grad F|^2      is built on F: second derivatives of it cost far more than those of F
    """
    cones = {output: set(live_nodes(flat.nodes, flat.arguments, [output])) for output in outputs}

    def is_built_on(larger: set[Node], other: set[Node]) -> bool:
        return len(larger) > _MUCH * len(other) and len(other - larger) < _NEARLY_NONE * len(other)

    return {output: None for output, own in cones.items() if any(is_built_on(own, other) for other in cones.values())}


def coordinates_of(flat: FunctionView, x: Value, walkers: int) -> Coordinates:
    """Those of ``x`` [*walkers, ...], one to three of each electron by its last axis, or by the longest of a reshape's.

    Of a vector that is not reshaped, 3 if it can be divided by 3. What is grouped in another way than in the program
    has fewer directions that are known to be zero, and ties of other coordinates.
    """
    count = math.prod(x.type.shape[walkers:])
    reshaped = [node.results[0] for node in flat.nodes if node.op is ops.RESHAPE and node.operands[0] is x]
    for values in ([x], reshaped):
        inner = [value.type.shape[walkers:] for value in values]
        fitting = [e[-1] for e in inner if len(e) > 1 and math.prod(e) == count and e[-2] > 1 and e[-1] <= 3]
        if fitting:
            return Coordinates(count // max(fitting), max(fitting))
    each = 1 if count % 3 else 3
    return Coordinates(count // each, each)
