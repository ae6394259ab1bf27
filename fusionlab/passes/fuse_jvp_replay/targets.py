"""The values that a program computes of products of directions, and what has to hold of the tail that computes them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from fusionlab.hlo import ops
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.cost import Cost, node_cost
from fusionlab.hlo.dependence import live_nodes, on_every_way, reached
from fusionlab.hlo.loops import Sum, accumulated_by, analyse
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads
from fusionlab.passes.fuse_jvp_replay.directions import Place
from fusionlab.passes.fuse_jvp_replay.identify.cuts import Cut
from fusionlab.passes.fuse_jvp_replay.identify.guards import by_integers, told_apart
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial
from fusionlab.passes.fuse_jvp_replay.products import Products
from fusionlab.passes.fuse_jvp_replay.tail import Tail
from fusionlab.passes.fuse_jvp_replay.weights import WeightedTarget, weighed
from fusionlab.passes.refusals import Ground, Refusal, collected

_MOST_TARGETS = 8
_MOST_LEFT = 0.25
"""The FLOPs along directions that may be left, as part of those of the second derivatives that are replaced."""


def tails(products: Products) -> Iterator[Tail]:
    """What computes values through which the results depend on second derivatives, affine in these; then the sums of
    loops that are not, as of absolute values."""
    flat, cuts = products.trial.flat, products.cuts
    gradients = {value for value, _ in products.gradients}  # they need no loop
    for targets in _ways_out(flat, cuts):
        tail = Tail(flat, cuts, targets)
        if any(cut.order == 2 for cut in tail.cuts) and tail.is_affine:
            yield from _with_results_beside(flat, tail, cuts, gradients)
    if sums := _sums([cut for cut in cuts if cut.order == 2]):
        tail = Tail(flat, cuts, sums)
        if not tail.is_affine and not _tests_for_infinity(tail):
            yield tail


def _tests_for_infinity(tail: Tail) -> bool:
    """True if ``tail`` tests its cuts for NaN or infinity: where second derivatives are undefined, those of an adjoint
    may be others."""
    products = {cut.value for cut in tail.cuts if cut.order == 2}
    for node in tail.every_node(()):
        if products.isdisjoint(reads(node)):
            continue
        products.update(node.results)
        with_itself = node.op is ops.COMPARE and len(set(node.operands)) == 1
        numbers = [number_of(value) for value in node.operands] if node.op is ops.COMPARE else []
        infinite = any(number is not None and not math.isfinite(number) for number in numbers)
        if with_itself or infinite or node.op.mnemonic == "is_finite":
            return True
    return False


def weighed_tails(products: Products, reasons: list[Refusal]) -> Iterator[tuple[Tail, list[WeightedTarget]]]:
    """The tails of ``products`` with their weighted targets, those that need second derivatives one by one last.

    To ``reasons`` is added what others are refused for.
    """
    one_by_one = list[tuple[Tail, list[WeightedTarget]]]()
    for tail in tails(products):
        targets = None
        with collected(reasons):
            _require_equal_weights(products.trial, tail)
            _require_no_product(products.trial, tail)
            targets = weighed(products.trial, tail)
        if targets is not None and any(target.of_diagonal for target in targets):
            one_by_one.append((tail, targets))
        elif targets is not None:
            yield tail, targets
    yield from one_by_one


def no_sum_of(products: Products, places: Sequence[Place]) -> Refusal:
    """The refusal of ``products`` that no tail adds up; final where they are all that is made of directions in
    ``places``."""
    trial = products.trial
    cut = next(cut for cut in products.cuts if cut.order == 2)
    of = f"second derivatives of %{cut.of.id} ({cut.of.type})"
    reason = f"{trial.subject} computes {of}, and of these something else than a function of the diagonal"
    is_final = set(places).issubset(trial.places) and not products.leave_directions
    return Refusal(Ground.TERMS_USED, reason, cut.value.producer, is_final=is_final)


def _ways_out(flat: FunctionView, cuts: Sequence[Cut]) -> Iterator[list[Value]]:
    """Sets of values through which the results depend on cuts: one for all of them, then one for those of each place
    and output of which some way is affine, together and alone. Of values through which all ways go, the smallest first,
    the earliest of equal ones.
    """
    seconds = [cut for cut in cuts if cut.order == 2]
    apart: dict[tuple[Place, Value], list[Cut]] = {}
    for cut in seconds:
        apart.setdefault((cut.place, cut.of), []).append(cut)
    yield from _ways_of(flat, seconds)
    if len(apart) > 1:
        every = [[way for way in _ways_of(flat, some) if Tail(flat, cuts, way).is_affine] for some in apart.values()]
        ways = [each for each in every if each]
        if len(ways) > 1:
            yield list(dict.fromkeys(value for each in ways for value in each[0]))
        for each in ways:
            yield from each


def _ways_of(flat: FunctionView, cuts: Sequence[Cut]) -> Iterator[list[Value]]:
    sources = _sources(cuts)
    inexact = [value for value in on_every_way(flat, sources) if value.dtype in ops.INEXACT]
    for value in sorted(inexact, key=lambda value: math.prod(value.type.shape))[:_MOST_TARGETS]:
        yield [value]
    if sums := _sums(cuts):
        yield sums


def _sums(cuts: Sequence[Cut]) -> list[Value]:
    """The sums of loops that have ``cuts``."""
    made = ((value, value.producer) for value in _sources(cuts))
    return [value for value, node in made if node is not None and node.op is ops.WHILE and _is_sum(node, value)]


def _is_sum(node: Node, value: Value) -> bool:
    return isinstance(analyse(node).roles[value.index], Sum)


def _sources(cuts: Sequence[Cut]) -> list[Value]:
    """The values of the function that have the cuts: themselves, or results of their loops."""
    found: dict[Value, None] = {}
    for cut in cuts:
        if (loop := cut.place.loop) is None:
            found[cut.value] = None
            continue
        after = reached(loop.body, [cut.value])
        for result, role in zip(loop.node.results, loop.roles, strict=True):
            if not after.isdisjoint(accumulated_by(role)):
                found[result] = None
    return list(found)


def _with_results_beside(
    flat: FunctionView, tail: Tail, cuts: Sequence[Cut], gradients: Collection[Value]
) -> Iterator[Tail]:
    """``tail`` with the results of further loops with ``cuts`` of which it stays affine, and without them.

    Both have the other results of its own loops that the function needs, as a squared gradient.
    """
    rest = live_nodes(flat.nodes, [*flat.arguments, *tail.targets, *gradients], flat.returns)
    read = {value for node in rest for value in reads(node)} | set(flat.returns)
    needed = {node: [v for v in node.results if v in read and v not in tail.targets] for node in tail.loops}
    own = [value for node in tail.nodes for value in needed.get(node, ())]
    found = whole = Tail(flat, cuts, [*tail.targets, *own]) if own else tail
    if not whole.is_affine:
        return
    for node, values in needed.items():
        if values and node not in whole.nodes:
            more = Tail(flat, cuts, [*whole.targets, *values])
            whole = more if more.is_affine else whole
    yield whole
    if whole is not found:
        yield found


def _require_equal_weights(trial: ProductTrial, tail: Tail) -> None:
    """Refusal if the weights may be others for other walkers, or for integers that no draw has."""
    nodes = tail.every_node([trial.x])
    if trial.marks and (why := told_apart(nodes, trial.axes)) is not None:
        raise why.about(f"{trial.subject} is weighed by walkers: ")
    given = [value for value in trial.flat.arguments if value.dtype in ops.INTEGERS]
    moved = reached(trial.flat, given)
    for loop in tail.loops.values():
        carried = loop.unchanged.items()
        given += [inner for inner, outer in carried if outer in moved and inner.dtype not in ops.INEXACT]
    if (node := by_integers(nodes, given)) is not None:
        reason = f"{trial.subject} weighs second derivatives by an integer argument"
        raise Refusal(Ground.INTEGER_ARGUMENT, reason, node)


def _require_no_product(trial: ProductTrial, tail: Tail) -> None:
    """Refusal if directions are pushed in the tail, too, which would be computed for all trips at once."""
    left, removed = list[Node](), list[Node]()
    for place in trial.places:
        seeds = [seed.value for seed in (*place.seeds, *place.beside)]
        cuts = [cut.value for cut in tail.cuts if cut.place is place]
        of_tail = tail.nodes if place.loop is None else tail.inside.get(place.loop.node, [])
        left += _along(of_tail, seeds)
        given = [*place.region.arguments, *free_values(place.region), *seeds]
        removed += _along(live_nodes(place.region.nodes, given, cuts), seeds)
    flops = [sum(map(node_cost, nodes), Cost()).flops for nodes in (left, removed)]
    if flops[0] > _MOST_LEFT * flops[1]:
        most = max(left, key=lambda node: node_cost(node).flops)
        reason = f"{trial.subject} has products of directions beside second derivatives"
        raise Refusal(Ground.PRODUCTS_LEFT, reason, most)


def _along(nodes: Sequence[Node], seeds: Sequence[Value]) -> list[Node]:
    """Those of ``nodes`` that depend on ``seeds``."""
    directed, found = set(seeds), list[Node]()
    for node in nodes:
        if not directed.isdisjoint(reads(node)):
            directed.update(node.results)
            found.append(node)
    return found
