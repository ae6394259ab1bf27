"""``fusionlab.optimize``: a function that is called, transformed and lowered like a jitted one, and rewritten once."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import jax
import numpy as np

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import RIGHT_ON_CPU
from fusionlab.equivalence.few_walkers import CHECKED_WALKERS
from fusionlab.errors import InputError, one_line, unknown
from fusionlab.optimizing.collectives import evaluate, has_collectives, outside_of_meshes
from fusionlab.optimizing.primitive import (
    Traced,
    apply_owned,
    outside_of_traces,
    owned,
    replaced,
    trace,
    why_left_alone,
)
from fusionlab.optimizing.report import OptimizeReport
from fusionlab.optimizing.rewriting import EXACT_S, Call, Check, OnDifference, Policy, Rewriter
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.passes.refusals import Ground, Refusal


class Optimized:
    """``jax.jit(function)`` with the rewritten program in it; made by ``fusionlab.optimize``.

    Calls go to ``jax.jit``'s own dispatch: fusionlab acts while JAX traces and lowers. ``fusionlab`` has ``report()``,
    ``reason`` and ``decisions``. All other attributes of a jitted function (``lower``, ``trace``, ``eval_shape``,
    ``clear_cache``) are available.
    """

    def __init__(self, function: Callable[..., Any], policy: Policy, jit_options: dict[str, Any]) -> None:
        if not callable(function):
            raise InputError(
                f"optimize takes a function, not {function!r}; for a pipeline write optimize(function, pipeline=...) "
                "or @optimize(pipeline=...)"
            )
        functools.update_wrapper(self, function)
        name = getattr(function, "__name__", type(function).__name__)
        self._here = threading.local()
        self._jit_options = jit_options
        # The arguments of a jaxpr traced for a call by itself, as leaves of the call; None if unknown.
        self._dynamic: weakref.WeakKeyDictionary[Any, tuple[int, ...] | None] = weakref.WeakKeyDictionary()
        self._rewriter = Rewriter("".join(c if c.isalnum() else "_" for c in name), policy, self._current)
        self.fusionlab = OptimizeReport(self._rewriter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not outside_of_traces():
            return self._inside(*args, **kwargs)
        with self._given(args, kwargs):
            if self._rewriter.checks_again:
                jaxpr = owned(self._alone.trace(*args, **kwargs).jaxpr)
                # JAX would keep its compilation for good.
                if jaxpr is not None and not self._rewriter.check_again(jaxpr, self._alone.clear_cache):
                    return self._original(*args, **kwargs)
            with self._rewriter.settled(self._alone.clear_cache):
                results = self._alone(*args, **kwargs)
            self._rewriter.say_of_parts()
            return results

    def of_laplacian(self) -> Optimized:
        """The same, whose reasons do not advise ``fusionlab.laplacian``, which made the function."""
        policy = dataclasses.replace(self._rewriter.policy, is_laplacian=True)
        return Optimized(self.__wrapped__, policy, self._jit_options)

    def __copy__(self) -> Optimized:
        """The function itself, as of any function."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimized:
        return self

    @contextlib.contextmanager
    def _given(self, args: Any, kwargs: Any) -> Iterator[None]:
        """A context in which these are the arguments of the current call; restores those of the surrounding one."""
        around = getattr(self._here, "call", None)
        self._here.call = args, kwargs
        try:
            yield
        finally:
            self._here.call = around

    def _current(self, jaxpr: Any) -> Call:
        """The call that is being lowered, if ``jaxpr`` is that of its function."""
        if jaxpr not in self._dynamic:
            return Call(None, {}, alone=False)
        here, dynamic = getattr(self._here, "call", None), self._dynamic[jaxpr]
        if here is None or dynamic is None:
            return Call(None, self._options)
        leaves = jax.tree.leaves(here)
        return Call(_on_host([leaves[index] for index in dynamic], jaxpr), self._options)

    @functools.cached_property
    def _options(self) -> dict[str, Any]:
        """The compile options of calls outside other traced functions; only these may have options."""
        return {**_known_options(), **dict(self._jit_options.get("compiler_options") or {})}

    @functools.cached_property
    def _alone(self) -> Any:
        """The jitted function for calls outside other traced functions."""
        return self._jitted(alone=True)

    @functools.cached_property
    def _shown(self) -> Any:
        """The one for ``lower``, ``trace`` and the like: they lower without arguments, and JAX would reuse that for the
        first call."""
        return self._jitted(alone=True)

    @functools.cached_property
    def _inside(self) -> Any:
        """The one for calls inside a traced function, which may be this one: the current arguments are not theirs."""
        return self._jitted(alone=False)

    @functools.cached_property
    def _original(self) -> Any:
        return jax.jit(self.__wrapped__, **self._jit_options)

    def _jitted(self, *, alone: bool) -> Any:
        """``jax.jit`` of ``_traced``; of a new function each time, because JAX caches by the identity of a function."""

        @functools.wraps(self.__wrapped__)
        def body(*args: Any, **kwargs: Any) -> Any:
            return self._traced(args, kwargs, alone)

        return jax.jit(body, **{**self._jit_options, "compiler_options": self._options if alone else None})

    def _traced(self, args: Any, kwargs: Any, alone: bool) -> Any:
        """The results that JAX traces instead of the function's: of one primitive with its jaxpr, which is noted if
        ``alone``."""
        function: Callable[..., Any] = self.__wrapped__
        leaves, structure = jax.tree.flatten((args, kwargs))
        dynamic = [index for index, leaf in enumerate(leaves) if isinstance(leaf, jax.core.Tracer)]
        if not dynamic:  # under jax.disable_jit, or a function of no array
            return function(*args, **kwargs)
        trees: list[Any] = []

        def of_arrays(*arrays: Any) -> Any:
            again, named = jax.tree.unflatten(structure, replaced(leaves, dynamic, arrays))
            flat, tree = jax.tree.flatten(function(*again, **named))
            trees[:] = [tree]
            return flat

        traced: Traced | None = None
        why: Refusal | None = None
        surprising = True
        try:
            traced = trace(of_arrays, [leaves[index] for index in dynamic])
            why, surprising = why_left_alone(traced.jaxpr)
        except Exception as error:  # the user's own is raised again below, without fusionlab around it
            why = Refusal(Ground.UNTRACEABLE, one_line(error))
        if why is not None:
            as_it_is = function(*args, **kwargs)
            self._rewriter.refuse(why, surprising)
            return as_it_is
        assert traced is not None
        if has_collectives(traced.jaxpr.jaxpr):
            return jax.tree.unflatten(trees[0], self._between(traced.jaxpr, traced.operands))
        if alone and traced.plain is not None:
            known = traced.arguments
            self._dynamic[traced.plain] = None if known is None else tuple(dynamic[argument] for argument in known)
        flat = apply_owned(self._rewriter, traced.jaxpr, traced.plain, traced.operands)
        return jax.tree.unflatten(trees[0], flat)

    def _between(self, jaxpr: Any, operands: Sequence[Any]) -> list[Any]:
        """The results of ``jaxpr`` with a primitive for each function between its collectives."""
        parts = []
        self._rewriter.take_parts()

        def bound(part: Any, arrays: Sequence[Any]) -> list[Any]:
            parts.append(part)
            return apply_owned(self._rewriter, part, outside_of_meshes(part), arrays)

        results = evaluate(jaxpr, operands, bound)
        if not parts:
            nothing = Refusal(Ground.NOTHING_THERE, "between its collectives there is nothing to rewrite")
            self._rewriter.refuse(nothing, surprising=False)
        return results

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


