"""The compile cache: keys, round trips, and every way in which it may be unusable."""

import dataclasses
import errno
import gzip
import logging
import os
import threading
from pathlib import Path

import pytest

from fusionlab.codegen import compile as compile_module
from fusionlab.codegen.cache import CompileCache, default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.program import Program
from tests.ledger.by_hand import compiled_of

PROGRAM = Program("tiny", b"bytecode", "any", "a test")
A100 = load_target("a100")


@pytest.fixture
def compiles(monkeypatch):
    """Count compiles without XLA: what is under test is what happens around them."""
    calls = []

    def fake(program, target, options, dump, serialize, fusions=False, ptx=False):
        calls.append(program.name)
        artifacts = {"x.txt": "text"} if dump else {}
        made = compiled_of("HloModule é", "001: kCopy", compile_s=0.25, artifacts=artifacts)
        return dataclasses.replace(made, name=program.name, target=target, options=options, ptx="code" * ptx)

    monkeypatch.setattr(compile_module, "_compile", fake)
    return calls


def _compile(cache, program=PROGRAM, **options):
    return compile_program(program, A100, cache=cache, **options)


def test_the_second_compile_is_read_back_equal(tmp_path, compiles):
    first, second = _compile(CompileCache(tmp_path)), _compile(CompileCache(tmp_path))
    assert compiles == ["tiny"]
    assert first == second
    assert (first.from_cache, second.from_cache) == (False, True)
    assert second.memory.temp_bytes == 3


def test_a_record_takes_the_name_of_the_program_that_asks(tmp_path, compiles):
    _compile(CompileCache(tmp_path))
    renamed = dataclasses.replace(PROGRAM, name="other")
    assert _compile(CompileCache(tmp_path), renamed).name == "other"
    assert compiles == ["tiny"]


def test_the_key_follows_everything_that_decides_the_result():
    cache = CompileCache(Path("unused"))
    other = dataclasses.replace(PROGRAM, bytecode=b"other")
    keys = [
        cache.key(PROGRAM, A100, {}, "1"),
        cache.key(other, A100, {}, "1"),
        cache.key(PROGRAM, load_target("h200"), {}, "1"),
        cache.key(PROGRAM, A100, {"xla_gpu_autotune_level": 0}, "1"),
        cache.key(PROGRAM, A100, {}, "2"),
    ]
    assert len(set(keys)) == 5
    assert cache.key(PROGRAM, A100, {"a": 1, "b": 2}, "1") == cache.key(PROGRAM, A100, {"b": 2, "a": 1}, "1")


def test_a_dump_is_another_entry(tmp_path, compiles):
    assert _compile(CompileCache(tmp_path)).artifacts == {}
    assert _compile(CompileCache(tmp_path), dump=True).artifacts == {"x.txt": "text"}
    assert _compile(CompileCache(tmp_path), dump=True).artifacts == {"x.txt": "text"}
    assert len(compiles) == 2


def test_an_entry_without_the_code_of_kernels_is_replaced_by_one_that_has_it(tmp_path, compiles):
    assert _compile(CompileCache(tmp_path)).ptx == ""
    assert [_compile(CompileCache(tmp_path), ptx=True).ptx for _ in range(2)] == ["code", "code"]
    assert _compile(CompileCache(tmp_path)).ptx == "code"
    assert len(compiles) == 2


@pytest.mark.parametrize("content", [b"", b"not gzip", None, gzip.compress(b'{"format": 99}', mtime=0)])
def test_a_corrupt_entry_is_ignored_and_replaced(tmp_path, compiles, content):
    _compile(CompileCache(tmp_path))
    (entry,) = tmp_path.rglob("*.json.gz")
    entry.write_bytes(entry.read_bytes()[:40] if content is None else content)
    assert not _compile(CompileCache(tmp_path)).from_cache
    assert _compile(CompileCache(tmp_path)).from_cache
    assert len(compiles) == 2


def test_a_full_disk_only_switches_the_cache_off(tmp_path, compiles, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    cache = CompileCache(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert _compile(cache).memory.temp_bytes == 3
        assert _compile(cache).memory.temp_bytes == 3
    assert [record.getMessage() for record in caplog.records] == [
        f"the compile cache in {tmp_path} is off: No space left on device"
    ]
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_concurrent_writers_leave_one_whole_entry(tmp_path, compiles):
    threads = [threading.Thread(target=_compile, args=(CompileCache(tmp_path),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    assert _compile(CompileCache(tmp_path)).from_cache


def test_attached_targets_are_compiled_afresh(tmp_path, compiles):
    for _ in range(2):
        compile_program(PROGRAM, load_target("cpu"), cache=CompileCache(tmp_path))
    assert len(compiles) == 2
    assert not list(tmp_path.rglob("*.gz"))


def test_the_default_folder_is_the_variable_or_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    assert default_cache().folder == tmp_path
    monkeypatch.setenv("FUSIONLAB_CACHE", "off")
    assert default_cache() is None
    monkeypatch.delenv("FUSIONLAB_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache().folder == tmp_path / ".cache" / "fusionlab"
