"""What must hold of every random program: raised, rebuilt or rewritten, it computes what its function computes.

Everything is compared in float64, where a mistake has no rounding to hide in. Truth is the function under plain
``jax.jit``, which shares no code with raising or passes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.raising import Raising, raise_program
from fusionlab.codegen.raising.splice import rebuild
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import Result, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from tests.fuzzing.programs import RandomProgram

Arrays = Sequence[np.ndarray]
PIPELINES = (*PASSES, "batch-replay{chunk=2}", "layout")
_TOLERANCE = 1e-8
"""Of the scale of an output. The programs lose 1e-14 to 1e-11 to reassociation; a wrong term is of order one."""

tally: Counter[str] = Counter()
"""How often each pass has applied in this process: a run in which none did has shown nothing."""


def lowered(function: Callable[..., Any], arrays: Arrays, platform: str = "cpu") -> Program:
    """The function in float64 as a Program."""
    with jax.enable_x64(True):
        traced = jax.jit(lambda *given: function(*given), keep_unused=True).trace(*arrays)
        module = traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
    return Program.from_module(module, name="random", provenance="fuzzing", platform=platform)


def direct(function: Callable[..., Any], arrays: Arrays) -> list[np.ndarray]:
    """What the function itself computes in float64; flat."""
    with jax.enable_x64(True):
        results = jax.jit(lambda *given: function(*given), compiler_options=CPU_OPTIONS)(*arrays)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def raised(program: Program, arrays: Arrays) -> list[np.ndarray]:
    """What the raised program computes."""
    return direct(raise_program(program), arrays)


def rebuilt(program: Program) -> Program:
    """The program raised, lowered again, and put in its own place."""
    module = program.parse()
    marks: dict[int, Node] = {}
    with jax.enable_x64(True):
        function = raise_program(program, Raising(marks=marks))
        rebuild(module, function, name="again", platform=program.platform, origins=marks)
    return Program.from_module(module, name="rebuilt", provenance="fuzzing", platform=program.platform)


def op_by_op(program: Program, arrays: Arrays) -> list[np.ndarray]:
    """What the raised program computes with every op compiled by itself."""
    with jax.enable_x64(True), jax.disable_jit():
        return [np.asarray(result) for result in raise_program(program)(*map(jax.numpy.asarray, arrays))]


def require_same(found: Arrays, expected: Arrays, what: str) -> None:
    """AssertionError unless shapes, dtypes, NaNs, infinities and numbers agree."""
    assert len(found) == len(expected), f"{what}: {len(found)} results, not {len(expected)}"
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), f"{what}: result {number}"
        finite = np.isfinite(theirs)
        np.testing.assert_array_equal(np.where(finite, 0, ours), np.where(finite, 0, theirs), f"{what}: {number}")
        scale = max(float(np.max(np.abs(theirs), initial=0.0, where=finite)), 1e-3)
        np.testing.assert_allclose(
            ours, theirs, rtol=_TOLERANCE, atol=_TOLERANCE * scale, err_msg=f"{what}: result {number}"
        )


def rewritten(program: Program, pipeline: str) -> Result:
    """The result of the passes; AssertionError where nothing happened without a reason."""
    result = run_pipeline(program, parse_pipeline(pipeline), Setting(platform=program.platform))
    if result.applied:
        tally[pipeline] += 1
    else:
        assert result.program is program, f"{pipeline}: the program changed and nothing applied"
        assert all(event.reason for event in result.events), pipeline  # type: ignore[union-attr]
    return result


def check_program(random: RandomProgram) -> None:
    """Raising, rebuilding and every pass keep the numbers of ``random``."""
    arrays = random.arrays()
    expected = direct(random.function, arrays)
    if not all(math.isfinite(float(np.sum(np.abs(one)))) and np.max(np.abs(one), initial=0) < 1e9 for one in expected):
        tally["beyond 1e9: not compared"] += 1
        return
    program = lowered(random.function, arrays, random.platform)
    tally["programs"] += 1
    require_same(raised(program, arrays), expected, "raised")
    require_same(raised(rebuilt(program), arrays), expected, "rebuilt")
    for pipeline in PIPELINES:
        result = rewritten(program, pipeline)
        if result.applied:
            require_same(raised(result.program, arrays), expected, pipeline)
            if pipeline == "licm":
                for ours, theirs in zip(op_by_op(result.program, arrays), op_by_op(program, arrays), strict=True):
                    np.testing.assert_array_equal(ours, theirs, f"{pipeline}, op by op")
