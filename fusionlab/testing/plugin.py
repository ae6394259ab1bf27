"""A pytest plugin: a failing test prints the ledger of every function it examined.

    pytest -p fusionlab.testing.plugin          or, in conftest.py: pytest_plugins = ["fusionlab.testing.plugin"]

It is not loaded by itself: a project's tests opt into it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from fusionlab.testing.launches import Ledger, ledgers_of_test


def pytest_runtest_setup() -> None:
    """Begin a list of the test's own ledgers."""
    ledgers_of_test.set([])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Add the ledgers made by a failing test, its set-up and its fixtures to its report as sections."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "teardown" or not report.failed:
        return
    given = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Ledger)]
    for made in {id(one): one for one in (*(ledgers_of_test.get() or ()), *given)}.values():
        report.sections.append((f"fusionlab ledger of {made.program.name}", _text(made)))


def _text(made: Ledger) -> str:
    try:
        return made.text()
    except Exception as error:  # an exception that leaves a hook ends the whole pytest session
        return f"it cannot be told: {type(error).__name__}: {error}"
