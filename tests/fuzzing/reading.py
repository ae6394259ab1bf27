"""What one damaged file does to fusionlab: it is read, or refused in one line; anything else is a finding.

    python -m tests.fuzzing.reading CORPUS

answers each line ``KIND SEED`` on stdin with a line ``OUTCOME words``. It may die or hang: its caller sees that.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from click.testing import CliRunner

from fusionlab.cli import main as fusionlab
from tests.fuzzing.corpus import KINDS, load, mutated

READ, REFUSED, FINDING = "read", "refused", "finding"


def outcome(kind: str, content: bytes, path: Path) -> tuple[str, str]:
    """READ, REFUSED or FINDING, and its words, of the command of ``kind`` with ``content`` as the file ``path``."""
    path.write_bytes(content)
    command, options = KINDS[kind].command, KINDS[kind].options
    result = CliRunner().invoke(fusionlab, [*command, str(path), *options])
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        where = traceback.extract_tb(error.__traceback__)[-1]
        lines = str(error).splitlines() or [""]
        return FINDING, f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {lines[0][:160]}"
    if result.exit_code == 0:
        return READ, ""
    message = result.stderr
    if result.exit_code != 2 or not message.startswith("fusionlab: ") or message.count("\n") != 1:
        return FINDING, f"exit {result.exit_code}, not one line: {message[:200]!r}"
    return REFUSED, message.strip().partition(f"{path}: ")[2][:100]


def serve(corpora: Mapping[str, Sequence[bytes]]) -> None:
    """Answer requests until stdin ends."""
    with tempfile.TemporaryDirectory(prefix="fusionlab-fuzz-") as directory:
        path = Path(directory) / "damaged"
        print("ready", flush=True)
        for line in sys.stdin:
            kind, seed = line.split()
            what, words = outcome(kind, mutated(kind, int(seed), corpora), path)
            print(what, ascii(words), flush=True)


def main(folder: str) -> None:
    """Serve with the corpora of ``folder``."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    serve(load(Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1])
