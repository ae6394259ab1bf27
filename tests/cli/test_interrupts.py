"""Ctrl-C: one line and exit code 130, whatever the command is doing; nothing is left half-written or running."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROCESS = """
import sys, time, types
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
    "python": IN_PYTHON, "native": IN_NATIVE_CODE, "callback": IN_A_CALLBACK, "error": AS_ANOTHER_ERROR,
    "child": WITH_A_CHILD, "thread": IN_A_THREAD, "question": AT_A_QUESTION,
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_ctrl_c_is_one_line_and_130(body, tmp_path):
    code = PROCESS.format(body=textwrap.indent(body, "    "))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    with process:
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


def runs(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
