"""The walk that local passes share: decide per operation, replace it in place by a few others, report by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.raising.inline import drop_dead, inline
from fusionlab.hlo.flat import FlatFunction, Node, flatten
from fusionlab.hlo.program import Program
from fusionlab.passes.contract import Applied, Declined, Event, Kind, Pass, Result, Setting, verify
from fusionlab.passes.loop_rewrite import Refusal, functions_of_others


@dataclass(frozen=True)
class OpRewrite:
    """What to put in an operation's place: ``function`` of arrays for its operands number ``reads``.

    ``key`` says all that the function depends on besides its operands' types: an operation of a private function that
    is called twice is seen twice, and is rewritten only when both decisions have the same key.
    """

    function: Callable[..., Sequence[Any]]
    reads: tuple[int, ...]
    key: Hashable


Decide = Callable[[Node], OpRewrite]


def rewrite_ops(
    program: Program,
    pass_: Pass,
    names: Collection[str],
    make_decide: Callable[[FlatFunction], Decide],
    setting: Setting,
    *,
    what: str,
) -> Result:
    """Replace every op called one of ``names`` for which the decision is a rewrite and not a Refusal.

    ``what`` completes the event "3 ``what``". Operations of other public functions are left alone.
    """
    platform = setting.platform if program.platform == "any" else program.platform
    module = program.parse()
    flat = flatten(module)
    decide = make_decide(flat)
    shared = functions_of_others(module)
    found: dict[Any, list[Node]] = {}
    for node in flat.walk():
        if node.name in names:
            found.setdefault(node.operation, []).append(node)
    rewritten: Counter[str] = Counter()
    refused: dict[tuple[Kind, str], list[str]] = {}
    decided: list[tuple[Any, str, OpRewrite]] = []  # all before the first is carried out, which erases what others read
    for operation, nodes in found.items():
        place = nodes[0].scope.rpartition("/")[0]
        try:
            decided.append((operation, place, _agreed([decide(node) for node in nodes], nodes[0], shared)))
        except Refusal as refusal:
            refused.setdefault((refusal.kind, str(refusal)), []).append(place)
    for operation, place, rewrite in decided:
        operands = list(operation.operands)
        inline([operation], rewrite.function, [operands[at] for at in rewrite.reads], platform=platform)
        drop_dead(operands)
        rewritten[place] += 1
    refusals = [
        Declined(pass_.name, kind, f"{len(places)} of {_count(found)}: {reason}", places[0])
        for (kind, reason), places in refused.items()
    ]
    if not found:
        listed = " or ".join(name.removeprefix("stablehlo.") for name in sorted(names))
        refusals.append(Declined(pass_.name, "unprofitable", f"there is no {listed} in the program", ""))
    return changed(program, module, pass_, rewritten, what, refusals)


def changed(
    program: Program, module: Any, pass_: Pass, rewritten: Counter[str], what: str, refusals: Sequence[Event]
) -> Result:
    """``module``, in which ``rewritten`` says how many times something was done where, as the result of ``pass_``."""
    events: list[Event] = [
        Applied(pass_.name, f"{count} {what}", place, str(pass_)) for place, count in rewritten.items()
    ]
    events += refusals
    if not rewritten:
        return Result(program, tuple(events))
    verify(module, pass_.name)
    known = None if program.platform == "any" else program.platform
    after = Program.from_module(module, name=program.name, provenance=program.provenance, platform=known)
    return Result(after, tuple(events))


def _agreed(rewrites: Sequence[OpRewrite], node: Node, shared: set[str]) -> OpRewrite:
    if node.function in shared:
        raise Refusal("unsupported", f"@{node.function} also belongs to another public function of the module")
    if len({rewrite.key for rewrite in rewrites}) > 1:
        raise Refusal("unsupported", "its function is called with different constants")
    return rewrites[0]


def _count(found: dict[Any, list[Node]]) -> str:
    names = sorted({nodes[0].name.removeprefix("stablehlo.") for nodes in found.values()})
    return f"{len(found)} {' or '.join(names)}"
