"""studies/transcripts.txt: its commands run again, and what they print in the place of what they printed.

python benchmarks/transcripts.py                    # every `$ fusionlab` command of a model, at full size; half an hour
python benchmarks/transcripts.py explain clusters   # those with one of these words

Other blocks (Python programs, commands of a file, and those with a remark) are written by hand.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from fusionlab.files import write_whole

ROOT = Path(__file__).parents[1]
TRANSCRIPTS = ROOT / "studies" / "transcripts.txt"
_RULE = re.compile(r"^ *─+$")
_FIGURE = re.compile(r"-?\d[\d,.]*(e-?\d+)?")
_UNIT = re.compile(r"(?<= )(ns|us|ms|s|B|[KMGT]iB|[kMGTP]?FLOP)(?![\w/])")
_BOUND = re.compile(r"bound by \w+")


class Transcript(NamedTuple):
    """A command, a remark on it (``(CPU)``), and what it printed."""

    command: str
    remark: str
    lines: tuple[str, ...]

    @property
    def can_be_run(self) -> bool:
        """True for a command of fusionlab that needs no file, and has no remark."""
        return self.command.startswith("fusionlab ") and "--model" in self.command and not self.remark

    @property
    def text(self) -> str:
        """The block as it is written."""
        return "\n".join((f"$ {self.command}{f'     {self.remark}' if self.remark else ''}", *self.lines))


def read(text: str) -> tuple[str, list[Transcript]]:
    """What stands before the first command, and the transcripts in order."""
    head, *blocks = re.split(r"^\$ ", text, flags=re.MULTILINE)
    found = []
    for block in blocks:
        first, *lines = block.rstrip().split("\n")
        command, _, remark = first.partition("     ")
        found.append(Transcript(command, remark, tuple(lines)))
    return head, found


def written(head: str, transcripts: list[Transcript]) -> str:
    """The text of ``read``."""
    return head + "\n\n".join(one.text for one in transcripts) + "\n"


def forms(lines: list[str]) -> list[str]:
    """The first line and the heads of tables, without figures, their units, and names of programs and groups."""
    heads = [above for above, rule in itertools.pairwise(lines) if _RULE.match(rule)]
    first = re.sub(r"^[\w.-]+ on ", "NAME on ", lines[0]).partition("; most in ")[0]
    first = _BOUND.sub("bound by CEILING", _FIGURE.sub("#", first))
    return [_UNIT.sub("UNIT", " ".join(line.split())) for line in (first, *heads)]


def run(command: str) -> tuple[str, ...]:
    """What the command prints on stdout at full size, in a process of its own."""
    words = [sys.executable, "-m", *shlex.split(command)]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return tuple(line.rstrip() for line in done.stdout.rstrip().splitlines())


def main() -> None:
    """Run the commands, and write each one's lines as soon as they are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="Only commands with one of these words.")
    words = parser.parse_args().words
    head, transcripts = read(TRANSCRIPTS.read_text())
    for at, one in enumerate(transcripts):
        if one.can_be_run and (not words or any(word in one.command for word in words)):
            print(f"$ {one.command}", file=sys.stderr, flush=True)
            transcripts[at] = one._replace(lines=run(one.command))
            write_whole(TRANSCRIPTS, written(head, transcripts))


if __name__ == "__main__":
    main()
