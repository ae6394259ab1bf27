"""``fusionlab.laplacian``: the Laplacian and the gradient of a function, by a forward pass of the batched function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal
from jax.typing import ArrayLike

from fusionlab.errors import InputError
from fusionlab.optimizing.optimize import optimize


def laplacian(
    function: Callable[..., Any],
    weights: Any = None,
    *,
    argnums: int | Sequence[int] = 0,
    has_value: bool = False,
    sparsity_threshold: int = 0,
    **options: Any,
) -> Callable[..., Any]:
    """``x -> (laplacian, gradient)`` of ``function``, which maps ``x`` (any shape, float) to a scalar, real or complex.

    The Laplacian is the scalar sum_k w_k d^2 f / d x_k^2; the gradient has the shape of ``x`` and no weights. Both have
    the dtype of ``function``'s value. With ``has_value``, the value comes third: ``(laplacian, gradient, value)``.
    ``weights`` are those of the coordinates (1 / mass), positive, of a shape that broadcasts to that of ``x``; default
    1. All arguments of the returned function are passed on to ``function``.

    ``x`` is the argument ``argnums``, an array or a tree of arrays, or a tuple of the arguments of several numbers: the
    sum is over all coordinates in it. The gradient has its structure; ``weights`` may have it, too, or that of its
    upper levels. Where ``function`` returns an array or a tree of arrays, each element has a Laplacian: these have the
    structure of the value, and each array [*S] of it has gradients [*S, ...], as with ``jax.jacrev``.

    It is the usual loop over coordinates (a Jacobian-vector product of the gradient for each), under
    ``fusionlab.optimize`` with the pass ``fuse-jvp-replay``: with ``jax.vmap`` around it, the batched function's loop
    becomes one forward pass and is compared with the loop; the attribute ``fusionlab`` of the returned function has the
    ``report()``. Where second derivatives do not depend on ``x`` there is no loop. It composes with ``jax.jit``,
    ``jax.vmap``, ``jax.grad`` and ``shard_map``. ``options`` are those of ``fusionlab.optimize``.

    The signature is that of DeepQMC's ``laplacian_factory``. ``sparsity_threshold`` is an option of
    ``folx.ForwardLaplacianOperator``, whose place in a configuration this can take; it has no effect: the directions
    that a value depends on are found when the program is compiled.

    InputError: weights that are not positive; a function whose value is not inexact, ``x`` that is not real, or
    arguments that are not there.
    """
    if not callable(function):
        raise InputError(f"laplacian takes a function, not {function!r}")
    is_one = isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if weights is not None:
        jax.tree.map(_require_positive, weights)

    # With x = y * scale, the Laplacian with respect to y has the weights scale^2.
    def of_scaled(y: Any, scale: Any, others: Any, named: Any) -> tuple[Any, Any, Any]:
        def of_tree(tree: Any) -> Any:
            return function(*_joined(numbers, tree if scale is None else _times(tree, scale), others), **named)

        return _of_tree(of_tree, y)

    of_scaled.__name__ = f"laplacian of {getattr(function, '__name__', type(function).__name__)}"
    optimized = optimize(of_scaled, **options).of_laplacian()

    @functools.wraps(function)
    def laplacian_of(*arguments: Any, **named: Any) -> tuple[Any, ...]:
        x, others = _parted(numbers, arguments)
        x = jax.tree_util.tree_map_with_path(_real_array, x)
        if not jax.tree.leaves(x):
            raise InputError("laplacian: x has no arrays")
        scale = None if weights is None else _scales((weights,) if is_one else weights, x)
        y = x if scale is None else jax.tree.map(jnp.divide, x, scale)
        total, gradients, value = optimized(y, scale, others, named)
        if scale is not None:
            gradients = [jax.tree.map(jnp.divide, gradient, scale) for gradient in gradients]
        of_values = [gradient[0] if is_one else gradient for gradient in gradients]
        gradient = jax.tree.unflatten(jax.tree.structure(value), of_values)
        return (total, gradient, value) if has_value else (total, gradient)

    laplacian_of.fusionlab = optimized.fusionlab  # type: ignore[attr-defined]
    return laplacian_of


def _parted(numbers: Sequence[int], arguments: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The arguments of these numbers, and the others; InputError where one is not there."""
    count = len(arguments)
    if wrong := [n for n in numbers if not -count <= n < count]:
        raise InputError(f"laplacian: there is no argument {wrong[0]}, of the {count} by position")
    at = [n % count for n in numbers]
    return tuple(arguments[n] for n in at), tuple(one for n, one in enumerate(arguments) if n not in at)


