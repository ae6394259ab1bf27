"""Program: one StableHLO module, frozen, with its signature, platform and provenance.

The StableHLO module is the IR of record (docs/decisions/0001). A Program keeps it as MLIR bytecode, so that nothing
can edit it in place and equal programs have equal digests; ``parse`` returns a fresh module in a fresh context.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from fusionlab.errors import InputError, NotStudied
from fusionlab.files import read_file
from fusionlab.hlo.contents import is_dynamic, is_impossible, operations_in, platform_of, types_in
from fusionlab.hlo.sandbox.client import Foreign, Unreadable, read_apart

_ONLY_STATIC = "only tensors of static shape can be studied"


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


@dataclass(frozen=True)
class Program:
    """A StableHLO module. ``platform`` is ``cpu``, ``cuda`` or ``any`` (no platform-specific custom call in it)."""

    name: str
    bytecode: bytes
    platform: str
    provenance: str

    @staticmethod
    def from_module(module: ir.Module, *, name: str, provenance: str, platform: str | None = None) -> Program:
        """Freeze ``module`` (it is serialised; later edits of it do not reach the Program)."""
        bytecode = bytecode_of(module)
        return Program(name, bytecode, platform or platform_of(module), provenance)

    @staticmethod
    def from_file(path: str | Path) -> Program:
        """Read StableHLO text, MLIR bytecode or a portable artifact. InputError names the file and the cause."""
        path = Path(path)
        return Program.of_foreign_bytes(read_file(path), path)

    @staticmethod
    def of_foreign_bytes(content: bytes, path: Path, *, name: str = "", platform: str | None = None) -> Program:
        """The program in ``content`` of the file ``path``; InputError names the file and the cause, NotStudied the part
        of a valid module that is not studied.

        MLIR parses it in another process first: this one reads the bytecode that MLIR has written there.
        """
        if not content.strip():
            raise InputError(f"{path}: the file is empty; expected a StableHLO module")
        try:
            bytecode = read_apart(content)
        except Unreadable as error:
            raise InputError(f"{path}: {error}") from None
        except Foreign as error:
            raise NotStudied(str(path), error.what, error.where, content) from None
        try:
            module = _parsed(bytecode)
        except ir.MLIRError as error:  # a dialect registered in the other process only
            cause = str(error).splitlines()[-1].strip()
            raise InputError(f"{path}: not a valid StableHLO module: {cause}") from None
        _require_static_tensors(module, path, content)
        return Program(name or path.stem, bytecode, platform or platform_of(module), str(path))

    @staticmethod
    def from_own_file(path: str | Path) -> Program:
        """Read the bytecode of a Program that another process of fusionlab has written."""
        bytecode = Path(path).read_bytes()
        return Program(Path(path).stem, bytecode, platform_of(_parsed(bytecode)), str(path))

    def parse(self) -> ir.Module:
        """A fresh copy of the module in a fresh context (``module.context``)."""
        return _parsed(self.bytecode)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytecode, hexadecimal."""
        return hashlib.sha256(self.bytecode).hexdigest()

    @cached_property
    def text(self) -> str:
        """The module as StableHLO text with locations; parsing it gives an equal module."""
        return str(self.parse().operation.get_asm(enable_debug_info=True))

    @cached_property
    def _entry_types(self) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
        module = self.parse()  # held: a function does not keep its module alive
        entry = _public_function(module).type
        inputs, results = (tuple(map(TensorType.of, types)) for types in (entry.inputs, entry.results))
        return inputs, results

    @cached_property
    def inputs(self) -> tuple[TensorType, ...]:
        """Types of the public function's arguments, in order."""
        return self._entry_types[0]

    @cached_property
    def outputs(self) -> tuple[TensorType, ...]:
        """Types of the public function's results, in order."""
        return self._entry_types[1]

    @cached_property
    def ops(self) -> int:
        """Number of StableHLO and CHLO operations, in all functions and regions."""
        return operations_in(self.parse())


def rewritten(program: Program, module: ir.Module) -> Program:
    """``module``, an edit of ``program``, as a Program; platform ``any`` may have become a specific one."""
    platform = None if program.platform == "any" else program.platform
    return Program.from_module(module, name=program.name, provenance=program.provenance, platform=platform)


def bytecode_of(module: ir.Module) -> bytes:
    """``module`` as MLIR bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(file=buffer)
    return buffer.getvalue()


def public_function(module: ir.Module) -> Any:
    """The entry ``func.func`` of ``module``: ``main``, else its first public function."""
    function = _public_function(module)
    if function is None:
        raise InputError("the module has no public function; expected one named main")
    return function


def public_functions(module: ir.Module) -> list[Any]:
    """The public ``func.func`` of ``module``, in order."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    return [f for f in functions if f.sym_visibility is None or f.visibility.value == "public"]


def _public_function(module: ir.Module) -> Any:
    public = public_functions(module)
    return next((f for f in public if f.name.value == "main"), public[0] if public else None)


def _parsed(bytecode: bytes) -> ir.Module:
    with make_ir_context():
        return ir.Module.parse(bytecode)


def _require_static_tensors(module: ir.Module, path: Path, content: bytes) -> None:
    """InputError naming the file, unless ``module`` has an entry, and tensors of possible shapes; NotStudied for
    dynamic ones."""
    if (entry := _public_function(module)) is None:
        raise InputError(f"{path}: the module has no public function; expected one named main")
    for kind, types in (("argument", entry.type.inputs), ("result", entry.type.results)):
        for index, type_ in enumerate(types):
            try:
                TensorType.of(type_)
            except ValueError:
                where = f"@{entry.name.value}"
                what = f"{kind} {index} of {where} has type {type_}; {_ONLY_STATIC}"
                raise NotStudied(str(path), what, where, content) from None
    found = types_in(module)
    if (dynamic := next(filter(is_dynamic, found), None)) is not None:
        where = found[dynamic]
        raise NotStudied(str(path), f"there is a {dynamic} in {where}; {_ONLY_STATIC}", where, content)
    if (large := next(filter(is_impossible, found), None)) is not None:
        raise InputError(f"{path}: there is a {large} in {found[large]}, more than any memory holds")
