"""The forward Laplacian by folx, stage by stage, so that its operations keep the scopes of the wavefunction.

folx evaluates a traced function equation by equation and drops the named scopes on the way: a program made with it
says nothing about stages A to D. Here the traced function is cut where the stage changes, and folx evaluates each
piece within a scope of that name.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from fusionlab.workloads.layers.flash_attention import attention_twin, mhsea_p

STAGE = re.compile(r"stage_[a-d]")


def forward_laplacian(f: Callable[[Any], Any], sparsity_threshold: float) -> Callable[[Any], tuple[Any, Any]]:
    """``x -> (laplacian, gradient)`` of a scalar ``f`` of ``[n]``, as in ``LAPLACIANS``.

    Jacobians stay sparse while at most the share ``sparsity_threshold`` of their rows is filled; 0 keeps them dense.
    The fused attention is taken as its twin. ImportError without folx.
    """
    import folx

    folx.register_function(mhsea_p, _flash_attention_rule)

    def laplacian(x: Any) -> tuple[Any, Any]:
        rows = int(sparsity_threshold * x.shape[0])

        def evaluate(function: Callable[..., Any], *arguments: Any) -> Any:
            if not any(_has_derivatives(argument) for argument in arguments):
                return function(*arguments)
            return folx.forward_laplacian(function, rows, disable_jit=True)(*arguments)

        start = folx.forward_laplacian(lambda x: x, rows, disable_jit=True)(x)
        result = _evaluate_by_stage(jax.make_jaxpr(f)(x), start, evaluate)
        return result.laplacian, result.jacobian.dense_array

    return laplacian


def _evaluate_by_stage(closed: Any, x: Any, evaluate: Callable[..., Any]) -> Any:
    """The one output of ``closed`` at its one input ``x``; ``evaluate(function, *arguments)`` does each piece."""
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    values[closed.jaxpr.invars[0]] = x
    for stage, piece in _pieces(closed.jaxpr):
        arguments = [values[variable] for variable in piece.jaxpr.invars]
        with jax.named_scope(stage) if stage else contextlib.nullcontext():
            results = evaluate(jaxpr_as_fun(piece), *arguments)
        values.update(zip(piece.jaxpr.outvars, results, strict=True))
    return values[closed.jaxpr.outvars[0]]


def _pieces(jaxpr: Any) -> Iterator[tuple[str, Any]]:
    """Longest runs of equations of one stage, each with its name ("" for none) and as a jaxpr of its own."""
    runs = [(stage, list(equations)) for stage, equations in groupby(jaxpr.eqns, _stage)]
    needed = [{v for v in jaxpr.outvars if not isinstance(v, Literal)}]
    for _, equations in reversed(runs[1:]):
        needed.append(needed[-1] | set(_free_variables(equations)))
    for (stage, equations), later in zip(runs, reversed(needed), strict=True):
        made = [v for equation in equations for v in equation.outvars if v in later]
        inputs = list(dict.fromkeys(_free_variables(equations)))
        names = jaxpr.debug_info.with_unknown_names()
        piece = jaxpr.replace(constvars=[], invars=inputs, outvars=made, eqns=equations, debug_info=names)
        yield stage, ClosedJaxpr(piece, [])


def _stage(equation: Any) -> str:
    """The innermost stage that ``equation`` was traced in."""
    stages = STAGE.findall(str(equation.source_info.name_stack))
    return str(stages[-1]) if stages else ""


def _free_variables(equations: list[Any]) -> Iterator[Any]:
    """Variables that ``equations`` read and do not make, with repetitions."""
    made: set[Any] = set()
    for equation in equations:
        yield from (v for v in equation.invars if not isinstance(v, Literal) and v not in made)
        made.update(equation.outvars)


def _has_derivatives(value: Any) -> bool:
    return hasattr(value, "jacobian")


def _flash_attention_rule(arguments: Any, parameters: Any, sparsity_threshold: int) -> Any:
    import folx

    twin = partial(attention_twin, **parameters)
    return folx.forward_laplacian(twin, sparsity_threshold, disable_jit=True)(*arguments)
