"""The pass fuse-jvp-replay: a sum over directions is replaced by the forward Laplacian of its function.

    T(d) = H_F(x) d;  y = tail(T)      -->      y = tail(0) + sum_k a_k d^2 F / d x_k^2

``sites`` finds the directions (1) of a program and its regions, ``derivation``, below, calls steps 2 to 4 in order, and
``rewrite`` puts the emission (5) into the program.

    directions   the unit vectors of the program, made of constants and counters
    products     the values T = H d that they are pushed to, and the value F of which H is the Hessian (one test)
    tail         what follows T depends on the diagonal of H alone: the weights of the second derivatives
    decide       what draws do not show: guards, ties
    emit         the function with one forward Laplacian in their place

``identify`` is what steps 2 and 3 try, and evaluate: which x, which F, which values. ``targets`` and ``weights`` are of
the tail (the values computed of products), ``ties`` and ``second_derivatives`` (all of them by one adjoint) of the
decision, ``parts`` of the emission. ``rewrite`` serves collapse-replay, sparsify-directions and transpose-replay;
``choose`` is the pass.
"""

from collections.abc import Sequence

from fusionlab.hlo.view import FunctionView
from fusionlab.passes.fuse_jvp_replay.decide import Derivation, decision
from fusionlab.passes.fuse_jvp_replay.directions import Place, subject_of
from fusionlab.passes.fuse_jvp_replay.identify.trials import most_telling, trials
from fusionlab.passes.fuse_jvp_replay.products import products_of
from fusionlab.passes.fuse_jvp_replay.targets import no_sum_of, weighed_tails
from fusionlab.passes.refusals import Ground, Refusal, collected


def derivation(flat: FunctionView, places: Sequence[Place], extent: int, deadline: float) -> Derivation:
    """Steps 2 to 4: the Laplacian for which directions of ``extent`` coordinates are pushed in ``places`` of ``flat``.

    Refusal if there is none, or it is not found until the ``deadline`` (``time.monotonic``).
    """
    reasons: list[Refusal] = []
    try:
        for trial in trials(flat, places, extent, deadline, reasons):  # 1. directions, and the x and F that are tried
            with collected(reasons):
                for products in products_of(trial):  # 2.
                    before = len(reasons)
                    for tail, targets in weighed_tails(products, reasons):  # 3.
                        with collected(reasons):
                            return decision(products, tail, targets)  # 4., and 5. is ``emit.Emission`` of it
                    if len(reasons) == before:
                        with collected(reasons):
                            raise no_sum_of(products, places)
    except MemoryError as error:
        reason = f"{subject_of(places)} needs more memory than there is to be identified"
        raise Refusal(Ground.HOST_MEMORY, reason, is_final=True) from error
    raise most_telling(reasons, flat, places)
