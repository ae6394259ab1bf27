"""How the commands of the pages are run by the tests: tiny, and with files instead of placeholders.

Everything that differs from what is written stands in ``commands.toml`` and in the tables of this file.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from click.testing import CliRunner

from fusionlab.cli import main

from .pages import ROOT

TINY = {"--size": "tiny", "--molecule": "LiH", "--walkers": "4"}
"""Added to every command with --model, but for what it says itself."""
TINY_CHECK = {"--check-walkers": "2"}
"""Added to those that check a model."""
TINY_BENCH = {"--device": "cpu", "--runs": "2", "--repeats": "1", "--against": "none", "--records": "none"}
"""Added to ``bench``, which then compares the program with its rewriting only."""
TIMING = ("--runs", "--repeats", "--records")
"""Those of them that belong to timing alone."""
CHECKING = ("apply", "check", "bisect", "bench")
TIME_LIMIT = "5"
"""Instead of a longer --time-limit."""

_TABLES = tomllib.loads((Path(__file__).parent / "commands.toml").read_text())
REPLACED, EXIT_CODES, NOT_RUN = _TABLES["replaced"], _TABLES["exit_codes"], _TABLES["not_run"]


def as_run(text: str) -> list[str]:
    """The words of a command as the test runs it."""
    words = shlex.split(REPLACED.get(text, text))
    if words[0] != "fusionlab" or len(words) < 2:
        return words
    added: dict[str, str] = {}
    if "--model" in words:
        added |= TINY
        added |= TINY_CHECK if words[1] in CHECKING else {}
        if words[words.index("--model") + 1].startswith("deepqmc:"):
            del added["--size"]  # DeepQMC's models have the size that they have
    added |= TINY_BENCH if words[1] == "bench" else {}
    if "--prepare" in words:  # which times nothing
        added = {option: value for option, value in added.items() if option not in TIMING}
    if words[2:] and words[2].endswith(".zip"):  # an archive, which has its own
        added = {}
    if "--time-limit" in words:
        words[words.index("--time-limit") + 1] = TIME_LIMIT
    return [*words, *(word for option, value in added.items() if option not in words for word in (option, value))]


def make_files(folder: Path) -> None:
    """The files that the pages name without making them."""

    def replay(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 4, lambda k, total: total + jnp.sin(x[:, k, None] * x), x)

    x = jax.ShapeDtypeStruct((3, 4), np.float32)
    text = jax.jit(replay).lower(x).as_text()
    for name in ("program.mlir", "A.mlir", "B.mlir", "FILE", "A", "B"):
        (folder / name).write_text(text)
    page = (ROOT / "docs/files.md").read_text()
    (folder / "energy.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    shutil.copy(ROOT / "fusionlab/codegen/targets/a100.txtpb", folder / "SPEC.txtpb")
    shutil.copytree(ROOT / "studies", folder / "studies")  # `bench --records` writes there


def run_command(text: str, folder: Path) -> tuple[int, str]:
    """Exit code and what it printed, started in ``folder``."""
    words = as_run(text)
    if words[0] == "fusionlab":
        with contextlib.chdir(folder):
            done = CliRunner().invoke(main, words[1:])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output
    assert words[0] == "python", text
    into = folder / words[words.index(">") + 1] if ">" in words else None
    words = words[: words.index(">")] if into else words
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    command = [sys.executable, *words[1:]]
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if into is not None:
        into.write_text(said.stdout)
    return said.returncode, said.stdout + said.stderr
