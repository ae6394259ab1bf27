"""Patterns of operations (``hlo/patterns.py``), and the walk that rewrites their matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusionlab.errors import InputError
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.patterns import Number, Op, match, number, op
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.rewriting import Change, inline_in_blocks

__all__ = ["Number", "Op", "match", "number", "op", "rewrite_matches"]


def rewrite_matches(
    program: Program, pass_: Pass, setting: Setting, pattern: Op, replacement: Callable[..., Any], *, what: str
) -> Result:
    """Replace every operation that ``pattern`` matches, in any block, by ``replacement(**names)``.

    The replacement is a JAX function of the bindings of the pattern's names, arrays and Python numbers, and returns an
    array of the operation's type. The event is "3 ``what``". Operations inside the match stay if they have other
    readers. InputError if the replacement matches again without end; ValueError if it has another type.
    """
    left = program.ops

    def change(block: Block, node: Node) -> Change | None:
        nonlocal left
        found = match(pattern, node.results[0]) if len(node.results) == 1 else None
        if found is None:
            return None
        if not left:
            raise InputError(f"the replacement that {pass_.name} inserts matches again without end")
        left -= 1
        arrays = {name: one for name, one in found.items() if isinstance(one, Value)}
        numbers = {name: one for name, one in found.items() if name not in arrays}

        def replaced(*given: Any) -> tuple[Any]:
            return (replacement(**dict(zip(arrays, given, strict=True)), **numbers),)

        return Change([node], replaced, list(arrays.values()))

    otherwise = f"there is no {pattern.name} that matches in the program"
    return inline_in_blocks(program, pass_, setting, change, what=what, otherwise=otherwise)
