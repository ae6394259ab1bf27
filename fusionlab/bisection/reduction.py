"""Shrink a program as long as a pass still breaks it: fewer results, and inner values instead of arguments.

f(x, w) = (a, b, c),  b = h(v),  v = g(x, w)      -->      f(v) = b
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from fusionlab.bisection.steps import Judge, Step
from fusionlab.codegen.raising import RaiseError, Raising, RaisingFault, raise_nodes
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.lowering import lower_traced
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import FunctionView, Value, reads
from fusionlab.passes.interface import Setting, VerificationError
from fusionlab.passes.pipeline import run_pass

MOST_TRIALS = 24
_PARTS = (0.9, 0.75, 0.5, 0.25, 0.1)
"""The ops at which a program is cut: values computed before become arguments."""
_NOT_CUT = (RaiseError, RaisingFault, ValueError, TypeError, NotImplementedError)
"""Errors of a cut that is no valid program: its regions can no longer be raised."""


@dataclass(frozen=True)
class Reduced:
    """``program`` is what is left of ``ops_before`` operations after ``trials`` attempts; the pass still breaks it."""

    program: Program
    ops_before: int
    trials: int


def reduce_program(step: Step, setting: Setting, judge: Judge, *, most_trials: int = MOST_TRIALS) -> Reduced:
    """The smallest program found that the pass of ``step`` miscompiles.

    Every candidate is rewritten and judged again; one that the pass leaves alone, or that cannot be cut, is dropped.
    """
    best, trials = step.before, 0

    def still_wrong(candidate: Program) -> bool:
        try:
            result = run_pass(step.by, candidate, setting)
            return bool(result.applied) and judge(candidate, result.program).verdict == "different"
        except (*_NOT_CUT, VerificationError, CompileError, InputError):
            return False

    for smaller in (_of_fewer_results, _of_inner_results, _cut):
        for candidate in smaller(best):
            if trials >= most_trials:
                break
            if candidate is None or candidate.ops >= best.ops:
                continue
            trials += 1
            if still_wrong(candidate):
                best = candidate
                break
    return Reduced(best, step.before.ops, trials)


def _of_fewer_results(program: Program) -> Iterator[Program | None]:
    flat = program_view(program)
    if len(flat.returns) > 1:
        for value in dict.fromkeys(flat.returns):
            yield _sliced(program, flat, flat.arguments, [value])


def _of_inner_results(program: Program) -> Iterator[Program | None]:
    """Results of loops, and of the ops right after them, instead of the program's."""
    flat = program_view(program)
    for node in flat.nodes:
        if node.op is ops.WHILE:
            for value in node.results:
                if value.dtype in WIDE_FLOATS:
                    yield _sliced(program, flat, flat.arguments, [value])


def _cut(program: Program) -> Iterator[Program | None]:
    flat = program_view(program)
    for part in _PARTS:
        at = int(part * len(flat.nodes))
        above = {value for node in flat.nodes[:at] for value in node.results} | set(flat.arguments)
        below = live_nodes(flat.nodes[at:], list(above), flat.returns)
        needed = {value for node in below for value in reads(node)} | set(flat.returns)
        constants = {v for node in flat.nodes[:at] if node.op is ops.CONSTANT for v in node.results}
        inputs = [value for value in _in_order(flat) if value in above and value in needed and value not in constants]
        yield _sliced(program, flat, inputs, flat.returns)


def _in_order(flat: FunctionView) -> list[Value]:
    return [*flat.arguments, *(value for node in flat.nodes for value in node.results)]


def _sliced(program: Program, flat: FunctionView, inputs: Sequence[Value], outputs: Sequence[Value]) -> Program | None:
    """The part of ``program`` from ``inputs`` to ``outputs`` as a program; None where it cannot be lowered."""
    try:
        live = live_nodes(flat.nodes, inputs, outputs)
        read = {value for node in live for value in reads(node)} | set(outputs)
        inputs = [value for value in inputs if value in read]
        return _lowered(program, raise_nodes(flat.nodes, inputs, outputs), inputs)
    except _NOT_CUT:
        return None


def _lowered(program: Program, function: Callable[..., tuple[object, ...]], inputs: Sequence[Value]) -> Program:
    def reduced(*arrays: object) -> tuple[object, ...]:
        return tuple(function(*arrays))

    raising = Raising()
    platform = "cpu" if program.platform == "any" else program.platform
    with jax.enable_x64(True):
        abstract = [jax.ShapeDtypeStruct(v.type.shape, np.dtype(raising.dtype(v.type))) for v in inputs]
        traced = jax.jit(reduced, keep_unused=True).trace(*abstract)
        module = lower_traced(traced, platform, source_lines=0)
        return Program.from_module(module, name=f"{program.name}-reduced", provenance=program.provenance)
