"""Complex sums over directions as two real ones, those of loops and those over an axis.

    z = 0j                                       x, y = 0, 0
    for k: z += h(d_k) + i g(d_k)      -->       for k: x += Re(h(d_k) + i g(d_k))
                                                 for k: y += Im(h(d_k) + i g(d_k))
                                                 z = x + i y

    z = reduce add(u)                  -->       z = reduce add(Re u) + i reduce add(Im u)

Each may then be the Laplacian of a real value, as the real and the imaginary part of log psi are.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.trips import raise_trips
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.loops import Counter, Invariant, Loop, Sum
from fusionlab.hlo.ops import COMPLEX
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.view import FunctionView, Node
from fusionlab.passes.fuse_jvp_replay.recognise import identities, is_float
from fusionlab.passes.interface import Pass, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import LoopSite, OpRewrite, Rewrite, require_reduction, rewrite_loops, rewrite_ops


def complex_sums(flat: FunctionView, replays: Sequence[Replay]) -> set[str]:
    """The name stacks of the complex sums over directions of ``flat``, of which ``replays`` is the inventory."""
    loops = (each.loop.node.scope for each in replays if _adds_directions(each) and _adds_complex(each.loop))
    return {*loops, *(node.scope for node in filter(_reduces_directions(flat, replays), flat.nodes))}


def with_real_sums(program: Program, by: Pass, setting: Setting, scopes: Collection[str]) -> Program:
    """``program`` with two real sums for each complex one of name stack ``scopes``, for the pass ``by``."""

    def of_loop(site: LoopSite) -> Rewrite:
        if site.loop.node.scope not in scopes or not _adds_complex(site.loop):
            raise Refusal(Ground.NO_GAIN, "no sum of the loop is complex")
        require_reduction(site.loop)
        return Rewrite(_of_real_sums(site), what="complex sums as two real ones", resolved=by.name)

    def of_reductions(flat: FunctionView) -> Callable[[Node], OpRewrite]:
        reduces = _reduces_directions(flat, inventory(flat))

        def of_reduction(node: Node) -> OpRewrite:
            if node.scope not in scopes or not reduces(node):
                raise Refusal(Ground.NO_GAIN, "it is no complex sum over directions")
            axes = tuple(int(axis) for axis in node.attributes["dimensions"])
            return OpRewrite(functools.partial(_real_reductions, axes), (0, 1), axes)

        return of_reduction

    program = rewrite_loops(program, by.name, of_loop, setting).program
    return rewrite_ops(program, by, ops.REDUCE, of_reductions, setting, what="complex sums as two real ones").program


def _adds_directions(replay: Replay) -> bool:
    """True if nothing but the type of its sums keeps a loop that makes directions from being a replay."""
    return replay.directed and {each.what for each in replay.blockers} <= {"no term", "unused direction"}


def _adds_complex(loop: Loop) -> bool:
    """True if ``loop``, of a known number of trips, returns sums alone, some of them complex."""
    if not loop.trips or loop.indices(Counter, Invariant, Sum) != list(range(len(loop.roles))):
        return False
    return any(loop.node.results[i].dtype in COMPLEX for i in loop.indices(Sum))


def _reduces_directions(flat: FunctionView, replays: Sequence[Replay]) -> Callable[[Node], bool]:
    """A predicate: whether a node adds up complex values that depend on directions, and are not real values converted:
    such are the logarithms of a complex determinant, which is recognised by their sum."""
    results = itertools.chain.from_iterable(each.loop.node.results for each in replays if each.directed)
    directed = reached(flat, [*identities(flat), *results])

    def reduces(node: Node) -> bool:
        if node.op is not ops.REDUCE or len(node.results) != 1 or node.results[0].dtype not in COMPLEX:
            return False
        added = node.operands[0]
        if added.producer is not None and added.producer.op is ops.CONVERT and is_float(added.producer.operands[0]):
            return False
        return added in directed and combiner(node.regions[0]) == "add"

    return reduces


def _real_reductions(axes: tuple[int, ...], array: Any, initial: Any) -> tuple[Any]:
    return (lax.complex(*(lax.reduce(part(array), part(initial), lax.add, axes) for part in (lax.real, lax.imag))),)


def _of_real_sums(site: LoopSite) -> Callable[..., tuple[Any, ...]]:
    """The loop as one of its real sums, and for each complex sum one of the real and one of the imaginary part."""
    loop, trips = site.loop, raise_trips(site.loop, site.captured, site.raising)
    sums = {i: role for i, role in enumerate(loop.roles) if isinstance(role, Sum)}
    count = loop.trips or 0

    def run(*arrays: Any) -> tuple[Any, ...]:
        initial, captured = arrays[: len(loop.roles)], arrays[len(loop.roles) :]
        invariants = [*(initial[i] for i in loop.indices(Invariant)), *captured]

        def total(which: Sequence[int], part: Callable[[Any], Any]) -> list[Any]:
            def add(trip: Any, totals: list[Any]) -> list[Any]:
                outputs = iter(trips.outputs(trip, *invariants))
                terms = {i: [(sign, next(outputs)) for sign, _ in role.terms] for i, role in sums.items()}
                added = []
                for i, array in zip(which, totals, strict=True):
                    for sign, term in terms[i]:
                        array = array + part(term) if sign > 0 else array - part(term)
                    added.append(array)
                return added

            found: list[Any] = lax.fori_loop(0, count, add, [part(initial[i]) for i in which])
            return found

        complex_sums = [i for i in sums if loop.node.results[i].dtype in COMPLEX]
        real_sums = [i for i in sums if i not in complex_sums]
        with site.raising.scope(loop.node):
            made = dict(zip(real_sums, total(real_sums, lambda array: array) if real_sums else (), strict=True))
            made |= {i: lax.complex(*(total([i], part)[0] for part in (lax.real, lax.imag))) for i in complex_sums}
        counters = ((i, role) for i, role in enumerate(loop.roles) if isinstance(role, Counter))
        made |= {i: jnp.asarray(role.at(count)) for i, role in counters}
        return tuple(made.get(i, array) for i, array in enumerate(initial))

    return run
