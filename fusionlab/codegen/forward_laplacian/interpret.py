"""Walk over the nodes between coordinates and some values, and give the jets of these values.

Every rule of differentiation is JAX's own, applied to the raised ops; what is written here is which parts of a jet
pass through an op together, so that one GEMM or reduction serves the value, its Laplacian and all directions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fusionlab.codegen.forward_laplacian import determinants
from fusionlab.codegen.forward_laplacian.composites import Composite, find_composite
from fusionlab.codegen.forward_laplacian.contractions import Contractions
from fusionlab.codegen.forward_laplacian.families import ELEMENTWISE, FLAT, MOVES
from fusionlab.codegen.forward_laplacian.jet import Jet, densify, identity_jet
from fusionlab.codegen.forward_laplacian.known import Environment
from fusionlab.codegen.raising import RaiseError
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.element_types import FLOATS
from fusionlab.hlo.view import Node, Value, reads

_DIFFERENTIABLE = (*FLOATS, "complex")


class ForwardLaplacian(Contractions):
    """The jets of values that nodes compute from coordinates: ``ForwardLaplacian(...).run(nodes, arrays, outputs)``."""

    def run(self, nodes: Sequence[Node], environment: Mapping[Value, Any], outputs: Sequence[Value]) -> list[Jet]:
        """The jets of ``outputs``; a value that does not depend on ``x`` has no slots."""
        nodes = list(_with_branches(nodes))
        self.environment = Environment(environment, self._put_off)
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
                moving.update(
                    v for v in node.results if v.type.dtype.startswith(_DIFFERENTIABLE) and v not in self.still
                )
        wanted = set(outputs)
        for node in reversed(nodes):
            if wanted.isdisjoint(node.results):
                continue
            found = determinants.find_log_determinant(node, self.mover, self.environment)
            composite = find_composite(node)
            if found is not None and found.matrix in moving:
                self.determinants[node] = found
                wanted.add(found.matrix)
            elif composite is not None and self._is_whole(composite, moving):
                self.composites[node] = composite
                wanted.update(value for value in composite.arguments if value in moving)
            else:
                wanted.update(value for value in _reads(node) if value in moving)
        needed = wanted & moving
        for value in needed:
            if value.type.dtype not in FLOATS:
                raise RaiseError(f"{value.type} depends on the coordinates; only real jets are known", value.producer)
        return needed

    def _is_whole(self, composite: Composite, moving: Collection[Value]) -> bool:
        """Whether what moves the result of a composite are its arguments, and nothing on the way from them to it."""
        within = {value for step in composite.steps for operand in step.operands for value in (operand, *step.results)}
        apart = within.difference(composite.arguments)
        return not apart.intersection((self.x, *self.still)) and any(v in moving for v in composite.arguments)

    def _step(self, node: Node, needed: set[Value]) -> None:
        reads_of = self._arguments(node) if node in self.composites else _reads(node)
        moves = node in self.determinants or any(map(self._moves, reads_of))
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

    def _structured(self, node: Node) -> Jet | None:
        """The jet of the one result of an op that moves, sums or contracts; None for any other op."""
        if node.name in MOVES:
            return self._moved(node)
        if node.name == "stablehlo.reduce" and len(node.operands) == 2:
            return self._reduced(node)
        if node.name == "stablehlo.dot_general":
            return self._contracted(node)
        return None

    def _plain(self, node: Node) -> None:
        if (region := taken_branch(node)) is not None:
            self.environment.update((v, self.environment[i]) for v, i in zip(node.results, region.returns, strict=True))
            return
        self.environment.update(zip(node.results, self.raising.node(node, self.environment), strict=True))


def _with_branches(nodes: Iterable[Node]) -> Iterator[Node]:
    """``nodes``, with those of a branch that is known to be taken before the case that gives their results out."""
    for node in nodes:
        if (region := taken_branch(node)) is not None:
            yield from _with_branches(region.nodes)
        yield node


def _reads(node: Node) -> Sequence[Value]:
    region = taken_branch(node)
    return reads(node) if region is None else region.returns
