"""Optimized: a function that is called, transformed and lowered like a jitted one."""

from __future__ import annotations

import contextlib
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from fusionlab.errors import NotEquivalentError
from fusionlab.optimizing.compile_options import options_of_calls
from fusionlab.optimizing.policy import Policy
from fusionlab.optimizing.primitive import apply_owned, outside_of_traces, owned, trace, why_left_alone
from fusionlab.optimizing.report import Front
from fusionlab.optimizing.rewriting import Call, Rewriter, told

Dynamic = weakref.WeakKeyDictionary[Any, tuple[int, ...] | None]
"""The arguments of a jaxpr traced for a call by itself, as leaves of the call; None if unknown."""


class Optimized:
    """``jax.jit(function)`` with the rewritten program in it; made by ``fusionlab.optimize``.

    Calls go to ``jax.jit``'s own dispatch: fusionlab acts while JAX traces and lowers. ``fusionlab`` has ``report()``,
    ``reason`` and ``decisions``. All other attributes of a jitted function (``lower``, ``trace``, ``eval_shape``,
    ``clear_cache``) are available.
    """

    def __init__(self, function: Callable[..., Any], policy: Policy, jit_options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        name = getattr(function, "__name__", type(function).__name__)
        self._here = threading.local()
        self._always = policy.check == "always"
        self._jit_options = jit_options
        self._dynamic: Dynamic = weakref.WeakKeyDictionary()
        self._rewriter = Rewriter("".join(c if c.isalnum() else "_" for c in name), policy, self._current)
        self.fusionlab = Front(self._rewriter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not outside_of_traces():
            return self._inside(*args, **kwargs)
        if self._always:
            return self._call_and_check(args, kwargs)
        with self._given(args, kwargs):
            if self._rewriter.undecided:
                self._check_again(args, kwargs)
            return self._alone(*args, **kwargs)

    def _check_again(self, args: Any, kwargs: Any) -> None:
        """Check again where the arguments of earlier calls of these types were inconclusive: JAX would keep its
        compilation for good."""
        jaxpr = owned(self._alone.trace(*args, **kwargs).jaxpr)
        if jaxpr is None:
            return
        try:
            changed = self._rewriter.check_again(jaxpr)
        except NotEquivalentError:
            self._alone.clear_cache()
            raise
        if changed:
            self._alone.clear_cache()

    @contextlib.contextmanager
    def _given(self, args: Any, kwargs: Any) -> Iterator[None]:
        """A context in which these are the arguments of the current call; restores those of the surrounding one."""
        here = self._here
        around = getattr(here, "call", None)
        here.call = args, kwargs
        try:
            yield
        finally:
            here.call = around

    @functools.cached_property
    def _options(self) -> dict[str, Any]:
        """The compile options of calls outside other traced functions; only these may have options."""
        return {**options_of_calls(), **dict(self._jit_options.get("compiler_options") or {})}

    @functools.cached_property
    def _alone(self) -> Any:
        """The jitted function for calls outside other traced functions."""
        return self._jitted(self._dynamic, self._options)

    @functools.cached_property
    def _shown(self) -> Any:
        """The one for ``lower``, ``trace`` and the like: they lower without arguments, and JAX would reuse that for the
        first call."""
        return self._jitted(self._dynamic, self._options)

    @functools.cached_property
    def _inside(self) -> Any:
        """The one for calls inside a traced function, which may be this one: the current arguments are not theirs."""
        return self._jitted(None, None)

    def _jitted(self, dynamic: Dynamic | None, options: dict[str, Any] | None) -> Any:
        body = _body(self.__wrapped__, self._rewriter, dynamic)
        return jax.jit(body, **{**self._jit_options, "compiler_options": options})

    @functools.cached_property
    def _original(self) -> Any:
        return jax.jit(self.__wrapped__, **self._jit_options)

    def _call_and_check(self, args: Any, kwargs: Any) -> Any:
        """The policy ``always``: compare on these arguments before they are used (and perhaps donated)."""
        with self._given(args, kwargs):
            if self._rewriter.undecided:
                self._check_again(args, kwargs)
            jaxpr = owned(self._alone.trace(*args, **kwargs).jaxpr)
            if jaxpr is not None and not self._rewriter.may_be_used(jaxpr):
                return self._original(*args, **kwargs)
            return self._alone(*args, **kwargs)

    def _current(self, jaxpr: Any) -> Call:
        """The call that is being lowered, if ``jaxpr`` is that of its function."""
        if jaxpr not in self._dynamic:
            return Call(None, {}, alone=False)
        here, dynamic = getattr(self._here, "call", None), self._dynamic[jaxpr]
        if here is None or dynamic is None:
            return Call(None, self._options)
        leaves = jax.tree.leaves(here)
        return Call(_on_host([leaves[index] for index in dynamic], jaxpr), self._options)

    def clear_cache(self) -> None:
        """Clear JAX's compilations and traces of this function; decisions are kept."""
        for jitted in (self._alone, self._shown, self._inside):
            jitted.clear_cache()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._shown, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<fusionlab.optimize of {self._rewriter.name}: {self.fusionlab.state}>"


def _body(function: Callable[..., Any], rewriter: Rewriter, dynamic: Dynamic | None) -> Callable[..., Any]:
    """The function that JAX traces instead of ``function``: one primitive with its jaxpr, noted in ``dynamic``.

    A new function each time, because JAX caches traces and lowerings by the identity of a function.
    """

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
        traced, why, surprising = None, "", True
        try:
            traced = trace(of_arrays, [leaves[index] for index in moving])
            why, surprising = why_left_alone(traced.jaxpr)
        except Exception as error:  # the user's own is raised again below, without fusionlab around it
            why = told(error)
        if traced is None or why:
            as_it_is = function(*args, **kwargs)
            rewriter.refuse(why, surprising)
            return as_it_is
        if dynamic is not None and traced.plain is not None:
            known = traced.arguments
            dynamic[traced.plain] = None if known is None else tuple(moving[argument] for argument in known)
        flat = apply_owned(rewriter, traced.jaxpr, traced.plain, traced.operands)
        return jax.tree.unflatten(results[0], flat)

    return body


def _on_host(leaves: Sequence[Any], jaxpr: Any) -> tuple[np.ndarray, ...] | None:
    """The arguments as NumPy arrays of the jaxpr's types; None if one is not fully addressable."""
    arrays = []
    for leaf, type_ in zip(leaves, jaxpr.in_avals, strict=True):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            return None
        if jax.dtypes.issubdtype(type_.dtype, jax.dtypes.prng_key):
            arrays.append(np.asarray(jax.random.key_data(leaf)))
        else:
            arrays.append(np.asarray(leaf).astype(type_.dtype))
    return tuple(arrays)
