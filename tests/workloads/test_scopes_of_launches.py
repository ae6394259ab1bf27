"""The scopes of a training step survive into the launches that XLA makes of it."""

from __future__ import annotations

import pytest

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.lowering import lower
from fusionlab.measure.launch_rows import launch_rows, totals
from workloads.catalogue import build

pytest.importorskip("jax_cuda12_plugin", reason="compiling for an absent GPU needs the CUDA plugin")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paulinet", "ferminet", "psiformer", "orbformer"])
def test_at_least_95_percent_of_the_launches_name_their_phase_stage_and_role(name: str) -> None:
    program = lower(build(name, "LiH", "train-step", walkers=16, size="tiny"), "cuda")
    rows = launch_rows(compile_program(program, load_target("a100"), cache=default_cache()))
    found = totals(rows)
    assert found.attributed_launches >= 0.95 * found.dynamic_launches
    assert {"mcmc", "laplacian", "optimiser"} <= {row.phase for row in rows}
