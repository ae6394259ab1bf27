"""Recorded ledgers: the launches, copies and memory of the functions of a test, compared with a file beside the test.

The file of a test is ``recorded_ledgers/<test file>/<test>.json``, with what a comparison reads of each ledger
(``ledger.saved.compared_part``), its target and the versions of its compiler.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fusionlab.errors import InputError
from fusionlab.files import read_file, write_whole
from fusionlab.ledger.changes import LedgerDiff, compare_ledgers
from fusionlab.ledger.saved import compared_part, ledger_record, read_compared
from fusionlab.report.tables.changes import diff_lines, diff_markdown, verdict
from fusionlab.testing.launches import Ledger, LedgerMessage, ledger

FOLDER = "recorded_ledgers"
_SCHEMA = "fusionlab-recorded-1"
_MOST_CHANGES = 10
_IN_SUMMARY = 20
_LONGEST_NAME = 120


class RecordedLedgers:
    """The fixture ``recorded_ledger`` of one test: called with a function, it compares its ledger with the record.

    ``test`` is the test's node id, ``path`` the record. With ``update`` the record is written instead. ``summary`` is a
    file to which differences are appended as Markdown. ``notices`` are sentences for the end of the session.
    """

    def __init__(self, test: str, path: Path, *, update: bool = False, summary: Path | None = None) -> None:
        self.test = test
        self.path = path
        self.notices: list[str] = []
        self._update = update
        self._summary = summary
        self._made: dict[str, Ledger] = {}

    def __call__(self, fn: Any, args: Sequence[Any] = (), *, target: str = "a100", name: str = "") -> Ledger:
        """AssertionError where the ledger of ``fn`` differs from the recorded one, or none is recorded.

        The message has what appeared, went, grew or shrank, with scope and source line. ``name`` tells apart functions
        that are called the same; ``fn``, ``args`` and ``target`` are as for ``ledger``, whose result is returned.
        InputError where the record cannot be read, or two functions of the test have one name.
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        made = ledger(fn, args, target=target)
        key = f"{name or made.program.name} on {made.compiled.target.name}"
        if key in self._made and self._made[key].program.digest != made.program.digest:
            raise InputError(f"{self.test} records two functions as '{key}'; give one of them a name=")
        self._made[key] = made
        if self._update:
            self._write()
            return made
        recorded = self._recorded()
        if key not in recorded:
            others = f" ({', '.join(recorded)} is there)" if recorded else ""
            raise AssertionError(f"no ledger of {key} is recorded{others}; write it: {self._command}")
        before = read_compared(recorded[key], str(self.path), key, f"write it again: {self._command}")
        self._require_same(compare_ledgers(before, ledger_record(made.compiled)), made, key)
        return made

    def _require_same(self, found: LedgerDiff, made: Ledger, key: str) -> None:
        """AssertionError where a ledger differs; a notice where it does not and the compiler is another."""
        __tracebackhide__ = True
        before, now = found.before.versions, found.after.versions
        if found.is_same:
            if before != now:
                self.notices.append(f"{self.test}: {key} is as recorded with other versions ({before}); here {now}")
            return
        lines = [f"not as recorded: {verdict(found)}"]
        if before != now:
            lines.append(f"recorded with other versions: {before}; here {now}")
        lines += [*diff_lines(found, _MOST_CHANGES), f"record: {self.path}; if this is meant: {self._command}"]
        if self._summary is not None:
            with self._summary.open("a") as file:
                file.write(f"{diff_markdown(found, _IN_SUMMARY, (f'{self.test}: not as recorded',))}\n\n")
        raise AssertionError(LedgerMessage(lines, made, [row.name for row in made.rows]))

    @property
    def _command(self) -> str:
        return f"python -m pytest {shlex.quote(self.test)} --fusionlab-update"

    def _recorded(self) -> dict[str, Any]:
        """The ledgers of the record by name; none where there is no record."""
        if not self.path.exists():
            return {}
        try:
            document = json.loads(read_file(self.path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}: is not JSON ({error}); write it again: {self._command}") from None
        if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
            raise InputError(f"{self.path}: is not a record with the schema {_SCHEMA}; write it again: {self._command}")
        found = document.get("ledgers")
        if not isinstance(found, dict):
            raise InputError(f"{self.path}: has no ledgers; write it again: {self._command}")
        return found

    def _write(self) -> None:
        """The record of all ledgers that the test has made, unless the file is that already."""
        ledgers = {key: compared_part(ledger_record(made.compiled)) for key, made in self._made.items()}
        text = _laid_out({"schema": _SCHEMA, "test": self.test, "ledgers": ledgers}) + "\n"
        if self.path.exists() and read_file(self.path) == text.encode():
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, text)
        if (line := f"{self.path}: written") not in self.notices:
            self.notices.append(line)


def record_path(test_file: Path, name: str) -> Path:
    """The record of the test called ``name`` (``TestClass::test_name[parameters]``) in ``test_file``."""
    plain = re.sub(r"[^\w.\-\[\]]", "_", name.replace("::", "."), flags=re.ASCII)
    if plain != name.replace("::", ".") or len(plain) > _LONGEST_NAME:  # another test may have the same plain name
        plain = f"{plain[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return test_file.parent / FOLDER / test_file.stem / f"{plain}.json"


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON that is read and compared line by line: what has no objects inside, such as a launch, is one line."""
    parts = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    if not any(isinstance(one, dict) or _has_objects(one) for one in parts):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(name)}: {_laid_out(one, inner)}" for name, one in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{inner}{_laid_out(one, inner)}" for one in value) + f"\n{indent}]"


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)
