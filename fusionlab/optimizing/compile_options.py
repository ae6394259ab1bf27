"""XLA options of optimised functions."""

from __future__ import annotations

import functools

import jax

_SAFE: dict[str, str | int | bool] = {"xla_cpu_experimental_ynn_fusion_type": ""}
"""jaxlib 0.10.2's YNN library fusions on the CPU give silently wrong float32 results on dense forward-Laplacian
programs."""


@functools.cache
def options_of_calls() -> dict[str, str | int | bool]:
    """The options under which an optimised function that is called by itself is compiled; this XLA knows them all."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(_SAFE)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return dict(_SAFE)
