"""A pytest plugin: a test that fails prints the ledger of every function that it has looked at.

    pytest -p fusionlab.testing.plugin          or, in conftest.py: pytest_plugins = ["fusionlab.testing.plugin"]

It is not loaded by itself: importing fusionlab sets three environment variables for JAX (``fusionlab.quiet_start``),
which a project's tests should ask for.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from fusionlab.testing.ledger import take_made


def pytest_runtest_setup() -> None:
    """A test's ledgers are its own."""
    take_made()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, None]:
    """The ledgers become sections of the report of a call that failed."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for made in take_made():
            report.sections.append((f"fusionlab ledger of {made.program.name}", made.text()))
