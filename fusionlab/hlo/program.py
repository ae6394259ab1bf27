"""Program: one StableHLO module, frozen, with its signature, platform and provenance.

The StableHLO module is the IR of record (docs/decisions/0001). A Program keeps it as MLIR bytecode, so that nothing
can edit it in place and equal programs have equal digests; ``parse`` returns a fresh module in a fresh context, and
``program_view`` the one view of all that only read it.

What a module contains is found by walking its operations, never by searching its text: strings, names and locations
in it are arbitrary.
"""

from __future__ import annotations

import hashlib
import io
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from fusionlab.errors import InputError, NotStudied
from fusionlab.files import read_file
from fusionlab.hlo import ops
from fusionlab.hlo.meshes import SHARDINGS, devices_of, has_collectives
from fusionlab.hlo.sandbox.client import read_apart
from fusionlab.hlo.sandbox.worker import Foreign, Unreadable
from fusionlab.hlo.view import (
    FunctionView,
    TensorType,
    functions_of,
    inner_operations,
    public_function,
    public_functions,
    view_of,
)

_log = logging.getLogger(__name__)

MOST_ELEMENTS = 2**48
_MOST_NAMED = 8
_FULL_TO_SHARD = "SPMDFullToShardShape"
_COUNTED = ("stablehlo", "chlo")
_ONLY_STATIC = "only tensors of static shape can be studied"


@dataclass(frozen=True)
class Program:
    """A StableHLO module. ``platform`` is ``cpu``, ``cuda`` or ``any`` (no platform-specific custom call in it)."""

    name: str
    bytecode: bytes = field(repr=False)
    platform: str
    provenance: str

    @staticmethod
    def from_module(module: ir.Module, *, name: str, provenance: str, platform: str | None = None) -> Program:
        """Freeze ``module`` (it is serialised; later edits of it do not reach the Program)."""
        bytecode = bytecode_of(module)
        return Program(name, bytecode, platform or platform_of(module), provenance)

    @staticmethod
    def from_function(function: Any, /, *args: Any, platform: str = "cuda", **named: Any) -> Program:
        """Lower a function (jitted or not) of these arguments for ``platform``: ``cuda`` or ``cpu``; nothing runs.

        Arguments are pytrees of arrays or of ``jax.ShapeDtypeStruct``. InputError for what JAX cannot trace, with JAX's
        error as the cause.
        """
        from fusionlab.hlo.lowering import lower_function  # which makes Programs

        return lower_function(function, args, named, platform)

    @staticmethod
    def from_file(path: str | Path) -> Program:
        """Read StableHLO text, MLIR bytecode or a portable artifact. InputError names the file and the cause."""
        path = Path(path)
        return Program.of_foreign_bytes(read_file(path), path)

    @staticmethod
    def of_foreign_bytes(
        content: bytes, path: Path, *, name: str = "", platform: str | None = None, whole: bool = False
    ) -> Program:
        """The program in ``content`` of the file ``path``; InputError names the file and the cause, NotStudied the part
        of a valid module that is not studied. Attributes of unknown dialects are dropped with a warning, unless the
        ``whole`` is asked for.

        MLIR parses it in another process first: this one reads the bytecode that MLIR has written there.
        """
        if not content.strip():
            raise InputError(f"{path}: the file is empty; expected a StableHLO module")
        try:
            bytecode = read_apart(content)
        except Unreadable as error:
            raise InputError(f"{path}: {error}") from None
        except Foreign as error:
            if whole or not error.without:
                raise NotStudied(str(path), error.what, error.where, content) from None
            bytecode = error.without
            _log.warning("%s: attributes of unknown dialects are left out: %s", path, error.dropped)
        try:
            module = _parsed(bytecode)
        except ir.MLIRError as error:  # a dialect registered in the other process only
            cause = str(error).splitlines()[-1].strip()
            raise InputError(f"{path}: not a valid StableHLO module: {cause}") from None
        _require_entry(module, path)
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
        entry = public_function(module).type
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
        """Number of StableHLO and CHLO operations, in all functions and regions; terminators do not count."""
        module = self.parse()  # held: an operation does not keep its module alive
        names = (operation.name.partition(".") for operation in inner_operations(module.operation))
        return sum(dialect in _COUNTED and name != "return" for dialect, _, name in names)

    @cached_property
    def has_collectives(self) -> bool:
        """True if it has a ``shard_map``, collectives, or something that reads the number of its device."""
        # Names are plain in bytecode, and to look is to parse.
        named = any(name.partition(".")[2].encode() in self.bytecode for name in ops.ACROSS)
        return named and has_collectives(self.parse())

    @cached_property
    def devices(self) -> int:
        """The number of devices of its ``shard_map``; 1 without one."""
        return devices_of(self.parse()) if self.has_collectives else 1

    def __getstate__(self) -> dict[str, Any]:
        """All but the view: MLIR's objects can be neither pickled nor copied."""
        return {name: value for name, value in vars(self).items() if name != "_view"}

    @cached_property
    def _view(self) -> FunctionView:
        return view_of(self.parse())


def without_view(program: Program) -> Program:
    """``program`` as read: for who keeps many, whose views would stay in memory with them."""
    return replace(program)


def program_view(program: Program) -> FunctionView:
    """The view of the public function of ``program``: one for all its readers, and never edited."""
    return program._view


