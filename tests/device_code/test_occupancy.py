"""Occupancy against NVIDIA's published limits, and the waves of a grid."""

import pytest

from fusionlab.codegen.targets import load_target
from fusionlab.device_code.occupancy import occupancy


@pytest.mark.parametrize(
    ("target", "threads", "registers", "shared", "share", "limit"),
    [
        ("a100", 256, 32, 0, 1.0, "warps"),  # 65,536 registers over 2,048 threads
        ("a100", 256, 33, 0, 0.75, "registers"),  # 40 a thread with the unit of 256 a warp: 48 warps
        ("a100", 128, 255, 0, 0.125, "registers"),
        ("a100", 32, 16, 0, 0.5, "blocks"),  # 32 blocks of a warp
        ("a100", 128, 32, 80 * 1024, 0.125, "shared memory"),  # 2 blocks of 81 KiB in 164
        ("a5000", 64, 32, 0, 2 / 3, "blocks"),  # 16 blocks of two warps, of 48
        ("h100", 1024, 32, 0, 1.0, "warps"),
        ("h100", 128, 32, 227 * 1024, 0.0625, "shared memory"),
    ],
)
def test_the_scarcest_resource_is_the_limit(target, threads, registers, shared, share, limit):
    found = occupancy(load_target(target).limits, 100_000, threads, registers, shared)
    assert (found.share, found.limit) == (pytest.approx(share), limit)


def test_waves_and_tail():
    limits = load_target("a100").limits
    one, more = (occupancy(limits, blocks, 128, 32, 0) for blocks in (1728, 1729))
    assert (one.waves, one.tail) == (1.0, 1.0)
    assert more.tail == pytest.approx(2.0, rel=1e-3)
    few = occupancy(limits, 27, 128, 32, 0)
    assert (few.busy_sms, few.tail) == (0.25, 1.0)


def test_registers_that_are_not_known_are_no_limit():
    limits = load_target("a100").limits
    assert occupancy(limits, 10, 128, None, 0).share == 1.0


def test_a_block_that_does_not_fit():
    assert occupancy(load_target("a100").limits, 10, 1024, 255, 0) is None


def test_the_cpu_has_no_limits():
    assert load_target("cpu").limits is None
