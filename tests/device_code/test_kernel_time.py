"""The time of kernels by their code: each term, and targets without rates."""

import pytest

from fusionlab.codegen.targets import load_target
from fusionlab.device_code.kernel_time import KernelDemand, Terms, kernel_us, streaming_us, terms_of
from fusionlab.ledger.time.constants import KERNELS, KernelConstants

H100 = load_target("h100")
PLAIN = KernelConstants(launch_us=2.0, power=1.0, memory=1.0, l2=1.0, requests=1.0, issue=1.0)


def test_a_demand_has_only_the_surplus_of_sectors():
    demand = KernelDemand.of(3200, 640, warp_sectors=150, requests=7, executed=64, occupancy=0.5)
    assert demand == KernelDemand(3840, 1600, 7, 2.0, 0.5)
    assert KernelDemand.of(3200, 640, 10, 7, 64, None).surplus_bytes == 0
    assert KernelDemand.of(3200, 640, 10, 7, 64, None).occupancy == 1.0


def test_each_term_is_held_against_its_rate():
    clocks = 132 * 1.98e9
    demand = KernelDemand(3_350_000, round(39 * clocks / 1e6), round(clocks / 1e6), 4 * clocks / 1e6, 0.5)
    assert vars(terms_of(H100, demand)) == pytest.approx({"memory": 1.0, "l2": 1.0, "requests": 2.0, "issue": 1.0})


def test_terms_add_up_by_their_norm():
    terms = Terms(3.0, 4.0, 0.0, 0.0)
    assert kernel_us(terms, PLAIN) == pytest.approx(9.0)
    assert kernel_us(terms, KernelConstants(2.0, 2.0, 1.0, 1.0, 1.0, 1.0)) == pytest.approx(7.0)


def test_streaming_is_bytes_and_a_launch():
    expected = KERNELS.launch_us + KERNELS.memory * 100.0
    assert streaming_us(H100, 335_000_000) == pytest.approx(expected)


def test_without_rates_there_is_no_time():
    assert terms_of(load_target("cpu"), KernelDemand(1, 0, 0, 0.0, 1.0)) is None
    assert streaming_us(load_target("cpu"), 1) is None
