"""Facts: the interface of a result, for a terminal, a notebook, a program and a dataframe."""

from __future__ import annotations

import html
import importlib
import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from rich.console import Console

from fusionlab.codegen.compile import Compiled
from fusionlab.documents import headed
from fusionlab.errors import InputError
from fusionlab.report.tables import Table

_WIDTH = 120
_MOST_LINES = 12
"""The characters of a line of ``repr`` before a table is cut in two, and the most lines of it."""


class Facts(ABC):
    """A result. ``repr`` has the verdict in its first line and at most a dozen lines; notebooks show tables."""

    command: ClassVar[str]
    """The command that prints the same."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """What was found, in one line."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Sentences that qualify the figures."""

    @abstractmethod
    def lines(self) -> Sequence[str]:
        """The most important evidence, in few lines of text; ``repr`` shows the first eleven."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """The evidence for a notebook."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The rows of the dataframe."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """The fields of the document without those that every document has."""

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with ``--json``."""
        document: dict[str, Any] = headed(self.fields(), self.command)
        return document

    def to_dataframe(self) -> Any:
        """The rows as a ``pandas.DataFrame``; ModuleNotFoundError with the remedy where pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            remedy = "pip install pandas, or use to_dict(), which needs nothing"
            raise ModuleNotFoundError(
                f"to_dataframe needs pandas, which is not installed: {remedy}", name="pandas"
            ) from None
        return pandas.DataFrame(self.records())

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *self.lines()][:_MOST_LINES])

    def _repr_html_(self) -> str:
        """The verdict, the tables and the notes for a notebook."""
        tables = "".join(table.html() for table in self.tables())
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p><strong>{html.escape(self.verdict)}</strong></p>{tables}{notes}"


def table_lines(table: Table) -> list[str]:
    """``table`` as the terminal prints it, without empty lines."""
    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, markup=False, emoji=False, color_system=None)
    table.print(console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]


def require_code(compiled: Compiled) -> None:
    """InputError where XLA wrote no code of kernels: for the CPU, and of HLO text. A program of library calls has none
    to write, and passes."""
    if compiled.target.kind == "cpu" or not (compiled.ptx or compiled.thunk_sequence):
        raise no_code(compiled.name, compiled.target.name)


def no_code(name: str, target: str) -> InputError:
    """The error where XLA wrote no code of kernels."""
    return InputError(
        f"{name} on {target}: there is no kernel code here; name a GPU target, and a function, a model or a StableHLO "
        "file"
    )
