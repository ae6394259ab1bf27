"""XLA options of optimised functions, and the rest of the environment that their numbers depend on."""

from __future__ import annotations

import functools
import os

import jax

from fusionlab.codegen.compile import RIGHT_ON_CPU


@functools.cache
def options_of_calls() -> dict[str, str | int | bool]:
    """The compile options of an optimised function that is called by itself; this XLA knows them all."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(RIGHT_ON_CPU)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return dict(RIGHT_ON_CPU)


def surroundings(platform: str) -> str:
    """The circumstances that a program's numbers depend on: the kind of device and the environment's flags.

    A comparison on one GPU, or on a CPU for an absent GPU, does not carry over to another: one multiplies in TF32 and
    the other does not.
    """
    try:
        kind = jax.local_devices(backend={"cuda": "gpu"}.get(platform, platform))[0].device_kind
    except RuntimeError:
        kind = "absent"
    flags = [f"{name}={os.environ.get(name, '')}" for name in ("XLA_FLAGS", "NVIDIA_TF32_OVERRIDE")]
    return " ".join([kind, *flags])
