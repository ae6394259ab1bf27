"""Content-addressed files: damaged entries are replaced, and a folder that cannot be written to is no error."""

import gzip
import json
import logging
import pwd
from pathlib import Path

import pytest

from fusionlab.codegen.cache import default_cache
from fusionlab.store import Store, _warn_once, cache_folder, digest_of, expanded, sources_digest


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_an_entry_comes_back_and_a_damaged_one_is_replaced(tmp_path, suffix):
    store = Store(tmp_path, suffix)
    assert store.load("abc", dict) is None
    store.store("abc", {"a": 1})
    path = tmp_path / "ab" / f"abc{suffix}"
    whole = path.read_bytes()
    assert json.loads(gzip.decompress(whole) if suffix == ".json.gz" else whole) == {"a": 1}
    assert store.load("abc", dict) == {"a": 1}
    for damaged in (b"", b"{", whole[:-3], b"\xff\xfe"):
        path.write_bytes(damaged)
        assert store.load("abc", dict) is None
    store.store("abc", {"a": 2})
    assert store.load("abc", dict) == {"a": 2}


def test_what_cannot_be_read_as_a_record_is_ignored(tmp_path):
    store = Store(tmp_path, nested=False)
    store.store("key", [1])
    assert (tmp_path / "key.json").is_file()
    for read in (lambda record: record["format"], lambda record: record[1], lambda record: record.get("a")):
        assert store.load("key", read) is None


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    for title, told in (("", []), ("the cache", ["the cache is off: Not a directory"])):
        store = Store(tmp_path / "file" / "entries", title=title)
        with caplog.at_level(logging.WARNING):
            store.store("abc", 1)
            store.store("abc", 1)
        assert [record.getMessage() for record in caplog.records] == told
        assert store.load("abc", int) is None


def test_without_a_home_nothing_is_kept_and_that_is_told_once(monkeypatch, caplog):
    def no_user(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.delenv("FUSIONLAB_CACHE", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_user)
    _warn_once.cache_clear()
    assert (cache_folder(), default_cache(), cache_folder()) == (None, None, None)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert caplog.records[0].getMessage().endswith("; set FUSIONLAB_CACHE to another path")
    monkeypatch.setenv("HOME", "/home/of/another")
    assert cache_folder() == Path("/home/of/another/.cache/fusionlab")


def test_the_warning_names_the_variable_that_was_set(caplog):
    _warn_once.cache_clear()
    assert expanded("~nouser/x", "FUSIONLAB_LOG") is None
    said = "~nouser/x: there is no such home folder, so nothing is kept there; set FUSIONLAB_LOG to another path"
    assert caplog.messages == [said]


def test_a_digest_follows_every_part():
    assert len({digest_of("a", "b"), digest_of("ab"), digest_of(["a", "b"]), digest_of("b", "a")}) == 4
    assert digest_of("a", 1) == digest_of("a", 1)


def test_the_digest_of_sources_has_names_and_contents(tmp_path):
    found = set()
    for name, content in (("a.py", "1"), ("b.py", "1"), ("b.py", "2")):
        folder = tmp_path / f"{name}{content}"
        folder.mkdir()
        (folder / name).write_text(content)
        (folder / "notes.txt").write_text("counts for nothing")
        found.add(sources_digest(folder))
    assert len(found) == 3
