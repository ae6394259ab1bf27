"""The index arithmetic of warps: addresses, trips and branches of small kernels written by hand."""

import numpy as np
import pytest

from fusionlab.device_code.arithmetic import Lanes, evaluate, literal
from fusionlab.device_code.ptx import parse_ptx
from fusionlab.device_code.warps import MOST_WARPS, trace
from tests.device_code.ptx_texts import kernel

GRID = (4, 1, 1)


def traced(body, grid=GRID, **given):
    (found,) = parse_ptx(kernel(body, **given))
    return trace(found, grid)


def load(scale, opcode="ld.global.b32", index="%r1"):
    return f"mul.wide.u32 %rd9, {index}, {scale}\nadd.s64 %rd8, %rd1, %rd9\n{opcode} %r2, [%rd8]"


@pytest.mark.parametrize(
    ("scale", "opcode", "sectors"),
    [(4, "ld.global.b32", 1.0), (8, "ld.global.b32", 2.0), (256, "ld.global.b32", 8.0), (0, "ld.global.b32", 1.0),
     (16, "ld.global.v4.b32", 1.0), (8, "ld.global.b64", 1.0), (1, "ld.global.b8", 1.0), (-4, "ld.global.b32", 1.0)],
)  # fmt: skip
def test_sectors_and_strides(scale, opcode, sectors):
    body = load(scale, opcode) if scale >= 0 else "sub.s32 %r3, 511, %r1\n" + load(4, opcode, "%r3")
    (access,) = traced(body).accesses
    assert (access.parameter, access.stride_bytes) == (0, scale)
    assert access.requests.sectors_over_least == pytest.approx(sectors)
    assert (access.requests.requests, access.requests.lanes) == (16, 512)


def test_threads_of_one_address_read_it_once():
    (access,) = traced(load(4, index="%r91")).accesses
    assert access.requests.distinct_bytes == 16 * 4
    assert access.stride_bytes == 0


def test_a_loop_runs_its_trips():
    body = f"mov.b32 %r5, 0\n$L1:\n{load(4)}\nadd.s32 %r5, %r5, 3\nsetp.lt.u32 %p1, %r5, 20\n@%p1 bra $L1"
    found = traced(body)
    (access,) = found.accesses
    assert access.requests.lanes == 7 * 512
    assert found.warp_sectors == {0: 64}  # each of 16 warps reads the same 4 sectors 7 times
    assert found.complete
    assert found.data_branches == 0


def test_each_thread_takes_its_own_branch():
    body = f"""and.b32 %r5, %r90, 1
setp.eq.b32 %p1, %r5, 1
@%p1 bra $ODD
{load(4)}
bra.uni $END
$ODD:
{load(4)}
{load(4)}
$END:
st.global.b32 [%rd2], %r2"""
    found = traced(body)
    assert [one.requests.lanes for one in found.of("global", "load")] == [256, 256, 256]
    (store,) = found.of("global", "store")
    assert (store.parameter, store.requests.lanes) == (1, 512)
    assert store.requests.requests == 16  # the threads met again


def test_a_guarded_access_and_a_thread_bound():
    body = (
        "setp.lt.u32 %p1, %r1, 100\nmul.wide.u32 %rd9, %r1, 4\nadd.s64 %rd8, %rd1, %rd9\n@%p1 ld.global.b32 %r2, [%rd8]"
    )
    (access,) = traced(body).accesses
    assert (access.requests.lanes, access.requests.requests) == (100, 4)


def test_a_branch_on_data_is_not_taken_and_counted():
    body = f"{load(4)}\nsetp.eq.b32 %p1, %r2, 0\n@%p1 bra $END\n{load(4, index='%r2')}\n$END:"
    found = traced(body)
    first, second = found.accesses
    assert found.data_branches == 1
    assert second.requests.lanes == 512
    assert (second.requests.unknown, second.parameter, second.requests.sectors) == (16, -1, 0)
    assert first.requests.unknown == 0


@pytest.mark.parametrize(("words", "ways"), [(1, 1.0), (2, 2.0), (32, 32.0), (33, 1.0), (0, 1.0)])
def test_bank_conflicts(words, ways):
    body = f".shared .align 4 .b8 tile[8192]\nmov.b64 %rd7, tile\nmul.wide.u32 %rd9, %r90, {4 * words}\n"
    body += "add.s64 %rd8, %rd7, %rd9\nst.shared.b32 [%rd8], %r1"
    (access,) = traced(body).of("shared")
    assert access.requests.conflict_ways == pytest.approx(ways)


def test_wide_accesses_of_shared_memory_take_turns_of_their_own():
    body = ".shared .align 16 .b8 tile[8192]\nmov.b64 %rd7, tile\nmul.wide.u32 %rd9, %r90, 16\n"
    body += "add.s64 %rd8, %rd7, %rd9\nst.shared.v4.b32 [%rd8], {%r1, %r1, %r1, %r1}"
    (access,) = traced(body, grid=(1, 1, 1)).of("shared")
    assert (access.requests.wavefronts, access.requests.least_wavefronts) == (16, 16)


