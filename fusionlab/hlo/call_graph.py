"""Which calls end, and are not too many: what XLA and Python do not survive is found before it is followed."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

MOST_CALLS = 200
MOST_OPERATIONS = 5_000_000
"""Calls within calls, operations once calls are inlined: beyond these, XLA or Python end the process. What JAX lowers
has under ten of the first."""


def cyclic(calls: Mapping[str, Mapping[str, int]]) -> str | None:
    """A function that reaches itself by ``calls``, from each function how often it calls which."""
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        return str(error.args[1][0])
    return None


def too_much(sizes: Mapping[str, int], calls: Mapping[str, Mapping[str, int]]) -> str | None:
    """Where calls nest too deeply, or are too many operations once inlined (each of forty functions calling the next
    one twice makes 2^40), in words; ``sizes`` are operations of each function, and ``calls`` have no cycle."""
    inlined: dict[str, int] = {}
    depths: dict[str, int] = {}
    for name in TopologicalSorter(calls).static_order():
        inlined[name] = sizes[name] + sum(count * inlined[callee] for callee, count in calls[name].items())
        depths[name] = 1 + max((depths[callee] for callee in calls[name]), default=0)
        if depths[name] > MOST_CALLS:
            return f"calls nest deeper than {MOST_CALLS} in {name}"
        if inlined[name] > MOST_OPERATIONS:
            return f"{name} with its calls inlined has over {MOST_OPERATIONS:,} operations"
    return None
