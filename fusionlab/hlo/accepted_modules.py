"""Which modules can be studied: one block to a region, operations that JAX emits, calls that end.

XLA crashes on some of what is refused here, so nothing is compiled before this has been asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

MOST_REGIONS = 64
MOST_CALLS = 200
MOST_OPERATIONS = 5_000_000
"""Regions within regions, calls within calls, operations once calls are inlined: beyond these, XLA or Python end the
process. What JAX lowers has under ten of the first two."""

_DIALECTS = ("stablehlo", "chlo", "mhlo", "sdy")
_OPERATIONS = ("builtin.module", "func.func", "func.call", "func.return")
_CALLERS = ("func.call", "stablehlo.composite", "stablehlo.custom_call")


def why_refused(module: ir.Module) -> str | None:
    """What is wrong with ``module`` and where, in one line; None for one that can be studied."""
    functions = {op.name.value: op for op in module.body.operations if op.operation.name == "func.func"}
    calls: dict[str, list[str]] = {}
    every_call: dict[str, Counter[str]] = {}
    sizes: dict[str, int] = {}
    for top in module.body.operations:
        name = f"@{top.name.value}" if top.operation.name == "func.func" else "the module"
        operations: list[Any] = []
        if _depth(top.operation) > MOST_REGIONS:
            return f"regions nest deeper than {MOST_REGIONS} in {name}"
        top.operation.walk(lambda op, seen=operations: seen.append(op) or ir.WalkResult.ADVANCE, ir.WalkOrder.PRE_ORDER)
        sizes[name] = len(operations)
        for operation in operations:
            if (cause := _why_refused(operation)) is not None:
                return f"{cause} in {name}{_line(operation)}: not StableHLO as JAX writes it"
        called = [callee for op in operations if op.name in _CALLERS for callee in _callees(op) if callee in functions]
        every_call[name] = Counter(f"@{callee}" for callee in called)
        calls[name] = [f"@{callee}" for callee in dict.fromkeys(called)]
        bodiless = next((callee for callee in calls[name] if not functions[callee[1:]].body.blocks), None)
        if bodiless is not None:
            return f"{name} calls {bodiless}, which has no body"
    cyclic = _cyclic(calls)
    if cyclic is not None:
        return f"{cyclic} calls itself, directly or through other functions"
    return _too_much(sizes, every_call)


def _why_refused(operation: Any) -> str | None:
    if operation.name.partition(".")[0] not in _DIALECTS and operation.name not in _OPERATIONS:
        return f"there is a {operation.name}"
    if any(len(region.blocks) > 1 for region in operation.regions):
        return f"there is a {operation.name} of several blocks"
    return None


def _line(operation: Any) -> str:
    """Where a text without locations of its own has ``operation``."""
    location = operation.location
    return f", line {location.start_line}" if getattr(location, "filename", None) == "-" else ""


def _callees(operation: Any) -> Iterator[str]:
    for key in operation.attributes:
        attribute = operation.attributes[getattr(key, "name", key)]
        for one in attribute if isinstance(attribute, ir.ArrayAttr) else (attribute,):
            if isinstance(one, ir.FlatSymbolRefAttr):
                yield one.value


def _depth(operation: Any) -> int:
    """How many regions are nested below ``operation``; stops counting beyond MOST_REGIONS."""
    level, depth = [operation], 0
    while depth <= MOST_REGIONS:
        level = [op.operation for parent in level for region in parent.regions for block in region for op in block]
        level = [op for op in level if len(op.regions)]
        if not level:
            break
        depth += 1
    return depth


def _too_much(sizes: dict[str, int], calls: dict[str, Counter[str]]) -> str | None:
    """Whether calls nest too deeply, or give too many operations once inlined (each of forty functions calling the
    next one twice gives 2^40); ``calls`` has no cycle."""
    inlined: dict[str, int] = {}
    depths: dict[str, int] = {}
    for start in calls:
        stack = [start]
        while stack:
            name = stack[-1]
            open_ = [callee for callee in calls[name] if callee not in inlined]
            if open_:
                stack += open_
                continue
            stack.pop()
            inlined[name] = sizes[name] + sum(count * inlined[callee] for callee, count in calls[name].items())
            depths[name] = 1 + max((depths[callee] for callee in calls[name]), default=0)
            if depths[name] > MOST_CALLS:
                return f"calls nest deeper than {MOST_CALLS} in {name}"
            if inlined[name] > MOST_OPERATIONS:
                return f"{name} with its calls inlined has over {MOST_OPERATIONS:,} operations"
    return None


def _cyclic(calls: dict[str, list[str]]) -> str | None:
    """A function that reaches itself; each function is entered once."""
    done: set[str] = set()
    for start in calls:
        if start in done:
            continue
        path = {start: iter(calls[start])}
        while path:
            name = next(reversed(path))
            callee = next(path[name], None)
            if callee is None:
                done.add(name)
                del path[name]
            elif callee in path:
                return callee
            elif callee not in done:
                path[callee] = iter(calls[callee])
    return None
