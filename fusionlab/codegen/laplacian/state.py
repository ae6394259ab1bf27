"""The state of a forward Laplacian: its inputs, and the arrays and jets that its rules have computed."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.laplacian.jet import Coordinates, Jet, distinct
from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.composites import Composite
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.view import Node, Value, reads

if TYPE_CHECKING:
    from fusionlab.codegen.laplacian.sparsity import Sparsity


@dataclass(frozen=True)
class Options:
    """``sparse``: directions that are known to be zero are not carried, and parts of a concatenation are contracted
    apart. ``adjoint``: Laplacians are not pushed forward; their sources are kept, to be weighted by the adjoint.
    ``for_cpu``: products of two values' directions are summed inside the contraction, which pays where batched
    contractions are slow (Psiformer: 1.18 to 1.02 of sparse folx's time) and costs copies on a GPU; value and
    Laplacian of a chain are written over rows instead of a selection, except with ``low_memory`` (``chains.py``); and
    the quadratic form of log|det| is added direction by direction (``rules/slogdet.py``).
    ``low_memory``: fewer bytes at the peak for some more work: results of a layer are written over its inputs, and a
    wide part of a concatenation is contracted in place. The defaults are best on a GPU.
    ``powers_by_base``: the derivative of y = x**c is c y / x (``jax.experimental.jet``), and not c x**(c - 1) or, of a
    root, 1 / 2y: the same number, but another one modulo a prime where x has no root.
    """

    sparse: bool = True
    adjoint: bool = False
    for_cpu: bool = False
    low_memory: bool = False
    powers_by_base: bool = False


@dataclass(eq=False)
class State:
    """One run: the coordinates ``x``, how nodes are raised (``one``: with one walker), and arrays and jets by value.

    Values of ``stop_gradient`` are taken not to depend on ``x``. ``subgradients`` maps elementwise maxima and minima
    to the operand whose slope they have where both are equal; those left out have half of each. ``seeds``, if there are
    any, are directions [R, K], as many as ``coordinates`` counts, instead of the unit vectors. ``known`` are the arrays
    of values that are computed beside the run, of the same inputs: these values are not computed again.

    ``environment`` holds arrays for the values that the nodes capture, ``x`` included; it is filled in as nodes run.
    ``deferred`` values are elementwise functions of the value that they are mapped to, whose jets are computed on
    demand; ``chains`` are those that were, with the value and the nodes between. ``postponed`` are values
    whose dense jets are computed on demand, too: sums over electrons and what is divided by them. ``materialised`` are
    values whose jets are one array in memory. ``sources`` are the Laplacians that ``Options.adjoint`` keeps.
    ``composites`` are nodes that are differentiated as one function of earlier values. ``asked`` are the values whose
    jets a rule has read. ``sparsity`` says where directions became dense, after a run from the unit vectors on.
    """

    x: Value
    coordinates: Coordinates
    walker_axes: int
    raising: Raising
    one: Raising
    options: Options = Options()
    stop_gradient: Collection[Value] = ()
    subgradients: Mapping[Value, int] = field(default_factory=dict)
    seeds: Any = None
    known: Mapping[Value, Any] = field(default_factory=dict)
    environment: dict[Value, Any] = field(default_factory=dict)
    jets: dict[Value, Jet] = field(default_factory=dict)
    deferred: dict[Value, Value] = field(default_factory=dict)
    ends: set[Value] = field(default_factory=set)
    chains: dict[Value, tuple[Value, Sequence[Node]]] = field(default_factory=dict)
    postponed: dict[Value, Callable[[], Jet]] = field(default_factory=dict)
    materialised: set[Value] = field(default_factory=set)
    sources: dict[Value, Any] = field(default_factory=dict)
    composites: dict[Node, Composite] = field(default_factory=dict)
    asked: set[Value] = field(default_factory=set)
    sparsity: Sparsity | None = None

    def stack_with(self, stack: Any, value: Any, laplacian: Any, update: Callable[..., Any]) -> Jet:
        """The dense jet whose derivatives are the rows of ``stack`` [2 + K, *S] from the third on.

        Value and Laplacian [S] replace its first two rows by ``update``; what reads one of them alone reads these small
        arrays. Everything has the dtype of ``value``. ``update_first`` makes XLA:GPU copy a stack that is read before,
        and runs on a single thread of a CPU unless fused. A consuming reduction is fused with ``select_broadcast``, not
        with the concatenation and pad of ``select_padded``; but every row reads what is broadcast, which stops fusion
        around expensive functions. Orbformer on CH4 has 389 launches and 77.1 GiB accessed if all are padded, 361 and
        69.4 if all are broadcast, 361 and 65.6 if only cheap chains and products of dense jets are; FermiNet on C2H6
        97 and 65.6, 103 and 69.4, 97 and 65.6.
        """
        stack, laplacian = stack.astype(value.dtype), laplacian.astype(value.dtype)
        if self.known and not self.options.adjoint:  # what is evaluated op by op needs the fewest ops
            rows = lax.slice_in_dim(stack, 2, stack.shape[0])
            return Jet(value, laplacian, rows, None, jnp.concatenate([value[None], laplacian[None], rows]))
        whole = None if self.options.adjoint else update(stack, value, laplacian)
        rows = stack if whole is None else whole
        return Jet(value, laplacian, lax.slice_in_dim(rows, 2, rows.shape[0]), None, whole)

    def inside(self, jets: Mapping[Value, Jet]) -> State:
        """The state of a run inside a region, from ``jets`` on."""
        return replace(
            self, environment={}, jets=dict(jets), deferred={}, ends=set(), chains={}, postponed={},
            materialised=set(), sources={}, composites={}, asked=set(),
        )  # fmt: skip

    def depends_on_x(self, value: Value) -> bool:
        """True if ``value`` has derivatives."""
        return value in self.jets or value in self.deferred or value in self.postponed

    def op(self, node: Node) -> str:
        """The name under which the rule of ``node`` is listed."""
        found = self.composites.get(node)
        return node.name if found is None else found.op

    def arguments(self, node: Node) -> Sequence[Value]:
        """The values that ``node`` is differentiated by."""
        found = self.composites.get(node)
        return read(node) if found is None else found.arguments

    def varying(self, node: Node) -> list[Value]:
        """The arguments of ``node`` that depend on ``x``, each once."""
        return [value for value in dict.fromkeys(self.arguments(node)) if self.depends_on_x(value)]

    def set(self, value: Value, jet: Jet) -> None:
        """Record the jet of ``value``, and its array."""
        if self.options.adjoint and jet.laplacian is not None:
            self.sources[value] = jet.laplacian
            # They may be slices of one array with the source, and do not depend on the weights of the coordinates.
            jet = Jet(lax.stop_gradient(jet.value), None, lax.stop_gradient(jet.jacobian), jet.owners)
        if value in self.known:
            jet = replace(jet, value=self.known[value])
        jet = distinct(jet, self.coordinates)
        if jet.owners != ():  # else it does not depend on the coordinates after all
            self.jets[value] = jet
        self.environment[value] = jet.value

    def postpone(self, node: Node, jet: Callable[[], Jet]) -> None:
        """Record the array of the result of ``node``, and its jet for when it is asked for."""

        def of_node() -> Jet:
            with self.raising.scope(node):
                return jet()

        [value] = node.results
        self.environment[value] = self.run(node)
        self.postponed[value] = of_node

    def run(self, node: Node, replaced: Mapping[Value, Any] = MappingProxyType({})) -> Any:
        """The first result of ``node``, with other arrays for some operands."""
        if not replaced and node.results[0] in self.known:
            return self.known[node.results[0]]
        return self.raising.node(node, ChainMap(dict(replaced), self.environment))[0]


Rule = Callable[[State, Node], Sequence[Jet | None]]
"""``rule(state, node)``: the jets of the results of ``node``, None for results without derivatives."""


def read(node: Node) -> Sequence[Value]:
    """The values that ``node`` reads; of a ``case`` with a known branch, those that the branch returns."""
    region = taken_branch(node)
    return reads(node) if region is None else region.returns
