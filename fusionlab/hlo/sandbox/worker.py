"""The process in which MLIR and XLA parse foreign modules: their parsers crash, or never return, on some damaged ones.

    python -m fusionlab.hlo.sandbox.worker DESCRIPTOR

answers each module from the connection DESCRIPTOR with its bytecode, as MLIR writes it after parsing and verifying, or
with the error; and each HLO text or protobuf with XLA's full print of it, or with its bytecode as StableHLO. One byte
before states the kind, in both directions. Both sides send bytes, which nobody unpickles. ``client`` is the caller's
side. Nothing here imports JAX, so that it starts in a quarter of a second.
"""

from __future__ import annotations

import contextlib
import io
import re
import resource
import sys
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

from fusionlab.hlo.ops import op_of
from fusionlab.hlo.sandbox.validation import (
    drop_foreign_attributes,
    why_attribute_not_studied,
    why_not_studied,
    why_refused,
    why_text_refused,
)
from fusionlab.hlo.view import inner_operations, location_name, source_of
from fusionlab.subprocesses import limit_memory

STABLEHLO, HLO, UNOPTIMISED = range(3)
"""Kinds of requests: StableHLO as bytecode; HLO, text or protobuf, as XLA's full print, and as StableHLO."""

WORDS, MODULE, FOREIGN = range(3)
"""Kinds of answers: the error of a file; a module; the part of a valid module that is not studied, its place and the
names of attributes that can be dropped, each on a line, and the module without them, if it can be studied then."""

_MAGIC = b"ML\xefR"
_PORTABLE = re.compile(rb"ML\xefR.StableHLO_v(\d+(?:\.\d+)*)?", re.DOTALL)
_FIRST_FIELD, _MOST_VARINT = b"\n", 11
_CONTROL, _LOOKED_AT = re.compile(rb"[\x00-\x08\x0e-\x1f]"), 4096
_HLO_ERROR = re.compile(r"was parsing (\d+):(\d+): error: (.*)")
_STATIC_SHAPES = "builtin.module(stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism))"


class Unreadable(Exception):
    """Not a valid module; the message is the cause in one line."""


class Foreign(Exception):
    """A valid module with a part that is not studied: ``what``, in one line, and ``where``.

    ``without`` is the module without that part, where the part is ``dropped`` attributes alone: their names.
    """

    def __init__(self, what: str, where: str, dropped: str = "", without: bytes = b"") -> None:
        super().__init__(what)
        self.what, self.where, self.dropped, self.without = what, where, dropped, without


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
            if (newer := _why_newer(content)) is not None:
                raise Unreadable(newer) from None
            if (foreign := _of_unknown_dialect(content)) is not None:
                raise Foreign(*foreign) from None
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
            ir.Module.parse(bytecode)  # a few damaged modules cannot be read back: fail here, not in the caller
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


def _why_newer(content: bytes) -> str | None:
    """The versions of a portable artifact and of this reader, if the first is newer, and what to do; else None."""
    header, ours = _PORTABLE.match(content), stablehlo.get_current_version()
    if header is None or header[1] is None or _numbers(header[1].decode()) <= _numbers(ours):
        return None
    theirs = header[1].decode()
    return (
        f"a portable artifact of StableHLO {theirs}, and jaxlib {version('jaxlib')} reads up to {ours}; update jaxlib, "
        f"or write the artifact for {ours} (stablehlo.serialize_portable_artifact(module, {ours!r}))"
    )


def _numbers(version_text: str) -> tuple[int, ...]:
    return tuple(int(number[:9]) for number in version_text.split("."))


def _of_unknown_dialect(content: bytes) -> tuple[str, str, str, bytes] | None:
    """The unknown dialect of a module that is valid otherwise, as arguments of Foreign: MLIR accepts such operations in
    their generic form, as in bytecode. None for what is no module even so."""
    with _context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = _parsed(content, context)
        except (ir.MLIRError, ValueError):
            return None
        if why_refused(module) is not None:
            return None
        if (found := why_not_studied(module)) is not None:
            return (*found, "", b"")
        where = "the module"
        what = f"there is an attribute or a type of an unknown dialect in {where}"
        found = why_attribute_not_studied(module) or (what, where)
        dropped = drop_foreign_attributes(module)
        if (left := why_attribute_not_studied(module)) is not None:
            return (*left, "", b"")
        without = io.BytesIO()
        module.operation.write_bytecode(file=without)
    try:
        return (*found, ", ".join(dropped), read(without.getvalue()))
    except (Unreadable, Foreign):
        return (*found, "", b"")


