"""Name stacks: the scope, the primitive and the transformations of an operation, read from its ``op_name``.

JAX writes one path for each operation: ``jit(step)/transpose(jvp(layer_1))/while/body/closed_call/norm/mul``. The last
part is the primitive, the others are scopes, each inside the transformations that were open when it was entered. Some
parts are neither: the body of a loop, the branch of a conditional, a call that JAX made. XLA joins the names of ops
that it merges by semicolons; the first one counts.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

_CALL = re.compile(
    r"(jit|pjit|jvp|transpose|vmap|pmap|vjp|linearize|shard_map|checkpoint|remat|custom_jvp|custom_vjp)\((.*)\)",
    re.DOTALL,
)
"""A part inside a transformation; a scope may have parentheses of its own: ``loss(train)``."""
_OF_JAX = re.compile(
    r"closed_call|core_call|checkpoint|remat\d*|rematted_computation|pjit|custom_jvp_call|custom_vjp_call\w*|custom_lin"
)
"""Parts that JAX adds for a call of its own."""
_INSIDE_LOOP = ("body", "cond", "body_fun", "cond_fun")
_BRANCH = re.compile(r"branch_\d+_fun")
_REMATERIALISED = "rematted_computation"


@dataclass(frozen=True)
class Frame:
    """One part of a name stack: scope ``name`` inside ``markers``, outermost first (``jvp(jit(f))``: jvp, jit, f)."""

    markers: tuple[str, ...]
    name: str


def frames(op_name: str) -> tuple[Frame, ...]:
    """The parts of a name stack; slashes inside parentheses do not separate."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(op_name):
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append(op_name[start:position])
            start = position + 1
    return tuple(_frame(part) for part in [*parts, op_name[start:]] if part)


@dataclass(frozen=True)
class NameStack:
    """What one ``op_name`` says.

    ``scopes`` are the named scopes and jitted functions around the operation, outermost first, without the function
    that was compiled; that one is ``function`` ("" if the name has none). ``op`` is the primitive ("" when the name
    ends in a call). ``transform`` is ``primal`` or the differentiation around the operation: ``jvp``, ``transpose``,
    ``jvp(transpose)``; ``, rematted`` follows where the operation is computed again for the backward pass. ``batched``
    is the number of ``vmap`` around it.
    """

    function: str
    scopes: tuple[str, ...]
    op: str
    transform: str
    batched: int

    @property
    def scope(self) -> str:
        """The scopes as a path; ``jit(function)`` for an operation at its top level."""
        return self.scope_to(0)

    def scope_to(self, depth: int) -> str:
        """The outermost ``depth`` scopes as a path (0: all)."""
        path = "/".join(self.scopes[: depth or None])
        return path or (f"jit({self.function})" if self.function else "")


@functools.lru_cache(maxsize=65536)
def read_name(op_name: str) -> NameStack:
    """The parts of ``op_name``; of several joined by semicolons, those of the first."""
    path = frames(op_name.partition(";")[0])
    function = ""
    if path and "jit" in path[0].markers:
        function = path[0].name
    inside = path[2:] if function and _is_function(path[1:2], function) else path[1:]  # value_and_grad(loss) is "loss"
    around = [frame for frame in inside if frame != path[0]] if function else path
    op = "" if not around or around[-1].markers else around[-1].name
    scopes = _scopes(around[:-1] if op else around)
    markers = [marker for frame in path for marker in frame.markers]
    again = ", rematted" if any(frame.name == _REMATERIALISED for frame in path) else ""
    return NameStack(function, scopes, op, _transform(path) + again, markers.count("vmap"))


def _frame(part: str) -> Frame:
    markers = []
    while (match := _CALL.fullmatch(part)) is not None:
        markers.append(match[1])
        part = match[2]
    return Frame(tuple(markers), part)


def _is_function(path: Sequence[Frame], function: str) -> bool:
    """True if ``path`` begins with a jitted function of the name."""
    return bool(path) and "jit" in path[0].markers and path[0].name == function


def _differentiation(frame: Frame) -> list[str]:
    return [marker for marker in frame.markers if marker in ("jvp", "transpose")]


def _scopes(path: Sequence[Frame]) -> tuple[str, ...]:
    """The names in ``path`` that the program gave: no parts of loops and branches. Where a transformation repeats the
    path from a scope on (``transpose(jvp(layer))/norm/jvp(layer)/norm``), the repetition counts."""
    found: list[str] = []
    for position, frame in enumerate(path):
        follows = path[position + 1].name if position + 1 < len(path) else ""
        before = path[position - 1].name if position else ""
        if not frame.name or _OF_JAX.fullmatch(frame.name) or _BRANCH.fullmatch(frame.name):
            continue
        if frame.name == "main" and frame.markers == ("jit",) and position == 0:
            continue
        if frame.name == "while" and (follows in _INSIDE_LOOP or not follows or _OF_JAX.fullmatch(follows)):
            continue
        if (frame.name in _INSIDE_LOOP and before == "while") or (frame.name == "cond" and _BRANCH.fullmatch(follows)):
            continue
        if frame.name in found and not {"jvp", "transpose"}.isdisjoint(frame.markers):
            del found[found.index(frame.name) :]
        found.append(frame.name)
    return tuple(found)


def _transform(path: Sequence[Frame]) -> str:
    """The differentiation around an operation.

    A reverse pass is the transpose of a tangent, so ``transpose(jvp(f))`` is one transformation. Inside a jitted
    function, a transpose without its tangent is the rule of a library. A frame that repeats the scope of a
    differentiated frame before it repeats its markers, too. So does a path that begins anew.
    """
    found: list[str] = []
    in_function = False
    for position, frame in enumerate(path):
        if position and path[position : position + 2] == path[:2]:
            break
        in_function = in_function or (bool(found) and "jit" in frame.markers)
        before = path[position - 1] if position else None
        if before is not None and frame.name == before.name and _differentiation(before):
            continue
        markers = _differentiation(frame)
        pairs = itertools.pairwise((*markers, ""))
        if in_function and any(marker == "transpose" and inside != "jvp" for marker, inside in pairs):
            continue
        found += markers
    text = ""
    for position, marker in reversed(list(enumerate(found))):
        if not (marker == "jvp" and position and found[position - 1] == "transpose"):
            text = f"{marker}({text})" if text else marker
    return text or "primal"
