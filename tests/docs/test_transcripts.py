"""``studies/transcripts.txt`` and the pages show what the commands print: the same figures, in the form of today."""

import importlib
import re

import pytest
from click.testing import CliRunner

from fusionlab.cli import main

from . import running
from .pages import ROOT, Snippet, blocks, parts

FOLDER = ROOT / "benchmarks"
COMMANDS = [
    line.removeprefix("$ ").strip()
    for line in (ROOT / "studies/transcripts.txt").read_text().splitlines()
    if line.startswith("$ fusionlab") and "--model" in line and not line.endswith(")")
]
EXCERPTS = [
    pytest.param(found[0].removeprefix("$ "), found[1:], id=f"{page.name}: {found[0]}")
    for page in sorted((ROOT / "docs").glob("*.md"))
    for _, code, _ in blocks(page.read_text())
    if (found := code.splitlines()) and found[0].startswith("$ ") and found[0].removeprefix("$ ") in COMMANDS
]


@pytest.fixture
def transcripts(monkeypatch):
    """The script that writes the transcripts."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("transcripts")


@pytest.fixture
def printed(transcripts):
    """The lines of a command in the transcripts."""
    found = {one.command: list(one.lines) for one in transcripts.read(transcripts.TRANSCRIPTS.read_text())[1]}
    return found.__getitem__


def test_reading_and_writing_keeps_every_line(transcripts):
    text = transcripts.TRANSCRIPTS.read_text()
    assert transcripts.written(*transcripts.read(text)) == text
    assert len(COMMANDS) > 7


def words_of(line):
    return " ".join(line.replace("─", "").split())


def test_there_are_excerpts():
    assert len(EXCERPTS) > 3


@pytest.mark.parametrize(("command", "lines"), EXCERPTS)
def test_an_excerpt_of_a_page_is_in_the_transcript(command, lines, printed):
    """``...`` stands for any lines, in a line for any words."""
    assert not missing(lines, printed(command)), "run benchmarks/transcripts.py"


def missing(excerpt, printed):
    """The lines of an excerpt that were not printed."""
    whole = "\n".join(filter(None, map(words_of, printed)))
    shown = [line for line in map(words_of, excerpt) if line not in ("", "...")]
    patterns = [r"[^\n]*".join(map(re.escape, line.split("..."))) for line in shown]
    return [one for one in patterns if not re.search(rf"^{one}$", whole, re.MULTILINE)]


@pytest.mark.slow
@pytest.mark.usefixtures("compile_cache")
def test_python_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    """docs/python.md: the block of text after each block of Python."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names, said, compared = {"__name__": "__main__"}, "", 0
    for part in parts(ROOT / "docs/python.md"):
        if not isinstance(part, Snippet):
            continue
        if part.file:
            (tmp_path / part.file).write_text(part.code + "\n")
        elif part.language == "python":
            exec(compile(part.code, "python.md", "exec"), names)
            said = capsys.readouterr().out
        elif said:
            assert not missing(part.code.splitlines(), said.splitlines())
            said, compared = "", compared + 1
    assert compared >= 4


@pytest.mark.slow
@pytest.mark.usefixtures("compile_cache")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_in_the_form_of_the_transcript(command, transcripts, printed, tmp_path, monkeypatch):
    """Its verdict and the heads of its tables, at tiny size."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, running.as_run(command)[1:])
    assert done.exit_code == 0, done.output
    known, found = transcripts.forms(printed(command)), transcripts.forms(done.stdout.splitlines())
    if known[0].startswith("NAME on"):
        assert found[0] == known[0]
    assert set(found[1:]) <= set(known[1:])
