"""What is known while jets are made: arrays and jets by value, and what was put off."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.composites import Composite
from fusionlab.codegen.forward_laplacian.determinants import LogDeterminant
from fusionlab.codegen.forward_laplacian.how import SPARSE, How
from fusionlab.codegen.forward_laplacian.jet import Coordinates, Jet, distinct
from fusionlab.codegen.forward_laplacian.movement import Mover
from fusionlab.codegen.raising import Raising
from fusionlab.hlo.view import Node, Value, reads


class Known:
    """Arrays and jets of a run, by value.

    ``environment`` holds arrays for what the nodes read from outside, ``x`` included; it is filled in as nodes run.
    ``one`` raises the same nodes with one walker. ``functions`` are the values differentiated as one elementwise
    function of another, with the nodes of it. ``still`` are values that are taken not to depend on ``x``. ``ties`` says
    of elementwise maxima and minima which operand's slope they have where both are equal; those left out have half of
    each. ``composites`` are nodes that are differentiated as one function of values further back.
    """

    def __init__(
        self,
        x: Value,
        coordinates: Coordinates,
        walker_axes: int,
        raising: Raising,
        one: Raising,
        how: How = SPARSE,
        still: Collection[Value] = (),
        ties: Mapping[Value, int] = MappingProxyType({}),
    ) -> None:
        self.how, self.still, self.ties = how, frozenset(still), ties
        self.sources: dict[Value, Any] = {}
        self.x, self.coordinates, self.walker_axes = x, coordinates, walker_axes
        self.raising, self.mover = raising, Mover(one)
        self.jets: dict[Value, Jet] = {}
        self.held: set[Value] = set()
        self.roots: dict[Value, Value] = {}
        self.functions: dict[Value, tuple[Value, Sequence[Node]]] = {}
        self.environment: dict[Value, Any] = {}
        self.determinants: dict[Node, LogDeterminant] = {}
        self.composites: dict[Node, Composite] = {}

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

    def _arguments(self, node: Node) -> Sequence[Value]:
        """What ``node`` is differentiated by."""
        composite = self.composites.get(node)
        return reads(node) if composite is None else composite.arguments

    def _with(self, node: Node, replaced: Mapping[Value, Any]) -> Any:
        """The first result of ``node`` with other arrays for some operands."""
        return self.raising.node(node, ChainMap(dict(replaced), self.environment))[0]

    def _constant(self, value: Value) -> Jet:
        array = self.environment[value]
        return Jet(array, None, jnp.zeros((0, *np.shape(array)), np.result_type(array)), ())


class Environment(dict[Value, Any]):
    """Arrays by value; one that is missing is asked for."""

    def __init__(self, known: Mapping[Value, Any], ask: Callable[[Value], Any]) -> None:
        super().__init__(known)
        self._ask = ask

    def __missing__(self, value: Value) -> Any:
        return self._ask(value)
