"""One small study and one browser for all tests of the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from jax import lax
from selenium import webdriver

from fusionlab.cli import main
from fusionlab.hlo.program import Program
from tests.browser.reading import load, opened
from tests.compiled import cache_with_shared_compiles

HOSTILE = "<img src=x onerror=alert(1)>"
"""A scope that would run a script if the page took it for markup."""


def local_energy(weights: Any, walkers: Any) -> Any:
    """A Laplacian as replay, of a network with three identical layers; shape [walkers]."""

    def log_psi(x: Any) -> Any:
        with jax.named_scope("stage_a"):
            hidden = jnp.concatenate([x, jnp.sin(x)])
        for i in range(3):
            with jax.named_scope("stage_b"), jax.named_scope(f"interaction_{i}"):
                hidden = jnp.tanh(weights @ hidden)
        with jax.named_scope("stage_c"), jax.named_scope(HOSTILE):
            return jnp.sum(jnp.exp(-hidden * hidden))

    def laplacian(x: Any) -> Any:
        with jax.named_scope("stage_e"):
            _, push = jax.linearize(jax.grad(log_psi), x)
            identity = jnp.eye(x.size, dtype=x.dtype)
            return lax.fori_loop(0, x.size, lambda k, total: total + push(identity[k])[k], jnp.zeros((), x.dtype))

    return jax.vmap(laplacian)(walkers)


@pytest.fixture(scope="session")
def study_folder(lowered: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of a small replay, for an A100 that is not there."""
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=shape).astype(np.float32) for shape in ((8, 8), (64, 4))]
    program = lowered(local_energy, *arrays, platform="cuda", name="replay")
    return studied(program, tmp_path_factory.mktemp("study"))


def studied(program: Program, place: Path) -> Path:
    """The folder in ``place`` of a study of ``program``, for an A100 that is not there."""
    path = place / "program.mlir"
    path.write_text(program.text)
    arguments = ["study", str(path), "--target", "a100", "-o", str(place / "report"), "--quiet", "--json"]
    result = CliRunner().invoke(main, arguments, env={"FUSIONLAB_CACHE": str(cache_with_shared_compiles(place))})
    assert result.exit_code == 0, f"{result.output}{result.stderr}{result.exception!r}"
    return place / "report"


@pytest.fixture(scope="session")
def document(study_folder: Path) -> dict[str, Any]:
    """The study document."""
    return json.loads((study_folder / "study.json").read_text())


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """Headless Chromium, as Debian packages it."""
    browser = opened(tmp_path_factory.mktemp("profile"))
    if browser is None:
        pytest.skip("no Chromium here: on Debian, apt-get install chromium chromium-driver")
    with browser:
        browser.set_window_size(1400, 900)
        yield browser


@pytest.fixture
def page(chromium: webdriver.Chrome, study_folder: Path) -> webdriver.Chrome:
    """The report, opened afresh, with the browser's logs empty before."""
    chromium.get("about:blank")
    for log in ("browser", "performance"):
        chromium.get_log(log)
    return load(chromium, study_folder / "report.html")
