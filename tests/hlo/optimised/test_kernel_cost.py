"""Families of kernels, by the names that XLA gives them."""

from pathlib import Path

import pytest

from fusionlab.hlo.ops import FAMILIES, TARGET_FAMILIES
from fusionlab.hlo.optimised.kernel_cost import family_of_kernel
from fusionlab.hlo.program import program_view

KERNELS = [line.split() for line in (Path(__file__).parent / "kernel_names.txt").read_text().splitlines()[1:]]


@pytest.mark.parametrize(("family", "name", "opcode", "target"), KERNELS)
def test_family_of_a_kernel(family, name, opcode, target):
    assert family_of_kernel(name, opcode, target.removeprefix("-")) == family


def test_every_family_is_known():
    assert {*(row[0] for row in KERNELS), *(found for _, found in TARGET_FAMILIES)} <= set(FAMILIES)


def test_no_op_of_paulinet_is_unknown(paulinet):
    found = {node.family for node in program_view(paulinet).walk()}
    assert {"gemm", "elementwise", "layout", "factorisation", "triangular-solve", "gather-scatter"} <= found
    assert found.isdisjoint({"unknown", "custom"})
