"""Spin-up and spin-down electrons in one: fewer contractions, sums and concatenations, and the same numbers."""

from collections import Counter

import pytest

from fusionlab.hlo import lowering
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads.catalogue import build


def counted(program):
    names = Counter(node.name.removeprefix("stablehlo.") for node in view_of(program.parse()).walk())
    return {name: names[name] for name in ("dot_general", "reduce", "concatenate")}


@pytest.mark.slow
@pytest.mark.parametrize("program_name", ["local-energy", "mcmc"])
def test_ferminet_is_the_same_with_fewer_kernels(program_name, assert_same_numbers):
    """LiH has two electrons of each spin. In float64 rounding does not decide whether a step is accepted."""
    workload = build("ferminet", "LiH", program=program_name, walkers=3, size="tiny", dtype="float64")
    program = lowering.lower(workload, "cpu")
    result = run_pipeline(program, parse_pipeline("pack-isomorphic-slices"), Setting(platform="cpu"))
    assert {event.pass_name for event in result.applied} == {"pack-isomorphic-slices"}
    before, after = counted(program), counted(result.program)
    assert after["dot_general"] < before["dot_general"]
    assert after["reduce"] < before["reduce"]
    assert_same_numbers(result.program, workload)


def test_molecules_of_unequal_spins_are_left_alone():
    """LiH+ has two electrons of one spin and one of the other: no two slices are equal."""
    workload = build("ferminet", "LiH", program="log-psi", walkers=3, size="tiny", charge=1, spin=1)
    program = lowering.lower(workload, "cpu")
    result = run_pipeline(program, parse_pipeline("pack-isomorphic-slices"), Setting(platform="cpu"))
    assert result.program is program
