"""Walk over the nodes between coordinates and some values, and give the jets of these values.

Every rule of differentiation is JAX's own, applied to the raised ops; what is written here is which parts of a jet
pass through an op together, so that one GEMM or reduction serves the value, its Laplacian and all directions.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.forward_laplacian import determinants, extremes, products
from fusionlab.codegen.forward_laplacian.families import (
    AFFINE,
    ELEMENTWISE,
    FLAT,
    FLOATS,
    MOVES,
    PIECEWISE_LINEAR,
    REPEATS,
    linear,
    reduced_axes,
)
from fusionlab.codegen.forward_laplacian.how import How
from fusionlab.codegen.forward_laplacian.jet import (
    Coordinates,
    Jet,
    Owner,
    densify,
    distinct,
    identity_jet,
    minimal,
    row_products,
)
from fusionlab.codegen.forward_laplacian.movement import Mover
from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.codegen.raising_rules.rule import keyword
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.flat import Node, Value, reads
from fusionlab.hlo.replay import reached

_DIFFERENTIABLE = (*FLOATS, "complex")


class ForwardLaplacian:
    """The jets of values that ``nodes`` compute from ``x``.

    ``environment`` holds arrays for what ``nodes`` read from outside, ``x`` included; it is filled in as nodes run.
    ``one`` raises the same nodes with one walker. ``functions`` are values that were differentiated as one elementwise
    function of another, with its nodes.
    """

    def __init__(
        self, x: Value, coordinates: Coordinates, walker_axes: int, raising: Raising, one: Raising, how: How = How()
    ) -> None:
        self.how = how
        self.sources: dict[Value, Any] = {}
        self.x, self.coordinates, self.walker_axes = x, coordinates, walker_axes
        self.raising, self.mover = raising, Mover(one)
        self.jets: dict[Value, Jet] = {}
        self.roots: dict[Value, Value] = {}
        self.functions: dict[Value, tuple[Value, Sequence[Node]]] = {}
        self.environment: dict[Value, Any] = {}
        self.determinants: dict[Node, determinants.LogDeterminant] = {}

    def run(self, nodes: Sequence[Node], environment: Mapping[Value, Any], outputs: Sequence[Value]) -> list[Jet]:
        """The jets of ``outputs``; a value that does not depend on ``x`` has no slots."""
        nodes = list(_with_branches(nodes))
        self.environment = _Environment(environment, self._put_off)
        fixed = self._run_fixed(nodes)
        needed = self._needed(nodes, outputs)
        identity = identity_jet(environment[self.x], self.coordinates, self.walker_axes)
        self.jets[self.x] = identity if self.how.sparse else densify(identity, self.coordinates)
        for node in nodes:
            if node not in fixed:
                self._step(node, needed)
        return [self._jet(value) if self._moves(value) else self._constant(value) for value in outputs]

    def _run_fixed(self, nodes: Sequence[Node]) -> set[Node]:
        """Run what does not depend on the coordinates, so that indices and masks are known from here on."""
        varying, fixed = {self.x}, set()
        for node in nodes:
            if varying.isdisjoint(_reads(node)):
                self._plain(node)
                fixed.add(node)
            else:
                varying.update(node.results)
        return fixed

    def _needed(self, nodes: Sequence[Node], outputs: Sequence[Value]) -> set[Value]:
        """Values whose jets are needed: on a differentiable path from ``x`` to ``outputs``."""
        moving = {self.x}
        for node in nodes:
            if node.name not in FLAT and not moving.isdisjoint(_reads(node)):
                moving.update(value for value in node.results if value.type.dtype.startswith(_DIFFERENTIABLE))
        wanted = set(outputs)
        for node in reversed(nodes):
            if wanted.isdisjoint(node.results):
                continue
            found = determinants.find_log_determinant(node, self.mover, self.environment)
            if found is not None and found.matrix in moving:
                self.determinants[node] = found
                wanted.add(found.matrix)
            else:
                wanted.update(value for value in _reads(node) if value in moving)
        needed = wanted & moving
        for value in needed:
            if value.type.dtype not in FLOATS:
                raise RaiseError(f"{value.type} depends on the coordinates; only real jets are known", value.producer)
        return needed

    def _step(self, node: Node, needed: set[Value]) -> None:
        moves = node in self.determinants or any(map(self._moves, _reads(node)))
        if needed.isdisjoint(node.results) or not moves:
            self._plain(node)
            return
        if (region := taken_branch(node)) is not None:
            for value, inner in zip(node.results, region.returns, strict=True):
                self._set(value, self._jet(inner) if self._moves(inner) else self._constant(inner))
            return
        with self.raising.scope(node):
            try:
                if node.name in ELEMENTWISE:
                    self._elementwise(node)
                elif (jet := self._structured(node)) is not None:
                    self._set(node.results[0], jet)
                else:
                    self._generic(node)
            except NotImplementedError as error:  # JAX has no derivative of it
                raise RaiseError(f"{node.name} has no jet: {str(error).splitlines()[0]}", node) from error

    def _set(self, value: Value, jet: Jet) -> None:
        if self.how.adjoint and jet.lap is not None:
            self.sources[value] = jet.lap
            jet = Jet(jet.value, None, jet.rows, jet.owners)
        jet = distinct(jet, self.coordinates)
        if jet.owners != ():  # else it does not depend on the coordinates after all
            self.jets[value] = jet
        self.environment[value] = jet.value

    def _moves(self, value: Value) -> bool:
        return value in self.jets or value in self.roots

    def _plain(self, node: Node) -> None:
        if (region := taken_branch(node)) is not None:
            self.environment.update((v, self.environment[i]) for v, i in zip(node.results, region.returns, strict=True))
            return
        self.environment.update(zip(node.results, self.raising.node(node, self.environment), strict=True))

    # -- elementwise ops: chains of one variable are differentiated as one function

    def _elementwise(self, node: Node) -> None:
        result = node.results[0]
        moving = [value for value in dict.fromkeys(node.operands) if self._moves(value)]
        common = set.intersection(*(self._candidates(value) for value in moving))
        if common:
            self.roots[result] = min(common, key=lambda value: -value.id)
            return
        self._set(result, self._several(node, moving))

    def _candidates(self, value: Value) -> set[Value]:
        found = {value} if value in self.jets else set()
        if value in self.roots:
            found.add(self.roots[value])
        return found

    def _chain(self, value: Value, root: Value) -> list[Node]:
        """The elementwise nodes from ``root`` to ``value``, in order."""
        found: dict[Node, None] = {}
        stack = [value]
        while stack:
            current = stack.pop()
            node = current.producer
            if current is root or node is None or node in found or not self._moves(current):
                continue
            found[node] = None
            stack += node.operands
        return sorted(found, key=lambda node: node.id)

    def _jet(self, value: Value) -> Jet:
        """The jet of ``value``, made now if it was put off."""
        if value not in self.jets:
            root = self.roots[value]
            self.functions[value] = root, self._chain(value, root)
            self._set(value, self._composite(value, root))
        return self.jets[value]

    def _composite(self, value: Value, root: Value) -> Jet:
        chain = self._chain(value, root)
        jet = self._jet(root)
        first = chain[0]
        if len(chain) == 1 and first.name in ("stablehlo.add", "stablehlo.subtract") and first.operands[0] is root:
            if not self._moves(first.operands[1]):  # a bias
                return Jet(self.raising.node(first, self.environment)[0], jet.lap, jet.rows, jet.owners)

        def function(array: Any) -> Any:
            inner = ChainMap({root: array}, self.environment)
            for node in chain:
                inner[node.results[0]] = self._differentiable(node, inner)
            return inner[value]

        ones = jnp.ones(jet.shape, np.result_type(jet.value))
        if jet.stack is not None and self._homogeneous(chain, root):
            return Jet.of_stack(jax.vmap(function)(jet.stack), jet.lap is not None, jet.owners)
        if self._affine(chain, root):
            result, slope = jax.jvp(function, (jet.value,), (ones,))
            lap = None if jet.lap is None else slope * jet.lap
            return Jet(result, lap, slope * jet.rows, jet.owners)
        (result, slope), (_, curvature) = jax.jvp(
            lambda array: jax.jvp(function, (array,), (ones,)), (jet.value,), (ones,)
        )
        squares = row_products(jet, jet, self.coordinates)
        laps = [] if jet.lap is None else [slope * jet.lap]
        laps += [] if squares is None else [curvature * squares]  # None where all slots belong to nobody
        return Jet(result, sum(laps[1:], laps[0]) if laps else None, slope * jet.rows, jet.owners)

    def _differentiable(self, node: Node, environment: Mapping[Value, Any]) -> Any:
        """The result of an elementwise ``node``, with a derivative that survives fusion."""
        if node.name in extremes.RULES:
            return extremes.RULES[node.name](*(environment[value] for value in node.operands))
        return self.raising.node(node, environment)[0]

    def _affine(self, chain: Sequence[Node], root: Value) -> bool:
        """Whether the chain has no second derivative."""
        varying = {root}
        for node in chain:
            count = sum(operand in varying for operand in node.operands)
            if node.name == "stablehlo.multiply" and count > 1:
                return False
            if node.name == "stablehlo.divide" and node.operands[1] in varying:
                return False
            if node.name not in AFFINE | PIECEWISE_LINEAR and node.name not in (
                "stablehlo.multiply",
                "stablehlo.divide",
            ):
                return False
            varying.update(node.results)
        return True

    def _homogeneous(self, chain: Sequence[Node], root: Value) -> bool:
        """Whether the chain only scales, so that it can be applied to values and derivatives alike."""
        names = ("stablehlo.negate", "stablehlo.convert", "stablehlo.multiply", "stablehlo.divide")
        return all(node.name in names for node in chain) and self._affine(chain, root) and len(chain) == 1

    def _several(self, node: Node, moving: Sequence[Value]) -> Jet:
        """An elementwise op of several independent jets."""
        jets = [self._jet(value) for value in moving]
        value = self.raising.node(node, self.environment)[0]
        name = node.name.removeprefix("stablehlo.")
        if name == "multiply":
            return products.multiply(value, jets[0], jets[1], self.coordinates)
        if name == "divide":
            return products.divide(value, jets[0], jets[1], self.coordinates)
        if name in ("add", "subtract", "select", "maximum", "minimum"):
            scales = self._linear_scales(node, name)
            return products.combine(value, jets, scales, self.coordinates)
        self._generic(node)
        return self.jets[node.results[0]]

    def _linear_scales(self, node: Node, name: str) -> list[Callable[[Any], Any]]:
        if name == "add":
            return [lambda part: part, lambda part: part]
        if name == "subtract":
            return [lambda part: part, lambda part: -part]
        first, second = (self.environment[value] for value in node.operands[-2:])
        if name == "select":
            chosen = self.environment[node.operands[0]]
        else:
            chosen = first > second if name == "maximum" else first < second

        def kept(part: Any) -> Any:
            return jnp.where(chosen, part, np.zeros((), part.dtype))

        def other(part: Any) -> Any:
            return jnp.where(chosen, np.zeros((), part.dtype), part)

        return [kept, other]

    # -- ops that move, sum or contract

    def _structured(self, node: Node) -> Jet | None:
        """The jet of the one result of an op that moves, sums or contracts; None for any other op."""
        if node.name in MOVES:
            return self._moved(node)
        if node.name == "stablehlo.reduce" and len(node.operands) == 2:
            return self._reduced(node)
        if node.name == "stablehlo.dot_general":
            return self._contracted(node)
        return None

    def _with(self, node: Node, replaced: Mapping[Value, Any]) -> Any:
        return self.raising.node(node, ChainMap(dict(replaced), self.environment))[0]

    def _moved(self, node: Node) -> Jet | None:
        moving = [value for value in dict.fromkeys(node.operands) if self._moves(value)]
        jets = [self._jet(value) for value in moving]
        if (len(moving) == 1 and len(node.operands) == 1) or node.name in (
            "stablehlo.gather",
            "stablehlo.dynamic_slice",
        ):
            source, jet = moving[0], jets[0]
            owners = self._moved_owners(node, source, jet)
            if owners is None and jet.owners is not None:
                jet = densify(jet, self.coordinates)
            return jet.map_parts(lambda part: self._with(node, {source: part}), owners)
        if node.name == "stablehlo.concatenate":
            return self._concatenated(node, moving, jets)
        return None

    def _moved_owners(self, node: Node, source: Value, jet: Jet) -> tuple[Owner, ...] | None:
        if jet.owners is None:
            return None
        moved = [self.mover.move(node, {source: owner}, self.environment) for owner in jet.owners]
        if any(owner is None for owner in moved):
            return None
        return tuple(owner for owner in moved if owner is not None)

    def _concatenated(self, node: Node, moving: Sequence[Value], jets: Sequence[Jet]) -> Jet:
        """Slots are matched in order of appearance; an operand that does not move has zeros."""
        slots = max((len(jet.owners) if jet.owners is not None else self.coordinates.electrons) for jet in jets)
        if any(jet.owners is None for jet in jets) or slots * self.coordinates.each >= self.coordinates.count:
            jets = [densify(jet, self.coordinates) for jet in jets]
            slots = 0
        by_value = dict(zip(moving, jets, strict=True))
        stacks = []
        some_lap = any(jet.lap is not None for jet in jets)
        count = self.coordinates.count if not slots else slots * self.coordinates.each
        for value in node.operands:
            array = self.environment[value]
            jet = by_value.get(value)
            if jet is None:
                shape, dtype = np.shape(array), np.result_type(array)
                parts = [jnp.asarray(array)[None], jnp.zeros((count + some_lap, *shape), dtype)]
            else:
                missing = count - jet.rows.shape[0]
                shape, dtype = jet.shape, np.result_type(jet.value)
                if jet.stack is not None and not missing and (jet.lap is not None) == some_lap:
                    parts = [jet.stack]
                else:
                    lap = jnp.zeros(shape, dtype) if jet.lap is None else jet.lap
                    parts = [jet.value[None], *([lap[None]] if some_lap else []), jet.rows]
                    parts += [jnp.zeros((missing, *shape), dtype)] if missing else []
            stacks.append(jnp.concatenate(parts) if len(parts) > 1 else parts[0])
        stack = jnp.concatenate(stacks, node.attributes["dimension"].value + 1)
        owners = None if not slots else tuple(self._slot(node, by_value, slot) for slot in range(slots))
        return Jet.of_stack(stack, some_lap, owners)

    def _slot(self, node: Node, jets: Mapping[Value, Jet], slot: int) -> Owner:
        moved = {}
        for value, jet in jets.items():
            assert jet.owners is not None
            if slot < len(jet.owners):
                moved[value] = jet.owners[slot]
        owner = self.mover.move(node, moved, self.environment)
        assert owner is not None
        return owner

    def _reduced(self, node: Node) -> Jet | None:
        name = combiner(node.regions[0])
        source = node.operands[0]
        if (found := self.determinants.get(node)) is not None:
            value = self._with(node, {})
            factors, pivots = self.environment[found.factors], self.environment[found.pivots]
            return determinants.log_determinant_jet(value, self._jet(found.matrix), factors, pivots, self.coordinates)
        if self._moves(node.operands[1]) or not self._moves(source):
            return None
        jet = self._jet(source)
        axes = reduced_axes(node)
        if jet.owners is not None and any(owner.shape[axis] > 1 for owner in jet.owners for axis in axes):
            jet = densify(jet, self.coordinates)
        owners = None
        if jet.owners is not None:
            owners = tuple(minimal(np.squeeze(owner, axes)) for owner in jet.owners)
        if name == "add" and _is_zero(self.environment[node.operands[1]]):
            stack = jax.vmap(lambda part: self._with(node, {source: part}))(jet.stacked)
            return Jet.of_stack(stack, jet.lap is not None, owners)
        if name == "add":
            value = self._with(node, {source: jet.value})
            through = jax.vmap(lambda part: lax.reduce(part, np.zeros((), part.dtype), lax.add, axes))
            return Jet.of_moving(value, through(jet.moving), jet.lap is not None, owners)
        if name in ("maximum", "minimum"):
            value = self._with(node, {source: jet.value})
            share = extremes.shares(jet.value, value, axes, name == "maximum")
            through = jax.vmap(lambda part: lax.reduce(part * share, np.zeros((), part.dtype), lax.add, axes))
            return Jet.of_moving(value, through(jet.moving), jet.lap is not None, owners)
        return None

    def _contracted(self, node: Node) -> Jet:
        left, right = node.operands
        contraction = self._contraction(node)
        if self._moves(left) and self._moves(right):
            return products.contract(self._jet(left), self._jet(right), contraction, self.coordinates)
        side = 0 if self._moves(left) else 1
        source, fixed = node.operands[side], self.environment[node.operands[1 - side]]
        if self.how.sparse and (parts := self._parts(source, contraction, side)) is not None:
            return _widened(self._split(parts, fixed, contraction, side), self.raising.shape(node.results[0]))
        return self._through(self._jet(source), fixed, contraction, side)

    def _through(self, jet: Jet, fixed: Any, contraction: products.Contraction, side: int) -> Jet:
        """The contraction of a jet with something that does not move: one GEMM for all of it."""
        owners = None
        if jet.owners is not None:
            moved = [contraction.moved_owner(side, owner) for owner in jet.owners]
            owners = (
                None if any(owner is None for owner in moved) else tuple(minimal(o) for o in moved if o is not None)
            )
        if owners is None:
            jet = densify(jet, self.coordinates)

        def one(part: Any) -> Any:
            operands = (part, fixed) if side == 0 else (fixed, part)
            return contraction.apply(*operands, (contraction.summed, contraction.batch))

        return Jet.of_stack(jax.vmap(one)(jet.stacked), jet.lap is not None, owners)

    def _parts(self, source: Value, contraction: products.Contraction, side: int) -> list[Value] | None:
        """What ``source`` is concatenated from along the one axis that is summed over, if that is worth knowing."""
        node, summed = source.producer, contraction.summed[side]
        if node is None or node.name != "stablehlo.concatenate" or len(summed) != 1:
            return None
        if node.attributes["dimension"].value != summed[0]:
            return None
        kinds = {self._kind(value, contraction.free(side)) for value in node.operands}
        return list(node.operands) if len(kinds) > 1 else None

    def _kind(self, value: Value, free: Sequence[int]) -> tuple[Any, ...]:
        """Operands of a concatenation are contracted together if of one sparsity and repeated along the same axes."""
        if not self._moves(value):
            return ("fixed",)
        jet = self._jet(value)
        slots = None if jet.owners is None else tuple((owner.shape, owner.tobytes()) for owner in jet.owners)
        return (slots, self._repeated_axes(value, free))

    def _before_broadcast(self, value: Value, free: Sequence[int]) -> Jet | None:
        """The jet of ``value`` with extent 1 on ``free`` axes along which it was repeated; None if there are none."""
        axes = self._repeated_axes(value, free)
        if not axes:
            return None

        def first(part: Any) -> Any:
            for axis in axes:
                part = lax.slice_in_dim(part, 0, 1, axis=axis)
            return part

        jet = self._jet(value)
        owners = None if jet.owners is None else tuple(_first_of(owner, axes) for owner in jet.owners)
        return jet.map_parts(first, owners)

    def _repeated_axes(self, value: Value, free: Sequence[int]) -> tuple[int, ...]:
        """Those of the axes ``free`` along which the moves that made ``value`` only repeat elements."""
        path: list[Node] = []
        source = value
        while (node := source.producer) is not None and node.name in REPEATS and self._moves(node.operands[0]):
            path.append(node)
            source = node.operands[0]
        shape = self.mover.one.shape(source)
        places: Owner | None = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
        for node in reversed(path):
            assert places is not None
            places = self.mover.move(node, {node.operands[0]: places}, self.environment)
        if not path or places is None:
            return ()
        whole = self.mover.one.shape(value)
        return tuple(axis for axis in free if whole[axis] > 1 and places.shape[axis] == 1)

    def _split(self, parts: Sequence[Value], fixed: Any, contraction: products.Contraction, side: int) -> Jet:
        """[a, b] . W = a . W_a + b . W_b: each part keeps its sparsity, and what was repeated is contracted once."""
        axis, along = contraction.summed[side][0], contraction.summed[1 - side][0]
        free = contraction.free(side)
        groups: dict[tuple[Any, ...], list[tuple[Value, Any]]] = {}
        at = 0
        for value in parts:
            extent = self.raising.shape(value)[axis]
            groups.setdefault(self._kind(value, free), []).append(
                (value, lax.slice_in_dim(fixed, at, at + extent, axis=along))
            )
            at += extent
        total: Jet | None = None
        constant = None
        for kind, members in groups.items():
            weights = [weight for _, weight in members]
            weight = jnp.concatenate(weights, along) if len(weights) > 1 else weights[0]
            if kind == ("fixed",):
                arrays = [self.environment[value] for value, _ in members]
                joined = jnp.concatenate(arrays, axis) if len(arrays) > 1 else arrays[0]
                operands = (joined, weight) if side == 0 else (weight, joined)
                constant = contraction.apply(*operands, (contraction.summed, contraction.batch))
                continue
            jets = [self._before_broadcast(value, free) or self._jet(value) for value, _ in members]
            jet = self._through(_joined(jets, axis), weight, contraction, side)
            total = jet if total is None else self._sum(total, jet)
        assert total is not None
        if constant is None:
            return total
        return Jet(total.value + constant, total.lap, total.rows, total.owners)

    def _sum(self, left: Jet, right: Jet) -> Jet:
        shape = np.broadcast_shapes(left.shape, right.shape)
        jets = [_widened(left, shape), _widened(right, shape)]
        keep = [lambda part: part, lambda part: part]
        return products.combine(jets[0].value + jets[1].value, jets, keep, self.coordinates)

    def _contraction(self, node: Node) -> products.Contraction:
        numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
        precision = node.attributes.get("precision_config")
        precision = None if precision is None else tuple(lax.Precision[keyword(entry)] for entry in precision)

        def apply(left: Any, right: Any, dimensions: Any) -> Any:
            dtype = self.raising.dtype(node.results[0].type)
            return lax.dot_general(left, right, dimensions, precision=precision, preferred_element_type=dtype)

        return products.Contraction(
            batch=(tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)),
            summed=(tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)),
            ranks=(len(node.operands[0].type.shape), len(node.operands[1].type.shape)),
            apply=apply,
        )

    # -- anything else that JAX can differentiate

    def _generic(self, node: Node) -> None:
        """y_k = J x_k, lap y = J lap x + sum_k H[x_k, x_k], by jvp and jvp of jvp over all coordinates."""
        moving = [value for value in dict.fromkeys(reads(node)) if self._moves(value)]
        jets = [densify(self._jet(value), self.coordinates) for value in moving]
        varying = _varying_results(node, moving)
        kept = [i for i, value in enumerate(node.results) if value.type.dtype in FLOATS and value in varying]

        def function(*arrays: Any) -> list[Any]:
            results = self.raising.node(node, ChainMap(dict(zip(moving, arrays, strict=True)), self.environment))
            return [results[i] for i in kept]

        values = tuple(jet.value for jet in jets)

        def along(*rows: Any) -> Any:
            return jax.jvp(function, values, rows)[1]

        def along_twice(*rows: Any) -> tuple[Any, Any]:
            return jax.jvp(lambda *arrays: jax.jvp(function, arrays, rows)[1], values, rows)

        rows = [jet.rows for jet in jets]
        laps = [jnp.zeros(jet.shape, np.result_type(jet.value)) if jet.lap is None else jet.lap for jet in jets]
        results = self.raising.node(node, self.environment)
        self.environment.update(zip(node.results, results, strict=True))
        if linear(node):
            moved = jax.vmap(along)(*(jnp.concatenate([lap[None], row]) for lap, row in zip(laps, rows, strict=True)))
            for at, i in enumerate(kept):
                self._set(node.results[i], Jet.of_moving(results[i], moved[at], True, None))
            return
        first, second = jax.vmap(along_twice)(*rows)
        through = along(*laps)
        for at, i in enumerate(kept):
            self._set(node.results[i], Jet(results[i], through[at] + jnp.sum(second[at], 0), first[at], None))

    def _put_off(self, value: Value) -> Any:
        """The plain value of what was put off."""
        if value not in self.roots:
            raise KeyError(value)
        inner: ChainMap[Value, Any] = ChainMap({}, self.environment)
        for node in self._chain(value, self.roots[value]):
            if node.results[0] not in dict.keys(self.environment):
                inner[node.results[0]] = self.raising.node(node, inner)[0]
        self.environment.update(inner.maps[0])
        return self.environment[value]

    def _constant(self, value: Value) -> Jet:
        array = self.environment[value]
        return Jet(array, None, jnp.zeros((0, *np.shape(array)), np.result_type(array)), ())


class _Environment(dict[Value, Any]):
    """Arrays by value; one that is missing is asked for."""

    def __init__(self, known: Mapping[Value, Any], ask: Callable[[Value], Any]) -> None:
        super().__init__(known)
        self._ask = ask

    def __missing__(self, value: Value) -> Any:
        return self._ask(value)


def _with_branches(nodes: Iterable[Node]) -> Iterator[Node]:
    """``nodes``, with those of a branch that is known to be taken before the case that gives their results out."""
    for node in nodes:
        if (region := taken_branch(node)) is not None:
            yield from _with_branches(region.nodes)
        yield node


def _reads(node: Node) -> Sequence[Value]:
    region = taken_branch(node)
    return reads(node) if region is None else region.returns


def _joined(jets: Sequence[Jet], axis: int) -> Jet:
    """Jets of the same owners side by side along ``axis``."""
    if len(jets) == 1:
        return jets[0]
    has_lap = any(jet.lap is not None for jet in jets)
    stack = jnp.concatenate([products.with_lap(jet, has_lap) for jet in jets], axis + 1)
    return Jet.of_stack(stack, has_lap, jets[0].owners)


def _varying_results(node: Node, moving: Sequence[Value]) -> set[Value]:
    """Results of ``node`` that depend on ``moving``: of a loop not those that are carried along unchanged."""
    if node.name != "stablehlo.while":
        return set(node.results)
    body = node.regions[1]
    carried = {i for i, value in enumerate(node.operands) if value in moving}
    while True:
        after = reached(body, [*moving, *(body.arguments[i] for i in carried)])
        found = carried | {i for i, value in enumerate(body.returns) if value in after}
        if found == carried:
            return {node.results[i] for i in carried}
        carried = found


def _widened(jet: Jet, shape: tuple[int, ...]) -> Jet:
    """The jet repeated along axes of extent 1 to ``shape``."""
    if jet.shape == shape:
        return jet
    return jet.map_parts(lambda part: jnp.broadcast_to(part, shape), jet.owners)


def _first_of(owner: Owner, axes: Sequence[int]) -> Owner:
    for axis in axes:
        owner = owner.take([0], axis)
    return owner


def _is_zero(array: Any) -> bool:
    return isinstance(array, np.ndarray) and not array.any()
