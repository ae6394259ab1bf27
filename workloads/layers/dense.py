"""Dense layers: how wide, how initialised, how applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from fusionlab.workloads.layers.initial import Initial, truncated_normal, zeros


def geometric_widths(inputs: int, outputs: int, layers: int) -> tuple[int, ...]:
    """Widths of ``layers`` layers that lead from ``inputs`` to ``outputs`` in equal ratios (DeepQMC's ``log``)."""
    steps = (step / layers for step in range(1, layers + 1))
    return tuple(round(inputs ** (1 - q) * outputs**q) for q in steps)


def init_linear(
    inputs: int,
    outputs: int,
    weight: Callable[..., Initial] = truncated_normal,
    bias: Callable[..., Initial] | None = zeros,
) -> dict[str, Initial]:
    """``{"weight": [inputs, outputs], "bias": [outputs]}``; ``bias=None`` leaves the bias out."""
    layer = {"weight": weight(inputs, outputs)}
    return layer if bias is None else {**layer, "bias": bias(outputs)}


def init_mlp(
    inputs: int,
    widths: tuple[int, ...],
    weight: Callable[..., Initial] = truncated_normal,
    bias: Callable[..., Initial] | None = zeros,
) -> list[dict[str, Initial]]:
    """One linear layer per entry of ``widths``, its number of outputs."""
    return [init_linear(n, m, weight, bias) for n, m in zip((inputs, *widths), widths, strict=False)]


def linear(layer: dict[str, Any], x: Any) -> Any:
    """``x @ weight + bias`` over the last axis of ``x``; the bias is optional."""
    y = jnp.dot(x, layer["weight"])
    return y + layer["bias"] if "bias" in layer else y


def mlp(layers: list[dict[str, Any]], x: Any) -> Any:
    """Every layer followed by tanh."""
    for layer in layers:
        x = jnp.tanh(linear(layer, x))
    return x
