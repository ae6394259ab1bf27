"""Planted cases: each kind of finding is named with its op and source line, and sound kernels have none."""

import re
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import fusionlab
from fusionlab.device_code.assembler import find_tool
from fusionlab.device_code.findings import KINDS
from tests.device_code import planted
from tests.device_code.planted import PLANTED, array
from tests.optional_packages import needs_ptxas, needs_the_cuda_plugin

pytestmark = [
    pytest.mark.usefixtures("module_cache"),
    pytest.mark.filterwarnings("ignore:.*Triton:DeprecationWarning"),
    needs_the_cuda_plugin,
]

OF_REGISTERS = ("spill", "low-occupancy")


@cache
def kernels(name):
    one = PLANTED[name]
    return fusionlab.kernels(one.function, *one.arguments)


def line_of(text):
    lines = Path(planted.__file__).read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if line.endswith(text))


def marks(name):
    return [needs_ptxas, pytest.mark.slow] if name in OF_REGISTERS else []


@pytest.mark.parametrize("name", [pytest.param(one, marks=marks(one)) for one in PLANTED])
def test_a_planted_case_is_named_with_its_op_and_line(name):
    one, found = PLANTED[name], kernels(name)
    (row, *_) = found.by_kind[one.kind]
    (finding,) = [each for each in found.findings[row.name] if each.kind == one.kind]
    assert (finding.op, finding.source) == (one.op, f"planted.py:{line_of(one.marked)}")
    assert one.least <= finding.factor <= one.most + 1e-6
    assert finding.words in found.verdict or finding != found.findings[found.rows[0].name][0]


def test_every_kind_has_a_case():
    assert {one.kind for one in PLANTED.values()} == set(KINDS) - {"strided-write"}


def test_a_strided_write():
    found = fusionlab.kernels(lambda x: jnp.transpose(x) + 1, array(512, 512, dtype="int8"))
    (row,) = found.by_kind["strided-write"]
    assert row.stores.sectors_over_least == pytest.approx(4.0)


def test_a_sound_kernel_has_nothing_in_excess():
    found = fusionlab.kernels(lambda x, y: jnp.sin(x) * y, array(1728 * 512), array(1728 * 512))  # one full wave
    assert found.by_kind == {}
    assert found.verdict.endswith(": 1 kernel, nothing in excess")
    (row,) = found.rows
    assert row.reads_per_needed == pytest.approx(1.0, rel=1e-3)
    assert row.reads_per_written == pytest.approx(2.0, rel=1e-3)
    assert row.loads_by_bytes == {16: 2.0}
    assert row.stores_by_bytes == {16: 1.0}
    assert {(one.name, one.stride_bytes) for one in row.operands} == {("x.1", 16), ("y.1", 16)}


def test_the_branches_of_a_concatenation_are_weighed():
    """Half of the outputs are sums of 32 numbers, half copies: on average an output takes 16.5 loads."""

    def joined(x):
        sums = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 32), (1, 1), "VALID")
        return jnp.concatenate([sums, jnp.zeros_like(sums)], axis=0)

    (row,) = fusionlab.kernels(joined, array(256, 287)).rows
    loads = sum(row.loads_by_bytes.values())
    stores = row.written_bytes / 4 / row.threads
    assert loads / stores == pytest.approx(16.0, rel=0.15)


def test_atomics_by_kind_and_scope():
    found = fusionlab.kernels(lambda at: jnp.zeros(64, jnp.int32).at[at].add(1), array(4096, dtype="int32"))
    (atomic,) = [one for row in found.rows for one in row.atomics]
    assert (atomic.operation, atomic.type, atomic.space, atomic.executed) == ("add", "u32", "global", 4096)
    assert "cas" not in found.by_kind


@needs_ptxas
@pytest.mark.slow
def test_registers_are_those_of_the_assembler():
    row = kernels("low-occupancy").rows[0]
    assert 128 <= row.resources.registers <= 255
    assert row.occupancy.limit == "registers"
    assert row.occupancy.share < 0.25


def test_without_an_assembler_the_rest_is_said(monkeypatch):
    find_tool.cache_clear()
    monkeypatch.setattr("fusionlab.device_code.assembler.find_tool", lambda _: None)
    monkeypatch.setattr("fusionlab.facts.kernel_facts.find_tool", lambda _: None)
    one = PLANTED["strided-read"]
    found = fusionlab.kernels(one.function, *one.arguments)
    assert list(found.by_kind) == ["strided-read"]
    assert found.rows[0].resources is None
    assert any("pip install 'fusionlab[kernels]'" in line for line in found.notes)
    assert found.sass(found.rows[0].name) is None


def test_the_code_has_its_requests_beside_it():
    code = kernels("strided-read").code(kernels("strided-read").rows[0].name)
    (first, *_) = [line for line in code.splitlines() if "ld.global" in line]
    assert re.search(r" // %x\.1, 1 a thread, stride \d+ bytes, 8 times the least sectors$", first)
