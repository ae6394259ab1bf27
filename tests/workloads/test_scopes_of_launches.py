"""The scopes of a training step survive into the launches that XLA makes of it for an A100."""

import re

import pytest

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.lowering import lower
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.workloads.catalogue import build
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [needs_the_cuda_plugin, pytest.mark.usefixtures("compile_cache")]

SCOPES = {"mcmc", *(f"stage_{letter}" for letter in "abcde"), "optimiser"}
SCOPE = re.compile(r"(?<!\w)(mcmc|stage_[a-e]|optimiser|potential)(?!\w)")


def launched(rows):
    return sum(row.dynamic_launches for row in rows)


@pytest.mark.parametrize(
    ("name", "molecule", "walkers", "size"),
    [
        *(pytest.param(name, "LiH", 16, "tiny", marks=pytest.mark.slow) for name in ("paulinet", "psiformer")),
        *(pytest.param(name, "LiH", 16, "tiny", marks=pytest.mark.full) for name in ("ferminet", "orbformer")),
        *(pytest.param(name, "CH4", 1024, "full", marks=pytest.mark.full) for name in ("paulinet", "psiformer")),
    ],
)
def test_at_least_95_percent_of_the_launches_name_their_scope(name, molecule, walkers, size):
    program = lower(build(name, molecule, "train-step", walkers=walkers, size=size), "cuda")
    rows = list(launch_rows(compile_program(program, load_target("a100"), cache=default_cache())))
    scoped = [row for row in rows if SCOPE.search(row.op_name)]
    assert launched(scoped) >= 0.95 * launched(rows)
    assert {scope for row in scoped for scope in SCOPE.findall(row.op_name) if row.dynamic_launches} >= SCOPES
    # Some kernels are XLA's own (layouts, zero fills) and have only the name of what reads them. Of the others:
    own = [row for row in rows if row.attributed_by != "readers"]
    assert launched([row for row in own if row in scoped]) >= 0.95 * launched(own)
    assert launched(own) >= 0.9 * launched(rows)
    assert totals(rows).attributed_launches >= 0.95 * launched(rows)
    assert {"mcmc", "laplacian", "optimiser"} <= {row.phase for row in rows}
