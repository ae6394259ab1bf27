"""The pass on DeepQMC's own PauliNet, which is not this project's: as a workload and as a file."""

import jax
import numpy as np
import pytest

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.equivalence.samples import workload_samples
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.passes.fuse_jvp_replay.choose import FuseJvpReplay
from fusionlab.passes.interface import Setting
from fusionlab.workloads import catalogue
from tests.optional_packages import needs_deepqmc

pytestmark = [needs_deepqmc, pytest.mark.slow]


@pytest.fixture(scope="module")
def programs():
    """DeepQMC's workload, its program, and what the pass makes of it."""
    workload = catalogue.build("deepqmc:paulinet", "LiH", walkers=4, dtype="float64")
    original = lowering.lower(workload, "cuda")
    return workload, original, FuseJvpReplay().run(original, Setting())


def test_its_replay_becomes_a_forward_laplacian(programs):
    _, original, rewritten = programs
    assert len(find_replays(view_of(original.parse()))) == 1
    event = rewritten.applied[-1]
    assert event.what.startswith("12 trips are the Laplacian of")
    assert find_replays(view_of(rewritten.program.parse())) == []


def test_a_file_is_rewritten_as_the_workload_is(programs, tmp_path):
    _, original, rewritten = programs
    path = tmp_path / "theirs.mlir"
    path.write_text(original.text)
    from_file = Program.from_file(path)
    assert from_file.platform == "cuda"
    result = FuseJvpReplay().run(from_file, Setting())
    assert [event.what for event in result.applied] == [event.what for event in rewritten.applied]
    assert str(result.program.parse()) == str(rewritten.program.parse())


def test_the_energies_are_theirs(programs, run_raised):
    workload, _, rewritten = programs
    with jax.enable_x64(True):
        arrays = list(workload_samples(workload))[1].arrays
        structure = jax.tree.structure(jax.eval_shape(workload.inputs, 0))
        arguments = jax.tree.unflatten(structure, arrays)
        expected = jax.jit(workload.function, compiler_options=CPU_OPTIONS)(*arguments)["local_energy"]
    (energies,) = run_raised(rewritten.program, arrays)
    assert energies.dtype == np.float64
    np.testing.assert_allclose(energies, np.asarray(expected), rtol=1e-9)
