"""Validation of text before MLIR parses it, and of modules before they are studied.

The parser crashes on text that is nested too deeply. A module has one block per region, operations that JAX emits, and
no recursive calls: XLA crashes on some of what is refused here, so nothing is compiled before it is validated.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from fusionlab.hlo import ops

MOST_NESTED = 256
"""Depth of brackets. Modules lowered by JAX have about twenty."""

# Possessive, so that a constant of 50 MB in one string needs no memory for backtracking.
_UNREAD = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+')
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"([{<")] = 1
_STEPS[list(b")]}>")] = -1
_PART = 1 << 20

MOST_REGIONS = 64
"""Depth of regions; beyond it XLA or Python crash. Modules lowered by JAX have under ten."""

MOST_CALLS = 200
MOST_OPERATIONS = 5_000_000
"""Depth of calls, and operations once calls are inlined: beyond these, XLA or Python crash. Modules lowered by JAX have
a depth under ten."""

_DIALECTS = ("stablehlo", "chlo", "mhlo", "sdy")
_OPERATIONS = ("builtin.module", "func.func", "func.call", "func.return")
_WITH_ELEMENTS = (ops.CONSTANT.name, ops.CUSTOM_CALL.name)
_CALLERS = (*ops.CALLEES, ops.CUSTOM_CALL.name)


def why_not_studied(module: ir.Module) -> tuple[str, str] | None:
    """The part of ``module`` that is not studied, in one line, and its place; None if there is none."""
    for top in module.body.operations:
        name = f"@{top.name.value}" if top.operation.name == "func.func" else "the module"
        found: list[tuple[str, str]] = []

        def look(operation: Any, name: str = name, found: list[tuple[str, str]] = found) -> Any:
            if (cause := _why_not_studied(operation)) is None:
                return ir.WalkResult.ADVANCE
            where = f"{name}{_line(operation)}"
            found.append((f"{cause} in {where}: not StableHLO as JAX writes it", where))
            return ir.WalkResult.INTERRUPT

        top.operation.walk(look, ir.WalkOrder.PRE_ORDER)
        if found:
            return found[0]
    return None


def why_attribute_not_studied(module: ir.Module) -> tuple[str, str] | None:
    """An attribute or a type of an unknown dialect in ``module``, in one line, and its place; None if there is none."""
    found: list[tuple[str, str]] = []
    for top in (None, *module.body.operations):
        is_function = top is not None and top.operation.name == "func.func"
        where = f"@{top.name.value}" if is_function else "the module"

        def look(operation: Any, where: str = where) -> Any:
            place = f"{where}{_line(operation)}"
            for what, text in _texts(operation):
                if (match := _foreign(text, operation.context)) is not None:
                    kind = "attribute" if match[1] == "#" else "type"
                    cause = f"there is the {kind} {match[0]} ({what} of {operation.name}) in {place}"
                    found.append((f"{cause}: {match[2]} is no dialect of StableHLO as JAX writes it", place))
                    return ir.WalkResult.INTERRUPT
            return ir.WalkResult.ADVANCE

        if top is None:
            look(module.operation)
        else:
            top.operation.walk(look, ir.WalkOrder.PRE_ORDER)
        if found:
            return found[0]
    return None


_OF_SIGNATURE = ("arg_attrs", "res_attrs")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_OF_DIALECT = re.compile(r"([#!])([A-Za-z_]\w*)(?:\.[\w.]+)?(?=[<\s,>)\]}]|$)")


def drop_foreign_attributes(module: ir.Module) -> tuple[str, ...]:
    """Delete attributes of unknown dialects from operations, arguments and results: those that are named by such a
    dialect, too (``foo.kind = #foo.kind<input>``). Others change what an operation means, and stay. Their names."""
    dropped: dict[str, None] = {}

    def kept(named: Any) -> dict[str, Any]:
        """``named`` without what is dropped."""
        values = {name: named[name] for name in (str(getattr(key, "name", key)) for key in named)}
        gone = [name for name, value in values.items() if _is_label(name, value)]
        dropped.update(dict.fromkeys(gone))
        return {name: value for name, value in values.items() if name not in gone}

    def look(operation: Any) -> Any:
        for name in [name for name, attribute in _named_attributes(operation) if _is_label(name, attribute)]:
            dropped[name] = None
            del operation.attributes[name]
        for name, attribute in _named_attributes(operation):
            if name in _OF_SIGNATURE and _foreign(str(attribute), operation.context) is not None:
                context = operation.context
                every = [ir.DictAttr.get(kept(one), context) for one in attribute]
                operation.attributes[name] = ir.ArrayAttr.get(every, context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look, ir.WalkOrder.PRE_ORDER)
    return tuple(dropped)


def _is_label(name: str, attribute: Any) -> bool:
    """True for an attribute of an unknown dialect, under a name of one."""
    dialect, dot, _ = name.partition(".")
    is_named = bool(dot) and not _is_known(dialect, attribute.context)
    return is_named and _foreign(str(attribute), attribute.context) is not None


def _foreign(text: str, context: ir.Context) -> re.Match[str] | None:
    """The first attribute or type of an unknown dialect in ``text``."""
    found = _OF_DIALECT.finditer(_STRING.sub('""', text))
    return next((match for match in found if not _is_known(match[2], context)), None)


def _texts(operation: Any) -> Iterator[tuple[str, str]]:
    """The attributes and types of ``operation`` as text, each with its name."""
    for name, attribute in _named_attributes(operation):
        yield name, str(attribute)
    for result in operation.results:
        yield "a result", str(result.type)
    for region in operation.regions:
        for block in region.blocks:
            for argument in block.arguments:
                yield "an argument", str(argument.type)


def _named_attributes(operation: Any) -> Iterator[tuple[str, Any]]:
    """The attributes that the bindings can return, by name: those of complex elements they cannot."""
    for key in operation.attributes:
        name = str(getattr(key, "name", key))
        with contextlib.suppress(TypeError):
            yield name, operation.attributes[name]


def _is_known(dialect: str, context: ir.Context) -> bool:
    try:
        context.get_dialect_descriptor(dialect)
    except (ValueError, IndexError):
        return False
    return True


def why_refused(module: ir.Module) -> str | None:
    """The reason why ``module`` is refused, with the place, in one line; None for a valid one, which
    ``why_not_studied`` may still exclude."""
    functions = {op.name.value: op for op in module.body.operations if op.operation.name == "func.func"}
    calls: dict[str, Counter[str]] = {}
    sizes: dict[str, int] = {}
    for top in module.body.operations:
        name = f"@{top.name.value}" if top.operation.name == "func.func" else "the module"
        operations: list[Any] = []
        if _depth(top.operation) > MOST_REGIONS:
            return f"regions nest deeper than {MOST_REGIONS} in {name}"
        top.operation.walk(lambda op, seen=operations: seen.append(op) or ir.WalkResult.ADVANCE, ir.WalkOrder.PRE_ORDER)
        sizes[name] = len(operations)
        called = [callee for op in operations if op.name in _CALLERS for callee in _callees(op) if callee in functions]
        calls[name] = Counter(f"@{callee}" for callee in called)
        bodiless = next((callee for callee in calls[name] if not functions[callee[1:]].body.blocks), None)
        if bodiless is not None:
            return f"{name} calls {bodiless}, which has no body"
    looping = cyclic(calls)
    if looping is not None:
        return f"{looping} calls itself, directly or through other functions"
    return too_much(sizes, calls)


def _why_not_studied(operation: Any) -> str | None:
    if operation.name.partition(".")[0] not in _DIALECTS and operation.name not in _OPERATIONS:
        return f"there is a {operation.name}"
    if any(len(region.blocks) > 1 for region in operation.regions):
        return f"there is a {operation.name} of several blocks"
    if operation.name in _WITH_ELEMENTS and any(_is_resource(one) for _, one in _named_attributes(operation)):
        return f"there is a {operation.name} whose elements are in a resource of the file"
    return None


def _is_resource(attribute: Any) -> bool:
    """True for ``dense_resource<name>``, whose elements are elsewhere and equal under no name."""
    return type(attribute) is ir.Attribute and str(attribute).startswith("dense_resource<")


def _line(operation: Any) -> str:
    """The line of ``operation`` in a text without locations of its own."""
    location = operation.location
    return f", line {location.start_line}" if getattr(location, "filename", None) == "-" else ""


def _callees(operation: Any) -> Iterator[str]:
    for key in operation.attributes:
        attribute = operation.attributes[getattr(key, "name", key)]
        for one in attribute if isinstance(attribute, ir.ArrayAttr) else (attribute,):
            if isinstance(one, ir.FlatSymbolRefAttr):
                yield one.value


def _depth(operation: Any) -> int:
    """The depth of regions below ``operation``; stops counting beyond MOST_REGIONS."""
    level, depth = [operation], 0
    while depth <= MOST_REGIONS:
        level = [op.operation for parent in level for region in parent.regions for block in region for op in block]
        level = [op for op in level if len(op.regions)]
        if not level:
            break
        depth += 1
    return depth


def why_text_refused(content: bytes) -> str | None:
    """The reason to refuse ``content`` as MLIR text; None where it is safe to parse. Linear in its size."""
    if (at := content.find(b"\0")) >= 0:
        return f"there is a NUL byte in line {content.count(bytes([10]), 0, at) + 1}: neither text nor MLIR bytecode"
    bare = _UNREAD.sub(b" ", content).replace(b"->", b"")
    depth = 0
    for start in range(0, len(bare), _PART):
        steps = np.cumsum(_STEPS[np.frombuffer(bare[start : start + _PART], np.uint8)], dtype=np.int64)
        depths = depth + steps
        depths -= np.minimum.accumulate(np.minimum(depths, 0))  # an unmatched closing bracket opens nothing
        if int(depths.max()) > MOST_NESTED:
            return f"brackets nest deeper than {MOST_NESTED}"
        depth = int(depths[-1])
    return None


def cyclic(calls: Mapping[str, Mapping[str, int]]) -> str | None:
    """A function that reaches itself by ``calls``: from each function its callees and their number of calls."""
    try:
        TopologicalSorter(calls).prepare()
    except CycleError as error:
        return str(error.args[1][0])
    return None


def too_much(sizes: Mapping[str, int], calls: Mapping[str, Mapping[str, int]]) -> str | None:
    """The function where calls nest too deeply, or are too many operations once inlined (forty functions that each call
    the next one twice make 2^40), in words; ``sizes`` are operations of each function, and ``calls`` have no cycle."""
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
