"""Every form of a Laplacian on every kind of network: what ``fuse-jvp-replay`` does with it, and whether that is right.

A cell is (form, network, number of vmapped axes). ``forward``: rewritten to a forward Laplacian; ``fallback``: in
another way, or in part; ``refused``: not at all; ``wrong``: the rewritten program is neither identical nor within 1e-6
of brute force (``jax.hessian`` in float64), which nothing may be; ``not JAX``: JAX itself cannot trace the form.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.equivalence.oracle import program_runner
from fusionlab.errors import one_line
from fusionlab.hlo.program import Program
from fusionlab.optimizing.rewriting import lower_jaxpr
from fusionlab.passes.interface import Applied, Declined, Setting, told_fallbacks
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline, why_nothing_applied
from tests.forms.forms import EXPECTED, FORMS
from tests.forms.layers import FACTORISATIONS, LAYERS
from tests.forms.networks import COORDINATES, NETWORKS

AXES = (1, 2, 0)
CELLS = [(form, network, axes) for axes, form, network in itertools.product(AXES, FORMS, NETWORKS)]
FORWARD = ("sparsify-directions", "collapse-replay")
FUNCTIONS = {**NETWORKS, **LAYERS, **FACTORISATIONS}
_WALKERS = (2, 3)
MANY = 40
"""More than a check compares without resizing the program."""
_CLOSE = 1e-6
"""The programs' constants are folded in float32."""


def positions(axes: int, walkers: int = _WALKERS[0]) -> np.ndarray:
    """[*walkers, coordinates] float32, of which the first axis has ``walkers``."""
    shape = (*(walkers, *_WALKERS[1:])[:axes], COORDINATES)
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def lowered(form: str, network: str, axes: int, walkers: int = _WALKERS[0]) -> Program:
    """The form of the network, vmapped over ``axes`` axes."""

    def of_one(x: Any) -> Any:
        return FORMS[form](FUNCTIONS[network], x)

    function = of_one
    for _ in range(axes):
        function = jax.vmap(function)
    return lower_jaxpr(jax.make_jaxpr(function)(positions(axes, walkers)), "cpu", form.replace("-", "_"))


def with_derivatives(f: Any, x: Any) -> Any:
    """``x``, the gradient and the diagonal of the Hessian of ``f`` there."""
    return x, jax.grad(f)(x), jnp.diagonal(jax.hessian(f)(x))


@functools.cache
def derivatives(network: str, axes: int, walkers: int = _WALKERS[0]) -> tuple[np.ndarray, ...]:
    """Positions [*walkers, n], gradient and diagonal of the Hessian, by ``jax.hessian`` in float64."""

    function = functools.partial(with_derivatives, FUNCTIONS[network])
    for _ in range(axes):
        function = jax.vmap(function)
    with jax.enable_x64(True):
        return tuple(map(np.asarray, jax.jit(function)(positions(axes, walkers).astype(np.float64))))


def brute_force(form: str, network: str, axes: int, walkers: int = _WALKERS[0]) -> list[np.ndarray]:
    """The results by ``jax.hessian`` in float64."""
    function = EXPECTED[form]
    for _ in range(axes):
        function = jax.vmap(function)
    with jax.enable_x64(True):
        return [np.asarray(leaf) for leaf in jax.tree.leaves(function(*derivatives(network, axes, walkers)))]


def cell(form: str, network: str, axes: int, walkers: int = _WALKERS[0]) -> dict[str, str]:
    """``result`` of a cell, with the ``reason`` why it is not forward, and ``exact``, the exact verdict.

    Of more than 16 ``walkers``, the commands and ``optimize`` compare a resized program: other code than at 2.
    """
    of = (form, network, axes, walkers)
    return judged(functools.partial(lowered, *of), [positions(axes, walkers)], functools.partial(brute_force, *of))


def judged(
    lower: Callable[[], Program], given: list[np.ndarray], truth: Callable[[], list[np.ndarray]]
) -> dict[str, str]:
    """As ``cell``, of the program that ``lower`` returns, whose results at ``given`` are those of ``truth``."""
    try:
        original = lower()
    except Exception as error:  # whatever JAX raises
        return {"result": "not JAX", "reason": one_line(error)}
    found = run_pipeline(original, parse_pipeline("fuse-jvp-replay"), Setting(platform="cpu"))
    applied = [event for event in found.events if isinstance(event, Applied)]
    if not applied:
        return {"result": "refused", "reason": why_nothing_applied(found.events, original)}
    identity = compare_exactly(original, found.program)
    exact, expected = identity.line if identity.result == "not-covered" else identity.result, truth()
    off = _off(found.program, given, expected)
    if identity.result == "not-identical" or (off > _CLOSE and off > 2 * _off(original, given, expected)):
        return {"result": "wrong", "exact": exact, "reason": f"{off:.1e} off brute force in float64"}
    others = {event.pass_name for event in applied} - {*FORWARD, "fold-constant-loops"}
    forward = any(event.pass_name in FORWARD for event in applied) and not others
    if forward:
        return {"result": "forward", "exact": exact}
    declined = next((event.reason for event in found.events if isinstance(event, Declined)), "")
    return {"result": "fallback", "exact": exact, "reason": told_fallbacks(found.events) or declined}


def _off(program: Program, given: list[np.ndarray], truth: list[np.ndarray]) -> float:
    """The largest error of a result of ``program`` in float64, relative to that result's scale."""
    results = program_runner(program, widen=True)(given)
    pairs = zip(results, truth, strict=True)
    return max(float(np.max(np.abs(ours - own)) / (1 + np.max(np.abs(own)))) for ours, own in pairs)
