"""Arguments without data, a function's program as a file, and what a command of fusionlab says of that file."""

import json
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from click.testing import CliRunner

from fusionlab import Program
from fusionlab.cli import main

SHOWN = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


def array(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An argument without its data."""
    return jax.ShapeDtypeStruct(shape, dtype)


def saved(function: Any, *args: Any, platform: str = "cuda") -> str:
    """The path of a file that the commands read: the StableHLO of ``function(*args)``. Nothing is compiled."""
    path = Path(tempfile.mkdtemp()) / "program.mlir"
    path.write_bytes(Program.from_function(function, *args, platform=platform).bytecode)
    return str(path)


def run(*words: str) -> tuple[int, list[str]]:
    """The exit code of ``fusionlab WORDS`` and the lines that it prints."""
    result = CliRunner().invoke(main, list(words), env=SHOWN)
    return result.exit_code, [line.rstrip() for line in result.stdout.splitlines()]


def document(*words: str) -> dict[str, Any]:
    """The document that ``fusionlab WORDS --json`` prints."""
    return json.loads("\n".join(run(*words, "--json")[1]))
