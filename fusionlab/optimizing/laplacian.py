"""``fusionlab.laplacian``: the Laplacian and the gradient of a function, by a forward pass of the batched function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from fusionlab.errors import InputError
from fusionlab.optimizing.optimize import optimize


def laplacian(
    function: Callable[..., Any], weights: ArrayLike | None = None, *, sparsity_threshold: int = 0, **options: Any
) -> Callable[..., Any]:
    """``x -> (laplacian, gradient)`` of ``function``, which maps ``x`` (any shape, float) to a scalar, real or complex.

    The Laplacian is the scalar sum_k w_k d^2 f / d x_k^2; the gradient has the shape of ``x`` and no weights.
    ``weights`` are those of the coordinates (1 / mass), positive, of a shape that broadcasts to that of ``x``; default
    1. Further arguments of the returned function are passed on to ``function``.

    It is the usual loop over coordinates (a Jacobian-vector product of the gradient for each), under
    ``fusionlab.optimize`` with the pass ``fuse-jvp-replay``: with ``jax.vmap`` around it, the batched function's loop
    becomes one forward pass and is compared with the loop; the attribute ``fusionlab`` of the returned function has the
    ``report()``. It composes with ``jax.jit``, ``jax.vmap``, ``jax.grad`` and ``shard_map``. ``options`` are those of
    ``fusionlab.optimize``.

    The signature is that of DeepQMC's ``laplacian_factory``. ``sparsity_threshold`` is an option of
    ``folx.ForwardLaplacianOperator``, whose place in a configuration this can take; it has no effect: the directions
    that a value depends on are found when the program is compiled.

    InputError: weights that are not positive; a function whose value is not a scalar, or ``x`` that is not real.
    """
    if not callable(function):
        raise InputError(f"laplacian takes a function, not {function!r}")
    scales = None if weights is None else jnp.sqrt(_positive(weights))

    # With x = y * scale, the Laplacian with respect to y has the weights scale^2.
    def of_scaled(y: Any, scale: Any, *others: Any) -> tuple[Any, Any, Any]:
        def of_flat(flat: Any) -> Any:
            inner = flat.reshape(y.shape)
            return function(inner if scale is None else inner * scale, *others)

        total, gradient, value = _of_scalar(of_flat, y.reshape(-1))
        return total, gradient.reshape(y.shape), value

    of_scaled.__name__ = f"laplacian of {getattr(function, '__name__', type(function).__name__)}"
    optimized = optimize(of_scaled, **options)

    @functools.wraps(function)
    def laplacian_of(x: Any, *others: Any) -> tuple[Any, Any]:
        x = jnp.asarray(x)
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise InputError(f"laplacian: x is real and of floating point, not {x.dtype}")
        if scales is None:
            total, gradient, _ = optimized(x, None, *others)
            return total, gradient
        scale = _broadcast(scales, x.shape).astype(x.dtype)
        total, gradient, _ = optimized(x / scale, scale, *others)
        return total, gradient / scale

    laplacian_of.fusionlab = optimized.fusionlab  # type: ignore[attr-defined]
    return laplacian_of


def _of_scalar(function: Callable[[Any], Any], x: Any) -> tuple[Any, Any, Any]:
    """The Laplacian, the gradient and the value of ``function`` at the vector ``x``; of complex values part by part."""
    value = jax.eval_shape(function, x)
    if getattr(value, "shape", None) != ():
        raise InputError(f"laplacian: the function returns {jax.tree.map(lambda one: one.shape, value)}, not a scalar")
    if not jnp.issubdtype(value.dtype, jnp.complexfloating):
        return _of_real(function, x)
    real, imaginary = (_of_real(functools.partial(_part, function, part), x) for part in (jnp.real, jnp.imag))
    total, gradient, both = map(lax.complex, real, imaginary)
    return total, gradient, both


def _part(function: Callable[[Any], Any], part: Callable[[Any], Any], x: Any) -> Any:
    return part(function(x))


def _of_real(function: Callable[[Any], Any], x: Any) -> tuple[Any, Any, Any]:
    """The value is returned, so that the program computes it: it is what the forward pass starts from."""
    (value, gradient), pushed = jax.linearize(jax.value_and_grad(function), x)
    unit = _varying(jnp.eye(x.size, dtype=x.dtype), x)
    zero = _varying(jnp.zeros((), gradient.dtype), gradient)
    return lax.fori_loop(0, x.size, lambda k, total: total + pushed(unit[k])[1][k], zero), gradient, value


def _varying(array: jax.Array, like: jax.Array) -> jax.Array:
    """``array`` as a value that varies over the axes of ``jax.shard_map`` over which ``like`` does."""
    type_ = jax.typeof(like)  # JAX 0.8 has vma, 0.10 what is manual
    found = getattr(type_, "vma", None) or getattr(getattr(type_, "manual_axis_type", None), "varying", None)
    axes = tuple(found or ())
    if not axes:
        return array
    return lax.pcast(array, axes, to="varying") if hasattr(lax, "pcast") else lax.pvary(array, axes)


def _broadcast(scales: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    try:
        return jnp.broadcast_to(scales, shape)
    except ValueError:
        raise InputError(f"laplacian: weights of shape {scales.shape} are not those of x, {shape}") from None


def _positive(weights: ArrayLike) -> ArrayLike:
    """``weights``; what is traced has no values to check."""
    if isinstance(weights, jax.core.Tracer):
        return weights
    given = np.asarray(weights, np.float64)
    if not (np.isfinite(given) & (given > 0)).all():
        raise InputError("laplacian: weights are positive numbers, one per coordinate")
    return given
