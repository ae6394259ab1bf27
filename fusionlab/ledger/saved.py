"""A ledger as a record that can be saved: what ``launches --json`` writes and ``diff`` reads.

It has all launches and copies of one program on one target with their origins, XLA's refusals, and the memory, so that
a comparison needs neither the program nor the compiler.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import InputError
from fusionlab.hlo.name_stacks import read_name
from fusionlab.ledger.control_flow import ControlFact, control_facts
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.ledger import LaunchSite, Reading
from fusionlab.ledger.origins import Origins
from fusionlab.ledger.refusals import refusals

SCHEMA = "fusionlab-ledger-1"
_COMPARED: Mapping[str, tuple[str, ...]] = {
    "rows": (
        "name", "dynamic_launches", "family", "scope", "op", "transform", "source", "loop", "trip_count", "bytes",
        "model_us", "parts",
    ),
    "copies": (
        "name", "dynamic_copies", "kind", "scope", "op", "transform", "source", "loop", "trip_count", "bytes",
    ),
    "refusals": ("kernel", "cause"),
}  # fmt: skip
"""The fields of a ledger's parts that a comparison reads (``changes``)."""
_NAMED = ("name", "target", "versions", "rows")
_TOO_LARGE = 2**63
"""Counts, bytes and times of a ledger are below this."""
_SAVE = "save it again with `fusionlab launches PROGRAM --json > FILE`"


@dataclass(frozen=True)
class CopySite:
    """One copy or memset; ``bytes`` are read and written over all runs (model)."""

    name: str
    kind: str
    loop: str
    trip_count: int
    dynamic_copies: int
    bytes: int
    op_name: str
    scope: str
    op: str
    transform: str
    source: str


@dataclass(frozen=True)
class SavedRefusal:
    """One result that XLA refused to fuse into its readers, and the reason; see ``refusals.FusionRefusal``."""

    kernel: str
    consumers: tuple[str, ...]
    cause: str
    scope: str
    op: str
    source: str
    dynamic_launches: int


@dataclass(frozen=True)
class LedgerRecord:
    """The ledger of one program on one target.

    ``temp_bytes`` is XLA's temporary memory, None where it is not known (HLO text); ``refusals`` is None where XLA kept
    no record. Loops of unknown trip count are taken as one trip, conditionals as their longest branch, which
    ``control_flow`` names.
    """

    name: str
    target: str
    versions: str
    launch_source: str
    rows: tuple[LaunchRow, ...]
    copies: tuple[CopySite, ...]
    refusals: tuple[SavedRefusal, ...] | None
    temp_bytes: int | None
    argument_bytes: int | None
    unknown_trip_loops: int
    conditionals: int
    control_flow: tuple[ControlFact, ...] = ()

    @property
    def dynamic_launches(self) -> int:
        """Kernel launches of one call, trips multiplied."""
        return sum(row.dynamic_launches for row in self.rows)

    @property
    def dynamic_copies(self) -> int:
        """Copies and memsets of one call."""
        return sum(copy.dynamic_copies for copy in self.copies)

    @property
    def bytes_accessed(self) -> int:
        """Bytes that all launches read and write (model)."""
        return sum(row.bytes for row in self.rows)

    @property
    def model_us(self) -> float | None:
        """The modelled time of all launches; None where one that runs has none."""
        times = [row.model_us for row in self.rows if row.dynamic_launches]
        return None if None in times else sum(us for us in times if us is not None)

    def to_json(self) -> dict[str, Any]:
        """The document, with its schema."""
        fields = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        refused = self.refusals
        return {
            "schema": SCHEMA,
            **fields,
            "rows": [row.to_json() for row in self.rows],
            "copies": [dataclasses.asdict(copy) for copy in self.copies],
            "control_flow": [dataclasses.asdict(one) for one in self.control_flow],
            "refusals": None if refused is None else [dataclasses.asdict(one) for one in refused],
        }


def ledger_record(compiled: Compiled, reading: Reading | None = None, *, memory_known: bool = True) -> LedgerRecord:
    """The ledger of ``compiled``; ``memory_known`` is False for HLO text, which says nothing of memory.

    A ``reading`` of ``compiled`` saves another one.
    """
    reading = Reading(compiled) if reading is None else reading
    rows, counts = launch_rows(compiled, reading=reading), reading.counts
    found = refusals(compiled, rows)
    origins = Origins(compiled.module)
    return LedgerRecord(
        name=compiled.name,
        target=compiled.target.name,
        versions=compiled.versions,
        launch_source=counts.launch_source,
        rows=rows,
        copies=tuple(_copy(site, compiled, origins) for site in reading.launches if site.is_copy),
        refusals=None if found is None else tuple(
            SavedRefusal(one.kernel, one.consumers, one.cause, one.scope, one.op, one.source, one.dynamic_launches)
            for one in found.found
        ),
        temp_bytes=compiled.memory.temp_bytes if memory_known else None,
        argument_bytes=compiled.memory.argument_bytes if memory_known else None,
        unknown_trip_loops=counts.unknown_trip_loops,
        conditionals=counts.conditionals,
        control_flow=control_facts(compiled, origins, reading),
    )  # fmt: skip


