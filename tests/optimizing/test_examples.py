"""The examples and the snippets of docs/optimize.md run, and what they print is from rewritten programs."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def example(compile_cache):
    """``example(name)``: the module of an example file."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.parametrize(
    ("walkers", "width", "steps"),
    [pytest.param(256, 8, 60, marks=pytest.mark.full), pytest.param(16, 4, 2, marks=pytest.mark.slow)],
)
def test_a_vmc_from_scratch(walkers, width, steps, example, capsys):
    module = example("vmc_in_forty_lines")
    rows = module.main(walkers=walkers, width=width, steps=steps, every=steps)
    (_, energy, error) = rows[-1]
    assert np.isfinite(rows).all()
    assert steps < 60 or abs(energy + 1.17) < max(0.1, 5 * error), "the energy of the hydrogen molecule"
    assert "sparsify-directions" in capsys.readouterr().out
    assert module.local_energies.fusionlab.state == "rewritten"


def test_its_forty_lines_are_forty():
    lines = (EXAMPLES / "vmc_in_forty_lines.py").read_text().splitlines()
    start, end = (next(i for i, line in enumerate(lines) if mark in line) for mark in ("# --- 40", "# --- end"))
    assert sum(bool(line.strip()) for line in lines[start + 1 : end]) <= 40


@pytest.mark.full
def test_the_forms_of_ferminet_and_jaqmc(example):
    for row in example("ferminet_forms").main("LiH", walkers=4, size="tiny", calls=1):
        assert row["function"].fusionlab.reason == "", row["form"]
        np.testing.assert_allclose(row["optimized"], row["energies"], rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(row["loss"], row["energies"].mean(), rtol=1e-3, atol=1e-2)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_deepqmc_s_evaluation(example):
    rows, optimized = example("deepqmc_evaluation").main("LiH", "ferminet", walkers=4, steps=2)
    assert optimized.fusionlab.reason == ""
    assert len(rows) == 2
    for row in rows:
        assert row.largest < 1e-2
        np.testing.assert_allclose(row.optimized, row.plain, rtol=1e-4)


@pytest.mark.slow
def test_the_snippets_of_the_page(compile_cache, capsys):
    page = (ROOT / "docs" / "optimize.md").read_text()
    names = {}
    exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "docs/optimize.md", "exec"), names)
    assert names["energies"].shape == (16,)
    assert names["local_energies"].fusionlab.state == "rewritten"
    assert "sparsify-directions" in capsys.readouterr().out
