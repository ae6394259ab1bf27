"""Which columns of a table stand beside each other on a terminal that is too narrow for all of them."""

from __future__ import annotations

from collections.abc import Sequence

_LEAST_WORDS = 12
"""Characters that a column of words keeps; what is longer goes on in the next line."""


def column_groups(widths: Sequence[int], words: int, room: int) -> list[list[int]]:
    """Positions of the columns of each table: the first ``words`` ones, which may wrap, and as many numbers as fit.

    ``widths`` are the characters of the widest cell of each column, ``room`` those of the terminal. A table has one
    column of numbers at least, if there are any. Columns stand 3 apart, 2 where there are several of words, and a
    table has a character left and right.
    """
    gap = 3 if words == 1 else 2
    names, numbers = list(range(words)), range(words, len(widths))
    taken = 2 - gap + sum(min(widths[i], _LEAST_WORDS) + gap for i in names)
    groups: list[list[int]] = [[]]
    left = room - taken
    for i in numbers:
        if groups[-1] and widths[i] + gap > left:
            groups.append([])
            left = room - taken
        groups[-1].append(i)
        left -= widths[i] + gap
    return [[*names, *group] for group in groups]
