"""What others bring is read once, and only so far."""

import os
import threading

import pytest

from fusionlab import reading
from fusionlab.errors import InputError
from fusionlab.reading import read_file


def test_files_and_pipes_are_read_whole(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"y" * 100_000,))
    writer.start()
    assert read_file(tmp_path / "file") == b"x" * 100
    assert read_file(tmp_path / "pipe") == b"y" * 100_000
    writer.join()


def test_what_never_ends_is_refused(cli, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 2**20)
    for command in (("replays", "/dev/zero"), ("check", "/dev/zero", "/dev/zero")):
        result = cli(*command, "--quiet")
        assert result.exit_code == 2
        assert result.stderr.startswith("fusionlab: /dev/zero: is larger than ")


def test_a_file_larger_than_any_program_is_refused(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(reading.MOST_BYTES + 1)
    with pytest.raises(InputError, match="sparse: is larger than 1 GiB"):
        read_file(tmp_path / "sparse")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_file(tmp_path)
