"""A pytest plugin: a test that fails prints the ledger of every function that it has looked at.

    pytest -p fusionlab.testing.plugin          or, in conftest.py: pytest_plugins = ["fusionlab.testing.plugin"]

It is not loaded by itself: importing fusionlab sets three environment variables for JAX (``fusionlab.quiet_start``),
which a project's tests should ask for.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from fusionlab.testing.ledger import Ledger, take_made


def pytest_runtest_setup() -> None:
    """A test's ledgers are its own."""
    take_made()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """The ledgers that a failing test or its set-up made, and those that fixtures gave it, become sections of its
    report."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "teardown" or not report.failed:
        return
    given = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Ledger)]
    for made in {id(one): one for one in (*take_made(), *given)}.values():
        report.sections.append((f"fusionlab ledger of {made.program.name}", _text(made)))


def _text(made: Ledger) -> str:
    try:
        return made.text()
    except Exception as error:  # one that leaves a hook ends the whole session of pytest
        return f"it cannot be told: {type(error).__name__}: {error}"
