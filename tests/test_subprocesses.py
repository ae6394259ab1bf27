"""Processes under limits: what they return, how they fail, and that nothing of them is left."""

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fusionlab.subprocesses import ProcessFailed, Running, call, decode, encode


def test_values_come_back_with_bytes_and_arrays_in_them():
    arrays = [np.arange(6, dtype=np.int8).reshape(2, 3), np.array(1.5, ml_dtypes.bfloat16), np.zeros((0, 2), bool)]
    value = {"a": [b"\n{}", *arrays], "b": None, "c": [1, float("inf")], "d": b""}
    found = decode(encode(value))
    assert (found["a"][0], found["b"], found["c"], found["d"]) == (b"\n{}", None, [1, float("inf")], b"")
    for given, there in zip(arrays, found["a"][1:], strict=True):
        assert (there.dtype, there.shape) == (given.dtype, given.shape)
        assert np.array_equal(there, given)
        assert there.flags.writeable


def test_a_function_is_called_in_another_process():
    assert call(os.getpid, limit_s=60.0) not in (0, os.getpid())
    assert call(encode, [b"x"], limit_s=60.0, memory_limited=True) == encode([b"x"])
    assert call(print, "what a library prints is no part of the answer", limit_s=60.0) is None


def reason_then_chatter():
    os.write(2, b"the reason\n")
    os.write(1, b"chatter\n")
    os._exit(3)


@pytest.mark.parametrize(
    ("function", "arguments", "reason", "code"),
    [
        (decode, [b"no JSON"], "JSONDecodeError: Expecting value: line 1 column 1 (char 0)", 1),
        (os._exit, [0], "no result, exit code 0", 0),
        (sys.exit, ["first\nsecond"], "second", 1),
        (reason_then_chatter, [], "the reason", 3),
        (signal.raise_signal, [int(signal.SIGKILL)], "no message", -signal.SIGKILL),
    ],
)
def test_a_failure_is_its_last_line_and_its_exit_code(function, arguments, reason, code):
    with pytest.raises(ProcessFailed) as failed:
        call(function, *arguments, limit_s=60.0)
    assert (str(failed.value), failed.value.exit_code) == (reason, code)


STARTS_ANOTHER = """
import subprocess, sys, time
process = subprocess.Popen(["sleep", "300"])
print(process.pid, file=open(sys.argv[1], "w"), flush=True)
time.sleep(300)
"""


def test_a_process_that_takes_too_long_ends_with_all_that_it_started(tmp_path):
    told = tmp_path / "process"
    running = Running([sys.executable, "-c", STARTS_ANOTHER, str(told)], dict(os.environ), 3600.0)
    until = time.monotonic() + 60
    while not (told.exists() and told.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.05)
    stop = threading.Event()
    stop.set()
    assert running.wait(stop).exit_code == -signal.SIGTERM
    stat = Path("/proc", told.read_text().strip(), "stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX" and time.monotonic() < until:
        time.sleep(0.05)
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"
    with pytest.raises(ProcessFailed, match=r"did not finish within 0\.01 s") as late:
        call(time.sleep, 300, limit_s=0.01)
    assert late.value.exit_code is None


def test_a_process_without_space_for_its_files_has_failed(monkeypatch):
    def full(*arguments, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(ProcessFailed, match="it cannot be started: No space left on device"):
        call(time.sleep, 0, limit_s=60)
