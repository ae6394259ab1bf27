"""Assertions for the tests of other projects: launches and memory of a compiled function, and the equivalence of two.

No GPU is needed: functions are compiled for an absent one. ``fusionlab.testing.plugin`` is a pytest plugin that prints
the whole ledger of a test that fails.
"""

from fusionlab.testing.launches import (
    Ledger,
    assert_fused,
    assert_launches,
    assert_no_layout_copies,
    assert_temp_memory,
    ledger,
)
from fusionlab.testing.numbers import assert_equivalent

__all__ = [
    "Ledger",
    "assert_equivalent",
    "assert_fused",
    "assert_launches",
    "assert_no_layout_copies",
    "assert_temp_memory",
    "ledger",
]
