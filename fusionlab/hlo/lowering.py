"""Lower a workload to a Program: StableHLO for one platform, with the scopes and source lines of every operation."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import jax
from jax._src.config import traceback_in_locations_limit

from fusionlab.errors import unknown
from fusionlab.hlo.program import Program
from fusionlab.workload import Workload

PLATFORMS = ("cpu", "cuda")


def lower(workload: Workload, platform: str) -> Program:
    """Trace ``workload.function`` on abstract inputs and lower it for ``platform`` (``cpu`` or ``cuda``).

    Needs no device of that platform and makes no array. Every leaf of the inputs is an argument of the Program, in
    pytree order, used or not. Locations hold the innermost user line only, so that the Program does not depend on the
    caller of ``lower``. InputError for another platform.
    """
    if platform not in PLATFORMS:
        raise unknown("platform", platform, PLATFORMS)
    with jax.enable_x64(workload.dtype == "float64"), tracing_for(platform):
        module = lower_traced(_trace(workload), platform, source_lines=1)
        return Program.from_module(module, name=workload.title, provenance=_provenance(workload), platform=platform)


def lower_traced(traced: Any, platform: str, *, source_lines: int) -> Any:
    """The MLIR module of a ``jax.jit(f).trace(...)``, with ``source_lines`` frames of the user's in each location."""
    with traceback_in_locations_limit(source_lines):
        return traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")


def tracing_for(platform: str) -> AbstractContextManager[Any]:
    """A context in which functions, Pallas kernels among them, are traced for ``platform``.

    To lower a kernel for Triton, JAX 0.11 needs the GPU that it was traced for; where none is attached, that is the
    default target.
    """
    if platform != "cuda" or jax.__version_info__ < (0, 11) or jax.default_backend() == "gpu":
        return nullcontext()
    device = jax.sharding.AbstractDevice("NVIDIA A100", 108, "gpu")
    return cast(
        AbstractContextManager[Any],
        jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device)),
    )


def jaxpr_text(workload: Workload) -> str:
    """The jaxpr that ``lower`` starts from, as text."""
    with jax.enable_x64(workload.dtype == "float64"):
        return str(_trace(workload).jaxpr)


def _trace(workload: Workload) -> Any:
    arguments = jax.eval_shape(workload.inputs, 0)

    # Renamed, so that op_name scopes start with the program's name and not with "jit(<lambda>)".
    def run(*args: Any) -> Any:
        return workload.function(*args)

    run.__name__ = run.__qualname__ = workload.program.replace("-", "_")
    return jax.jit(run, keep_unused=True).trace(*arguments)


def _provenance(workload: Workload) -> str:
    return (
        f"{workload.name} {workload.program} of {workload.molecule} ({workload.electrons} electrons), "
        f"{workload.walkers} walkers, {workload.dtype}, laplacian {workload.laplacian}, JAX {jax.__version__}"
    )
