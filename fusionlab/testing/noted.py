"""The ledgers that a test makes, for the pytest plugin; imports no JAX."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusionlab.testing.launches import Ledger

ledgers_of_test: ContextVar[list[Ledger] | None] = ContextVar("ledgers_of_test", default=None)
"""Where ``ledger`` notes what it made while the pytest plugin runs a test."""
