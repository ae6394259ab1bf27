"""Run programs and workloads on the CPU for comparison: in their own dtype, and in float64.

Every compile here turns the CPU's YNN library fusions off: with them some dense forward-Laplacian programs are silently
wrong in float32 (jaxlib 0.10.2). Each program runs a few times on few walkers, so compiling is most of the cost, and a
low optimisation level halves it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.raising import Raising, raise_program, require_known_calls
from fusionlab.codegen.raising.devices import RaisingOfAllDevices
from fusionlab.codegen.raising.roundings import roundings_of_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.program import Program
from fusionlab.workload import Workload

Options = Mapping[str, str | int | bool]
Runner = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


@dataclass(frozen=True)
class References:
    """The references of all rewritings of a workload: its own function in float64 and in its own dtype.

    Of rewritings of one module of it, ``truth`` is that module raised and computed in float64, because its constants
    are rounded, as theirs are; and ``raised`` is the raised module, which must agree with ``original``.
    """

    truth: Runner
    original: Runner
    raised: Runner | None = None

    @staticmethod
    def of(workload: Workload, *, remember: bool = False) -> References:
        """Both runners of ``workload``; with ``remember`` each runs once per input, for several rewritings of it."""
        runners = workload_runner(workload, "float64"), workload_runner(workload, workload.dtype)
        return References(*(map(remembered, runners) if remember else runners))

    @staticmethod
    def of_module(workload: Workload, module: Program, *, remember: bool = False) -> References:
        """As ``of``, for rewritings of ``module``, which was lowered from ``workload``."""
        raised = program_runner(module)
        truth = remembered(raised) if workload.dtype == "float64" else program_runner(module, widen=True)
        runners = truth, workload_runner(workload, workload.dtype), truth if workload.dtype == "float64" else raised
        return References(*(map(remembered, runners) if remember else runners))


Known = dict[bytes, list[np.ndarray]]
"""Results by ``key_of_arrays``."""


def remembered(run: Runner, known: Known | None = None) -> Runner:
    """``run``, memoised by its inputs; ``known`` are results of it."""
    found = dict(known or {})

    def once(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        key = key_of_arrays(arrays)
        if key not in found:
            found[key] = run(arrays)
        return found[key]

    return once


def key_of_arrays(arrays: Sequence[np.ndarray]) -> bytes:
    """SHA-256 of types, shapes and elements."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def argument_structure(workload: Workload) -> Any:
    """The pytree structure of the workload's arguments."""
    with jax.enable_x64(workload.dtype == "float64"):
        return jax.tree.structure(jax.eval_shape(workload.inputs, 0))


def workload_runner(workload: Workload, dtype: str, options: Options = CPU_OPTIONS) -> Runner:
    """The workload's own function under plain ``jax.jit``: an oracle that shares no code with raising or passes.

    ``options`` are XLA's; non-default ones are for another device.
    """
    same = workload if workload.dtype == dtype else workload.rebuild(dtype=dtype)
    structure = argument_structure(workload)
    compiled = jax.jit(same.function, compiler_options=dict(options))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        with jax.enable_x64(dtype == "float64"):
            arguments = jax.tree.unflatten(structure, [converted(array, dtype) for array in arrays])
            return [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*arguments))]

    return run


def program_runner(
    program: Program, *, widen: bool = False, dtype: str | None = None, options: Options = CPU_OPTIONS
) -> Runner:
    """The raised program (it may have been lowered for a GPU) on the CPU.

    ``widen`` computes a float32 program in float64; floating inputs are converted to ``dtype``.
    """
    dtype = "float64" if widen else dtype
    raising = (RaisingOfAllDevices if program.has_collectives else Raising)(widen=widen)
    compiled = jax.jit(raise_program(program, raising), compiler_options=dict(options))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        with jax.enable_x64(True):
            return [np.asarray(out) for out in compiled(*(converted(a, dtype) if dtype else a for a in arrays))]

    return run


RunnerOfRoundings = Callable[[Sequence[np.ndarray], int], list[np.ndarray]]
"""(flat arguments, seed) to the results with intermediate ones rounded otherwise."""


def runner_of_roundings(program: Program) -> RunnerOfRoundings:
    """The raised program in float64 on the CPU, its intermediate results rounded otherwise, one way for each seed."""
    compiled = jax.jit(roundings_of_program(program), compiler_options=dict(CPU_OPTIONS))

    def run(arrays: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
        with jax.enable_x64(True):
            given = (converted(array, "float64") for array in arrays)
            return [np.asarray(out) for out in compiled(np.uint32(seed), *given)]

    return run


def xla_runner(program: Program, dtype: str | None = None) -> Runner:
    """The program itself, in its own dtype, compiled by XLA for the CPU, not raised.

    ``program`` is not lowered for CUDA; floating inputs are converted to ``dtype``. The first run compiles it, and
    raises CompileError when XLA cannot. RaiseError for a custom call that is not in the table of those that raise: a
    target is not run because a file names it.
    """
    require_known_calls(program)
    compiled = functools.cache(lambda: compile_program(program, load_target("cpu"), options=CPU_OPTIONS))
    return lambda arrays: compiled().run(*(converted(array, dtype) if dtype else array for array in arrays))


def converted(array: np.ndarray, dtype: str) -> Any:
    """``array``, if it is of floats or complex numbers at the precision of ``dtype``."""
    if np.issubdtype(array.dtype, np.complexfloating):
        return array.astype(np.result_type(dtype, np.complex64))
    return array.astype(dtype) if jax.numpy.issubdtype(array.dtype, np.floating) else array
