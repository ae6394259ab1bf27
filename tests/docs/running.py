"""How the commands of the pages are run by the tests: tiny, and with files instead of placeholders.

Everything that differs from what is written stands in the tables of this file.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from click.testing import CliRunner, Result

from fusionlab.cli import main

from .pages import ROOT

TINY = {"--size": "tiny", "--molecule": "LiH", "--walkers": "4"}
"""Added to every command with --model, but for what it says itself."""
TINY_CHECK = {"--check-walkers": "2"}
"""Added to those that check a model."""
TINY_BENCH = {"--device": "cpu", "--runs": "2", "--repeats": "1", "--against": "none", "--records": "none"}
"""Added to ``bench``, which then compares the program with its rewriting only."""
CHECKING = ("apply", "check", "bisect", "bench")
TIME_LIMIT = "5"
"""Instead of a longer --time-limit."""

REPLACED = {
    "fusionlab bisect --model paulinet --pipeline 'a,b'": (
        "fusionlab bisect --model ferminet --pipeline 'licm,batch-replay'"
    ),
    "fusionlab explain --model paulinet --kernel loop_multiply_fusion.4": (
        "fusionlab explain --model paulinet --kernel loop_multiply_fusion"
    ),
    "fusionlab graph --model paulinet --view kernel:loop_multiply_fusion.4": (
        "fusionlab graph --model paulinet --view kernel:loop_multiply_fusion"
    ),
    "fusionlab graph --model paulinet --view dataflow:main/2355/body/400 --steps 2": (
        "fusionlab graph --model paulinet --view dataflow:main/100 --steps 2"
    ),
    "fusionlab launches --program inference-step --by phase,family": (
        "fusionlab launches --model psiformer --program inference-step --by phase,family"
    ),
    "fusionlab replays --no-rewrites": "fusionlab replays program.mlir --no-rewrites",
    "fusionlab launches --target SPEC.txtpb": "fusionlab launches program.mlir --target SPEC.txtpb",
    "fusionlab apply --model psiformer --program inference-step --pipeline best": (
        "fusionlab apply --model psiformer --program inference-step --pipeline best --time-limit 5"
    ),
}
"""As written, and as it is run: names that stand for any other, what the words around it say, another default."""

EXIT_CODES = {
    "fusionlab compare studies/bench --what-if a100,launch_us=3": 2,
}
"""Those that do not end with 0: what was fitted on a CPU predicts no GPU, and the command says so."""

NOT_RUN = {
    "fusionlab bench --model orbformer-flash --program mcmc": "times flash attention against plain on a GPU",
    "fusionlab bench --counters": "hardware counters are read on a GPU; the page names the option only",
    "pip install '.[targets,models]'": "tests/packaging installs the wheel in a clean environment",
    "make study": "sets up an environment; the commands that it runs are in README.md too",
    "make test": "it is what runs this",
    "python -m fusionlab.measure.session --out DIR --time-limit 55": "an hour on a GPU; tests/measure/test_session.py",
    "python -m fusionlab.measure.session --out DIR --device cpu --walkers 16 --stages energies": (
        "half an hour; tests/measure/test_session.py"
    ),
    "fusionlab completion fish > ~/.config/fish/completions/fusionlab.fish": (
        "writes into the home directory; tests/cli/test_terminal.py"
    ),
    "fusionlab paper": "hours at paper size; tests/characterisation",
    "fusionlab study --paper": "hours at paper size; tests/cli/test_study.py hands it over",
    "fusionlab paper --targets a5000 --molecules CH4 --jobs 4": "compiles at paper size; tests/characterisation",
    "fusionlab paper --scheduler tcp://HOST:8786": "needs a scheduler; tests/characterisation/test_jobs.py has one",
}
"""Commands that no test runs as such, and why."""


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
    shutil.copy(ROOT / "fusionlab/codegen/targets/a100.txtpb", folder / "SPEC.txtpb")
    (folder / "studies").symlink_to(ROOT / "studies")


def run_command(text: str, folder: Path) -> tuple[int, str]:
    """Exit code and what it printed, started in ``folder``."""
    words = as_run(text)
    if words[0] == "fusionlab":
        done: Result = _in(folder, lambda: CliRunner().invoke(main, words[1:]))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output
    assert words[0] == "python", text
    if ">" in words:
        words, into = words[: words.index(">")], folder / words[words.index(">") + 1]
    else:
        into = None
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    command = [sys.executable, *words[1:]]
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if into is not None:
        into.write_text(said.stdout)
    return said.returncode, said.stdout + said.stderr


def _in(folder: Path, call: Callable[[], Result]) -> Result:
    before = Path.cwd()
    os.chdir(folder)
    try:
        return call()
    finally:
        os.chdir(before)
