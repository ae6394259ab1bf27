"""Files are read once and only so far, and written whole or not at all."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fusionlab import files
from fusionlab.errors import InputError
from fusionlab.files import Own, read_file, require_own_folder, require_writable, write_folder, write_whole
from fusionlab.subprocesses import ProcessFailed, call


def test_text_and_bytes_with_the_permissions_of_a_new_file(tmp_path):
    write_whole(tmp_path / "a", "text ψ\n")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    (tmp_path / "b").write_text("x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_the_longest_name_that_a_folder_takes(tmp_path):
    for name in ("x" * 255, "ä" * 127):
        write_whole(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")

    def fails(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(InputError, match="a: cannot be written: No space left on device"):
        write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("old")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def write_with_little_room(path):
    """A limit on the size of files stands for a full disk: the write fails halfway."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    write_whole(Path(path), "x" * 100_000)


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.mlir"
    path.write_text("old")
    with pytest.raises(ProcessFailed, match=r"out\.mlir: cannot be written: "):
        call(write_with_little_room, str(path), limit_s=120)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_run_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "out.mlir"
    contents = [letter * 3_000_000 for letter in "ab"]
    path.write_text(contents[0])
    command = (
        "from pathlib import Path\nfrom fusionlab.files import write_whole\nprint('writing', flush=True)\n"
        f"while True:\n    for letter in 'ab':\n        write_whole(Path({str(path)!r}), letter * 3_000_000)\n"
    )
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout.readline() == "writing\n"
            time.sleep(0.05)
            writer.kill()
        assert path.read_text() in contents


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="below: cannot be written to: Not a directory"):
        require_writable(tmp_path / "file" / "below")
    require_writable(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []


OWN = Own(("*.txt", "mark.json"), "mark.json", "ours-")
MARK = {"mark.json": '{"format": "ours-1"}'}


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "a" / "b"
    write_folder(folder, {**MARK, "one.txt": "1", "two.txt": "2"}, OWN)
    folder.chmod(0o700)
    write_folder(folder, {**MARK, "one.txt": "new"}, OWN)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {**MARK, "one.txt": "new"}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.parent.iterdir()) == [folder]


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "kept.md").write_text("mine")
    with pytest.raises(InputError, match=r"kept\.md"):
        write_folder(tmp_path, {"one.txt": "1"}, OWN)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.md"]


@pytest.mark.parametrize("mark", [None, "", "[]", pytest.param("[" * 100_000, id="deep"), '{"format": "theirs-1"}'])
def test_names_alone_make_no_folder_ours(tmp_path, mark):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "one.txt").write_text("theirs")
    if mark is not None:
        (folder / "mark.json").write_text(mark)
    with pytest.raises(InputError, match=r"no mark\.json that says they are ours"):
        write_folder(folder, {**MARK, "one.txt": "1"}, OWN)
    assert (folder / "one.txt").read_text() == "theirs"


def test_the_current_directory_is_not_replaced(tmp_path, monkeypatch):
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    for name in (".", "..", str(below)):
        with pytest.raises(InputError, match="the current directory is in it"):
            require_own_folder(Path(name), OWN)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(OSError(28, "No space left on device"), InputError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=["full", "interrupt"],
)
@pytest.mark.parametrize("at", ["old", "place"])
def test_where_the_new_folder_is_not_put_in_place_the_old_one_stays(tmp_path, monkeypatch, at, error, raised):
    """It fails just after the old folder is moved away, or when the new one is moved to its place."""
    folder = tmp_path / "study"
    write_folder(folder, {**MARK, "one.txt": "old"}, OWN)
    rename = os.rename

    def fails(source, target):
        if at == "place" and Path(source).name == "new":
            raise error
        rename(source, target)
        if at == "old" and Path(target).name == "old":
            raise error

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(raised, match="No space left" if raised is InputError else None):
        write_folder(folder, {**MARK, "one.txt": "new"}, OWN)
    assert (folder / "one.txt").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_a_file_or_a_link_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(InputError, match="is not a folder"):
            write_folder(tmp_path / name, {"one.txt": "1"}, OWN)


def test_what_is_no_plain_file_is_neither_replaced_nor_written_through(tmp_path):
    """A rename would put a file in the place of a device; a link may lead out of the folder that was named."""
    theirs = tmp_path / "theirs"
    theirs.write_text("old")
    (tmp_path / "link").symlink_to(theirs)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    for name, said in (
        ("link", "symbolic link"),
        ("dangling", "symbolic link"),
        ("pipe", "a device or a pipe"),
        ("folder", "folder: cannot be written: Is a directory"),
    ):
        with pytest.raises(InputError, match=said):
            write_whole(tmp_path / name, "new")
    assert theirs.read_text() == "old"
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "pipe").is_fifo()


def test_files_and_pipes_are_read_whole(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"y" * 100_000,))
    writer.start()
    assert read_file(tmp_path / "file") == b"x" * 100
    assert read_file(tmp_path / "pipe") == b"y" * 100_000
    writer.join()


def test_what_never_ends_is_refused(cli, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 2**20)
    for command in (("replays", "/dev/zero"), ("check", "/dev/zero", "/dev/zero")):
        result = cli(*command, "--quiet")
        assert result.exit_code == 2
        assert result.stderr.startswith("fusionlab: /dev/zero: is larger than ")


def test_a_file_larger_than_any_program_is_refused(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(files.MOST_BYTES + 1)
    with pytest.raises(InputError, match="sparse: is larger than 1 GiB"):
        read_file(tmp_path / "sparse")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_file(tmp_path)
