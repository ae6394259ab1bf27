"""Dense layers: how wide, how initialised, how applied."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

STANDARD_DEVIATION_OF_TRUNCATED_NORMAL = 0.87962566103423978
"""Standard deviation of a unit normal cut at two standard deviations."""


def geometric_widths(inputs: int, outputs: int, layers: int) -> tuple[int, ...]:
    """Widths of ``layers`` layers that lead from ``inputs`` to ``outputs`` in equal ratios (DeepQMC's ``log``)."""
    steps = (step / layers for step in range(1, layers + 1))
    return tuple(round(inputs ** (1 - q) * outputs**q) for q in steps)


def normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Normal values of variance 1/shape[0] (the fan-in of a weight matrix, the length of a bias)."""
    return jax.random.normal(key, shape, dtype) * shape[0] ** -0.5


def truncated_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Normal values cut at two standard deviations and then rescaled to variance 1/fan-in."""
    scale = shape[0] ** -0.5 / STANDARD_DEVIATION_OF_TRUNCATED_NORMAL
    return jax.random.truncated_normal(key, -2.0, 2.0, shape, dtype) * scale


def zeros(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros; ``key`` is not used."""
    return jnp.zeros(shape, dtype)


def init_mlp(
    key: Any,
    inputs: int,
    widths: tuple[int, ...],
    dtype: Any,
    *,
    weight: Any = truncated_normal,
    bias: Any = zeros,
) -> list[dict[str, Any]]:
    """Layers ``{"weight": [n, m], "bias": [m]}`` of ``widths`` outputs each; ``bias=None`` leaves the biases out."""
    layers = []
    for fan_in, width in zip((inputs, *widths), widths, strict=False):
        key, weight_key, bias_key = jax.random.split(key, 3)
        layer = {"weight": weight(weight_key, (fan_in, width), dtype)}
        if bias is not None:
            layer["bias"] = bias(bias_key, (width,), dtype)
        layers.append(layer)
    return layers


def linear(layer: dict[str, Any], x: Any) -> Any:
    """``x @ weight + bias`` over the last axis of ``x``; the bias is optional."""
    y = jnp.dot(x, layer["weight"])
    return y + layer["bias"] if "bias" in layer else y


def mlp(layers: list[dict[str, Any]], x: Any) -> Any:
    """Every layer followed by tanh."""
    for layer in layers:
        x = jnp.tanh(linear(layer, x))
    return x
