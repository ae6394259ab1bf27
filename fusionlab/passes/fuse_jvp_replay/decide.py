"""Step 4, decide: which sum may be replaced, by which Laplacian, and what of it is not what draws show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.raising import Raising
from fusionlab.hlo.batch_axes import Marks
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.loops import Loop
from fusionlab.hlo.view import FunctionView, Value
from fusionlab.passes.fuse_jvp_replay.identify.guards import TextGuards
from fusionlab.passes.fuse_jvp_replay.products import Products
from fusionlab.passes.fuse_jvp_replay.tail import Tail
from fusionlab.passes.fuse_jvp_replay.ties import adjoint_holds, gradients_at_ties, weights_hold
from fusionlab.passes.fuse_jvp_replay.weights import WeightedTarget, common_weights, rows_of
from fusionlab.passes.refusals import Ground, Refusal


@dataclass(frozen=True, eq=False)
class Derivation:
    """``targets`` are sums of second derivatives of values of the function with respect to ``x`` [*walkers, ...].

    ``gradients`` are values that hold the gradient of an output. ``tail`` computes the targets from ``tail.cuts``.
    ``marks`` are the axes of values that count walkers along each leading axis of x that can be resized; ``one`` raises
    the program with one walker. Derivatives through ``stop_gradient`` cancel; ``subgradients`` are those of maxima and
    minima where operands are equal. ``by_adjoint``: the adjoint has all second derivatives, for sums with weights of
    their own, of single second derivatives, or with weights of 0 where a direction is undefined. ``every_direction``:
    coordinates of weight 0 may be directions, too; else 0 times what is undefined is.
    """

    x: Value
    walkers: int
    coordinates: Coordinates
    targets: tuple[WeightedTarget, ...]
    tail: Tail
    gradients: Mapping[Value, Value]
    marks: Mapping[int, Marks]
    one: Raising
    stop_gradient: tuple[Value, ...]
    subgradients: Mapping[Value, int] = field(default_factory=dict)
    powers_by_base: bool = False
    by_adjoint: bool = False
    every_direction: bool = True

    @property
    def flat(self) -> FunctionView:
        """The function."""
        return self.tail.flat

    @property
    def outputs(self) -> list[Value]:
        """The values that are differentiated."""
        terms = [each.output for target in self.targets for each in target.terms]
        return list(dict.fromkeys([*terms, *(cut.of for cut in self.tail.cuts)]))

    @property
    def loops(self) -> list[Loop]:
        """The loops over directions that are gone."""
        return list(dict.fromkeys(cut.place.loop for cut in self.tail.cuts if cut.place.loop is not None))


def decision(products: Products, tail: Tail, targets: Sequence[WeightedTarget]) -> Derivation:
    """The decision to replace ``targets``, which ``tail`` computes of ``products``; Refusal where something that draws
    do not show forbids it: guards, and the derivatives at equal inputs."""
    trial, flat, options = products.trial, products.trial.flat, products.options
    outputs = dict.fromkeys(each.output for target in targets for each in target.terms)
    outputs |= dict.fromkeys(cut.of for cut in tail.cuts)
    cone = live_nodes(flat.nodes, trial.inputs, list(outputs))
    stopped = products.stopped_in(cone, outputs)
    guards = TextGuards(flat, trial.x, cone, trial.numbers, trial.axes)
    guards.require([target.value for target in targets], trial.subject)
    own = {g: output for output in outputs for g in trial.gradients if (g, output) in products.gradients}
    own = {gradient: of for gradient, of in own.items() if guards.passes(gradient)}
    rows = [row for target in targets for term in target.terms for row in rows_of(term)]
    weights = common_weights(rows)
    of_diagonal = any(target.of_diagonal for target in targets)
    by_adjoint = (weights is None or of_diagonal) and adjoint_holds(trial, list(outputs), stopped, options)
    if of_diagonal and not by_adjoint:
        reason = f"{trial.subject} weighs second derivatives one by one, and there is no adjoint that has them"
        raise Refusal(Ground.WEIGHTS_BY_ADJOINT, reason)
    some = [] if by_adjoint else _some_coordinates(targets)
    try:
        kept = gradients_at_ties(trial, stopped, options, tail, own, some)
    except Refusal:  # derivatives by some coordinates are defined where those along a direction are not
        by_adjoint = bool(some) and adjoint_holds(trial, list(outputs), stopped, options)
        if not by_adjoint:
            raise
        kept = gradients_at_ties(trial, stopped, options, tail, own, [])
    every = by_adjoint or weights is None or all(weights)
    if not every and weights is not None:
        every = weights_hold(trial, list(outputs), weights, stopped, options)
    return Derivation(
        trial.x, trial.walkers, trial.coordinates, tuple(targets), tail, kept, trial.marks, trial.one, stopped,
        trial.subgradients, options.powers_by_base, by_adjoint, every,
    )  # fmt: skip


def _some_coordinates(targets: Sequence[WeightedTarget]) -> list[int]:
    """The coordinates that have a weight, where some weights are 0 or targets have channels; else none."""
    terms = [term for target in targets for term in target.terms]
    if all(all(map(all, term.real)) and term.axis is None for term in terms):
        return []
    rows = np.array([[bool(weight) for weight in row] for term in terms for row in (*term.real, *term.imaginary)])
    return [int(k) for k in np.flatnonzero(rows.any(0))]
