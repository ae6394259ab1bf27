"""Run a module of fusionlab in a process of its own, under limits: whatever happens there, this one goes on."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_END_WITH_MAKER = """
import ctypes, os, signal, sys
parent, *command = sys.argv[1:]
if prctl := getattr(ctypes.CDLL(None), "prctl", None):
    prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(parent):
        sys.exit(1)
os.execv(command[0], command)
"""


class ProcessFailed(Exception):
    """The process did not give a result; the message says why. ``exit_code`` is None when it ran out of time."""

    def __init__(self, reason: str, exit_code: int | None) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


def run_module(module: str, arguments: Sequence[str], time_limit_s: float) -> str:
    """What ``python -m module arguments`` printed; ProcessFailed when it fails or takes longer than the limit."""
    command, environment = module_command(module, arguments)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=time_limit_s, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProcessFailed(f"it did not finish within {time_limit_s:g} s", None) from None
    if done.returncode:
        raise ProcessFailed((done.stderr.strip().splitlines() or ["no message"])[-1], done.returncode)
    return done.stdout


def module_command(module: str, arguments: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The command line of ``python -m module arguments`` and its environment.

    The process finds fusionlab where this one does, installed or not, and no module in the folder where it is started:
    beside a file that others made there may be a ``json.py`` that they made too. Its BLAS has one thread: several wait
    for one another where other work runs, which took five times as long for small matrices.
    """
    source = str(Path(__file__).resolve().parents[1])
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]  # an empty one is that folder
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return [sys.executable, "-P", "-m", module, *arguments], environment


def tied_to_its_maker(command: Sequence[str]) -> list[str]:
    """``command`` as a command that is killed when the thread that starts it ends, however it ends (Linux only).

    It ties itself (prctl(2)) before it becomes the command: not between fork and exec in the maker's copy, which may
    have threads.
    """
    return [sys.executable, "-I", "-S", "-c", _END_WITH_MAKER, str(os.getpid()), *command]


def limit_memory() -> None:
    """Three quarters of the machine's memory for this process's data, so that it cannot take the machine down."""
    limit_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
