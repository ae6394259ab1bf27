"""One program, run once between ``cuProfilerStart`` and ``cuProfilerStop``: the process profiled by Nsight Compute.

    python -m fusionlab.bench.once PROGRAM.mlirbc INPUTS.npz gpu|cpu

``counters_of`` is the caller's side. Kernels are launched one by one (no CUDA graphs); launches of compilation,
autotuning and the first run lie outside the two marks.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fusionlab.hlo.program import Program
from fusionlab.measure.ncu import KernelCounters, profile

TIME_LIMIT_S = 600.0
WITHOUT_GRAPHS: dict[str, str | int | bool] = {"xla_gpu_enable_command_buffer": ""}
"""Compile options under which every kernel is launched by itself."""


def counters_of(program: Program, arrays: tuple[np.ndarray, ...], target: str) -> list[KernelCounters]:
    """The counters of every kernel of one run; InputError where ``ncu`` cannot collect them."""
    with tempfile.TemporaryDirectory(prefix="fusionlab-counters-") as folder:
        path, inputs = Path(folder) / "program.mlirbc", Path(folder) / "inputs.npz"
        path.write_bytes(program.bytecode)
        np.savez(inputs, *arrays)
        return profile("fusionlab.bench.once", [str(path), str(inputs), target], TIME_LIMIT_S)


def main(arguments: list[str]) -> None:
    """Compile, run once, and run once more between the marks."""
    from fusionlab import quiet_start

    quiet_start.load_jax()
    import jax

    from fusionlab.codegen.compile import compile_program
    from fusionlab.codegen.targets import load_target

    target = load_target(arguments[2])
    options = WITHOUT_GRAPHS if target.kind == "cuda" else {}
    executable = compile_program(Program.from_file(arguments[0]), target, options=options).executable
    assert executable is not None
    with np.load(arguments[1], allow_pickle=False) as stored:
        placed = executable.place([stored[f"arr_{at}"] for at in range(len(stored.files))])
    jax.block_until_ready(executable(placed))
    with _marked():
        jax.block_until_ready(executable(placed))


@contextlib.contextmanager
def _marked() -> Iterator[None]:
    """A context between the marks, if there is a CUDA driver."""
    library: Any = None
    with contextlib.suppress(OSError):
        library = ctypes.CDLL("libcuda.so.1")
    if library is not None:
        library.cuProfilerStart()
    try:
        yield
    finally:
        if library is not None:
            library.cuProfilerStop()


if __name__ == "__main__":
    main(sys.argv[1:])