def _looks_dynamic(module: ir.Module) -> bool:
    """True if ``module`` has a computed or unknown shape, which may follow from static ones."""
    return any(
        op_of(operation.name).dynamic or any(map(_is_unknown, operation.results))
        for operation in inner_operations(module.operation)
    )


def _is_unknown(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape


def _with_static_shapes(content: bytes, context: ir.Context) -> ir.Module | None:
    """The module with shapes that follow from its arguments' written out; None where StableHLO cannot do that."""
    module = _parsed(content, context)  # anew: a pass that fails leaves half of its work
    stablehlo.register_stablehlo_passes()
    try:
        passmanager.PassManager.parse(_STATIC_SHAPES, context).run(module.operation)
        module.operation.verify()
    except ir.MLIRError:
        return None
    return module


def _read_names(module: ir.Module) -> None:
    """Read the names that the caller will read: the bindings crash on invalid UTF-8, so let it be in this process."""
    for operation in (module.operation, *inner_operations(module.operation)):
        location_name(operation)
        source_of(operation)
        for key in ("call_target_name", "sym_name", "callee"):
            if key in operation.attributes:
                _ = operation.attributes[key].value


def _context() -> ir.Context:
    """A single-threaded context with JAX's dialects."""
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


def read_hlo(content: bytes) -> bytes:
    """XLA's full print of an HLO text or protobuf in any form that XLA reads; Unreadable has the reason."""
    return str(_hlo_module(content).to_string()).encode()


def read_unoptimised(content: bytes) -> bytes:
    """The bytecode of HLO as StableHLO; what XLA cannot convert is Unreadable."""
    from jaxlib import _jax

    module = _hlo_module(content)
    try:
        converted = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    except (RuntimeError, ValueError) as error:
        raise Unreadable(f"XLA cannot convert this HLO to StableHLO: {_first_line(error)}") from None
    return read(converted)


def _hlo_module(content: bytes) -> Any:
    """The module of an HLO text or protobuf; Unreadable has XLA's reason, for a text with the position."""
    try:
        from jaxlib import _hlo
    except ImportError:  # before JAX 0.10.2
        from jaxlib import _jax as _hlo
    try:
        if is_hlo_protobuf(content):
            return _hlo.HloModule.from_serialized_hlo_module_proto(_module_message(content))
        return _hlo.hlo_module_from_text(content.decode("utf-8", "replace"))
    except (RuntimeError, ValueError) as error:
        if is_hlo_protobuf(content):
            raise Unreadable(f"not an HLO protobuf: {_first_line(error)}") from None
        found = _HLO_ERROR.findall(str(error))
        line, column, reason = next(
            (each for each in found if not each[2].endswith(":")), ("1", "1", _first_line(error))
        )
        raise Unreadable(f"line {line}, column {column}: not HLO text: {reason}") from None


def is_hlo_protobuf(content: bytes) -> bool:
    """True for what begins as a message with a text as its first field, and is no text: no other known form does."""
    return content.startswith(_FIRST_FIELD) and _CONTROL.search(content, 0, _LOOKED_AT) is not None


def _module_message(content: bytes) -> bytes:
    """The ``HloModuleProto`` in ``content``: itself, or the first field of an ``HloProto`` or of an ``HloSnapshot``.

    A module's own first field is its name; that of a message around it is a message, which begins as one.
    """
    size, shift, at = 0, 0, 1
    while at < min(len(content), _MOST_VARINT):
        size |= (content[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 0x80:
            break
    inner = content[at : at + size]
    return _module_message(inner) if inner.startswith(_FIRST_FIELD) else content


def answer_to(request: bytes) -> tuple[int, bytes]:
    """The kind of the answer to a request, and the answer."""
    kind, content = request[0], request[1:]
    try:
        return MODULE, _READERS[kind](content)
    except Unreadable as error:
        return WORDS, str(error).encode()
    except Foreign as error:
        return FOREIGN, f"{error.what}\n{error.where}\n{error.dropped}\n".encode() + error.without
    except (MemoryError, RecursionError, ir.MLIRError, ValueError, IndexError) as error:
        return WORDS, f"cannot be read: {type(error).__name__}: {_first_line(error)}".encode()


_READERS = {STABLEHLO: read, HLO: read_hlo, UNOPTIMISED: read_unoptimised}


def main(descriptor: str) -> None:
    """Answer requests until they end; no core dumps."""
    limit_memory()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(EOFError, ConnectionError), Connection(int(descriptor)) as requests:
        while True:
            what, answer = answer_to(requests.recv_bytes())
            requests.send_bytes(bytes([what]) + answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
