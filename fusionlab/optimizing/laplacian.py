"""``fusionlab.laplacian``: the Laplacian and the gradient of a function, by a forward pass of the batched function."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from fusionlab.errors import InputError
from fusionlab.host_settings import own_settings
from fusionlab.optimizing.optimize import optimize

_AT_ONCE = 8192
"""Coordinates for which matrices of all pairs of them may be formed: 256 MiB in float32."""


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
    upper levels, with lists for tuples. Where ``function`` returns an array or a tree of arrays, each element has a
    Laplacian: these have the structure of the value, and each array [*S] of it has gradients [*S, ...], as with
    ``jax.jacrev``.

    It is the usual loop over coordinates (a Jacobian-vector product of the gradient for each), under
    ``fusionlab.optimize`` with the pass ``fuse-jvp-replay``: with ``jax.vmap`` around it, the batched function's loop
    becomes one forward pass and is compared with the loop; the attribute ``fusionlab`` of the returned function has the
    ``report()``. Where second derivatives do not depend on ``x`` there is no loop, up to 8,192 coordinates. It composes
    with ``jax.jit``, ``jax.vmap``, ``jax.grad`` and ``shard_map``. ``options`` are those of ``fusionlab.optimize``;
    ``static_argnums`` and the like number the arguments of ``function``.

    The signature is that of DeepQMC's ``laplacian_factory``. ``sparsity_threshold`` is an option of
    ``folx.ForwardLaplacianOperator``, whose place in a configuration this can take; it has no effect: the directions
    that a value depends on are found when the program is compiled.

    InputError: weights that are not positive, or not like ``x``; a function whose value is not inexact, ``x`` that is
    not real, arguments that are not there, named twice, or static.
    """
    if not callable(function):
        raise InputError(f"laplacian takes a function, not {function!r}")
    is_one = not isinstance(argnums, Sequence | np.ndarray)
    numbers = _numbers(argnums, is_one)
    signature = _signature(function)
    _require_dynamic(numbers, signature, options)
    with own_settings():
        given = None if weights is None else jax.tree.map(_weight, weights)

    # With x = y * scale, the Laplacian with respect to y has the weights scale^2.
    def of_scaled(*pairs_and_others: Any, **named: Any) -> tuple[Any, Any, Any]:
        at = _places(numbers, len(pairs_and_others))
        y = tuple(pairs_and_others[n][0] for n in at)
        scale = tuple(pairs_and_others[n][1] for n in at)

        def of_tree(tree: Any) -> Any:
            x = tree if weights is None else jax.tree.map(jnp.multiply, tree, scale)
            return function(*_replaced(pairs_and_others, at, x), **named)

        return _of_tree(of_tree, y)

    of_scaled.__name__ = f"laplacian of {getattr(function, '__name__', type(function).__name__)}"
    if signature is not None:
        of_scaled.__signature__ = signature  # type: ignore[attr-defined]
    optimized = optimize(of_scaled, **options).of_laplacian()

    @functools.wraps(function)
    def laplacian_of(*arguments: Any, **named: Any) -> tuple[Any, ...]:
        at = _places(numbers, len(arguments))
        x = jax.tree_util.tree_map_with_path(_real_array, tuple(arguments[n] for n in at))
        if not jax.tree.leaves(x):
            raise InputError("laplacian: x has no arrays")
        y, scale = (x, (None,) * len(x)) if given is None else _scaled(x, given, is_one)
        total, gradients, value = optimized(*_replaced(arguments, at, zip(y, scale, strict=True)), **named)
        if given is not None:
            gradients = _over(gradients, scale)
        of_values = [gradient[0] if is_one else gradient for gradient in gradients]
        gradient = jax.tree.unflatten(jax.tree.structure(value), of_values)
        return (total, gradient, value) if has_value else (total, gradient)

    laplacian_of.fusionlab = optimized.fusionlab  # type: ignore[attr-defined]
    return laplacian_of