def _joined(numbers: Sequence[int], x: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The arguments that ``_parted`` parts."""
    count, rest = len(x) + len(others), iter(others)
    given = dict(zip([n % count for n in numbers], x, strict=True))
    return [given[n] if n in given else next(rest) for n in range(count)]


def _of_tree(function: Callable[[Any], Any], x: Any) -> tuple[Any, list[Any], Any]:
    """The Laplacian of each element of the value of ``function`` at the tree ``x``, the gradients and the value.

    The gradients are a tree like ``x`` for each array of the value.
    """
    leaves, structure = jax.tree.flatten(x)
    flat = leaves[0].reshape(-1)
    if len(leaves) > 1:
        flat = jnp.concatenate([leaf.reshape(-1).astype(jnp.result_type(*leaves)) for leaf in leaves])
    ends = np.cumsum([leaf.size for leaf in leaves])

    def parts(rows: Any, *shape: int) -> Any:
        """``rows`` [..., coordinates] as a tree like ``x`` of [*shape, ...]."""
        every = jnp.split(rows, ends[:-1], -1) if len(leaves) > 1 else [rows]
        return structure.unflatten(
            [part.reshape(*shape, *leaf.shape) for part, leaf in zip(every, leaves, strict=True)]
        )

    def of_flat(flat: Any) -> Any:
        tree = parts(flat)
        return function(jax.tree.map(lambda part, leaf: part.astype(leaf.dtype), tree, x))

    values, of_values = jax.tree.flatten(jax.eval_shape(of_flat, flat))
    if wrong := [one for one in values if not jnp.issubdtype(one.dtype, jnp.inexact)]:
        raise InputError(f"laplacian: the function returns {wrong[0].dtype}, which has no derivatives")
    found = [_of_array(functools.partial(_leaf, of_flat, at), flat, value) for at, value in enumerate(values)]
    gradients = [parts(rows, *value.shape) for (_, rows, _), value in zip(found, values, strict=True)]
    return of_values.unflatten([one[0] for one in found]), gradients, of_values.unflatten([one[2] for one in found])


def _leaf(function: Callable[[Any], Any], at: int, x: Any) -> Any:
    return jnp.asarray(jax.tree.leaves(function(x))[at])


def _element(function: Callable[[Any], Any], at: int, x: Any) -> Any:
    return function(x).reshape(-1)[at]


def _of_array(function: Callable[[Any], Any], x: Any, value: Any) -> tuple[Any, Any, Any]:
    """Laplacians [*S], gradients [size of S, coordinates] and values [*S] of an array [*S] at the vector ``x``, in its
    dtype; those of one element without an axis."""
    if not value.shape:
        total, gradient, found = (one.astype(value.dtype) for one in _of_scalar(function, x, value.dtype))
        return total, gradient, found
    size = int(np.prod(value.shape))
    rows = [_of_scalar(functools.partial(_element, function, at), x, value.dtype) for at in range(size)]
    if not rows:
        empty = jnp.zeros(value.shape, value.dtype)
        return empty, jnp.zeros((0, x.size), value.dtype), empty
    total, gradient, values = (jnp.stack(each).astype(value.dtype) for each in zip(*rows, strict=True))
    return total.reshape(value.shape), gradient, values.reshape(value.shape)


def _of_scalar(function: Callable[[Any], Any], x: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """The Laplacian, the gradient and the value of ``function`` at the vector ``x``; of complex values part by part."""
    if not jnp.issubdtype(dtype, jnp.complexfloating):
        return _of_real(function, x)
    of_part = jnp.finfo(dtype).dtype
    real, imaginary = (_of_real(functools.partial(_part, function, part), x) for part in (jnp.real, jnp.imag))
    both = [[one.astype(of_part) for one in part] for part in (real, imaginary)]
    total, gradient, value = map(lax.complex, *both)
    return total, gradient, value


def _part(function: Callable[[Any], Any], part: Callable[[Any], Any], x: Any) -> Any:
    return part(function(x))


def _of_real(function: Callable[[Any], Any], x: Any) -> tuple[Any, Any, Any]:
    """The value is returned, so that the program computes it: it is what the forward pass starts from."""
    (value, gradient), pushed = jax.linearize(jax.value_and_grad(function), x)
    unit = _varying(jnp.eye(x.size, dtype=x.dtype), x)
    zero = _varying(jnp.zeros((), gradient.dtype), gradient)
    if x.size == 0:
        return zero, gradient, value
    if _has_constant_hessian(function, x):
        return jnp.trace(jax.vmap(lambda row: pushed(row)[1])(unit)), gradient, value
    return lax.fori_loop(0, x.size, lambda k, total: total + pushed(unit[k])[1][k], zero), gradient, value


def _has_constant_hessian(function: Callable[[Any], Any], x: Any) -> bool:
    """True if the product with the Hessian of ``function`` reads nothing that is computed from ``x``.

    The Hessian is then one for all walkers, and a sum over its diagonal costs nothing for each.
    """

    def residuals(x: Any) -> Any:
        return jax.make_jaxpr(jax.linearize(jax.grad(function), x)[1])(x).consts

    traced = jax.make_jaxpr(residuals)(x).jaxpr
    of_x = set(traced.invars)
    for equation in traced.eqns:
        if any(not isinstance(read, Literal) and read in of_x for read in equation.invars):
            of_x.update(equation.outvars)
    return not any(not isinstance(read, Literal) and read in of_x for read in traced.outvars)


def _varying(array: jax.Array, like: jax.Array) -> jax.Array:
    """``array`` as a value that varies over the axes of ``jax.shard_map`` over which ``like`` does."""
    type_ = jax.typeof(like)  # JAX 0.8 has vma, 0.10 what is manual
    found = getattr(type_, "vma", None) or getattr(getattr(type_, "manual_axis_type", None), "varying", None)
    axes = tuple(found or ())
    if not axes:
        return array
    return lax.pcast(array, axes, to="varying") if hasattr(lax, "pcast") else lax.pvary(array, axes)


def _times(tree: Any, scale: Any) -> Any:
    return jax.tree.map(jnp.multiply, tree, scale)


def _real_array(path: Any, leaf: Any) -> jax.Array:
    """A leaf of ``x`` as an array; InputError, with its place, for one that is not real and of floating point."""
    where = "x" + jax.tree_util.keystr(path[1:])
    try:
        array = jnp.asarray(leaf)
    except (TypeError, ValueError):
        raise InputError(f"laplacian: {where} is an array of floating point, not {leaf!r}") from None
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array
    instead = "; pass its real and imaginary part" if jnp.issubdtype(array.dtype, jnp.complexfloating) else ""
    raise InputError(f"laplacian: {where} is real and of floating point, not {array.dtype}{instead}")


def _scales(weights: Any, x: Any) -> Any:
    """The square roots of ``weights``, a tree like ``x``, or like upper levels of it, as a tree like ``x``."""

    def of_branch(weight: Any, branch: Any) -> Any:
        return jax.tree.map(
            lambda leaf: _broadcast(jnp.sqrt(jnp.asarray(weight)), leaf.shape).astype(leaf.dtype), branch
        )

    if len(x) == 1 and isinstance(x[0], jax.Array):
        return (of_branch(jnp.asarray(weights[0]), x[0]),)
    try:
        return jax.tree.map(of_branch, weights if _is_tree(weights) else (weights,) * len(x), x)
    except (TypeError, ValueError) as error:
        raise InputError(f"laplacian: the weights are not a tree like x: {str(error).splitlines()[0]}") from None


def _is_tree(weights: Any) -> bool:
    return isinstance(weights, tuple | list)


def _broadcast(scales: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    try:
        return jnp.broadcast_to(scales, shape)
    except ValueError:
        raise InputError(f"laplacian: weights of shape {scales.shape} are not those of x, {shape}") from None


def _require_positive(weights: ArrayLike) -> None:
    """InputError unless all ``weights`` are positive; what is traced has no values to check."""
    if isinstance(weights, jax.core.Tracer):
        return
    given = np.asarray(weights, np.float64)
    if not (np.isfinite(given) & (given > 0)).all():
        raise InputError("laplacian: weights are positive numbers, one per coordinate")
