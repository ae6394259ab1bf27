"""Validation of optimised HLO: complete, every name defined, every part readable, no recursive calls.

Shapes and attributes are read on demand, so a damaged text is rejected here and not in the middle of a table.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.hlo.sandbox.validation import cyclic, too_much

_FEWEST_OPERANDS = {
    "bitcast": 1, "cholesky": 1, "copy": 1, "dot": 2, "dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 2,
    "get-tuple-element": 1, "reduce": 2, "reduce-window": 2, "reshape": 1, "scatter": 3, "slice": 1,
    "triangular-solve": 2, "while": 1,
}  # fmt: skip
_MOST_BYTES = 2**62
_MOST_NESTED = 32
"""Parentheses within parentheses of a shape; XLA's tuples nest two or three deep."""
_CALLS_ONE = {
    "fusion": ("calls",), "fusion-start": ("calls",), "while": ("condition", "body"),
    "reduce": ("to_apply",), "reduce-window": ("to_apply",),
    "scatter": ("to_apply",), "call": ("to_apply",),
}  # fmt: skip
"""Attributes that each name one computation."""


def why_hlo_refused(module: HloModule) -> str | None:
    """The reason why ``module`` is refused, with the place, in one line; None for a valid one."""
    if not any(computation.is_entry for computation in module.computations.values()):
        return "there is no ENTRY computation: the text is not complete"
    for computation in module.computations.values():
        defined: set[str] = set()
        for instruction in computation.instructions:
            where = f"%{instruction.name} of %{computation.name}"
            try:
                if (cause := _why_refused(module, computation, instruction)) is not None:
                    return f"{where} {cause}"
            except ValueError as error:  # from shapes and attributes
                return f"{where}: {error}"
            whole = {name: name.rpartition("#")[0] for name in instruction.operands if name not in defined}
            if later := next((name for name, of in whole.items() if of not in defined), None):
                return f"{where} reads %{later} before it is computed"
            defined.add(instruction.name)
        if sorted(_number(one) for one in computation.parameters) != list(range(len(computation.parameters))):
            return f"the parameters of %{computation.name} are not numbered from 0"
    calls = {
        name: Counter(called for one in computation.instructions for called in one.called)
        for name, computation in module.computations.items()
    }
    if (name := cyclic(calls)) is not None:
        return f"%{name} calls itself, directly or through other computations"
    return too_much({name: len(computation.instructions) for name, computation in module.computations.items()}, calls)


def _why_refused(module: HloModule, computation: Computation, one: Instruction) -> str | None:
    """The fault of one instruction, or None; ValueError for a part of it that cannot be read."""
    opened = one.shape_text.count("(")
    if opened > _MOST_NESTED and max(accumulate((c == "(") - (c == ")") for c in one.shape_text)) > _MOST_NESTED:
        return f"has a shape that nests deeper than {_MOST_NESTED}"
    if one.shape.byte_size > _MOST_BYTES:
        return "has a shape of more bytes than any memory holds"
    _ = one.attributes, one.known_trip_count
    if one.opcode == "parameter":
        _number(one)
    for name in one.operands:
        if name not in computation.by_name:
            return f"reads %{name}, which is not there: the text is not complete"
    if len(one.operands) < _FEWEST_OPERANDS.get(one.opcode, 0):
        return f"is a {one.opcode} of {len(one.operands)} operands"
    return _why_calls_refused(module, one)


def _why_calls_refused(module: HloModule, one: Instruction) -> str | None:
    """The fault of the computations that one instruction calls, or None."""
    for name in one.called:
        if name not in module.computations:
            return f"calls %{name}, which is not there: the text is not complete"
    branches = () if "branch_computations" in one.attributes else ("true_computation", "false_computation")
    for key in branches if one.opcode == "conditional" else _CALLS_ONE.get(one.opcode, ()):
        if one.attributes.get(key, "").strip().removeprefix("%") not in module.computations:
            return f"is a {one.opcode} whose {key} names no computation"
    if one.is_fusion:
        parameters = module.computations[one.called[0]].parameters
        if len(parameters) != len(one.operands):
            return f"gives {len(one.operands)} operands to a fusion of {len(parameters)} parameters"
    return None


def _number(parameter: Instruction) -> int:
    """The number of a parameter of a computation; ValueError when the text does not say."""
    number = parameter.operand_text.strip("() ")
    if not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise ValueError(f"parameter{parameter.operand_text[:40]} has no number")
    return int(number)
