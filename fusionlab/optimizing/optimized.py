"""Optimized: a function that is called, transformed and lowered like a jitted one."""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from fusionlab.optimizing.compile_options import options_of_calls
from fusionlab.optimizing.front import Front
from fusionlab.optimizing.policy import Policy
from fusionlab.optimizing.primitive import apply_owned, outside_of_traces, owned, trace, why_of_effects
from fusionlab.optimizing.rewriting import Call, Rewriter


class Optimized:
    """``jax.jit(function)`` with the rewritten program in it; made by ``fusionlab.optimize``.

    Calls go to ``jax.jit``'s own dispatch: what fusionlab does happens while JAX traces and lowers. ``fusionlab`` is
    what is known of it: ``report()``, ``reason``, ``decisions``. Everything else that a jitted function has (``lower``,
    ``trace``, ``eval_shape``, ``clear_cache``) is there.
    """

    def __init__(self, function: Callable[..., Any], policy: Policy, jit_options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        name = getattr(function, "__name__", type(function).__name__)
        self._here = threading.local()
        self._always = policy.check == "always"
        self._jit_options = jit_options
        self._dynamic: weakref.WeakKeyDictionary[Any, tuple[int, ...]] = weakref.WeakKeyDictionary()
        self._rewriter = Rewriter("".join(c if c.isalnum() else "_" for c in name), policy, self._current)
        self._body = _body(function, self._rewriter, self._dynamic)
        self.fusionlab = Front(self._rewriter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not outside_of_traces():
            return self._inside(*args, **kwargs)
        if self._always:
            return self._call_and_check(args, kwargs)
        here = self._here
        here.call = args, kwargs
        try:
            return self._alone(*args, **kwargs)
        finally:
            here.call = None

    @functools.cached_property
    def _alone(self) -> Any:
        """For calls that no other traced function surrounds: with compile options, which only these may have."""
        given = dict(self._jit_options.get("compiler_options") or {})
        return jax.jit(self._body, **{**self._jit_options, "compiler_options": {**options_of_calls(), **given}})

    @functools.cached_property
    def _inside(self) -> Any:
        return jax.jit(self._body, **{**self._jit_options, "compiler_options": None})

    @functools.cached_property
    def _original(self) -> Any:
        return jax.jit(self.__wrapped__, **self._jit_options)

    def _call_and_check(self, args: Any, kwargs: Any) -> Any:
        """The policy ``always``: these arguments are compared before they are used (and perhaps donated)."""
        here = self._here
        here.call = args, kwargs
        try:
            jaxpr = owned(self._alone.trace(*args, **kwargs).jaxpr)
            if jaxpr is not None and not self._rewriter.may_be_used(jaxpr):
                return self._original(*args, **kwargs)
            return self._alone(*args, **kwargs)
        finally:
            here.call = None

    def _current(self, jaxpr: Any) -> Call:
        """What the call that is being lowered has, where ``jaxpr`` is that of its function."""
        here = getattr(self._here, "call", None)
        if here is None:
            return Call(None, {}, alone=False)
        dynamic, leaves = self._dynamic.get(jaxpr), jax.tree.leaves(here)
        arrays = None if dynamic is None else _on_host([leaves[index] for index in dynamic], jaxpr)
        return Call(arrays, options_of_calls())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._alone, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<fusionlab.optimize of {self._rewriter.name}: {self.fusionlab.state}>"


def _body(
    function: Callable[..., Any], rewriter: Rewriter, dynamic: weakref.WeakKeyDictionary[Any, tuple[int, ...]]
) -> Callable[..., Any]:
    """What JAX traces in place of ``function``: one primitive that has the function's jaxpr."""

    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        moving = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer))
        results: list[Any] = []

        def of_arrays(*arrays: Any) -> Any:
            given = list(leaves)
            for index, array in zip(moving, arrays, strict=True):
                given[index] = array
            again, named = jax.tree.unflatten(structure, given)
            flat, tree = jax.tree.flatten(function(*again, **named))
            results[:] = [tree]
            return flat

        if not moving:  # under jax.disable_jit, or a function of no array
            return function(*args, **kwargs)
        traced = trace(of_arrays, [leaves[index] for index in moving])
        if traced.jaxpr.effects:
            rewriter.refuse(*why_of_effects(traced.jaxpr))
            return function(*args, **kwargs)
        if traced.arguments is not None and traced.plain is traced.jaxpr:
            dynamic[traced.jaxpr] = tuple(moving[argument] for argument in traced.arguments)
        flat = apply_owned(rewriter, traced.jaxpr, traced.plain, traced.operands)
        return jax.tree.unflatten(results[0], flat)

    return body


def _on_host(leaves: Sequence[Any], jaxpr: Any) -> tuple[np.ndarray, ...] | None:
    """The arguments as NumPy arrays of the jaxpr's types; None where one is not all here."""
    arrays = []
    for leaf, type_ in zip(leaves, jaxpr.in_avals, strict=True):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            return None
        if jax.dtypes.issubdtype(type_.dtype, jax.dtypes.prng_key):
            arrays.append(np.asarray(jax.random.key_data(leaf)))
        else:
            arrays.append(np.asarray(leaf).astype(type_.dtype))
    return tuple(arrays)
