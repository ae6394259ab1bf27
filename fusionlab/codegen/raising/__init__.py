"""Raise a region of StableHLO to a JAX callable, so that JAX's own rules can batch, transpose or differentiate it.

The callable is also the executor that runs a program lowered for CUDA on a CPU, and with ``widen`` the float64 truth
of a float32 program. Constants stay concrete NumPy arrays; every op is traced under the scope it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxlib.mlir import ir

from fusionlab.codegen.raising.rules import calls, contraction, control, elementwise, indexing, reduction, shape
from fusionlab.codegen.raising.rules.folding import folded
from fusionlab.codegen.raising.rules.rule import (
    JaxRefusal,
    OpaqueCall,
    RaisedOp,
    RaiseError,
    RaisingFault,
    Rule,
    ShardingLost,
)
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.meshes import SHARDINGS
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import (
    FunctionView,
    Node,
    Region,
    TensorType,
    Value,
    constant_array,
    free_values,
)

__all__ = [
    "JaxRefusal",
    "RaiseError",
    "Raising",
    "RaisingFault",
    "has_rule",
    "raise_nodes",
    "raise_program",
    "unsupported_nodes",
]

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **shape.RULES,
    **indexing.RULES,
    **contraction.RULES,
    **reduction.RULES,
    **control.RULES,
    **calls.RULES,
}

_WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


@dataclass(frozen=True)
class Raising:
    """The options of raising a region. ``widen`` computes float32 and narrower in float64 (complex64 in complex128).

    ``shapes`` gives some values other shapes than the program's (the same program at another number of walkers).
    ``fold`` computes small arrays that follow from constants alone at raising time.

    With ``marks``, every op is traced under a mark ``@<id>@`` and its node recorded there, so that ``splice`` can set
    the scope and source line of lowered operations to those of their nodes.
    """

    widen: bool = False
    marks: dict[int, Node] | None = None
    shapes: Mapping[Value, tuple[int, ...]] = field(default_factory=dict)
    fold: bool = False

    def shape(self, value: Value) -> tuple[int, ...]:
        """The shape that ``value`` has in the raised program."""
        return self.shapes.get(value, value.type.shape) if self.shapes else value.type.shape

    def resized(self, value: Value, extents: Sequence[int]) -> tuple[int, ...]:
        """``extents`` along the axes of ``value`` (sizes of a slice): full extents stay full at another shape."""
        pairs = zip(extents, value.type.shape, self.shape(value), strict=True)
        return tuple(now if extent == whole else extent for extent, whole, now in pairs)

    def dtype(self, type_: TensorType) -> Any:
        """The NumPy dtype that values of ``type_`` have in the raised program; RaiseError for an unknown one."""
        if type_.dtype not in NUMPY:
            raise RaiseError(f"element type {type_.dtype} has no JAX counterpart")
        dtype = NUMPY[type_.dtype]
        other = _WIDER if self.widen else {}
        return np.dtype(other.get(dtype.name, dtype))

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """Trace or run one operation on the arrays that ``environment`` holds for its operands."""
        if node.op is ops.CONSTANT:
            array = np.asarray(constant_array(node), dtype=self.dtype(node.results[0].type))
            shape = self.shape(node.results[0])
            return [array if array.shape == shape else array[tuple(map(slice, shape))]]
        if self.marks is not None and (lost := next((name for name in SHARDINGS if name in node.attributes), None)):
            raise ShardingLost(f"{node.name} would lose its {lost}", node)
        rule = RULES.get(node.name)
        if rule is None:
            raise RaiseError(f"{node.name} has no raising rule", node)
        with self.scope(node):
            op = RaisedOp(node, [environment[value] for value in node.operands], self, environment)
            known = folded(op, rule) if self.fold else None
            return rule(op) if known is None else known

    def scope(self, node: Node) -> AbstractContextManager[None]:
        """Mark ops traced inside as those of ``node``; ``splice`` gives them the node's scope and source line."""
        if self.marks is None:
            return nullcontext()
        self.marks[node.id] = node
        marked: AbstractContextManager[None] = jax.named_scope(f"@<{node.id}>@")
        return marked

    def region(self, region: Region, environment: Mapping[Value, Any]) -> Callable[..., tuple[Any, ...]]:
        """A callable of the region's arguments; captured values are taken from ``environment`` now."""
        captured = {value: environment[value] for value in free_values(region)}

        def call(*arguments: Any) -> tuple[Any, ...]:
            inner = {**captured, **dict(zip(region.arguments, arguments, strict=True))}
            try:
                self.run(region.nodes, inner)
            except (TypeError, ValueError) as error:  # not to be mistaken for one of JAX, which calls this
                raise RaisingFault(f"{type(error).__name__}: {error}") from error
            return tuple(inner[value] for value in region.returns)

        return call

    def run(self, nodes: Sequence[Node], environment: dict[Value, Any]) -> None:
        """Run ``nodes`` in order, adding their results to ``environment``."""
        for node in nodes:
            results = self.node(node, environment)
            for value, result in zip(node.results, results, strict=True):
                if tuple(np.shape(result)) != self.shape(value):
                    raise RaiseError(f"raised to shape {np.shape(result)}, expected {value.type}", node)
                environment[value] = result


def raise_nodes(
    nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value], raising: Raising | None = None
) -> Callable[..., tuple[Any, ...]]:
    """A JAX callable from arrays for ``inputs`` to a tuple of arrays for ``outputs``, running only what they need.

    ``inputs`` may be any values: their producers are not run. RaiseError if an output needs a value that is neither
    an input nor produced by ``nodes``.
    """
    try:
        needed = live_nodes(nodes, inputs, outputs)
    except ValueError as error:
        raise RaiseError(str(error)) from None
    raising = raising or Raising()

    def call(*arrays: Any) -> tuple[Any, ...]:
        environment = dict(zip(inputs, arrays, strict=True))
        raising.run(needed, environment)
        return tuple(environment[value] for value in outputs)

    return call


def raise_program(program: Program | FunctionView, raising: Raising | None = None) -> Callable[..., tuple[Any, ...]]:
    """The whole public function as a JAX callable (flat arguments to a tuple of flat results)."""
    flat = program_view(program) if isinstance(program, Program) else program
    return raise_nodes(flat.nodes, flat.arguments, flat.returns, raising)


def unsupported_nodes(region: Region) -> list[Node]:
    """Nodes of ``region`` (nested ones too) without a raising rule."""
    return [n for n in region.walk() if n.op is not ops.CONSTANT and not has_rule(n)]


def require_known_calls(program: Program) -> None:
    """RaiseError naming the first custom call of any function of ``program`` without a rule, or the first op that waits
    for a host or another device."""
    module = program.parse()
    found: list[str] = []
    waiting: list[str] = []

    def look(operation: Any) -> Any:
        if ops.op_of(operation.name).waits:  # until a timeout
            waiting.append(operation.name)
        if operation.name == ops.CUSTOM_CALL.name:
            found.append(str(operation.attributes["call_target_name"].value))
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    if (unknown := next((target for target in found if target not in calls.TARGETS), None)) is not None:
        raise OpaqueCall(f"custom call @{unknown} is opaque")
    if waiting:
        raise RaiseError(f"{waiting[0]} waits for another side, and there is none")


def has_rule(node: Node) -> bool:
    """True if ``node`` itself has a raising rule."""
    if node.op is ops.CUSTOM_CALL:
        return node.call_target in calls.TARGETS
    return node.name in RULES
