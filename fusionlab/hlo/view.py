"""A read-only view of a function: private calls inlined, region nesting kept, values and nodes with stable ids.

A composite is the call of its decomposition, and an element of a tuple the value that was put into it.

The view is what analyses and the raising walk over. It never edits the module; a Node keeps the handle of its MLIR
operation, so that a pass can go from a Node to the operation. One operation of a private function that is called
twice has two Nodes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from fusionlab.errors import InputError
from fusionlab.hlo.frames import is_of_user
from fusionlab.hlo.ops import (
    CALLEES,
    COMPLEX,
    CUSTOM_CALL,
    GET_TUPLE_ELEMENT,
    NARROW,
    NUMPY,
    TUPLE,
    OpDef,
    family_of_target,
    op_of,
)

_MAX_CALL_DEPTH = 200

TERMINATORS = ("stablehlo.return", "func.return", "sdy.return")

TWIN = "twin"
"""Attribute of a function that holds a kernel: the function of plain ops that computes the same."""


_MODULE_TEXT = "-"
"""The file in the locations of a module that was parsed from text without locations."""
_WITH_LINES = "as_text(debug_info=True)"


@dataclass(frozen=True)
class TensorType:
    """Shape and element type of one value; ``dtype`` is MLIR's spelling (``f32``, ``i1``, ``ui32``)."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.dtype])

    @staticmethod
    def of(mlir_type: Any) -> TensorType:
        """The record of a ranked, static MLIR tensor type; ValueError for another form."""
        ranked = ir.RankedTensorType(mlir_type)
        if not ranked.has_static_shape:
            raise ValueError(f"dynamic shape {mlir_type}")
        return TensorType(tuple(ranked.shape), str(ranked.element_type))


@dataclass(eq=False)
class Value:
    """One SSA value. ``producer`` is None for an argument of a function or region; ``handle`` is the MLIR value."""

    id: int
    handle: Any
    producer: Node | None
    index: int

    @cached_property
    def type(self) -> TensorType:
        """Shape and element type; ValueError for tokens, tuples and dynamic shapes."""
        return TensorType.of(self.handle.type)

    @cached_property
    def is_array(self) -> bool:
        """False for tokens, tuples and dynamic shapes."""
        try:
            return bool(self.type)
        except ValueError:
            return False

    @cached_property
    def dtype(self) -> str:
        """Element type; "" for other types than arrays."""
        return self.type.dtype if self.is_array else ""

    @property
    def type_text(self) -> str:
        """The type as text; MLIR's own for other types than arrays."""
        return str(self.type if self.is_array else self.handle.type)

    def __repr__(self) -> str:
        return f"%{self.id}"


