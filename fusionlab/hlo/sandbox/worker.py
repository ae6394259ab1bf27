"""The process in which MLIR reads what others bring: its parsers end the process, or never return, on some damage.

    python -m fusionlab.hlo.sandbox.worker

answers each module on stdin with its bytecode, as MLIR writes it after reading and verifying, or with what is wrong
with it. ``client`` is the caller's side. Nothing here imports JAX, so that it starts in a quarter of a second.
"""

from __future__ import annotations

import io
import os
import re
import resource
import struct
import sys
from typing import Any, BinaryIO

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

from fusionlab.hlo.ops import op_of
from fusionlab.hlo.sandbox.validation import why_not_studied, why_refused, why_text_refused
from fusionlab.subprocesses import limit_memory

HEADER = struct.Struct("<BQ")
"""Before what is sent in either direction: what it is, one of the three below, and how many bytes it has."""

WORDS, MODULE, FOREIGN = range(3)
"""What is wrong with a file; a module; what there is in a valid module that is not studied and, in a line of its own,
where."""

_MAGIC = b"ML\xefR"
_PORTABLE = re.compile(rb"ML\xefR.StableHLO_v", re.DOTALL)
_STATIC_SHAPES = "builtin.module(stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism))"


class Unreadable(Exception):
    """What is no module that can be studied; the message is the cause in one line."""


class Foreign(Exception):
    """A valid module in which there is something that is not studied: ``what``, in one line, and ``where``."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(what)
        self.what, self.where = what, where


def read(content: bytes) -> bytes:
    """The bytecode of a module given as StableHLO text, MLIR bytecode or a portable artifact (VHLO) of any version."""
    is_bytecode = content.startswith(_MAGIC)
    if not is_bytecode and (cause := why_text_refused(content)) is not None:
        raise Unreadable(cause)
    with _context() as context:
        try:
            module = _parsed(content, context)
        except UnicodeDecodeError:
            raise Unreadable("neither StableHLO text nor MLIR bytecode") from None
        except (ir.MLIRError, ValueError) as error:
            if (found := _of_unknown_dialect(content)) is not None:
                raise Foreign(*found) from None
            raise Unreadable(f"not a valid StableHLO module: {_first_line(error)}") from None
        if (cause := why_refused(module)) is not None:
            raise Unreadable(cause)
        if (found := why_not_studied(module)) is not None:
            raise Foreign(*found)
        _read_names(module)
        if _looks_dynamic(module):
            module = _with_static_shapes(content, context) or module
        written = io.BytesIO()
        module.operation.write_bytecode(file=written)
    bytecode = written.getvalue()
    with _context():
        try:
            ir.Module.parse(bytecode)  # of damaged modules a few cannot be read back: the caller must not be the first
        except ir.MLIRError as error:
            raise Unreadable(f"not a valid StableHLO module: {_first_line(error)}") from None
    return bytecode


def _parsed(content: bytes, context: ir.Context) -> ir.Module:
    if _PORTABLE.match(content):
        module = stablehlo.deserialize_portable_artifact(context, content)
    else:
        module = ir.Module.parse(content if content.startswith(_MAGIC) else content.decode("utf-8"))
    module.operation.verify()
    return module


def _of_unknown_dialect(content: bytes) -> tuple[str, str] | None:
    """What of an unknown dialect there is in a module, and where, if it is valid otherwise: MLIR holds such operations
    where they are written in their general form, as in bytecode. None for what is no module even so."""
    with _context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = _parsed(content, context)
        except (ir.MLIRError, ValueError):
            return None
        if why_refused(module) is not None:
            return None
        where = "the module"
        return why_not_studied(module) or (f"there is an attribute or a type of an unknown dialect in {where}", where)


def _looks_dynamic(module: ir.Module) -> bool:
    """Whether a shape is computed in it or unknown, which may follow from static ones."""
    found = []

    def look(operation: Any) -> Any:
        if op_of(operation.name).dynamic or any(
            isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape
            for value in operation.results
        ):
            found.append(operation.name)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return bool(found)


def _with_static_shapes(content: bytes, context: ir.Context) -> ir.Module | None:
    """The module with shapes that follow from its arguments' written out; None where StableHLO cannot do that."""
    module = _parsed(content, context)  # afresh: a pass that fails leaves half of its work
    stablehlo.register_stablehlo_passes()
    try:
        passmanager.PassManager.parse(_STATIC_SHAPES, context).run(module.operation)
        module.operation.verify()
    except ir.MLIRError:
        return None
    return module


def _read_names(module: ir.Module) -> None:
    """Read what will be read of names: the bindings end the process where one is no UTF-8, so let it be this one."""

    def look(operation: Any) -> Any:
        _ = getattr(operation.location, "name_str", None)
        for key in ("call_target_name", "sym_name", "callee"):
            if key in operation.attributes:
                _ = operation.attributes[key].value
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)


def _context() -> ir.Context:
    """A context with the dialects of JAX's own, of one thread."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    context.enable_multithreading(False)
    return context


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Unable to parse")] or lines
    return re.sub(r"^error: ", "", lines[0]) if lines else type(error).__name__


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until they end."""
    while len(header := requests.read(HEADER.size)) == HEADER.size:
        content = requests.read(HEADER.unpack(header)[1])
        try:
            what, answer = MODULE, read(content)
        except Unreadable as error:
            what, answer = WORDS, str(error).encode()
        except Foreign as error:
            what, answer = FOREIGN, f"{error.what}\n{error.where}".encode()
        except (MemoryError, RecursionError, ir.MLIRError, ValueError, IndexError) as error:
            what, answer = WORDS, f"cannot be read: {type(error).__name__}: {_first_line(error)}".encode()
        answers.write(HEADER.pack(what, len(answer)) + answer)
        answers.flush()


def main() -> None:
    """Serve on stdin and stdout, with what the libraries may print to stdout sent elsewhere, and no core dumps."""
    limit_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
