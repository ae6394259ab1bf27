"""A row program as one Pallas kernel for Triton: every program instance computes a block of rows.

The blocks are held in registers, padded to powers of two as Triton requires; padding is masked where it matters. Layer
inputs that are read from memory are read and contracted a few columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from fusionlab.codegen.kernels.row_programs import Layer, RowProgram, features
from fusionlab.codegen.kernels.triton_tiles import FEWEST, dot, flat_call, padded, places
from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.rules.contraction import strictest_precision
from fusionlab.hlo import ops
from fusionlab.hlo.strided import StridedView
from fusionlab.hlo.view import Node, Value

_ELEMENTS = 4096
"""Elements of the widest value of a block: with 128 threads, 32 registers each."""
_WARPS = 8
_COLUMNS = 16
"""Columns of a layer's input that are contracted at a time."""


def row_kernel(program: RowProgram, *, interpret: bool = False) -> Callable[..., tuple[Any, ...]]:
    """``program`` as a callable from ``program.arrays`` to its outputs; ``interpret`` runs the kernel on any device."""
    block = min(128, max(FEWEST, _ELEMENTS // padded(program.widest)))
    grid, kernel = (pl.cdiv(program.rows, block),), partial(_run, program, block)
    arrays, outputs = program.arrays, program.outputs
    return flat_call(kernel, arrays, outputs, grid, warps=_WARPS, interpret=interpret, name="row_program")


def _run(program: RowProgram, block: int, *refs: Any) -> None:
    """The kernel: ``refs`` are those of the arrays and of the outputs, all flat."""
    body = _Body(program, block, dict(zip(program.arrays, refs, strict=False)))
    for step in program.steps:
        body.make(step)
    for value, ref in zip(program.outputs, refs[len(program.arrays) :], strict=True):
        body.store(value, ref)


class _Body:
    """A block of rows on its way through the program; ``held`` are whole values, ``[block, features]`` padded."""

    def __init__(self, program: RowProgram, block: int, refs: Mapping[Value, Any]) -> None:
        self.program, self.block, self.refs = program, block, refs
        self.rows = pl.program_id(0) * block + jnp.arange(block, dtype=jnp.int32)
        self.absorbed = {node.results[0]: node for node in program.absorbed}
        self.held: dict[Value, Any] = {}

    def make(self, step: Node) -> None:
        """Run ``step`` for all its features."""
        (result,) = step.results
        if step in self.program.layers:
            self.held[result] = self._layer(step, self.program.layers[step])
        else:
            whole = _Columns(0, padded(features(result)), features(result))
            self.held[result] = _applied(step, [self._read(value, whole, self.held) for value in step.operands])

    def store(self, value: Value, ref: Any) -> None:
        """Write the rows of ``value``."""
        columns = _Columns(0, padded(features(value)), features(value))
        at = self.rows[:, None] * features(value) + columns.indices[None, :]
        triton.store(ref.at[at], self.held[value], mask=self._there(columns))

    def _read(self, value: Value, columns: _Columns, made: dict[Value, Any]) -> Any:
        """``columns`` of ``value``; intermediate results are kept in ``made``."""
        if value not in made:
            if value in self.program.numbers:
                made[value] = jnp.full((self.block, columns.count), self.program.numbers[value], jnp.float32)
            elif value in self.absorbed:
                node = self.absorbed[value]
                made[value] = _applied(node, [self._read(operand, columns, made) for operand in node.operands])
            else:
                made[value] = self._load(self.program.loads[value], columns)
        return made[value]

    def _layer(self, node: Node, layer: Layer) -> Any:
        """The sum of the contractions of the input's parts, ``[block, outputs]``."""
        total = jnp.zeros((self.block, padded(layer.outputs)), jnp.float32)
        for part, first in layer.parts:
            width = features(part)
            step = min(padded(width), _COLUMNS)
            if part in self.held:
                total += self._product(node, _Columns(0, padded(width), width), part, first, self.held)
            elif width <= step:
                total += self._product(node, _Columns(0, step, width), part, first, {})
            else:
                total = lax.fori_loop(
                    0,
                    pl.cdiv(width, step),
                    lambda index, total, part=part, first=first, width=width, step=step: (
                        total + self._product(node, _Columns(index * step, step, width), part, first, {})
                    ),
                    total,
                )
        return total

    def _product(self, node: Node, columns: _Columns, part: Value, first: int, made: dict[Value, Any]) -> Any:
        values = self._read(part, columns, made)
        if part not in self.program.loads:  # loaded values have zeros after their last column
            values = jnp.where((columns.indices < columns.width)[None, :], values, 0.0)
        weights = _weights(self.refs, self.program.layers[node], first, columns)
        return dot(values, weights, precision=strictest_precision(node))

    def _load(self, view: StridedView, columns: _Columns) -> Any:
        """``columns`` of the rows of ``view``; zeros where masked."""
        (at_row,) = places(view.rows, self.rows, 1)
        at = at_row[:, None] + (columns.indices * view.strides[-1])[None, :] + view.offset
        return triton.load(self.refs[view.base].at[at], mask=self._there(columns), other=0.0)

    def _there(self, columns: _Columns) -> Any:
        return (self.rows < self.program.rows)[:, None] & (columns.indices < columns.width)[None, :]


@dataclass(frozen=True)
class _Columns:
    """``count`` columns from ``start`` on, of a value that has ``width``."""

    start: Any
    count: int
    width: int

    @property
    def indices(self) -> Any:
        """Their numbers."""
        return self.start + jnp.arange(self.count, dtype=jnp.int32)


def _applied(node: Node, operands: list[Any]) -> Any:
    """An elementwise op, or a reshape of rows alone, on blocks."""
    if node.op is ops.RESHAPE:
        return operands[0]
    (result,) = Raising().node(node, dict(zip(node.operands, operands, strict=True)))
    return result


def _weights(refs: Mapping[Value, Any], layer: Layer, first: int, columns: _Columns) -> Any:
    """The rows of the matrix for ``columns`` of a part that starts at row ``first``, padded with zeros."""
    view = layer.weights
    outs = jnp.arange(padded(layer.outputs), dtype=jnp.int32)
    ins = columns.indices
    at = ins[:, None] * view.strides[0] + outs[None, :] * view.strides[1] + (view.offset + first * view.strides[0])
    there = (ins < columns.width)[:, None] & (outs < layer.outputs)[None, :]
    return triton.load(refs[view.base].at[at], mask=there, other=0.0)
