"""Ten programs that are no wavefunctions: their launches are XLA's, and carry scope and source line."""

import re
import runpy
from pathlib import Path

import jax
import pytest
from jax import export

from fusionlab.cli.sources import make
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.optimised.saved import load_saved
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.study import Circumstances
from fusionlab.testing import ledger
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [needs_the_cuda_plugin, pytest.mark.usefixtures("compile_cache")]

MODULE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "ten_programs.py"))
EXAMPLES = MODULE["PROGRAMS"]
A_LAUNCH = re.compile(
    r"\d+: k(?!Sequential|While|Conditional|CommandBuffer|Copy|Mem|WaitForStreams|DynamicSliceFusion)\w+\s*\["
)
FAST = ("pinn", "force_field", "sort_and_top_k", "cholesky")


def in_tiers(names):
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]


def counts(compiled):
    found = totals(launch_rows(compiled))
    return found.static_launches, found.dynamic_launches


@pytest.mark.parametrize("name", in_tiers(EXAMPLES))
def test_95_percent_of_launches_carry_scope_and_source(name, tmp_path):
    example = EXAMPLES[name]
    jax.clear_caches()  # what another test has traced (jax.random, say) keeps that test's lines
    made = ledger(example.function, example.arguments, target="a100")
    found = totals(made.rows)
    assert found.scoped_launches >= 0.95 * found.dynamic_launches > 0
    assert found.sourced_launches >= 0.95 * found.dynamic_launches
    assert {row.source.partition(":")[0] for row in made.rows if row.source} == {"ten_programs.py"}
    assert all(row.op and row.transform for row in made.rows)
    assert counts(made.compiled) == (made.counts.static_launches, made.dynamic_launches)
    if made.compiled.thunk_sequence:
        assert len(A_LAUNCH.findall(made.compiled.thunk_sequence)) == found.static_launches
    assert sum(made.launches_by().values()) == made.dynamic_launches


@pytest.mark.slow
def test_the_example_prints_the_share_of_each_program(capsys):
    MODULE["main"]()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["program", "launches", "with", "scope", "with", "source"]
    assert [line.split()[0] for line in lines] == list(EXAMPLES)
    assert all(float(share.rstrip("%")) >= 95 for line in lines for share in line.split()[2:])


@pytest.mark.parametrize("name", in_tiers(EXAMPLES))
def test_counts_are_the_same_whichever_way_the_program_came_in(name, tmp_path):
    example, given = EXAMPLES[name], Circumstances(load_target("a100"))
    made = ledger(example.function, example.arguments, target="a100").compiled
    exported, text = tmp_path / "exported.bin", tmp_path / "optimised.hlo"
    exported.write_bytes(export.export(jax.jit(example.function), platforms=["cuda"])(*example.arguments).serialize())
    text.write_text(made.optimized_hlo)
    for path in (exported, text):
        compiled = make(load_saved(str(path)), given).compiled
        assert counts(compiled) == counts(made)
        found = totals(launch_rows(compiled))
        assert min(found.scoped_launches, found.sourced_launches) >= 0.95 * found.dynamic_launches
