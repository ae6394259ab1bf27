"""What of README.md, docs and studies can be run: commands and Python snippets, in the order of each page.

The convention, which the pages keep and ``test_pages.py`` holds them to:

- in any code block (fenced or indented) a line that begins with ``$`` or with one of WORDS is a command; what follows a
  ``#`` is a remark;
- Python is in blocks fenced as ``python``; one after ``<!-- file: NAME -->`` is that file, the others are run;
- in the text, `fusionlab COMMAND ...` in backticks with anything after the COMMAND is a command too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = ("fusionlab", "python", "python3", "pip", "make", "pytest")
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "studies").glob("*.md")),
)
ids = [str(path.relative_to(ROOT)) for path in PAGES]

_FENCE = re.compile(r"^```(\S*)")
_FILE = re.compile(r"<!-- file: (\S+) -->")
_INLINE = re.compile(r"(?<!`)`(fusionlab [a-z]+\s[^`]+)`(?!`)")


@dataclass(frozen=True)
class Command:
    """A command as it is written, without its remark."""

    text: str


@dataclass(frozen=True)
class Snippet:
    """A code block: ``language`` as fenced ("" for an indented or bare block), ``file`` it is to be written to."""

    language: str
    code: str
    file: str = ""


def parts(path: Path) -> Iterator[Command | Snippet]:
    """Everything of a page that can be run or written, in order."""
    text = path.read_text()
    for language, code, file in blocks(text):
        if file or language == "python":
            yield Snippet(language, code, file)
        else:
            yield Snippet(language, code)
            yield from map(Command, commands(code))
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for found in _INLINE.findall(prose):
        yield Command(" ".join(found.split()))


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """(language, code, file) of every code block."""
    lines, at, file = text.splitlines(), 0, ""
    while at < len(lines):
        if found := _FENCE.match(lines[at]):
            end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith("```"))
            yield found[1], "\n".join(lines[at + 1 : end]), file
            at, file = end + 1, ""
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = next((n for n in range(at, len(lines)) if lines[n].strip() and lines[n][:4].strip()), len(lines))
            yield "", "\n".join(line[4:] for line in lines[at:end]), ""
            at = end
        else:
            if lines[at].strip():
                file = found[1] if (found := _FILE.search(lines[at])) else ""
            at += 1


def commands(code: str) -> Iterator[str]:
    """The commands of a block, without prompts and remarks."""
    for line in code.splitlines():
        text = line.strip()
        if text.startswith("$ ") or text.partition(" ")[0] in WORDS:
            yield re.sub(r"\s+# .*", "", text.removeprefix("$ ")).strip()
