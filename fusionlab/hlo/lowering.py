"""Lower a workload or a function to a Program: StableHLO for one platform, with scopes and source lines of every op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import jax
from jax._src import source_info_util
from jax._src.config import traceback_in_locations_limit
from jax._src.core import jaxprs_in_params

from fusionlab.errors import InputError, one_line, unknown
from fusionlab.hlo.program import Program
from fusionlab.workload import Workload

PLATFORMS = ("cpu", "cuda")
_CALLBACKS = {"pure_callback", "io_callback", "debug_callback", "debug_print"}
_UNTRACEABLE = (TypeError, ValueError, jax.errors.NonConcreteBooleanIndexError, jax.errors.UnexpectedTracerError)
"""What JAX raises for a function that it cannot trace, and for arguments that are no arrays."""


class HostCallbackError(InputError):
    """A function that calls Python while it runs, for a platform that is not attached."""


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


def program_of(
    given: Any, args: Sequence[Any] = (), named: Mapping[str, Any] | None = None, *, platform: str
) -> Program:
    """``given`` as a Program for ``platform`` (``cpu`` or ``cuda``).

    ``given`` is a function (jitted or not) of ``args`` and ``named``, a ``jax.stages.Traced``, a Workload or a Program;
    the last three need no arguments. InputError for anything else, and as in ``lower_function``.
    """
    if isinstance(given, Program | Workload | jax.stages.Traced) and (args or named):
        raise InputError("a Program, a Workload and a jax.stages.Traced have their arguments in them: give no args")
    if isinstance(given, Workload):
        return lower(given, platform)
    if isinstance(given, Program):
        if given.platform not in ("any", platform):
            raise InputError(f"{given.name} was lowered for {given.platform}, and {platform} is asked for")
        return given
    return lower_function(given, args, named or {}, platform)


def lower_function(function: Any, args: Sequence[Any], named: Mapping[str, Any], platform: str) -> Program:
    """Trace ``function`` (jitted or not, or a ``jax.stages.Traced``) and lower it for ``platform`` (``cpu``, ``cuda``).

    Arguments are pytrees of arrays or of ``jax.ShapeDtypeStruct``; nothing runs. InputError for another platform, for
    what is no function, and where JAX cannot trace it with these arguments: with JAX's own error as the cause.
    HostCallbackError where it calls Python, which JAX lowers for an attached platform alone.
    """
    if platform not in PLATFORMS:
        raise unknown("platform", platform, PLATFORMS)
    if isinstance(function, str):
        raise InputError(
            f"a function is needed, not the text {function!r}; for a file, Program.from_file({function!r})"
        )
    if not (callable(function) or isinstance(function, jax.stages.Traced)):
        raise InputError(
            f"a function, a jax.stages.Traced, a Workload or a Program is needed, not {type(function).__name__}"
        )
    with tracing_for(platform):
        traced = function if isinstance(function, jax.stages.Traced) else _traced(function, args, named)
    try:
        module = lower_traced(traced, platform, source_lines=1)
    except ValueError as error:
        if not (called := list(_host_callbacks(traced.jaxpr.jaxpr))):
            raise
        raise HostCallbackError(
            f"Python is called while the program runs ({', '.join(dict.fromkeys(called))}), and JAX cannot lower that "
            f"for {platform}, which is not attached; give the target cpu (--target cpu), or leave the callback out"
        ) from error
    name = str(getattr(traced, "fun_name", "") or _name_of(function)).strip("<>")
    return Program.from_module(module, name=name, provenance=f"{name}, JAX {jax.__version__}", platform=platform)


def _host_callbacks(jaxpr: Any) -> Iterator[str]:
    """The primitives in ``jaxpr`` that call Python, each with its source line."""
    for equation in jaxpr.eqns:
        if equation.primitive.name in _CALLBACKS:
            where = source_info_util.summarize(equation.source_info).rpartition("/")[2]
            yield f"{equation.primitive.name} at {where}" if where else equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from _host_callbacks(inner)


def _traced(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """``function`` traced by JAX; InputError where it cannot be."""
    jitted = function if callable(getattr(function, "trace", None)) else jax.jit(function)
    try:
        return jitted.trace(*args, **named)
    except _UNTRACEABLE as error:
        raise InputError(f"JAX cannot trace {_name_of(function)} with these arguments: {one_line(error)}") from error


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", "function"))


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
