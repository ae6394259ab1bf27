"""Records of measurements: one JSON file per run, never changed afterwards, with everything the figures depend on.

Fields: ``workload``, ``pipeline``, ``commit``, ``versions``, ``flags``, ``device``, ``protocol``, ``prepared_with``
(versions, flags and commit with which programs were made), ``variants`` (each with its raw samples, kernels and
equivalence verdict), ``checked`` and ``failures``. Units are in the field names. A variant without a verdict that it is
equal is in ``failures`` and has no figures. A record that lacks a field is refused by the name of that field, as is one
with a field of another kind; ``prepared_with`` may be missing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole
from fusionlab.measure.device_time import REQUIRED_COLUMNS

FORMAT = "fusionlab-bench-1"
Record = dict[str, Any]


def write_record(folder: Path, record: Record) -> Path:
    """Write ``record`` as a new file in ``folder`` (made if need be); InputError when it cannot be, or has a variant
    that was not shown equal. The file name has the workload, device and time."""
    for variant in record["variants"]:
        if variant["verdict"] not in PASSED:
            raise InputError(f"{variant['name']}: no record without a verdict that it is equal ({variant['verdict']})")
    require_writable(folder)
    stamp = re.sub(r"\D", "", record["started_utc"].partition("+")[0])
    title = re.sub(r"[^A-Za-z0-9.-]+", "-", record["workload"]["title"]).strip(".-") or "program"
    stem = "-".join((title, _word(record["device"]["name"]), stamp))
    path = folder / f"{stem}.json"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.json"
    write_whole(path, _text(record))
    return path


def read_records(paths: Iterable[str | Path]) -> list[Record]:
    """The records of files, and of all files in folders, in the order of their names; files of other formats (other
    studies) in a folder are skipped.

    InputError: nothing was found, a file that was named is no record, or a record lacks a field that it must have.
    """
    found = []
    for given in map(Path, paths):
        if given.is_dir():
            records = [_read(path, required=False) for path in sorted(given.rglob("*.json"))]
            found += [record for record in records if record is not None]
        else:
            record = _read(given, required=True)
            assert record is not None
            found.append(record)
    if not found:
        raise InputError("no records of `fusionlab bench` there")
    return found


def _read(path: Path, *, required: bool) -> Record | None:
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        if not required:
            return None
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        if not required:
            return None
        raise InputError(f"{path}: not a record of `fusionlab bench` (format {FORMAT})")
    if (field := damage(content)) is not None:
        raise InputError(f"{path}: a damaged record: its field {field} is missing or wrong")
    return {**content, "path": str(path)}


def _word(text: str) -> str:
    """A device's name as part of a file's name: ``nvidia-h200``."""
    text = re.sub(r"\((R|TM)\)|CPU|Processor|@.*", " ", text)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "device"


def _text(record: Record) -> str:
    """Indented, but a row of a table, and a list of numbers, on one line each."""
    text = json.dumps(record, indent=1, allow_nan=False)
    return re.sub(r"\[\s+((?:[^\[\]{}\n]+\n\s*)+)\]", _one_line, text) + "\n"


def _one_line(match: re.Match[str]) -> str:
    return f"[{' '.join(line.strip() for line in match[1].splitlines()).strip()}]"


PASSED = ("equal", "within-bound")
"""The verdicts with which a variant has figures."""
Kind = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_number_or_unknown(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_samples(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(one) and one > 0 for one in value)


def _is_kernel_table(value: Any) -> bool:
    if not isinstance(value, dict) or not (_is_list(value.get("columns")) and _is_list(value.get("rows"))):
        return False
    columns = value["columns"]
    return set(map(str, columns)) >= REQUIRED_COLUMNS and all(
        isinstance(row, list) and len(row) == len(columns) for row in value["rows"]
    )


_RECORD: Mapping[str, Kind] = {
    "started_utc": _is_text,
    "workload.title": _is_text,
    "workload.name": _is_text,
    "device.name": _is_text,
    "device.platform": _is_text,
    "versions.jax": _is_text,
    "variants": _is_list,
    "failures": _is_list,
}
_VARIANT: Mapping[str, Kind] = {
    "name": _is_text,
    "verdict": lambda value: value in PASSED,
    "samples_us": _is_samples,
    "device_time.sum_us": _is_samples,
    "kernels": _is_kernel_table,
    "dynamic_launches": _is_number_or_unknown,
    "peak_bytes": _is_number_or_unknown,
    "assigned_bytes": _is_number,
    "energy_j": _is_number_or_unknown,
}
_FAILURE: Mapping[str, Kind] = {"name": _is_text, "step": _is_text, "reason": _is_text}


def damage(record: Mapping[str, Any]) -> str | None:
    """The first field of ``record`` that is missing or malformed (``variants[1].samples_us``); None if there is none. A
    variant without a verdict of equality counts as damaged: it may have no figures."""
    found = _wrong(record, _RECORD, "")
    if found is not None:
        return found
    for field, kinds in (("variants", _VARIANT), ("failures", _FAILURE)):
        for at, one in enumerate(record[field]):
            if (found := _wrong(one, kinds, f"{field}[{at}].")) is not None:
                return found
    return None


def _wrong(content: Any, kinds: Mapping[str, Kind], where: str) -> str | None:
    return next((where + path for path, is_kind in kinds.items() if not is_kind(_at(content, path))), None)


_ABSENT = object()


def _at(content: Any, path: str) -> Any:
    for name in path.split("."):
        content = content.get(name, _ABSENT) if isinstance(content, dict) else _ABSENT
    return content
