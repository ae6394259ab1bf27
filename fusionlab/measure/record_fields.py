"""The fields that a record of ``bench`` must have to be read: what is missing or of another kind is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from fusionlab.measure.device_time import KERNEL_COLUMNS

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
    return set(KERNEL_COLUMNS) <= set(map(str, columns)) and all(
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
    "assigned_bytes": _is_number_or_unknown,
    "energy_j": _is_number_or_unknown,
}
_FAILURE: Mapping[str, Kind] = {"name": _is_text, "step": _is_text, "reason": _is_text}


def damage(record: Mapping[str, Any]) -> str | None:
    """The first field of ``record`` that is missing or not what it must be (``variants[1].samples_us``); None when it
    can be read. A variant whose verdict is not that it is equal counts as damaged: it may have no figures."""
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