def _numbers(argnums: Any, is_one: bool) -> tuple[int, ...]:
    """``argnums`` as integers; InputError where they are not, or name no argument or one twice."""
    try:
        numbers = tuple(operator.index(n) for n in ([argnums] if is_one else argnums))
    except TypeError:
        raise InputError(
            f"laplacian: argnums is the number of an argument, or a tuple of numbers, not {argnums!r}"
        ) from None
    if not numbers:
        raise InputError("laplacian: argnums names no argument; the first is 0")
    _require_different(numbers, numbers)
    return numbers


def _require_different(numbers: Sequence[int], at: Sequence[int]) -> None:
    if len(set(at)) < len(at):
        raise InputError(f"laplacian: argnums {tuple(numbers)} names one argument twice; name each once")


def _places(numbers: Sequence[int], count: int) -> list[int]:
    """The places of the arguments of these numbers among ``count``; InputError where one is not there, or is twice."""
    if wrong := [n for n in numbers if not -count <= n < count]:
        raise InputError(f"laplacian: there is no argument {wrong[0]}, of the {count} by position")
    at = [n % count for n in numbers]
    _require_different(numbers, at)
    return at


def _replaced(arguments: Sequence[Any], at: Sequence[int], new: Iterable[Any]) -> list[Any]:
    """``arguments`` with ``new`` ones at the places ``at``."""
    by_place = dict(zip(at, new, strict=True))
    return [by_place.get(n, one) for n, one in enumerate(arguments)]


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # as of some builtins
        return None


def _require_dynamic(numbers: Sequence[int], signature: inspect.Signature | None, options: dict[str, Any]) -> None:
    """InputError where an option makes one of the arguments of these numbers static."""
    static = {*_several(options.get("static_argnums")), *_several(options.get("static_argnames"))}
    names = () if signature is None else tuple(signature.parameters)
    for n in numbers:
        here = {n, n % len(names), n % len(names) - len(names), names[n]} if -len(names) <= n < len(names) else {n}
        if here & static:
            raise InputError(f"laplacian: argument {n} is x, and an option makes it static; remove it from static_arg*")


def _several(option: Any) -> tuple[Any, ...]:
    if option is None:
        return ()
    return (option,) if isinstance(option, str | int) else tuple(option)


def _of_tree(function: Callable[[Any], Any], x: Any) -> tuple[Any, list[Any], Any]:
    """The Laplacian of each element of the value of ``function`` at the tree ``x``, the gradients and the value.

    The gradients are a tree like ``x`` for each array of the value.
    """
    leaves, structure = jax.tree.flatten(x)
    flat = leaves[0].reshape(-1)
    if len(leaves) > 1:
        with own_settings():
            dtype = jnp.result_type(*leaves)
        flat = jnp.concatenate([leaf.reshape(-1).astype(dtype) for leaf in leaves])
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
    zero = _varying(jnp.zeros((), gradient.dtype), gradient)
    if x.size == 0:
        return zero, gradient, value
    if x.size > _AT_ONCE:
        every = _varying(jnp.arange(x.size), x)

        def term(k: Any) -> Any:
            return pushed((every == jnp.asarray(k, every.dtype)).astype(x.dtype))[1][k]

        return _sum_of_loop(term, x.size, zero), gradient, value
    unit = _varying(jnp.eye(x.size, dtype=x.dtype), x)
    if _has_constant_hessian(function, x):
        return jnp.trace(jax.vmap(lambda row: pushed(row)[1])(unit)), gradient, value
    return _sum_of_loop(lambda k: pushed(unit[k])[1][k], x.size, zero), gradient, value


def _sum_of_loop(term: Callable[[Any], Any], count: int, zero: Any) -> Any:
    return lax.fori_loop(0, count, lambda k, total: total + term(k), zero)


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


@own_settings()
def _scaled(x: tuple[Any, ...], weights: Any, is_one: bool) -> tuple[Any, Any]:
    """``y`` and ``scale`` with ``x`` = y * scale, tuples of trees like ``x``, and scale^2 = ``weights``.

    The weights are those of the only item of ``x`` if it ``is_one``.
    """
    scale = (_scales(weights, x[0], "x"),) if is_one else _scales(weights, x, "x")
    return jax.tree.map(jnp.divide, x, scale), scale