@dataclass(eq=False)
class Node:
    """One operation. ``name`` is its full name (``stablehlo.add``); ``callers`` are the scopes of inlined calls.

    ``module`` is held because the handles dangle once the bindings have destroyed it. ``calls`` are the operations of
    the inlined calls, outer ones first.
    """

    id: int
    operation: Any
    name: str
    operands: tuple[Value, ...]
    callers: tuple[str, ...]
    function: str
    module: Any
    results: tuple[Value, ...] = ()
    regions: tuple[Region, ...] = ()
    calls: tuple[Any, ...] = ()

    @cached_property
    def op(self) -> OpDef:
        """Its row of the op table."""
        return op_of(self.name)

    @property
    def call_target(self) -> str:
        """The target of a ``stablehlo.custom_call``; "" of other ops."""
        target = self.attributes.get("call_target_name")
        return "" if target is None else str(target.value)

    @property
    def family(self) -> str:
        """One of ``ops.FAMILIES``; that of a custom call by its target."""
        return family_of_target(self.call_target) if self.op is CUSTOM_CALL else self.op.family

    @property
    def label(self) -> str:
        """The op in a message: ``custom call @target``, or its name."""
        return f"custom call @{self.call_target}" if self.call_target else self.name

    @property
    def source(self) -> tuple[str, int] | None:
        """File and line, or those of the innermost call around it that has any."""
        return next(filter(None, map(source_of, (self.operation, *reversed(self.calls)))), None)

    @property
    def told(self) -> str:
        """The op in a message with its source line, or that of the innermost call around it, and its name stack."""
        file, line = self.source or ("", 0)
        scope = f" ({self.scope})" if self.scope else ""
        if file == _MODULE_TEXT:
            return f"{self.label} in line {line} of the module, which has no source lines: {_WITH_LINES} writes them"
        if not file:
            return f"{self.label}{scope}, whose source line is not known: {_WITH_LINES} writes it"
        return f"{self.label} at {file.rpartition('/')[2]}:{line}{scope}"

    @cached_property
    def scope(self) -> str:
        """The JAX name stack, call sites first: ``jit(f)/vmap()/while/body/jvp(stage_b)/dot_general``."""
        return "/".join(part for part in (*self.callers, location_name(self.operation)) if part)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """MLIR attributes by name; text where the bindings cannot return one (complex elements)."""
        found = self.operation.attributes
        names = [getattr(key, "name", key) for key in found]
        return {str(name): self._attribute(found, name) for name in names}

    def _attribute(self, found: Any, name: str) -> Any:
        try:
            return found[name]
        except TypeError:
            return _text(self.operation).partition(" = ")[2]

    def __repr__(self) -> str:
        return f"{list(self.results)} = {self.name}{list(self.operands)}"