def read_ledger(content: bytes, path: str) -> LedgerRecord:
    """The ledger in a file ``path`` with the bytes ``content``. InputError for anything else, and what to do."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}); {_SAVE}") from None
    if not isinstance(document, dict) or not ("schema" in document or "rows" in document or "targets" in document):
        raise InputError(f"{path}: this JSON is no ledger; {_SAVE}")
    if isinstance(several := document.get("targets"), list):
        raise InputError(f"{path}: holds the ledgers of {len(several)} targets; save one, with --target NAME")
    if (schema := document.get("schema")) != SCHEMA:
        of = f"has the schema {str(schema)[:60]!r}" if schema else "has no schema: an older fusionlab wrote it"
        raise InputError(f"{path}: {of}; this fusionlab reads {SCHEMA}; {_SAVE}")
    return _ledger(document, path, "", _SAVE)


def compared_part(record: LedgerRecord) -> dict[str, Any]:
    """What a comparison reads of ``record``, without empty fields: small enough to be read. See ``read_compared``."""
    document = json.loads(json.dumps(record.to_json()))
    del document["schema"]
    for part, names in _COMPARED.items():
        if document[part] is not None:
            document[part] = [{name: one[name] for name in names} for one in document[part]]
    found: dict[str, Any] = _of_records(LedgerRecord, document, _without_empty)
    return found


def read_compared(document: Any, path: str, where: str, remedy: str) -> LedgerRecord:
    """The ledger of ``compared_part``, field ``where`` of the file ``path``; what a comparison does not read is empty.

    InputError with the ``remedy`` for anything else.
    """
    if not isinstance(document, Mapping) or any(name not in document for name in _NAMED):
        raise InputError(f"{path}: {where} is no ledger: it needs the fields {', '.join(_NAMED)}; {remedy}")
    return _ledger(_of_records(LedgerRecord, document, _with_empty), path, f"{where}.", remedy)


def _ledger(document: Any, path: str, where: str, remedy: str) -> LedgerRecord:
    """``document`` as a ledger; InputError with the ``remedy`` where it is none."""
    try:
        found: LedgerRecord = _read(LedgerRecord, document, path, where)
    except InputError as error:
        raise InputError(f"{error}; {remedy}") from None
    return found


def _of_records(kind: Any, value: Any, fields_of: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]) -> Any:
    """``value`` of a JSON document of a ``kind`` with every record as ``fields_of`` its types and its fields."""
    if isinstance(kind, types.UnionType):
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        return [_of_records(typing.get_args(kind)[0], one, fields_of) for one in value]
    if not (dataclasses.is_dataclass(kind) and isinstance(value, Mapping)):
        return value
    types_of = typing.get_type_hints(kind)
    found = fields_of(types_of, value)
    return {name: _of_records(types_of[name], one, fields_of) for name, one in found.items()}


def _without_empty(types_of: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` without the fields that ``_with_empty`` gives back."""
    return {
        name: one
        for name, one in record.items()
        if name in _NAMED or (one, type(one)) != ((empty := _empty(types_of[name])), type(empty))
    }


def _with_empty(types_of: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` with the fields that ``_without_empty`` left out."""
    return {name: record[name] if name in record else _empty(one) for name, one in types_of.items()}


def _empty(kind: Any) -> Any:
    """The empty value of a ``kind`` in a JSON document."""
    if isinstance(kind, types.UnionType):
        return None
    return [] if typing.get_origin(kind) is tuple else kind()


def is_ledger(content: bytes) -> bool:
    """True if a file with the bytes ``content`` is meant as a ledger: it begins as JSON."""
    return content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _copy(site: LaunchSite, compiled: Compiled, origins: Origins) -> CopySite:
    place = compiled.module.find(site.computation, site.hlo_name)
    origin = origins.of(*place) if place else None
    name = read_name(origin.op_name if origin else "")
    return CopySite(
        name=site.hlo_name or site.kind,
        kind=site.kind,
        loop="/".join(site.path),
        trip_count=site.trip_count,
        dynamic_copies=site.dynamic,
        bytes=(site.operand_bytes + site.result_bytes) * site.dynamic,
        op_name=origin.op_name if origin else "",
        scope=name.scope,
        op=origin.op if origin else "",
        transform=name.transform if origin and origin.op_name else "",
        source=origin.source if origin else "",
    )


def _read(kind: Any, value: Any, path: str, where: str) -> Any:
    """``value`` of a JSON document as a ``kind``: a record, a tuple of one, or a plain value.

    InputError names the field that is missing, of another kind, out of range, or not printable.
    """
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _read_record(kind, value, path, where)
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise _wrong(path, where, "a list")
        return tuple(_read(typing.get_args(kind)[0], one, path, f"{where}{at}.") for at, one in enumerate(value))
    if isinstance(kind, types.UnionType):
        one, _ = typing.get_args(kind)
        return None if value is None else _read(one, value, path, where)
    if kind is float and type(value) is int:
        value = _read(int, value, path, where)
        return float(value)
    if type(value) is not kind:
        raise _wrong(path, where, {str: "text", int: "an integer", float: "a number", bool: "true or false"}[kind])
    if isinstance(value, str) and not value.isprintable():
        raise _wrong(path, where, "printable text")
    if isinstance(value, int | float) and not 0 <= value < _TOO_LARGE:
        raise _wrong(path, where, "a number from 0 to 2^63")
    return value


def _read_record(kind: type[Any], value: Any, path: str, where: str) -> Any:
    """``value`` of a JSON document as a record of class ``kind``; a field with a default may be missing."""
    if not isinstance(value, Mapping):
        raise _wrong(path, where, "an object")
    types_of = typing.get_type_hints(kind)
    required = (one.name for one in dataclasses.fields(kind) if one.default is dataclasses.MISSING)
    if (missing := next((name for name in required if name not in value), None)) is not None:
        raise InputError(f"{path}: no field {where}{missing}: the file is not whole")
    known = [one.name for one in dataclasses.fields(kind) if one.name in value]
    return kind(**{name: _read(types_of[name], value[name], path, f"{where}{name}.") for name in known})


def _wrong(path: str, where: str, what: str) -> InputError:
    return InputError(f"{path}: field {where.rstrip('.')} is not {what}: the file is damaged")
