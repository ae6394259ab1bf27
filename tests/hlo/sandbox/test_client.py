"""The reader's process may crash or hang at any point: the caller gets one line, and the next file a new process."""

import sys

import pytest

from fusionlab.hlo.sandbox import client

SENDS = "import os, struct, sys, time; fd = int(sys.argv[1]); "
READS = "size, = struct.unpack('!i', os.read(fd, 4)); os.read(fd, size); "
HALF = "os.write(fd, struct.pack('!i', 1000) + b'half'); "
HANGS = "time.sleep(600)"
WHOLE = "os.write(fd, struct.pack('!i', 4) + bytes([1]) + b'all'); "


@pytest.fixture
def reader(monkeypatch):
    """``reader(code)``: a reader whose process runs ``code``, with a limit of a second."""
    monkeypatch.setattr(client, "TIME_LIMIT_S", 1.0)
    monkeypatch.setattr(client, "_START_LIMIT_S", 1.0)
    made = client._Reader()

    def running(code):
        command = [sys.executable, "-S", "-c", SENDS + code]
        monkeypatch.setattr(client, "module_command", lambda _, arguments: ([*command, *arguments], {}))
        return made

    yield running
    made.end()


@pytest.mark.parametrize(
    ("code", "content"),
    [
        (READS + HANGS, b"module"),
        (READS + HALF + HANGS, b"module"),
        (HANGS, bytes(900_000)),  # more than a pipe holds
    ],
    ids=["no answer", "half an answer", "the file is not read"],
)
def test_a_process_that_hangs_ends_at_the_deadline(reader, code, content):
    with pytest.raises(client.Unreadable, match=r"MLIR did not read it within [13] s"):
        reader(code).ask(content)
    assert reader(READS + WHOLE + HANGS).ask(b"module") == (1, b"all")


def test_a_process_that_ends_within_an_answer_is_told_by_its_exit(reader):
    with pytest.raises(client.Unreadable, match="reader ends with exit code 3"):
        reader(READS + HALF + "sys.exit(3)").ask(b"module")


@pytest.mark.parametrize("location", [r'"\FF.py":1:2', r'callsite("\FF.py":1:2 at "a.py":1:2)', r'"\FF"'])
def test_names_that_are_no_text_end_the_process_and_not_the_caller(location):
    text = f"""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %y = stablehlo.sine %x : tensor<4xf32> loc({location})
      return %y : tensor<4xf32>
    }}"""
    with pytest.raises(client.Unreadable, match="reader ends with SIGABRT"):
        client.read_apart(text.encode())