@functools.cache
def _known_options() -> dict[str, str | int | bool]:
    """The options that avoid XLA's wrong numbers on the CPU; none if this XLA does not know them all."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(RIGHT_ON_CPU)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return dict(RIGHT_ON_CPU)


@overload
def optimize(
    function: Callable[..., Any],
    pipeline: str = ...,
    *,
    check: Check = ...,
    on_difference: OnDifference = ...,
    cache: bool | str | Path = ...,
    exact_s: float = ...,
    check_walkers: int | None = ...,
    require_applied: bool = ...,
    **jit_options: Any,
) -> Optimized: ...
@overload
def optimize(
    function: None = None,
    pipeline: str = ...,
    *,
    check: Check = ...,
    on_difference: OnDifference = ...,
    cache: bool | str | Path = ...,
    exact_s: float = ...,
    check_walkers: int | None = ...,
    require_applied: bool = ...,
    **jit_options: Any,
) -> Callable[[Callable[..., Any]], Optimized]: ...
def optimize(
    function: Callable[..., Any] | None = None,
    pipeline: str = "fuse-jvp-replay",
    *,
    check: Check = "once",
    on_difference: OnDifference = "original",
    cache: bool | str | Path = True,
    exact_s: float = EXACT_S,
    check_walkers: int | None = CHECKED_WALKERS,
    require_applied: bool = False,
    **jit_options: Any,
) -> Optimized | Callable[[Callable[..., Any]], Optimized]:
    """``jax.jit(function, **jit_options)`` whose program is rewritten by ``pipeline``; also a decorator.

    On the first call with arguments of new shapes, dtypes or static values the function is lowered, rewritten, compared
    with the original and compiled; later calls are ``jax.jit``'s. A function that no pass applies to runs unchanged,
    and one ``NotOptimizedWarning`` has the reason (with ``require_applied``, every call raises ``NotOptimizedError``):
    ``optimized.fusionlab.reason`` is the reason, ``optimized.fusionlab.report()`` the gain.

    ``check``: ``once`` compares on the arguments of the first call of a program, and where these are inconclusive on
    those of up to three more (and caches the verdict on disk), ``always`` on those of every call, ``never`` does not.
    Under another transformation (``jit``, ``vmap``, ``shard_map``) there are no values, and random ones are drawn.
    ``on_difference``: where the rewritten program is not shown equal, ``original`` runs the original with a
    ``NotOptimizedWarning``, ``raise`` raises ``NotEquivalentError`` for a difference. ``cache``: a bool, or the folder
    that keeps rewritten programs between processes (True: below ``$FUSIONLAB_CACHE``). ``exact_s``: seconds that the
    exact check (docs/exact.md) of a program may take, in a process beside the comparison; 0 skips it. A forward
    Laplacian that is ``not-identical`` does not run: the original does. Other exact verdicts are in the ``report()``.
    ``check_walkers``: where the function treats walkers (the leading axes of all results) alike, both programs are
    compared at this number of them, the first; None for all, and all where walkers are not found or ``check`` is
    ``always``.

    Under ``jax.vmap`` the batched function is rewritten. Derivatives are those of the original function, by its own
    rules. InputError: an unknown pass or word.
    """
    known = [name for name in inspect.signature(jax.jit).parameters if name != "fun"]
    if wrong := [name for name in jit_options if name not in known]:
        own = ["pipeline", "check", "on_difference", "cache", "exact_s", "check_walkers", "require_applied"]
        raise unknown("option of optimize", wrong[0], [*own, *known])
    if not isinstance(pipeline, str):
        raise InputError(f"pipeline is the names of passes, as 'fuse-jvp-replay', and not {pipeline!r}")
    policy = Policy(
        parse_pipeline(pipeline), check, on_difference, _folder(cache), exact_s, check_walkers, require_applied
    )
    if function is None:
        return functools.partial(Optimized, policy=policy, jit_options=jit_options)
    return Optimized(function, policy, jit_options)


def _folder(cache: bool | str | Path) -> Path | None:
    """The folder of ``cache``: a path, or of True the one below ``$FUSIONLAB_CACHE``."""
    if not isinstance(cache, bool | str | Path):
        raise InputError(f"cache is True, False or a folder, and not {cache!r}")
    if not isinstance(cache, bool):
        return Path(cache).expanduser()
    of_all = default_cache()
    return of_all.folder / "optimized" if cache and of_all is not None else None
