"""What a rewritten program is compared with: the original in float64, as it stands, and raised in its own precision.

Of a large program they are evaluated at the arguments of a call in a process of its own, while the passes plan:

    this process       lower --> plan ----------------------> compare --> compile
    another                   `--> truth, original, raised --^
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.executable import numpy_dtype
from fusionlab.equivalence.few_walkers import resized
from fusionlab.equivalence.oracle import Known, Options, Runner, key_of_arrays, program_runner
from fusionlab.hlo.program import Program, without_view
from fusionlab.host_settings import own_settings
from fusionlab.optimizing.primitive import apply_owned
from fusionlab.subprocesses import ProcessFailed, call

REFERENCES = ("truth", "original", "raised")
_LARGE = 2_000
"""Ops of an original whose planning takes longer than a process needs to start (2 s; planning 2.5 ms per op)."""
_LIMIT_S = 600.0


def references_of(program: Program) -> dict[str, Runner]:
    """The references of ``program`` by name, compiled at their first run."""
    return {
        "truth": program_runner(program, widen=True),
        "original": run_as_it_stands(program, CPU_OPTIONS),
        "raised": program_runner(program),
    }


@dataclass(frozen=True)
class Begun:
    """References of ``original`` at a few walkers of a call, evaluated in another process."""

    original: Program
    arrays: tuple[np.ndarray, ...]
    _results: Future[Any]
    _stop: threading.Event

    @staticmethod
    def start(program: Program, arrays: Sequence[np.ndarray], walkers: int) -> Begun | None:
        """None for a small program, one for another device, and where ``program`` cannot be resized."""
        if program.ops < _LARGE or program.platform != "cpu" or (few := resized((program,), walkers)) is None:
            return None
        original, part = without_view(few.programs[0]), few.part(list(map(np.asarray, arrays)))
        stop = threading.Event()
        pool = ThreadPoolExecutor(1, "fusionlab-references")  # its thread lives as long as the process
        results = pool.submit(call, evaluate, astuple(original), part, limit_s=_LIMIT_S, memory_limited=True, stop=stop)
        pool.shutdown(wait=False)
        return Begun(original, part, results, stop)

    def of(self, original: Program) -> dict[str, Known] | None:
        """Results by name, if they are of ``original``; None if the process failed, too: then they are computed here,
        where a fault is reported."""
        if original != self.original:
            self.stop()
            return None
        try:
            found = self._results.result()
        except (ProcessFailed, OSError):  # OSError: no space for its files, or no process
            return None
        return {name: {key_of_arrays(self.arrays): found[name]} for name in REFERENCES}

    def stop(self) -> None:
        """End the process."""
        self._stop.set()


@own_settings()
def evaluate(program: list[Any], arrays: list[np.ndarray]) -> dict[str, list[np.ndarray]]:
    """The results of the references of a program at ``arrays``, for ``call``; the process that plans comes first."""
    os.nice(10)
    jax.config.update("jax_platforms", "cpu")  # the program's; a GPU's memory is the user's
    return {name: run(arrays) for name, run in references_of(Program(*program)).items()}


@dataclass(frozen=True)
class _Fixed:
    """An owner whose primitive is lowered to a fixed program."""

    program: Program
    name: str = "program"

    def choose(self, jaxpr: Any, platform: str) -> Program:
        return self.program


def run_as_it_stands(program: Program, options: Options) -> Runner:
    """``program`` put into a jitted function as it is, not raised, on JAX's default device."""
    results = [(type_.shape, numpy_dtype(type_)) for type_ in program.outputs]
    arguments = [jax.ShapeDtypeStruct(type_.shape, numpy_dtype(type_)) for type_ in program.inputs]
    with jax.enable_x64(True):
        types = jax.make_jaxpr(lambda *_: [jnp.zeros(shape, dtype) for shape, dtype in results])(*arguments)
    owner = _Fixed(program)
    compiled = jax.jit(lambda *arrays: apply_owned(owner, types, types, arrays), compiler_options=dict(options))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        with jax.enable_x64(True):
            return [np.asarray(result) for result in compiled(*arrays)]

    return run
