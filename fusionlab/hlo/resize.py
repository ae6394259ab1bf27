"""A module with other extents: the same operations in their order, with other types of values.

    func @main(%x: tensor<1024x4xf32>)              func @main(%x: tensor<16x4xf32>)
      %0 = call @f(%x)                       -->      %0 = call @f_1(%x)
      %1 = stablehlo.slice %0 [0:1024, 0:2]           %1 = stablehlo.slice %0 [0:16, 0:2]

A private function is copied for each of its calls, because calls may have operands of other shapes; where it holds a
kernel, its twin of plain operations is copied, because a kernel has one size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir, passmanager

from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Shapes
from fusionlab.hlo.view import (
    TWIN,
    FunctionView,
    Node,
    callee_of,
    constant_array,
    elements_attribute,
    functions_of,
    inner_operations,
    public_function,
    view_of,
)


def view_of_copies(module: ir.Module) -> FunctionView:
    """The view of the public function of ``module``, in which, after an edit in place, each function has one call.

    InputError where calls recurse.
    """
    view_of(module)  # refuses recursion
    with module.context:
        functions = functions_of(module)
        _copy_callees(module, public_function(module), functions, itertools.count(len(functions) + 1))
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
    return view_of(module)


def resize(view: FunctionView, shapes: Shapes) -> None:
    """Give the values in ``shapes`` these shapes, in place: in the module of ``view``, which ``view_of_copies`` made.

    Constants, and slices of whole axes, are cut, or continued where an axis grows. MLIRError where the module is not
    valid afterwards. The view itself is stale then.
    """
    with view.module.context, ir.Location.unknown():
        for node in view.walk():
            _resize_attributes(node, shapes)
        for value, shape in shapes.items():
            value.handle.set_type(_of_shape(value.handle.type, shape))
        _retype(public_function(view.module), functions_of(view.module))
        view.module.operation.verify()


def _copy_callees(module: ir.Module, function: Any, functions: Mapping[str, Any], numbers: Iterator[int]) -> None:
    """Let every call within ``function`` have a callee of its own, and so on within those, named by ``numbers``."""
    for operation in list(inner_operations(function.operation)):
        if (called := callee_of(operation)) is None:
            continue
        callee = functions[called]
        if TWIN in callee.operation.attributes:
            callee = functions[ir.FlatSymbolRefAttr(callee.operation.attributes[TWIN]).value]
        copied = callee.operation.clone(ip=ir.InsertionPoint(module.body))
        name = f"{callee.name.value}_{next(numbers)}"
        while name in functions:
            name += "_"
        copied.operation.attributes["sym_name"] = ir.StringAttr.get(name)
        operation.attributes[ops.CALLEES[operation.name]] = ir.FlatSymbolRefAttr.get(name)
        _copy_callees(module, copied, functions, numbers)


def _of_shape(type_: Any, shape: Sequence[int]) -> ir.Type:
    ranked = ir.RankedTensorType(type_)
    return ir.RankedTensorType.get(shape, ranked.element_type, ranked.encoding)


def _resize_attributes(node: Node, shapes: Shapes) -> None:
    """Resize what ``node`` holds beside types of values: its elements, and the sizes of slices of whole axes."""
    attributes = node.operation.attributes
    if node.op is ops.CONSTANT and (shape := shapes.get(node.results[0])) is not None:
        attributes["value"] = _cut(node, shape)
    elif node.op in _SIZES and (shape := shapes.get(node.operands[0])) is not None:
        name = _SIZES[node.op]
        axes = zip(attributes[name], node.operands[0].type.shape, shape, strict=True)
        sizes = [now if size == whole else int(size) for size, whole, now in axes]
        attributes[name] = ir.DenseI64ArrayAttr.get(sizes)


_SIZES = {ops.DYNAMIC_SLICE: "slice_sizes", ops.GATHER: "slice_sizes", ops.SLICE: "limit_indices"}


def _cut(node: Node, shape: Sequence[int]) -> ir.Attribute:
    """The elements of a constant in the corner of ``shape``; along an axis that grows, they are repeated in order."""
    type_ = ir.RankedTensorType(node.results[0].handle.type)
    value = node.attributes["value"]
    if getattr(value, "is_splat", False):
        return ir.DenseElementsAttr.get_splat(_of_shape(type_, shape), value.get_splat_value())
    array = constant_array(node)
    at = np.ix_(*(np.arange(to) % extent for to, extent in zip(shape, array.shape, strict=True)))
    return elements_attribute(array[at], type_.element_type)


def _retype(function: Any, functions: Mapping[str, Any]) -> None:
    """Let the types of ``function``, and of what it calls, be those of the values within."""
    block = function.body.blocks[0]
    for operation in inner_operations(function.operation):
        if (called := callee_of(operation)) is not None:
            callee = functions[called]
            for argument, operand in zip(callee.body.blocks[0].arguments, operation.operands, strict=True):
                argument.set_type(operand.type)
            _retype(callee, functions)
            for result, type_ in zip(operation.results, callee.type.results, strict=True):
                result.set_type(type_)
    returned = list(block.operations)[-1].operands
    types = ir.FunctionType.get([argument.type for argument in block.arguments], [value.type for value in returned])
    function.operation.attributes["function_type"] = ir.TypeAttr.get(types)
