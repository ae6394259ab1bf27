"""pack-isomorphic-slices: its cases, and molecules of unequal spins."""

from fusionlab.hlo import lowering
from workloads.catalogue import build

from .case_files import test_case  # noqa: F401


def test_molecules_of_unequal_spins_are_left_alone(rewritten):
    """LiH+ has two electrons of one spin and one of the other: no two slices are equal."""
    workload = build("ferminet", "LiH", program="log-psi", walkers=3, size="tiny", charge=1, spin=1)
    program = lowering.lower(workload, "cpu")
    assert rewritten(program, "pack-isomorphic-slices").program is program
