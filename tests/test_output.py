"""Files are whole or not there."""

import os

import pytest

from fusionlab.errors import InputError
from fusionlab.output import require_writable, write_whole


def test_text_and_bytes(tmp_path):
    write_whole(tmp_path / "a", "text ψ\n")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_permissions_are_those_of_a_new_file(tmp_path):
    write_whole(tmp_path / "a", "x")
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")

    def fails(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(InputError, match="a: cannot be written: No space left on device"):
        write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_in_the_files_place(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match="a: cannot be written: Is a directory"):
        write_whole(tmp_path / "a", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="below: cannot be written to: Not a directory"):
        require_writable(tmp_path / "file" / "below")
    require_writable(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []
