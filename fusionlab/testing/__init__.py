"""Assertions for the tests of other projects: launches, memory and kernels of a compiled function, equivalence of two.

No GPU is needed: functions are compiled for an absent one. ``fusionlab.testing.plugin`` is a pytest plugin: recorded
ledgers, and the ledger of every function that a failing test looked at.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from fusionlab.testing.kernels import assert_no_cas_atomics, assert_no_spills
    from fusionlab.testing.launches import (
        Ledger,
        assert_fused,
        assert_launches,
        assert_no_layout_copies,
        assert_temp_memory,
        ledger,
    )
    from fusionlab.testing.numbers import assert_equivalent
    from fusionlab.testing.recorded import RecordedLedgers

__all__ = [
    "Ledger",
    "RecordedLedgers",
    "assert_equivalent",
    "assert_fused",
    "assert_launches",
    "assert_no_cas_atomics",
    "assert_no_layout_copies",
    "assert_no_spills",
    "assert_temp_memory",
    "ledger",
]

_HOMES = {
    "RecordedLedgers": "recorded",
    "assert_equivalent": "numbers",
    "assert_no_cas_atomics": "kernels",
    "assert_no_spills": "kernels",
}
"""Names that are not of ``launches``. All are imported lazily: pytest loads the plugin in every session, and no JAX."""


def __getattr__(name: str) -> _Any:
    import importlib

    if name not in __all__:
        raise AttributeError(f"module 'fusionlab.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fusionlab.testing.{_HOMES.get(name, 'launches')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
