"""Find which value of a program a replay takes the Laplacian of, by evaluating both.

A replay gives y = sum_k d^2 F / d x_k^2 of some value F of the program at some positions x. Neither is named anywhere.
Every candidate for F has its Laplacian computed forwards, in float64 on a few walkers, beside the replay as it stands.
F is accepted when the two agree, up to one constant factor, at every walker of several draws: positions near and far,
fresh parameters each time, so that both signs of psi and different pivots occur. Equality of two such programs at
random points is equality on the branches (pivots, signs, selections) that these points take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.interpret import ForwardLaplacian
from fusionlab.codegen.forward_laplacian.jet import Coordinates, densify
from fusionlab.codegen.raising import RaiseError, Raising, live_nodes, raise_nodes
from fusionlab.hlo.flat import FlatFunction, Node, Value, reads
from fusionlab.hlo.loops import Stacked, Sum
from fusionlab.hlo.replay import Replay, reached
from fusionlab.hlo.walker_axes import resized_shapes, walker_axes

DRAWS = ((0, 1.0), (1, 0.3), (2, 2.0))
"""Seed, and the scale of the positions in units of their distribution, of each draw."""

_WALKERS = 4
_TOLERANCE = 1e-6
_OPTIONS: dict[str, str | int | bool] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_experimental_ynn_fusion_type": "",
}


@dataclass(frozen=True)
class Laplacian:
    """``target`` = ``scale`` times the Laplacian of ``output`` with respect to ``x``.

    ``gradients`` are values of the program that hold the gradient of ``output``, electron by electron. ``axes`` are
    the axes of values that count walkers; ``one`` raises the program with one walker.
    """

    x: Value
    coordinates: Coordinates
    walker_axes: int
    output: Value
    target: Value
    scale: float
    gradients: tuple[Value, ...]
    axes: dict[Value, set[int]]
    one: Raising


class NoLaplacian(Exception):
    """The replay is not the Laplacian of a value of the program; the message says what was tried."""


_FOUND: dict[tuple[str, int], Laplacian | NoLaplacian] = {}


def find_laplacian(flat: FlatFunction, replay: Replay, digest: str) -> Laplacian:
    """What ``replay`` (a loop of ``flat`` itself, not of a region in it) is the Laplacian of; NoLaplacian otherwise.

    ``digest`` names the program: what was found in it is remembered, and given in terms of this ``flat``.
    """
    key = (digest, replay.loop.node.id)
    if key not in _FOUND:
        try:
            _FOUND[key] = _search(flat, replay)
        except NoLaplacian as reason:
            _FOUND[key] = reason
    known = _FOUND[key]
    if isinstance(known, NoLaplacian):
        raise NoLaplacian(str(known))
    return _in_terms_of(known, flat)


def _in_terms_of(known: Laplacian, flat: FlatFunction) -> Laplacian:
    """The same finding with the values of another view of the same program, which numbers them alike."""
    values = {value.id: value for value in flat.arguments}
    for node in flat.walk():
        values.update((value.id, value) for value in node.results)
        values.update((value.id, value) for region in node.regions for value in region.arguments)
    axes = {values[value.id]: marked for value, marked in known.axes.items()}
    shapes = {values[value.id]: shape for value, shape in known.one.shapes.items()}
    return replace(
        known,
        x=values[known.x.id],
        output=values[known.output.id],
        target=values[known.target.id],
        gradients=tuple(values[value.id] for value in known.gradients),
        axes=axes,
        one=replace(known.one, shapes=shapes),
    )


def _search(flat: FlatFunction, replay: Replay) -> Laplacian:
    targets = _targets(flat, replay)
    before = flat.nodes[: flat.nodes.index(replay.loop.node)]
    tried = []
    for x, walkers, outputs in _positions(flat, before, replay, targets[0]):
        for group in _groups(before, outputs):
            tried += group
            found = _Trial(flat, replay, x, walkers, targets, group).run()
            if found is not None:
                return found
    raise NoLaplacian(f"of {len(dict.fromkeys(tried))} values before the loop, none has the Laplacian that it computes")


def _targets(flat: FlatFunction, replay: Replay) -> list[Value]:
    """The values that may be the Laplacian: the loop's sum, or what a stack of terms is reduced to."""
    loop = replay.loop
    sums = [loop.node.results[i] for i in loop.indices(Sum)]
    if sums and not loop.indices(Stacked):
        return sums[:1]
    stacks = [loop.node.results[i] for i in loop.indices(Stacked)]
    if len(stacks) == 1 and not sums:
        after = reached(flat, stacks)
        reductions = [n for n in flat.nodes if n.name == "stablehlo.reduce" and n.results[0] in after]
        if reductions:
            return [reductions[0].results[0]]
    raise NoLaplacian("the loop does not give one sum over directions")


