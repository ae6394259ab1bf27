"""Which calls end, and are not too many: what XLA and Python do not survive is found before it is followed."""

from __future__ import annotations

from collections import Counter

MOST_CALLS = 200
MOST_OPERATIONS = 5_000_000
"""Calls within calls, operations once calls are inlined: beyond these, XLA or Python end the process. What JAX lowers
has under ten of the first."""


def too_much(sizes: dict[str, int], calls: dict[str, Counter[str]]) -> str | None:
    """Whether calls nest too deeply, or give too many operations once inlined (each of forty functions calling the
    next one twice gives 2^40), in words; ``sizes`` are operations of each function, and ``calls`` have no cycle."""
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


def cyclic(calls: dict[str, list[str]]) -> str | None:
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
