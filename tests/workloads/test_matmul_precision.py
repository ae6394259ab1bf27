"""Matrix products have the precision that the code an ansatz comes from sets, in every program and Laplacian."""

import re
from collections import Counter

import jax
import numpy as np
import pytest

from fusionlab.hlo.lowering import lower
from fusionlab.workloads.catalogue import build
from fusionlab.workloads.layers.flash_attention import flash_attention, fused_attention
from fusionlab.workloads.programs.laplacians import INCOMPLETE, LAPLACIANS
from fusionlab.workloads.upstream import UPSTREAM
from tests.workloads.wavefunctions import LIH, OURS, abstract, in_tiers

PRODUCT = re.compile(r"= stablehlo\.dot_general .*")


def precisions(stablehlo):
    """How many matrix products have which precision; "none" where the text names none (the default)."""
    found = (re.search(r"precision = \[(\w+), \1\]", line) for line in PRODUCT.findall(stablehlo))
    return Counter(match[1] if match else "none" for match in found)


def of_program(name, program, laplacian=None):
    return precisions(lower(build(name, "LiH", program, 2, laplacian=laplacian, size="tiny"), "cuda").text)


@pytest.mark.parametrize(
    "laplacian",
    [
        n if n in ("replay", "forward") else pytest.param(n, marks=pytest.mark.full)
        for n in LAPLACIANS
        if n not in INCOMPLETE
    ],
)
@pytest.mark.parametrize("name", in_tiers(("psiformer", "orbformer"), ("psiformer",)))
def test_local_energies_of_oneqmc_are_high(name, laplacian):
    if "forward" in laplacian:
        pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")
    found = of_program(name, "local-energy", laplacian)
    # JAX's rule for the derivative of a triangular solve asks for the highest, whatever the default.
    assert found.pop("HIGHEST", 0) <= 2
    assert set(found) == {"HIGH"}
    assert found["HIGH"] > 40


@pytest.mark.parametrize("program", ["log-psi", "mcmc", "train-step"])
@pytest.mark.parametrize("name", in_tiers(("psiformer", "orbformer-flash"), ("psiformer",)))
def test_other_programs_of_oneqmc_are_high(name, program):
    found = of_program(name, program)
    assert set(found) == {"HIGH"}


@pytest.mark.parametrize("name", in_tiers(("ferminet", "paulinet", "psiformer-deepqmc"), ("ferminet",)))
def test_those_of_deepqmc_are_highest(name):
    assert set(of_program(name, "train-step")) == {"HIGHEST"}


def test_a_wavefunction_alone_has_it_too():
    ansatz = OURS["orbformer"](LIH, "tiny", attention="flash")
    text = jax.jit(ansatz.log_psi).lower(abstract(ansatz, 1)[0], jax.ShapeDtypeStruct((4, 3), "float32")).as_text()
    assert set(precisions(text)) == {UPSTREAM["orbformer"].matmul_precision.upper()}
    assert jax.config.jax_default_matmul_precision is None


@pytest.mark.parametrize("precision", ["high", "highest"])
def test_kernel_and_twin_have_the_precision_of_their_trace(precision):
    """Both are traced when the program is lowered, after the setting of the trace has ended."""
    arguments = (*(np.ones((4, 2, 16), "float32") for _ in range(3)), np.ones((4, 2, 4), "float32"), np.ones(4, bool))
    with jax.default_matmul_precision(precision):
        traced = jax.jit(jax.vmap(flash_attention)).trace(*(x[None] for x in arguments))
    twin = traced.lower(lowering_platforms=("cpu",)).as_text()
    assert precisions(twin) == {precision.upper(): 2}
    wanted = jax.lax.Precision(precision)
    (equation,) = [e for e in traced.jaxpr.jaxpr.eqns if e.primitive.name == "mhsea"]
    assert equation.params["precision"] == wanted
    kernel = jax.make_jaxpr(lambda *given: fused_attention(*given, precision=wanted))(*arguments)
    one = f"Precision.{precision.upper()}"
    assert re.findall(r"precision=\((.*)\)", str(kernel)) == [f"{one}, {one}"] * 2