@own_settings()
def _over(gradients: Any, scale: Any) -> Any:
    """``gradients``, trees of arrays [*S, ...], divided by the tree ``scale`` of arrays [...]; of their dtypes."""

    def divided(gradient: Any, scale: Any) -> Any:
        return (gradient / scale).astype(gradient.dtype)

    return [jax.tree.map(divided, gradient, scale) for gradient in gradients]


def _scales(weights: Any, x: Any, where: str) -> Any:
    """The square roots of ``weights``, a tree like ``x``, or like upper levels of it, as a tree like ``x``.

    A tuple and a list are the same. Where ``x`` has one item, ``weights`` may be those of the item.
    """
    if isinstance(x, jax.Array):
        return _scale_of_array(weights, x, where)
    items, structure = _one_level(x)
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(x, is_leaf=_below(x))]
    parts, of_weights = _one_level(weights)
    of_same_length = isinstance(weights, tuple | list) and isinstance(x, tuple | list) and len(parts) == len(items)
    if structure != of_weights and not of_same_length:
        if not (isinstance(weights, np.ndarray | jax.Array) or (isinstance(x, tuple | list) and len(items) == 1)):
            raise InputError(
                f"laplacian: the weights are not a tree like x: {where} is {_shown(x)}, its weights are "
                f"{_shown(weights)}; give one number, or the weights of each"
            )
        parts = [weights] * len(items)
    return structure.unflatten(
        [_scales(part, item, where + name) for part, item, name in zip(parts, items, names, strict=True)]
    )


def _one_level(tree: Any) -> tuple[list[Any], Any]:
    leaves, structure = jax.tree.flatten(tree, is_leaf=_below(tree))
    return leaves, structure


def _below(tree: Any) -> Callable[[Any], bool]:
    return lambda node: node is not tree


def _shown(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"a dict of {', '.join(map(repr, tree)) or 'nothing'}"
    if isinstance(tree, tuple | list):
        return f"a {type(tree).__name__} of {len(tree)}"
    return type(tree).__name__


def _scale_of_array(weights: Any, x: jax.Array, where: str) -> jax.Array:
    try:
        if not isinstance(weights, tuple | list | np.ndarray | jax.Array):
            raise TypeError
        if any(isinstance(one, jax.core.Tracer) for one in jax.tree.leaves(weights)):
            scale = jnp.sqrt(jnp.asarray(weights))
        else:
            scale = np.sqrt(np.asarray(weights, np.float64))
    except (TypeError, ValueError):
        raise InputError(
            f"laplacian: the weights of {where} are {_shown(weights)} and no array; give a number, or an array that "
            f"broadcasts to {x.shape}"
        ) from None
    try:
        return jnp.asarray(jnp.broadcast_to(scale, x.shape), x.dtype)
    except ValueError:
        raise InputError(f"laplacian: weights of shape {scale.shape} are not those of {where}, {x.shape}") from None


def _weight(weight: Any) -> Any:
    """A leaf of weights as an array of float64; what is traced has no values to check, and is returned as it is.

    InputError unless it is real and positive.
    """
    if isinstance(weight, jax.core.Tracer):
        dtype = weight.dtype
    else:
        try:
            weight = np.asarray(weight)
        except (TypeError, ValueError):
            raise InputError(f"laplacian: weights are positive numbers, one per coordinate, not {weight!r}") from None
        dtype = weight.dtype
    if not (jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)):
        given = dtype if isinstance(weight, jax.core.Tracer) or weight.ndim else repr(weight.item())
        raise InputError(f"laplacian: weights are positive numbers, one per coordinate, not {given}")
    if isinstance(weight, jax.core.Tracer):
        return weight
    weight = weight.astype(np.float64)
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise InputError("laplacian: weights are positive numbers, one per coordinate")
    return weight
