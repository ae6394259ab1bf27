"""Operations by levels of collectives, and those of a level that are worth rewriting; of MLIR or of a jaxpr.

The *level* of a value is the largest number of collectives one after another on which it depends. The operations of one
level are a function without collectives.

Apart from such a function stay sums of a loop's results along their first axis and what follows from them: a function
that treats its walkers alike is checked at a few of them, one with their mean is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Traits:
    """What the levels ask of an operation. ``crosses``: it has collectives; ``names``: of itself and of the operations
    in it; ``sums_first_axis``: it has a sum along the first axis; ``is_constant``: it is copied to where it is read.

    ``loops`` are the names of loops; a function without any of the names in ``worth`` is elementwise arithmetic, which
    XLA fuses by itself.
    """

    reads: Callable[[Any], Sequence[Any]]
    results: Callable[[Any], Sequence[Any]]
    crosses: Callable[[Any], bool]
    names: Callable[[Any], Collection[str]]
    worth: frozenset[str]
    loops: frozenset[str]
    sums_first_axis: Callable[[Any], bool]
    is_constant: Callable[[Any], bool] = lambda operation: False


def levels(operations: Sequence[Any], of: Traits) -> list[tuple[list[Any], list[Any]]]:
    """The operations of each level without collectives, and those with collectives that read its values."""
    level: dict[Any, int] = {}
    between: defaultdict[int, list[Any]] = defaultdict(list)
    crossing: defaultdict[int, list[Any]] = defaultdict(list)
    for operation in operations:
        at = max((level.get(value, 0) for value in of.reads(operation)), default=0)
        crosses = of.crosses(operation)
        (crossing if crosses else between)[at].append(operation)
        level.update(dict.fromkeys(of.results(operation), at + crosses))
    return [(between[at], crossing[at]) for at in range(max([*between, *crossing], default=-1) + 1)]


def worth_and_rest(operations: Sequence[Any], of: Traits) -> tuple[list[Any], list[Any]]:
    """Of the operations of one level, the function that is worth rewriting, with what it reads, and the others, of
    which it reads constants alone.

    The function that is differentiated may be a sum along a first axis; it does not depend on the replay's loop.
    """
    names = [of.names(operation) for operation in operations]
    needed: set[Any] = set()
    for operation, within in zip(reversed(operations), reversed(names), strict=True):
        if not of.worth.isdisjoint(within) or not needed.isdisjoint(of.results(operation)):
            needed.update((*of.results(operation), *of.reads(operation)))
    worth, of_loops, over_walkers = set[Any](), set[Any](), set[Any]()
    for operation, within in zip(operations, names, strict=True):
        read, results = of.reads(operation), of.results(operation)
        follows = not of_loops.isdisjoint(read)
        if follows or not of.loops.isdisjoint(within):
            of_loops.update(results)
        sums = (follows and of.sums_first_axis(operation)) or not over_walkers.isdisjoint(read)
        if sums and needed.isdisjoint(results):
            over_walkers.update(results)
        elif not of.worth.isdisjoint(within) or not worth.isdisjoint(read):
            worth.update(results)
    own, rest = list[Any](), list[Any]()
    for operation in reversed(operations):
        if of.is_constant(operation) or worth.isdisjoint(of.results(operation)):
            rest.append(operation)
        else:
            worth.update(of.reads(operation))
            own.append(operation)
    return own[::-1], rest[::-1]