@dataclass(eq=False)
class Region:
    """A block: its arguments, its nodes in program order, and its results."""

    arguments: tuple[Value, ...]
    nodes: list[Node] = field(default_factory=list)
    returns: tuple[Value, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Every node, those of nested regions after the node that owns them."""
        return walk(self.nodes)

    def operations(self) -> Iterator[Node]:
        """Every op of the region and of loops and branches in it; a combiner is part of its reduce, sort or scatter."""
        for node in self.nodes:
            yield node
            if node.op.control_flow:
                for inner in node.regions:
                    yield from inner.operations()

    def regions(self) -> list[Region]:
        """All regions nested in this one, and then itself."""
        return [*(region for node in self.walk() for region in node.regions), self]

    def part(self, arguments: Iterable[int], returns: Iterable[int]) -> Region:
        """A copy with some of the arguments and results, of new values and the nodes that these results need."""
        return _copied(self, [self.arguments[i] for i in arguments], [self.returns[i] for i in returns], {})


def _copied(
    region: Region, arguments: Sequence[Value], returns: Sequence[Value], known: Mapping[Value, Value]
) -> Region:
    """A copy of ``region`` that reads ``known`` values from outside."""
    instead = {**known, **{value: replace(value) for value in arguments}}
    wanted, needed = set(returns), list[Node]()
    for node in reversed(region.nodes):
        if not wanted.isdisjoint(node.results) or not node.results:
            needed.append(node)
            wanted.update(reads(node))
    nodes = []
    for node in reversed(needed):
        copy = replace(node, operands=tuple(instead.get(value, value) for value in node.operands))
        copy.regions = tuple(_copied(inner, inner.arguments, inner.returns, instead) for inner in node.regions)
        copy.results = tuple(replace(value, producer=copy) for value in node.results)
        instead.update(zip(node.results, copy.results, strict=True))
        nodes.append(copy)
    inside = (instead.get(value, value) for value in returns)
    return Region(tuple(instead[value] for value in arguments), nodes, tuple(inside))


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every one of ``nodes``, those of nested regions after the node that owns them."""
    for node in nodes:
        yield node
        for region in node.regions:
            yield from walk(region.nodes)


@dataclass(eq=False)
class FunctionView(Region):
    """The view of one function. ``module`` is held for the arguments' handles, as each Node holds it for its own."""

    name: str = ""
    module: Any = None


def view_of(module: ir.Module, function: str | None = None) -> FunctionView:
    """View ``function`` (by default the public one) of ``module``; InputError when calls recurse."""
    return _Inliner(module).view(function)


def inner_operations(operation: ir.Operation) -> Iterator[ir.Operation]:
    """The operations nested in ``operation``, in pre-order."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from inner_operations(inner.operation)


def functions_of(module: ir.Module) -> dict[str, Any]:
    """Every ``func.func`` of ``module`` by its name, in order."""
    return {str(op.name.value): op for op in module.body.operations if op.operation.name == "func.func"}


def public_function(module: ir.Module) -> Any:
    """The entry ``func.func`` of ``module``: ``main``, else its first public function; InputError if it has none."""
    if not (public := public_functions(module)):
        raise InputError("the module has no public function; expected one named main")
    return next((f for f in public if f.name.value == "main"), public[0])


def name_entry_main(module: ir.Module) -> None:
    """Rename the entry of ``module`` to main, which XLA and the reference interpreter run; a private one makes way."""
    entry, functions = public_function(module), functions_of(module)
    if entry.name.value == "main":
        return
    if (other := functions.get("main")) is not None:
        _rename(module, other, next(name for i in itertools.count() if (name := f"main_{i}") not in functions))
    _rename(module, entry, "main")


def _rename(module: ir.Module, function: Any, name: str) -> None:
    with module.context:
        ir.SymbolTable.replace_all_symbol_uses(function.name.value, name, module.operation)
        ir.SymbolTable.set_symbol_name(function, name)


def public_functions(module: ir.Module) -> list[Any]:
    """The public ``func.func`` of ``module``, in order."""
    functions = functions_of(module).values()
    return [f for f in functions if f.sym_visibility is None or f.visibility.value == "public"]


def callee_of(operation: Any) -> str | None:
    """The name of the function that ``operation`` runs on its operands; None for other ops than calls."""
    attribute = CALLEES.get(operation.name)
    return None if attribute is None else str(ir.FlatSymbolRefAttr(operation.attributes[attribute]).value)


def twins_of(module: ir.Module) -> set[str]:
    """The names of functions that hold a kernel, and of their plain twins: an edit of one would part them."""
    found = set()
    for name, function in functions_of(module).items():
        if TWIN in function.operation.attributes:
            found |= {name, str(ir.FlatSymbolRefAttr(function.operation.attributes[TWIN]).value)}
    return found


def location_name(operation: Any) -> str:
    """The name stack stored in an operation's location, or the empty string."""
    location = operation.location
    name = location.name_str if _is_location(location, "name") else ""
    return name if isinstance(name, str) else ""


def child_location(operation: Any) -> ir.Location | None:
    """The location within the name of an operation's location; None when it has no name."""
    location = operation.location
    return location.child_loc if _is_location(location, "name") else None


def source_of(operation: Any) -> tuple[str, int] | None:
    """File and line of the innermost user frame in an operation's location; None when it has none."""
    pending = [operation.location]
    while pending:
        location = pending.pop(0)
        if _is_location(location, "file"):
            if is_of_user(path := str(location.filename)):
                return path, int(location.start_line)
        elif _is_location(location, "callsite"):
            pending[:0] = [location.callee, location.caller]
        elif _is_location(location, "fused"):
            pending += location.locations
        elif _is_location(location, "name"):
            pending.append(location.child_loc)
    return None


_LOCATIONS = {"name": "NameLoc", "file": "FileLineColLoc", "callsite": "CallSiteLoc", "fused": "FusedLoc"}


def _is_location(location: ir.Location, kind: str) -> bool:
    """Whether ``location`` is of a kind. The bindings before JAX 0.9.1 have one class for all, which ends the process
    when another kind's fields are read."""
    if (is_a := getattr(location, f"is_a_{kind}", None)) is not None:
        return bool(is_a())
    return isinstance(location, getattr(ir, _LOCATIONS[kind]))


def free_values(region: Region) -> list[Value]:
    """Values that ``region`` reads from outside itself, in the order of first use."""
    nodes, regions = list(region.walk()), region.regions()
    inside = {value for node in nodes for value in node.results}.union(*(each.arguments for each in regions))
    read = [*(value for node in nodes for value in node.operands), *(v for each in regions for v in each.returns)]
    return list(dict.fromkeys(value for value in read if value not in inside))


def reads(node: Node) -> list[Value]:
    """The values that ``node`` reads: its operands and those that its regions capture."""
    return [*node.operands, *(value for region in node.regions for value in free_values(region))]


def constant_array(node: Node) -> np.ndarray:
    """The value of a ``stablehlo.constant`` as a NumPy array of the result's shape."""
    return array_of_constant(node.operation, node.results[0].type)


def array_of_constant(operation: Any, type_: TensorType) -> np.ndarray:
    """``constant_array`` of an MLIR operation whose result has ``type_``."""
    if type_.dtype in ("bf16", *COMPLEX, *NARROW):
        return _constant_from_text(operation, type_)
    attribute = operation.attributes["value"]
    if getattr(attribute, "is_splat", False):
        splat = attribute.get_splat_value()
        is_number = isinstance(splat, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr)
        return np.broadcast_to(np.asarray(splat.value if is_number else np.array(splat)), type_.shape)
    return np.array(attribute).reshape(type_.shape)


def elements_attribute(array: np.ndarray, element_type: Any) -> ir.Attribute:
    """The elements of a constant or an argument of ``element_type``: the reverse of ``array_of_constant``.

    Elements are passed as their bytes. Formats that NumPy's buffers do not have (bf16) need it; text of complex
    elements is parsed, but the bindings (jaxlib 0.10.2) cannot return the attribute.
    """
    content = np.ascontiguousarray(array).reshape(array.shape)
    if content.dtype == np.bool_:  # packed by the bindings, eight to a byte
        return ir.DenseElementsAttr.get(content)
    if content.dtype.isbuiltin != 1:
        content = content.view(f"u{content.itemsize}")
    return ir.DenseElementsAttr.get(content, type=element_type, shape=list(array.shape))


def _constant_from_text(operation: Any, type_: TensorType) -> np.ndarray:
    """A constant whose elements the bindings (jaxlib 0.10.2) cannot return: read from the operation's text."""
    text, dtype = _text(operation), {**NUMPY, **NARROW}[type_.dtype]
    if (packed := re.search(r'dense<"0x([0-9A-Fa-f]*)">', text)) is not None:
        elements = np.frombuffer(bytes.fromhex(packed[1]), dtype)
    else:
        part = dtype if type_.dtype not in COMPLEX else np.zeros((), dtype).real.dtype
        found = re.findall(r"0x[0-9A-Fa-f]+|[-+]?\d[\d.eE+-]*", text.partition("dense<")[2].partition("> : ")[0])
        elements = np.array([_real(number, part) for number in found]).astype(part).view(dtype)
    whole = elements.size == int(np.prod(type_.shape))
    return elements.reshape(type_.shape) if whole else np.broadcast_to(elements, type_.shape)


def _text(operation: Any) -> str:
    """The text of an operation without operands; of one in a module, MLIR would verify and number all of that."""
    return str(operation.operation.clone(ip=False))


def _real(text: str, dtype: np.dtype[Any]) -> Any:
    """A number as MLIR prints it: decimal, or its bits in hexadecimal where it has no decimal form."""
    if not text.startswith("0x"):
        return float(text)
    return np.frombuffer(int(text, 16).to_bytes(dtype.itemsize, "little"), dtype)[0]


class _Inliner:
    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.functions = functions_of(module)
        self.open: list[str] = []
        self.calls: list[Any] = []
        self.tuples: set[Node] = set()
        self.next_id = 0

    def view(self, name: str | None) -> FunctionView:
        function = self.functions[name] if name is not None else public_function(self.module)
        block = function.body.blocks[0]
        environment: dict[Any, Value] = {}
        flat = FunctionView(self._arguments(block, environment), name=function.name.value, module=self.module)
        flat.returns = self._block(block, environment, flat.nodes, (), function.name.value)
        if self.tuples:
            _drop_unread(flat, self.tuples)
        return flat

    def _id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def _arguments(self, block: Any, environment: dict[Any, Value]) -> tuple[Value, ...]:
        values = tuple(Value(self._id(), handle, None, i) for i, handle in enumerate(block.arguments))
        environment.update(zip(block.arguments, values, strict=True))
        return values

    def _block(
        self, block: Any, environment: dict[Any, Value], nodes: list[Node], callers: tuple[str, ...], function: str
    ) -> tuple[Value, ...]:
        for wrapped in block.operations:
            operation = wrapped.operation
            name = operation.name
            operands = tuple(environment[handle] for handle in operation.operands)
            if name in TERMINATORS:
                return operands
            if (callee := callee_of(operation)) is not None:
                results = self._call(operation, callee, operands, nodes, callers)
                environment.update(zip(operation.results, results, strict=True))
                continue
            if name == GET_TUPLE_ELEMENT.name and (parts := _parts(operands[0])) is not None:
                environment[operation.results[0]] = parts[int(operation.attributes["index"].value)]
                continue
            node = Node(self._id(), operation, name, operands, callers, function, self.module, calls=(*self.calls,))
            node.results = tuple(Value(self._id(), handle, node, i) for i, handle in enumerate(operation.results))
            environment.update(zip(operation.results, node.results, strict=True))
            nodes.append(node)
            if node.op is TUPLE:
                self.tuples.add(node)
            node.regions = tuple(
                self._region(inner, environment, callers, function) for region in operation.regions for inner in region
            )
        return ()

    def _region(self, block: Any, environment: dict[Any, Value], callers: tuple[str, ...], function: str) -> Region:
        region = Region(self._arguments(block, environment))
        region.returns = self._block(block, environment, region.nodes, callers, function)
        return region

    def _call(
        self, operation: Any, called: str, operands: tuple[Value, ...], nodes: list[Node], callers: tuple[str, ...]
    ) -> tuple[Value, ...]:
        callee = self.functions[called]
        if TWIN in callee.operation.attributes:
            callee = self.functions[ir.FlatSymbolRefAttr(callee.operation.attributes[TWIN]).value]
        name = callee.name.value
        if name in self.open:
            raise InputError(f"@{name} calls itself, directly or through other functions")
        if len(callers) >= _MAX_CALL_DEPTH:
            raise InputError(f"calls nest deeper than {_MAX_CALL_DEPTH} at @{name}")
        block = callee.body.blocks[0]
        environment = dict(zip(block.arguments, operands, strict=True))
        self.open.append(name)
        self.calls.append(operation)
        returns = self._block(block, environment, nodes, (*callers, location_name(operation)), name)
        self.open.pop()
        self.calls.pop()
        return returns


def _parts(value: Value) -> tuple[Value, ...] | None:
    """The values that were put into a tuple; None for a tuple of unknown origin."""
    node = value.producer
    return node.operands if node is not None and node.op is TUPLE else None


def _drop_unread(flat: Region, tuples: set[Node]) -> None:
    """Remove those of ``tuples`` from ``flat``, and the regions in it, that nothing reads."""
    regions = flat.regions()
    read = {value for region in regions for value in (*region.returns, *(v for n in region.nodes for v in n.operands))}
    for region in regions:
        region.nodes = [node for node in region.nodes if node not in tuples or not read.isdisjoint(node.results)]


def combining_regions(operation: Any, module: ir.Module, first_id: int) -> tuple[Region, ...]:
    """The regions of a reduction, which read nothing from outside; the ids of what is in them begin at ``first_id``."""
    inliner = _Inliner(module)
    inliner.next_id = first_id
    return tuple(inliner._region(inner, {}, (), "") for region in operation.regions for inner in region)


def keyword(attribute: Any) -> str:
    """The keyword of an enum attribute: ``LT`` of ``#stablehlo<comparison_direction LT>``."""
    return str(attribute).rsplit(" ", 1)[-1].rstrip(">")


def direction_of(node: Node) -> str:
    """The direction of a ``compare``: ``EQ``, ``NE``, ``LT``, ``LE``, ``GT`` or ``GE``."""
    return keyword(node.attributes["comparison_direction"])
