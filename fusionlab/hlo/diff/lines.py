"""Ops as lines of text: names of values, abbreviated attributes, default attributes left out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from fusionlab.hlo import ops
from fusionlab.hlo.diff.numbering import computing_attributes, is_literal, literal
from fusionlab.hlo.diff.records import OpLine
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.view import FunctionView, Node, Value

_LONGEST_VALUE = 60
_LONGEST_CONSTANT = 30
_SHORTER = (
    (re.compile(r"^array<i\d+: ?(.*)>$"), r"[\1]"),
    (re.compile(r"^array<i\d+>$"), "[]"),
    (re.compile(r"^#stablehlo\.?\w*<(.*)>$", re.DOTALL), r"\1"),
    (re.compile(r"^dense<(.*)> : tensor<.*>$", re.DOTALL), r"\1"),
    (re.compile(r" : i\d+$"), ""),
)
_PLAIN: dict[str, str] = {
    "precision_config": r"\[DEFAULT(, DEFAULT)*\]",
    "compare_type": "FLOAT|SIGNED|UNSIGNED",
    "indices_are_sorted": "false",
    "unique_indices": "false",
    "has_side_effect": "false",
    "strides": r"\[[1, ]*\]",
    "interior_padding": r"\[[0, ]*\]",
    "output_operand_aliases": ".*",
    "operand_layouts": ".*",
    "result_layouts": ".*",
    "api_version": ".*",
    "called_computations": r"\[\]",
    "backend_config": '""',
    "mhlo.backend_config": ".*",
    "broadcast_dimensions": r"\[\]",
}
"""Attributes that are left out where they have their default value."""


class Names:
    """One name for each value, through all the programs that are compared."""

    def __init__(self, first: FunctionView) -> None:
        self._names = {value: f"%arg{value.index}" for value in first.arguments}
        self._next = itertools.count()
        highest = 0
        for node in first.walk():
            for value in (*node.results, *(a for region in node.regions for a in region.arguments)):
                self._names[value] = f"%{value.id}"
                highest = max(highest, value.id)
        self._next = itertools.count(highest + 1)

    def adopt(self, pairs: dict[Value, Value], after: FunctionView) -> None:
        """Name the values of ``after`` like those that they are paired with, the others anew."""
        for value, other in pairs.items():
            self._names[other] = self._names[value]
        for node in after.walk():
            for value in (*node.results, *(a for region in node.regions for a in region.arguments)):
                if value not in self._names:
                    self._names[value] = f"%{next(self._next)}"

    def name(self, value: Value) -> str:
        """The name of ``value``, or its number if it is a literal."""
        return self._names[value]

    def __getitem__(self, value: Value) -> str:
        return literal(value) or self._names[value]


def line_of(node: Node, names: Names, origin: Callable[[Value], Value], loop: str) -> OpLine:
    """``node`` as a line; ``loop`` is the label of the loop around it."""
    inside = [inner for region in node.regions for inner in region.walk() if not is_literal(inner)]
    attributes = tuple(sorted((name, shortened(text, name)) for name, text in computing_attributes(node).items()))
    applied = () if node.op.control_flow else tuple(inner.op.mnemonic for inner in inside)
    return OpLine(
        results=tuple(names[value] for value in node.results),
        op=node.op.mnemonic,
        operands=tuple(names[origin(value)] for value in node.operands),
        attributes=tuple((name, text) for name, text in attributes if not re.fullmatch(_PLAIN.get(name, "(?!)"), text)),
        applies=(f"{len(inside)} ops",) if node.op.control_flow else applied,
        types=tuple(value.type_text for value in node.results),
        scope=node.scope,
        loop=loop,
    )


def loop_label(node: Node, names: Names) -> str:
    """``while %120 (30 trips)``: a loop named by its first result."""
    first = names[node.results[0]] if node.results else ""
    trips = analyse(node).trips if node.op is ops.WHILE else None
    return f"{node.op.mnemonic} {first}" + (f" ({trips} trips)" if trips is not None else "")


def shortened(text: str, name: str = "") -> str:
    """An attribute without MLIR's wrapping, truncated if it is long."""
    text = re.sub(r"#stablehlo<\w+ (\w+)>", r"\1", text)
    if text.startswith("#stablehlo.dot<"):
        return _contraction(text)
    for pattern, replacement in _SHORTER:
        text = pattern.sub(replacement, text)
    text = " ".join(text.split()).replace("_dimensions", "").replace("_dims", "").replace(" = ", "=")
    longest = _LONGEST_CONSTANT if name == "value" else _LONGEST_VALUE
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _contraction(text: str) -> str:
    """``contracting [2] x [0], batching [0, 1] x [0, 1]`` of the dimension numbers of a dot."""
    sides = dict(re.findall(r"(\w+) = (\[[^\]]*\])", text))
    kinds = ("contracting", "batching")
    told = [(kind, [sides.get(f"{side}_{kind}_dimensions", "[]") for side in ("lhs", "rhs")]) for kind in kinds]
    return ", ".join(f"{kind} {' x '.join(both)}" for kind, both in told if both != ["[]", "[]"])
