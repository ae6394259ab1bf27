"""XLA options of optimised functions."""

from __future__ import annotations

import functools

import jax

from fusionlab.codegen.compile import RIGHT_ON_CPU


@functools.cache
def options_of_calls() -> dict[str, str | int | bool]:
    """The options under which an optimised function that is called by itself is compiled; this XLA knows them all."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(RIGHT_ON_CPU)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return dict(RIGHT_ON_CPU)