def _positions(
    flat: FlatFunction, before: Sequence[Node], replay: Replay, target: Value
) -> Iterator[tuple[Value, int, list[Value]]]:
    """Values that may be the positions, with their walker axes and the candidates for what is differentiated by them.

    They are those that most of what the replay reads depends on: the last two of them, and the first.
    """
    walkers = target.type.shape
    trips = replay.trips
    found = []
    values = [*flat.arguments, *(value for node in before for value in node.results)]
    reads = [*replay.loop.node.operands, *replay.residuals]
    for value in values:
        if not _is_float(value) or value.type.dtype != target.type.dtype:
            continue
        shape = value.type.shape
        if shape[: len(walkers)] == walkers and math.prod(shape[len(walkers) :]) == trips and len(shape) > len(walkers):
            dependent = reached(flat, [value])
            found.append((sum(read in dependent for read in reads), value))
    if not found:
        raise NoLaplacian(f"no value of the program has {trips} coordinates per walker")
    most = max(count for count, _ in found)
    best = [(value, _outputs(before, value, target)) for count, value in found if count == most]
    best = [(value, outputs) for value, outputs in best if outputs]
    if not best:
        raise NoLaplacian("no value of one number per walker is computed from the positions before the loop")
    for value, outputs in [*best[:-3:-1], *best[:-2][:1]]:
        yield value, len(walkers), outputs


def _outputs(before: Sequence[Node], x: Value, target: Value) -> list[Value]:
    """Values of one number per walker that depend on ``x`` and are known before the loop."""
    dependent = {x}
    found = []
    for node in before:
        if dependent.isdisjoint(reads(node)):
            continue
        dependent.update(node.results)
        found += [v for v in node.results if _is_float(v) and v.type == target.type]
    return found


def _groups(before: Sequence[Node], outputs: Sequence[Value]) -> Iterator[list[Value]]:
    """Candidates that no other candidate is computed from, then the others."""
    used: set[Value] = set()
    for node in reversed(before):
        if any(value in used or value in outputs for value in node.results):
            used.update(node.operands)
    last = [value for value in outputs if value not in used]
    rest = [value for value in outputs if value in used]
    if last:
        yield last
    if rest:
        yield rest