def test_a_large_grid_is_sampled_evenly():
    body = f"setp.lt.u32 %p1, %r91, 500000\n@%p1 bra $END\n{load(4)}\n$END:"
    found = traced(body, grid=(1_000_000, 1, 1))
    (access,) = found.accesses
    assert found.sampled_warps <= MOST_WARPS
    assert found.warps == 4_000_000
    assert access.requests.lanes * found.scale == pytest.approx(64_000_000, rel=0.03)


def test_a_loop_that_is_too_long_is_said():
    found = traced(f"mov.b32 %r5, 0\n$L1:\n{load(4)}\nadd.s32 %r5, %r5, 1\nsetp.lt.u32 %p1, %r5, 1000000\n@%p1 bra $L1")
    assert not found.complete


def test_threads_beyond_the_block_do_nothing():
    (access,) = traced(load(4), grid=(2, 1, 1), threads="40, 1, 1").accesses
    assert (access.requests.lanes, access.requests.requests) == (80, 4)


def test_a_grid_of_two_axes():
    found = traced("mov.u32 %r5, %ctaid.y\n" + load(4, index="%r5"), grid=(2, 3, 1))
    (access,) = found.accesses
    assert found.warps == 24
    assert access.requests.distinct_bytes == 24 * 4


A, B, C = -7, 13, 5
U32 = (1 << 32) - 1


@pytest.mark.parametrize(
    ("opcode", "values", "expected"),
    [
        ("add.s32", (A, B), 6), ("sub.s32", (B, A), 20), ("mul.lo.s32", (A, B), -91 & U32),
        ("mul.wide.s32", (A, B), -91), ("mul.wide.u32", (U32, U32), (U32 * U32) - (1 << 64)),
        ("mul.hi.u32", (U32, 0xAAAAAAAB), U32 * 0xAAAAAAAB >> 32), ("mul.hi.s32", (A, B), U32),
        ("mul.hi.u64", (1 << 62, 12), 3), ("mul.hi.s64", (-(1 << 62), 12), -3), ("mad.lo.s32", (A, B, 100), 9),
        ("mad.wide.u32", (3, 4, 1 << 40), (1 << 40) + 12), ("div.u32", (B, 5), 2), ("div.s32", (A, 2), -3 & U32),
        ("rem.s32", (A, 4), -3 & U32), ("rem.u32", (B, 5), 3), ("shl.b32", (3, 31), 1 << 31), ("shl.b32", (3, 32), 0),
        ("shr.u32", (U32, 28), 15), ("shr.s32", (A, 1), -4 & U32), ("shr.u64", (-1, 60), 15), ("and.b32", (12, 10), 8),
        ("or.b32", (12, 10), 14), ("xor.b32", (12, 10), 6), ("not.b32", (0,), U32), ("neg.s32", (C,), -5 & U32),
        ("min.s32", (A, B), A & U32), ("min.u32", (A, B), 13), ("max.s32", (A, B), 13), ("abs.s32", (A,), 7),
        ("setp.lt.s32", (A, B), 1), ("setp.lt.u32", (A & U32, B), 0), ("setp.ge.u64", (5, 5), 1),
        ("setp.lt.and.s32", (A, B, 0), 0), ("selp.b32", (1, 2, 0), 2), ("cvt.s64.s32", (A & U32,), A),
        ("cvt.u64.u32", (A & U32,), A & U32), ("cvt.u16.u32", (0x12345,), 0x2345), ("bfe.u32", (0xABCD, 4, 8), 0xBC),
        ("bfe.s32", (0xF0, 4, 4), U32), ("shf.l.wrap.b32", (0x80000000, 1, 4), 0x18),
        ("lop3.b32", (12, 10, 6, 0x96), 12 ^ 10 ^ 6), ("and.pred", (1, 0), 0), ("not.pred", (1,), 0),
    ],
)  # fmt: skip
def test_arithmetic_is_that_of_integers(opcode, values, expected):
    found = evaluate(opcode.split("."), [Lanes.of(value, 3) for value in values])
    assert found.known.all()
    assert set(found.bits.tolist()) == {expected}


def test_what_is_not_known_stays_unknown():
    known, unknown = Lanes.of(1, 2), Lanes.unknown(2)
    assert not evaluate(["add", "s32"], [known, unknown]).known.any()
    assert not evaluate(["add", "rn", "f32"], [known, known]).known.any()
    assert not evaluate(["brev", "b32"], [known]).known.any()
    assert evaluate(["and", "pred"], [Lanes.of(0, 2), unknown]).known.all()
    assert not evaluate(["and", "pred"], [known, unknown]).known.any()
    assert evaluate(["or", "pred"], [unknown, known]).bits.tolist() == [1, 1]
    half = Lanes(np.array([1, 2]), np.array([True, False]))
    assert evaluate(["selp", "b32"], [half, known, known]).known.tolist() == [True, False]


def test_numbers():
    assert [literal(text) for text in ("12", "-3", "0x1F", "0f3F800000", "%r1", "tile")] == [
        12, -3, 31, 0x3F800000, None, None,
    ]  # fmt: skip
