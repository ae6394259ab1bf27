"""``fusionlab.optimize``: one line in a user's own code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

import jax

from fusionlab.errors import InputError, unknown
from fusionlab.optimizing.optimized import Optimized
from fusionlab.optimizing.policy import EXACT_S, Check, OnDifference, Policy


@overload
def optimize(
    function: Callable[..., Any],
    pipeline: str = ...,
    *,
    check: Check = ...,
    on_difference: OnDifference = ...,
    cache: bool | str | Path = ...,
    exact_s: float = ...,
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
    **jit_options: Any,
) -> Optimized | Callable[[Callable[..., Any]], Optimized]:
    """``jax.jit(function, **jit_options)`` whose program is rewritten by ``pipeline``; also a decorator.

    On the first call with arguments of new shapes, dtypes or static values the function is lowered, rewritten, compared
    with the original and compiled; later calls are ``jax.jit``'s. A function that no pass applies to runs unchanged:
    ``optimized.fusionlab.reason`` is the reason, ``optimized.fusionlab.report()`` the gain.

    ``check``: ``once`` compares on the arguments of the first call of a program (and caches the verdict on disk),
    ``always`` on those of every call, ``never`` does not. Under another transformation (``jit``, ``vmap``,
    ``shard_map``) there are no values, and random ones are drawn. ``on_difference``: where the rewritten program is not
    shown equal, ``original`` runs the original with a ``NotOptimizedWarning``, ``raise`` raises ``NotEquivalentError``
    for a difference. ``cache``: a bool, or the folder that keeps rewritten programs between processes (True: below
    ``$FUSIONLAB_CACHE``). ``exact_s``: seconds that the exact check (docs/exact.md) of a program may take, in a process
    beside the comparison; 0 skips it. Its verdict is reported (``report()``) and decides nothing.

    Under ``jax.vmap`` the batched function is rewritten. Derivatives are those of the original function, by its own
    rules. InputError: an unknown pass or word.
    """
    known = [name for name in inspect.signature(jax.jit).parameters if name != "fun"]
    if wrong := [name for name in jit_options if name not in known]:
        raise unknown(
            "option of optimize", wrong[0], ["pipeline", "check", "on_difference", "cache", "exact_s", *known]
        )
    if function is not None and not callable(function):
        raise InputError(
            f"optimize takes a function, not {function!r}; for a pipeline write optimize(function, pipeline=...) or "
            "@optimize(pipeline=...)"
        )
    policy = Policy.of(pipeline, check, on_difference, cache, exact_s)
    if function is None:
        return functools.partial(
            optimize,
            pipeline=pipeline,
            check=check,
            on_difference=on_difference,
            cache=cache,
            exact_s=exact_s,
            **jit_options,
        )
    return Optimized(function, policy, jit_options)