class _Trial:
    """One evaluation of a replay beside the forward Laplacians of candidates."""

    def __init__(
        self,
        flat: FlatFunction,
        replay: Replay,
        x: Value,
        walkers: int,
        targets: Sequence[Value],
        outputs: Sequence[Value],
    ) -> None:
        self.flat, self.x, self.walkers, self.outputs = flat, x, walkers, list(outputs)
        self.target = targets[0]
        loop = replay.loop
        inner = x.type.shape[walkers:]
        each = 3 if inner[-1] == 3 or (len(inner) == 1 and inner[0] % 3 == 0) else 1
        self.coordinates = Coordinates(math.prod(inner) // each, each)
        extents = x.type.shape[:walkers]
        many = math.prod(extents)
        self.axes = axes = walker_axes(flat, [(x, 0)]) if walkers == 1 else {}
        few = min(many, _WALKERS)
        self.raising = Raising(widen=True, shapes=resized_shapes(axes, many, few), fold=True)
        self.one = Raising(shapes=resized_shapes(axes, many, 1))
        sums = [loop.node.operands[i] for i in loop.indices(Sum)]
        self.initial = sums[0] if sums else None
        self.gradients = [
            value
            for node in flat.nodes
            for value in node.results
            if value.type.dtype == x.type.dtype and value.type.shape in (x.type.shape, (*extents, math.prod(inner)))
        ]
        dependent = reached(flat, [x])
        self.gradients = [value for value in self.gradients if value in dependent]
        self.inputs = self._inputs()

    def _inputs(self) -> list[Value]:
        """Arguments that are read when ``x`` is given, and ``x``."""
        wanted = [self.target, *self.outputs, *self.gradients]
        nodes = live_nodes(self.flat.nodes, [*self.flat.arguments, self.x], wanted)
        read = {value for node in nodes for value in reads(node)}
        return [self.x, *(a for a in self.flat.arguments if a in read and a is not self.x)]

    def run(self) -> Laplacian | None:
        """The candidate that passes, if one does."""
        wanted = [self.target, *self.gradients] + ([self.initial] if self.initial is not None else [])
        known = [*self.inputs]
        original = raise_nodes(self.flat.nodes, known, wanted, self.raising)
        cone = live_nodes(self.flat.nodes, known, self.outputs)

        def evaluate(*arrays: Any) -> tuple[list[Any], list[Any], list[Any]]:
            engine = ForwardLaplacian(self.x, self.coordinates, self.walkers, self.raising, self.one)
            jets = engine.run(cone, dict(zip(known, arrays, strict=True)), self.outputs)
            jets = [densify(jet, self.coordinates) for jet in jets]
            laps = [jnp.zeros(jet.shape) if jet.lap is None else jet.lap for jet in jets]
            return list(original(*arrays)), laps, [jet.rows for jet in jets]

        with jax.enable_x64(True):
            draws = [self._draw(seed, scale) for seed, scale in DRAWS]
            try:
                compiled = jax.jit(evaluate, compiler_options=_OPTIONS).lower(*draws[0]).compile()
            except (RaiseError, NotImplementedError, TypeError, ValueError) as error:
                raise RaiseError(f"the replay cannot be evaluated: {str(error).splitlines()[0]}") from error
            results = [jax.tree.map(np.asarray, compiled(*draw)) for draw in draws]
        return self._judge(results)

    def _draw(self, seed: int, scale: float) -> list[np.ndarray]:
        random = np.random.default_rng(seed)
        arrays = []
        for value in self.inputs:
            shape, dtype = self.raising.shape(value), self.raising.dtype(value.type)
            if not np.issubdtype(dtype, np.inexact):
                arrays.append(random.integers(0, 2, shape).astype(dtype))
                continue
            spread = scale if value is self.x else 1 / math.sqrt(shape[0]) if len(shape) == 2 else 1.0
            arrays.append(np.asarray(spread * random.standard_normal(shape)).astype(dtype))
        return arrays

    def _judge(self, results: Sequence[Any]) -> Laplacian | None:
        targets = np.stack([original[0] - self._start(original) for original, _, _ in results])
        for at, output in enumerate(self.outputs):
            laps = np.stack([laps[at] for _, laps, _ in results])
            scale = _common_factor(targets, laps)
            if scale is None:
                continue
            gradients = [value for i, value in enumerate(self.gradients) if self._is_gradient(results, i, at)]
            return Laplacian(
                self.x,
                self.coordinates,
                self.walkers,
                output,
                self.target,
                scale,
                tuple(gradients),
                self.axes,
                self.one,
            )
        return None

    def _start(self, original: Sequence[Any]) -> Any:
        return original[-1] if self.initial is not None else 0.0

    def _is_gradient(self, results: Sequence[Any], i: int, at: int) -> bool:
        for original, _, rows in results:
            given = original[1 + i]
            expected = np.moveaxis(rows[at], 0, -1).reshape(given.shape)
            if not np.allclose(given, expected, rtol=_TOLERANCE, atol=_TOLERANCE * np.abs(expected).max()):
                return False
        return True


def _common_factor(targets: np.ndarray, laps: np.ndarray) -> float | None:
    """The one c with ``targets`` = c ``laps`` everywhere; None when there is none, or nothing to compare."""
    finite = np.isfinite(targets)
    if not (np.isfinite(laps) == finite).all() or finite.mean() < 0.5:
        return None
    targets, laps = targets[finite], laps[finite]
    if not (np.abs(laps) > 0).any():
        return None
    factor = float(np.dot(targets, laps) / np.dot(laps, laps))
    whole = round(factor * 64) / 64
    factor = whole if whole and abs(factor - whole) < 1e-6 * abs(whole) else factor
    if factor == 0 or not np.allclose(targets, factor * laps, rtol=_TOLERANCE, atol=0):
        return None
    return factor


def _is_float(value: Value) -> bool:
    try:
        return value.type.dtype in ("f32", "f64")
    except ValueError:
        return False
