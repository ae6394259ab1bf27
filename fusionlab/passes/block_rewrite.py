"""The walk of passes that replace a few ops of one block: look at a block, put one change in, look again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fusionlab.codegen.raising.inline import drop_dead, inline
from fusionlab.hlo.blocks import Block, blocks_to_change
from fusionlab.hlo.flat import Node, Value
from fusionlab.hlo.program import Program
from fusionlab.passes.contract import Declined, Event, Pass, Result, Setting
from fusionlab.passes.loop_rewrite import functions_of_others
from fusionlab.passes.op_rewrite import changed

Change = tuple[Sequence[Node], Callable[..., Sequence[Any]], Sequence[Value]]
"""Nodes of one block, a function that gives the results of all of them in order, and what it is called with: values
that are there before the first of the nodes."""


def inline_in_blocks(
    program: Program,
    pass_: Pass,
    setting: Setting,
    change: Callable[[Block, Node], Change | None],
    *,
    there_is: str,
    what: str,
) -> Result:
    """Put in every ``change(block, node)`` that is not None, until there is none; what nothing reads then goes.

    ``what`` completes the event "3 ``what``"; ``there_is``, "there is no ... in the program".
    """
    platform = setting.platform if program.platform == "any" else program.platform
    module = program.parse()
    kept = functions_of_others(module)
    rewritten: Counter[str] = Counter()
    for function in (op for op in module.body.operations if op.operation.name == "func.func"):
        if function.name.value in kept:
            continue
        for look in blocks_to_change(function, module):
            while (found := _first(look(), change)) is not None:
                nodes, replacement, operands = found
                rewritten[nodes[0].scope.rpartition("/")[0]] += 1
                gone = set(nodes)
                read = [v.handle for node in nodes for v in node.operands if v.producer not in gone]
                handles = [value.handle for value in operands]
                inline([node.operation for node in nodes], replacement, handles, platform=platform)
                drop_dead([*dict.fromkeys(read)])
    refusals: list[Event] = []
    if not rewritten:
        refusals.append(Declined(pass_.name, "unprofitable", f"there is no {there_is} in the program", ""))
    return changed(program, module, pass_, rewritten, what, refusals)


def _first(block: Block, change: Callable[[Block, Node], Change | None]) -> Change | None:
    return next(filter(None, _changes(block, change)), None)


def _changes(block: Block, change: Callable[[Block, Node], Change | None]) -> Iterator[Change | None]:
    for node in block.nodes:
        yield change(block, node)
