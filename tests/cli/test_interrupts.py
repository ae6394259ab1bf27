"""Ctrl-C: one line and exit code 130, whatever the command is doing; nothing is left half-written or running."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from fusionlab.cli import main
from fusionlab.cli.interrupts import Interruption

ROOT = Path(__file__).parents[2]
PROCESS = """
import signal, sys, time, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job, as this run may be, ignores it

import click
from fusionlab import cli
from fusionlab.cli import interrupts

interrupts._GRACE_S = 0.1

@click.command("dump")
def command():
{body}

sys.modules["fusionlab.cli.dump"] = types.SimpleNamespace(command=command)
cli.main(["dump"])
"""
IN_PYTHON = """
print("ready", flush=True)
time.sleep(60)
"""
IN_NATIVE_CODE = """
import hashlib, tempfile
with tempfile.TemporaryDirectory(dir="."):
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # releases Python's lock, as XLA's compiler does
"""
WITH_A_FULL_FOLDER = """
import hashlib, tempfile
class Folder(tempfile.TemporaryDirectory):
    def cleanup(self):
        super().cleanup()
        raise OSError("native code has written another file into it")
with Folder(dir="."):
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""
IN_A_CALLBACK = """
import gc
gc.callbacks.append(lambda *_: time.sleep(60))
print("ready", flush=True)
gc.collect()
"""
AS_ANOTHER_ERROR = """
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    raise ImportError("an extension that was being imported") from None
"""
WITH_A_CHILD = """
from fusionlab import subprocesses
running = subprocesses.Running([sys.executable, "-c", "import time; time.sleep(60)"], {}, 60)
print(running._process.pid, flush=True)
running.wait()
"""
IN_A_THREAD = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    waiting = pool.submit(time.sleep, 60)
    print("ready", flush=True)
    waiting.result()
"""
AT_A_QUESTION = """
print("ready", flush=True)
click.confirm("Start?", err=True)
"""
BODIES = {
    "python": IN_PYTHON, "native": IN_NATIVE_CODE, "folder": WITH_A_FULL_FOLDER, "callback": IN_A_CALLBACK,
    "error": AS_ANOTHER_ERROR, "child": WITH_A_CHILD, "thread": IN_A_THREAD, "question": AT_A_QUESTION,
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_ctrl_c_is_one_line_and_130(body, tmp_path):
    with started(body, tmp_path) as process:
        said = process.stdout.readline().strip()
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=50)
    assert (process.returncode, errors.splitlines()[-1:]) == (130, ["fusionlab: interrupted"])
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []
    deadline = time.monotonic() + 30
    while runs(said) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(said)


@contextlib.contextmanager
def started(body, folder):
    code = PROCESS.format(body=textwrap.indent(body, "    "))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_ends_a_command_whose_stderr_nobody_reads(tmp_path):
    with started(IN_NATIVE_CODE, tmp_path) as process:
        process.stdout.readline()
        process.stderr.close()
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=50) == 130


def runs(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def own_wakeup():
    """Python's own handler of SIGINT, and a wakeup descriptor of the user's."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    read, write = os.pipe()
    os.set_blocking(write, False)
    old = signal.set_wakeup_fd(write)
    yield write
    signal.set_wakeup_fd(old)
    signal.signal(signal.SIGINT, handler)
    os.close(read)
    os.close(write)


def as_the_user_has_it():
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    return signal.getsignal(signal.SIGINT), wakeup, sys.unraisablehook, threading.active_count()


def test_after_a_command_the_process_has_its_own_handler_again(own_wakeup):
    before = as_the_user_has_it()
    with Interruption().ending_promptly():
        assert as_the_user_has_it()[:2] != before[:2]
    assert as_the_user_has_it() == before
    with pytest.raises(SystemExit), Interruption().ending_promptly():
        raise SystemExit(0)
    assert as_the_user_has_it() == before
    with Interruption().ending_promptly(), pytest.raises(KeyboardInterrupt):  # which the command catches
        signal.raise_signal(signal.SIGINT)
    assert as_the_user_has_it() == before


def test_a_command_in_another_thread_leaves_signals_alone(capsys):
    codes = []

    def run():
        with pytest.raises(SystemExit) as ended:
            main(["--version"])
        codes.append(ended.value.code)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert codes == [0]
    assert "Traceback" not in capsys.readouterr().err
