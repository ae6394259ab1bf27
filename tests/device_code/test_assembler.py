"""Registers, spills and SASS: what the assembler prints, and what is said where it fails or is missing."""

import logging
import re

import pytest

from fusionlab.device_code import assembler
from fusionlab.device_code.assembler import Resources, find_tool, parse_resources, resources_of, sass_of
from fusionlab.device_code.ptx import parse_ptx
from tests.device_code.ptx_texts import kernel
from tests.optional_packages import needs_nvdisasm, needs_ptxas

PRINTED = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    88 bytes stack frame, 84 bytes spill stores, 168 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 88 bytes cumulative stack size, 4224 bytes smem, 376 bytes cmem[0]
ptxas info    : Compile time = 23.279 ms
ptxas info    : Compiling entry function 'second' for 'sm_80'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers, 376 bytes cmem[0]
ptxas info    : Function properties for called
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
PTX = kernel(
    "mul.wide.u32 %rd9, %r1, 4\nadd.s64 %rd8, %rd1, %rd9\nld.global.b32 %r2, [%rd8]\nst.global.b32 [%rd2], %r2"
)
PTX = re.sub(r"\{\n", "{\n\t.reg .b32 %r<99>;\n\t.reg .b64 %rd<20>;\n", PTX, count=1)


@pytest.fixture
def no_cache(monkeypatch):
    monkeypatch.setenv("FUSIONLAB_CACHE", "off")


def test_what_ptxas_prints():
    assert parse_resources(PRINTED) == {
        "first": Resources(255, 88, 84, 168, 4224),
        "second": Resources(16, 0, 0, 0, 0),
    }


def test_without_a_tool_nothing_is_known(monkeypatch):
    monkeypatch.setattr(assembler, "find_tool", lambda _: None)
    (found,) = parse_ptx(PTX)
    assert resources_of([found]) == {}
    assert sass_of(found) is None


@needs_ptxas
def test_registers_of_a_kernel(no_cache):
    found = resources_of(parse_ptx(PTX))["k"]
    assert 4 <= found.registers <= 32
    assert (found.spill_store_bytes, found.shared_bytes) == (0, 0)


@needs_ptxas
def test_they_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    first = resources_of(parse_ptx(PTX))
    monkeypatch.setattr(assembler, "_run_ptxas", lambda *_: pytest.fail("it is assembled again"))
    assert resources_of(parse_ptx(PTX)) == first


@needs_ptxas
def test_what_it_refuses_is_logged(no_cache, caplog):
    broken = parse_ptx(PTX.replace("ld.global.b32", "ld.nowhere.b32"))
    with caplog.at_level(logging.WARNING):
        assert resources_of(broken) == {}
    assert "does not assemble a kernel" in caplog.text


@needs_ptxas
@needs_nvdisasm
def test_machine_code(no_cache):
    code = sass_of(parse_ptx(PTX)[0])
    assert "LDG" in code
    assert "EXIT" in code
    assert all(line.strip() for line in code.splitlines())


def test_a_tool_on_the_path_is_found(monkeypatch, tmp_path):
    tool = tmp_path / "nvdisasm"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setattr(assembler.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    find_tool.cache_clear()
    try:
        assert find_tool("nvdisasm") == tool
        assert find_tool("ptxas") is None
    finally:
        find_tool.cache_clear()
