"""The pytest plugin: recorded ledgers (``recorded_ledger``), and the ledgers of a test that fails.

pytest loads it wherever fusionlab is installed; ``-p no:fusionlab.testing.plugin`` leaves it out. Loading it imports no
JAX: the rest of ``fusionlab.testing`` is imported by the tests that use it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fusionlab.testing.noted import ledgers_of_test

if TYPE_CHECKING:
    from fusionlab.testing.launches import Ledger
    from fusionlab.testing.recorded import RecordedLedgers

_NOTICE = "fusionlab"
"""The property of a test's report that has a sentence for the end of the session."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of recorded ledgers."""
    group = parser.getgroup("fusionlab")
    group.addoption(
        "--fusionlab-update", action="store_true", help="Write the ledgers of recorded_ledger instead of comparing."
    )
    group.addoption(
        "--fusionlab-summary", metavar="FILE", help="Append differences of recorded ledgers to FILE as Markdown."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a summary that could not be written when a difference is found."""
    summary = _summary(config)
    if summary is not None and (summary.is_dir() or not summary.parent.is_dir()):
        raise pytest.UsageError(
            f"--fusionlab-summary {config.getoption('--fusionlab-summary')}: "
            + ("is a folder; name a file" if summary.is_dir() else f"there is no folder {summary.parent}; make it")
        )


def _summary(config: pytest.Config) -> Path | None:
    """The file of ``--fusionlab-summary``."""
    given = config.getoption("--fusionlab-summary")
    return None if given is None else Path(config.invocation_params.dir, given)


@pytest.fixture
def recorded_ledger(request: pytest.FixtureRequest) -> Iterator[RecordedLedgers]:
    """``recorded_ledger(fn, args, target="a100")``: compare the launches and memory of ``fn`` with the record."""
    from fusionlab.testing.recorded import RecordedLedgers, record_path

    node, option = request.node, request.config.getoption
    found = RecordedLedgers(
        node.nodeid,
        record_path(node.path, node.nodeid.partition("::")[2]),
        update=option("--fusionlab-update"),
        summary=_summary(request.config),
    )
    yield found
    node.user_properties += [(_NOTICE, line) for line in found.notices]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests have to say about their records: those written, and those of other versions."""
    reports = [one for kind in terminalreporter.stats.values() for one in kind if hasattr(one, "user_properties")]
    said = dict.fromkeys(text for one in reports for name, text in one.user_properties if name == _NOTICE)
    if said:
        terminalreporter.section("recorded ledgers of fusionlab")
        for line in said:
            terminalreporter.line(line)


def pytest_runtest_setup() -> None:
    """Begin a list of the test's own ledgers."""
    ledgers_of_test.set([])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add the ledgers made by a failing test, its set-up and its fixtures to its report as sections, once each."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "teardown" or not report.failed or "fusionlab.testing.launches" not in sys.modules:
        return
    from fusionlab.testing.launches import Ledger, LedgerMessage

    given = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Ledger)]
    said = call.excinfo.value.args if call.excinfo else ()
    shown = {_key(one.ledger): one.shown for one in said if isinstance(one, LedgerMessage)}
    if shown and (crash := getattr(report.longrepr, "reprcrash", None)):
        # Where the environment has CI, pytest's summary repeats messages whole; this one is above it.
        crash.message = crash.message.partition("\n")[0]
    for key, made in {_key(one): one for one in (*(ledgers_of_test.get() or ()), *given)}.items():
        without = shown.get(key, frozenset())
        if not without or not without.issuperset(row.name for row in made.rows):
            report.sections.append((f"fusionlab ledger of {made.program.name}", _text(made, without)))


def _key(made: Ledger) -> tuple[str, str]:
    """The same for two ledgers of one program on one target."""
    return made.program.digest, made.compiled.target.name


def _text(made: Ledger, without: frozenset[str]) -> str:
    try:
        return made.text(without=without)
    except Exception as error:  # an exception that leaves a hook ends the whole pytest session
        return f"it cannot be told: {type(error).__name__}: {error}"