def rewritten(program: Program, module: ir.Module) -> Program:
    """``module``, an edit of ``program``, as a Program; platform ``any`` may have become a specific one."""
    platform = None if program.platform == "any" else program.platform
    return Program.from_module(module, name=program.name, provenance=program.provenance, platform=platform)


def bytecode_of(module: ir.Module) -> bytes:
    """``module`` as MLIR bytecode."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(file=buffer)
    return buffer.getvalue()


def _parsed(bytecode: bytes) -> ir.Module:
    with make_ir_context():
        return ir.Module.parse(bytecode)


def _require_entry(module: ir.Module, path: Path) -> None:
    """InputError naming the file unless ``module`` has an entry: its @main, or its only public function, which is
    said."""
    names = [str(function.name.value) for function in public_functions(module)]
    if not names:
        raise InputError(f"{path}: the module has no public function; expected one named main")
    if "main" in names:
        return
    if len(names) > 1:
        named = ", ".join(f"@{name}" for name in names[:_MOST_NAMED]) + ", ..." * (len(names) > _MOST_NAMED)
        remedy = "name one main, or make the others private"
        raise InputError(f"{path}: several public functions and no @main: {named}; {remedy}")
    _log.warning("%s: no @main: the entry is @%s, the only public function", path, names[0])


def _require_static_tensors(module: ir.Module, path: Path, content: bytes) -> None:
    """InputError naming the file, unless tensors of ``module`` have possible shapes; NotStudied for dynamic ones."""
    entry = public_function(module)
    for kind, types in (("argument", entry.type.inputs), ("result", entry.type.results)):
        for index, type_ in enumerate(types):
            try:
                TensorType.of(type_)
            except ValueError:
                where = f"@{entry.name.value}"
                what = f"{kind} {index} of {where} has type {type_}; {_ONLY_STATIC}"
                raise NotStudied(str(path), what, where, content) from None
    found = _types_in(module)
    if (dynamic := next(filter(_is_dynamic, found), None)) is not None:
        where = found[dynamic]
        raise NotStudied(str(path), f"there is a {dynamic} in {where}; {_ONLY_STATIC}", where, content)
    if (large := next(filter(_is_impossible, found), None)) is not None:
        raise InputError(f"{path}: there is a {large} in {found[large]}, more than any memory holds")


def platform_of(module: ir.Module) -> str:
    """``cuda`` or ``cpu``, by the libraries that custom calls of ``module`` name; ``any`` where they name neither."""
    called = {
        ops.platform_of_target(operation.attributes["call_target_name"].value)
        for operation in inner_operations(module.operation)
        if operation.name.endswith("custom_call") and "call_target_name" in operation.attributes
    }
    return next((platform for platform in ("cuda", "cpu") if platform in called), "any")


def is_sharded(module: ir.Module) -> bool:
    """True if any operation, argument or result of ``module`` has a sharding."""
    return any(map(has_sharding, inner_operations(module.operation)))


def has_sharding(operation: ir.Operation) -> bool:
    """True if ``operation``, one of its arguments or of its results has a sharding."""
    attributes = operation.attributes
    of_values = [given for name in ("arg_attrs", "res_attrs") if name in attributes for given in attributes[name]]
    return operation.name.startswith("sdy.") or any(
        name in each for each in (attributes, *of_values) for name in SHARDINGS
    )


def of_gspmd(program: Program) -> tuple[str, str] | None:
    """A ``shard_map`` in ``program`` that was lowered for the GSPMD partitioner, in one line, and its function; None if
    there is none."""
    if _FULL_TO_SHARD.encode() not in program.bytecode:  # names are plain there; to look is to parse
        return None
    module = program.parse()  # held: a function does not keep its module alive
    for name, function in functions_of(module).items():
        for inner in inner_operations(function.operation):
            if inner.name == ops.CUSTOM_CALL.name and inner.attributes["call_target_name"].value == _FULL_TO_SHARD:
                what = f"there is a custom call @{_FULL_TO_SHARD} in @{name}"
                remedy = "lower it with jax.config.update('jax_use_shardy_partitioner', True)"
                return f"{what}: a shard_map lowered for the GSPMD partitioner; {remedy}", f"@{name}"
    return None


def _types_in(module: ir.Module) -> dict[ir.Type, str]:
    """Types of all values in ``module``, and of the arguments and results of functions without a body, each with the
    first function that has it (``@main``), or ``the module``."""
    found: dict[ir.Type, str] = {}
    for top in module.body.operations:
        is_function = top.operation.name == "func.func"
        where = f"@{top.name.value}" if is_function else "the module"
        types = [*top.type.inputs, *top.type.results] if is_function else []
        for operation in (top.operation, *inner_operations(top.operation)):
            types += [result.type for result in operation.results]
            types += [a.type for region in operation.regions for block in region for a in block.arguments]
        for type_ in types:
            found.setdefault(type_, where)
    return found


def _is_dynamic(type_: ir.Type) -> bool:
    """True if ``type_`` is a tensor of unknown shape, or a tuple that contains one."""
    return any(isinstance(t, ir.UnrankedTensorType) or not t.has_static_shape for t in _tensors(type_))


def _is_impossible(type_: ir.Type) -> bool:
    """True if ``type_``, which is not dynamic, has more elements than any memory holds."""
    return any(math.prod(tensor.shape) > MOST_ELEMENTS for tensor in _tensors(type_))


def _tensors(type_: Any) -> Iterator[Any]:
    if isinstance(type_, ir.TupleType):
        for index in range(type_.num_types):
            yield from _tensors(type_.get_type(index))
    elif isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        yield type_
