"""Files that hold a program in another form than StableHLO: XLA's HLO, and a saved ``jax.export``."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from fusionlab.errors import InputError, NotStudied
from fusionlab.files import read_file
from fusionlab.hlo.optimised.device import clock_ghz_of_estimates, platform_of
from fusionlab.hlo.optimised.parser import HloModule, HloSyntaxError, parse_optimized
from fusionlab.hlo.optimised.validation import why_hlo_refused
from fusionlab.hlo.program import Program
from fusionlab.hlo.sandbox.client import Foreign, Unreadable, hlo_text_apart, stablehlo_of_hlo_apart
from fusionlab.hlo.sandbox.worker import is_hlo_protobuf

_log = logging.getLogger(__name__)

# Optimised HLO text begins so, after a byte order mark and comments.
_HLO_TEXT = re.compile(rb"(\xef\xbb\xbf)?(\s|//[^\n]*\n)*HloModule")
# An instruction as XLA's short print has it, and as its full print, with a sigil.
_SHORT = re.compile(r"^\s*(ROOT )?[\w.\-]+ = [a-z(]", re.MULTILINE)
# A constant whose elements are not printed.
_ELIDED = re.compile(rb"^\s*(?:ROOT )?%?([\w.\-]+) = [^\n\"]*? constant\(\{\.\.\.\}\)", re.MULTILINE)
_FULL = re.compile(r"^\s*(ROOT )?%[^\s=]+ = ", re.MULTILINE)


@dataclass(frozen=True)
class HloFile:
    """Optimised HLO text from a file, compiled by XLA for one device, which the text does not name.

    ``platform`` is ``cuda``, ``cpu`` or "" and ``estimates_clock_ghz`` the clock of the device that XLA's estimates are
    for, None without any (``hlo.optimised.device``).
    """

    name: str
    path: str
    text: str
    module: HloModule
    platform: str = ""
    estimates_clock_ghz: float | None = None


def load_saved(path: str | Path, *, whole: bool = False) -> HloFile | Program:
    """The content of a file in any known form: HLO text or protobuf, StableHLO, a saved ``jax.export``.

    HLO before XLA's optimisation is converted to StableHLO, and so is a Program.

    InputError names the file and, for HLO text, the line and column of the error. ``whole`` is as for
    ``Program.of_foreign_bytes``.
    """
    path = Path(path)
    return content_as_saved(read_file(path), path, whole=whole)


def content_as_saved(content: bytes, path: Path, *, whole: bool = False) -> HloFile | Program:
    """``load_saved`` of a file ``path`` with the bytes ``content``."""
    if _HLO_TEXT.match(content) or is_hlo_protobuf(content):
        return _hlo(content, path)
    return _exported(path, content) or Program.of_foreign_bytes(content, path, whole=whole)


def _hlo(content: bytes, path: Path) -> HloFile | Program:
    """The HLO ``content``: a protobuf and XLA's short print are first read, and printed in full, by XLA itself."""
    content = content.removeprefix(b"\xef\xbb\xbf")  # XLA's readers know no byte order mark
    text = content.decode("utf-8", "replace")
    try:
        if is_hlo_protobuf(content) or (_SHORT.search(text) and not _FULL.search(text)):
            text = hlo_text_apart(content)
        module = parse_optimized(text)
    except (HloSyntaxError, Unreadable) as error:
        raise InputError(f"{path}: {error}") from None
    if (cause := why_hlo_refused(module)) is not None:
        raise InputError(f"{path}: {cause}")
    if not module.is_scheduled:
        return _unoptimised(content, path, module)
    return HloFile(path.stem, str(path), text, module, platform_of(module), clock_ghz_of_estimates(module))


def _unoptimised(content: bytes, path: Path, module: HloModule) -> Program:
    """HLO before XLA's optimisation as StableHLO, which XLA is still to compile; InputError for HLO between the two."""
    instructions = [one for part in module.computations.values() for one in part.instructions]
    if any(one.opcode == "fusion" for one in instructions):
        raise InputError(
            f"{path}: HLO after fusion and before scheduling: its ops are not launches; give what XLA ends with "
            "(jax.jit(f).lower(...).compile().as_text()), or what it begins with (lower(...).as_text())"
        )
    if (elided := _ELIDED.search(content)) is not None:
        raise InputError(
            f"{path}: the elements of constant {elided[1].decode()} are left out ({{...}}), and nobody knows them; "
            "dump with --xla_dump_large_constants, or as protobuf with --xla_dump_hlo_as_proto"
        )
    try:
        bytecode = stablehlo_of_hlo_apart(content)
    except Foreign as found:
        raise NotStudied(str(path), found.what, found.where, content) from None
    except Unreadable as error:
        raise InputError(f"{path}: {error}") from None
    try:
        program = Program.of_foreign_bytes(bytecode, path)
    except NotStudied as found:  # the file is the HLO, not its conversion
        raise NotStudied(found.path, found.what, found.where, content) from None
    _log.warning("%s: HLO before XLA's optimisation: read as StableHLO, and compiled", path)
    return program


def _exported(path: Path, content: bytes) -> Program | None:
    """The program of a ``jax.export`` artifact (a flat buffer: neither text nor MLIR bytecode); None for others."""
    if content.startswith(b"ML\xefR") or b"\0" not in content[:64]:
        return None
    from jax import export

    try:
        exported = export.deserialize(bytearray(content))
    except Exception:  # the flat buffer reader has no error of its own: any of struct, index, value, key
        return None
    if len(exported.platforms) != 1:
        named = ", ".join(exported.platforms)
        raise InputError(f"{path}: exported for several platforms ({named}); export it for one of them")
    name = re.sub(r"[^\w.-]+", "_", exported.fun_name).strip(".") or path.stem  # becomes part of file names
    module = exported.mlir_module_serialized
    try:
        return Program.of_foreign_bytes(module, path, name=name, platform=exported.platforms[0])
    except NotStudied as found:  # the file is the whole of the artifact, not only its module
        raise NotStudied(found.path, found.what, found.where, content) from None
