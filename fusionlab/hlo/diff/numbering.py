"""Digests of values and ops that are equal across programs: by op names, attributes and operands, not by order.

Ops of two programs have the same digest when they are equal and read equal values, whatever function holds them and
whatever their values are called. A value that a loop carries unchanged has, inside it, the digest of its initial value,
so that a hoisted op keeps its own. Any other carried value is identified by its initial value. Locations do not count.
A function that an attribute names counts by what it computes, not by its name.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fusionlab.hlo import ops
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import FunctionView, Node, Region, Value, twins_of, view_of

_NOT_COMPUTED = ("mhlo.frontend_attributes", "sdy.sharding_rule", "operandSegmentSizes")


def computing_attributes(node: Node) -> dict[str, str]:
    """The attributes that determine the computation of ``node``, as text."""
    return {name: str(value) for name, value in node.attributes.items() if name not in _NOT_COMPUTED}


_NAMES = re.compile(r'@("(?:[^"\\]++|\\.)*+"|[\w$.-]+)|"(?:[^"\\]++|\\.)*+"')
"""A symbol, its name the group, or a string, which may have the form of one inside."""


class Bodies:
    """The meaning of the symbols in attributes of a module's ops: of a function its content, of another its attributes.

    A function reached from its own body keeps its name there.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._known: dict[str, str] = {}
        self._open: list[str] = []

    def text(self, attributes: Mapping[str, str]) -> str:
        """``attributes`` of an op by name, in order, with a body in the place of each symbol."""
        return "\0".join(f"{name}={self._resolved(text)}" for name, text in sorted(attributes.items()))

    def _resolved(self, text: str) -> str:
        if "@" not in text:
            return text
        return _NAMES.sub(lambda match: match[0] if match[1] is None else self._body(match[1].strip('"')), text)

    def _body(self, name: str) -> str:
        symbol = self._symbols.get(name)
        if symbol is None or name in self._open:
            return f"@{name}"
        if name not in self._known:
            self._open.append(name)
            if symbol.name == "func.func" and symbol.regions[0].blocks:
                self._known[name] = f"@{_content(Digests(view_of(self._module, name), self))}"
            else:
                others = {key: symbol.attributes[key] for key in map(_key, symbol.attributes) if key != "sym_name"}
                self._known[name] = f"@{_digest(symbol.name, *(f'{key}={others[key]}' for key in sorted(others)))}"
            self._open.pop()
        return self._known[name]

    @cached_property
    def _symbols(self) -> dict[str, Any]:
        operations = () if self._module is None else (top.operation for top in self._module.body.operations)
        return {str(one.attributes["sym_name"].value): one for one in operations if "sym_name" in one.attributes}


def _key(attribute: Any) -> str:
    return str(getattr(attribute, "name", attribute))


class Digests:
    """Digests of every value and op below one view; ``signatures`` identify an op apart from its operands.

    The regions of a loop or branch are not in its signature; the combiner of a reduction is. ``origins`` map a value
    that a loop carries unchanged to its initial value.
    """

    def __init__(self, flat: FunctionView, bodies: Bodies | None = None) -> None:
        self.flat = flat
        self._bodies = Bodies(flat.module) if bodies is None else bodies
        self.values: dict[Value, str] = {}
        self.ops: dict[Node, str] = {}
        self.signatures: dict[Node, str] = {}
        self.origins: dict[Value, Value] = {}
        self._effects = itertools.count()
        self._depths: Counter[bool] = Counter()  # of loops, and of regions of reductions and branches
        self._arguments(flat, "function")
        self._walk(flat)

    def _walk(self, region: Region) -> None:
        for node in region.nodes:
            operands = [self.values[value] for value in node.operands]
            inside = [part for inner in node.regions for part in self._region(node, inner)]
            applied = () if node.op.control_flow else inside
            signature = self.signatures[node] = _digest(
                node.name,
                self._bodies.text(computing_attributes(node)),
                *(str(value.handle.type) for value in node.results),
                *applied,
            )
            order = [str(next(self._effects))] if has_effect(node) else []
            digest = self.ops[node] = _digest(signature, *operands, "inside", *inside, "order", *order)
            for value in node.results:
                self.values[value] = _digest(digest, str(value.index))

    def _region(self, node: Node, region: Region) -> list[str]:
        """Digest all of ``region``; return what identifies it: its results and its effects."""
        is_loop = node.op is ops.WHILE
        self._depths[is_loop] += 1
        if is_loop:
            self._carried(node, region)
        else:
            self._arguments(region, f"region at depth {self._depths[is_loop]}")
        self._walk(region)
        self._depths[is_loop] -= 1
        effects = [self.ops[inner] for inner in region.nodes if has_effect(inner)]
        return ["region", *(self.values[value] for value in region.returns), "effects", *effects]

    def _arguments(self, region: Region, of: str) -> None:
        for value in region.arguments:
            self.values[value] = _digest(of, str(value.index), str(value.handle.type))

    def _carried(self, node: Node, region: Region) -> None:
        body = node.regions[1]
        seen: Counter[str] = Counter()
        for i, argument in enumerate(region.arguments):
            start = self.values[node.operands[i]]
            if body.returns[i] is body.arguments[i]:
                self.values[argument] = start
                self.origins[argument] = self.origins.get(node.operands[i], node.operands[i])
                continue
            self.values[argument] = _digest(f"carried at depth {self._depths[True]}", start, str(seen[start]))
            seen[start] += 1


def content_digest(program: Program) -> str:
    """SHA-256 of the computation of ``program``: equal for modules that differ in order, names and locations only.

    Dead ops count only if they have an effect. A view shows the plain ops in a kernel's place, so a program with
    kernels is equal to one of the same text alone.
    """
    flat = program_view(program)
    if twins_of(flat.module):
        return _digest("with kernels", str(flat.module))
    return _content(Digests(flat))


def _content(digests: Digests) -> str:
    """``content_digest`` of a view."""
    flat = digests.flat
    effects = [digests.ops[node] for node in flat.nodes if has_effect(node)]
    arguments = [digests.values[value] for value in flat.arguments]
    return _digest(*arguments, "returns", *(digests.values[value] for value in flat.returns), "effects", *effects)


def literal(value: Value) -> str:
    """The number that all elements of a constant equal, as text; "" for other values."""
    node = value.producer
    if node is None or node.op is not ops.CONSTANT:
        return ""
    if not getattr(attribute := node.attributes["value"], "is_splat", False):
        return ""
    found = re.fullmatch(r"dense<([^\[\]\"]*)> : .*", str(attribute))
    if found is None:
        return ""
    return f"{float(found[1]):g}" if re.fullmatch(r"-?\d+\.\d+E?[-+e\d]*", found[1]) else found[1]


def is_literal(node: Node) -> bool:
    """True if ``node`` is printed as a number where it is read, and not as an op."""
    return node.op is ops.CONSTANT and bool(literal(node.results[0]))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
