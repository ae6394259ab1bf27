"""Enzyme-JAX as a peer: through a stand-in for its package, which is not among what the tests install."""

import sys
import types

import numpy as np
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.measure.peers import optimised

X = np.linspace(-1, 1, 4, dtype=np.float32)


@pytest.fixture
def enzyme(monkeypatch):
    """``enzyme(passes)``: the package, whose passes are the function ``passes(text) -> text``."""

    def install(passes):
        asked = []

        def run_pass_pipeline(names, text, pipeline):
            asked.append(pipeline)
            return "main", passes(text).replace("func.func public @main(", "func.func private @main(")

        primitives = types.SimpleNamespace(
            full_optimization_pass_pipeline=lambda: "all-of-them",
            enzyme_call=types.SimpleNamespace(run_pass_pipeline=run_pass_pipeline),
        )
        package, jax_part = types.ModuleType("enzyme_ad"), types.ModuleType("enzyme_ad.jax")
        jax_part.primitives = primitives
        monkeypatch.setitem(sys.modules, "enzyme_ad", package)
        monkeypatch.setitem(sys.modules, "enzyme_ad.jax", jax_part)
        return asked

    return install


def test_the_result_is_a_program_of_the_same_signature(enzyme, lowered):
    asked = enzyme(lambda text: text)
    original = lowered(lambda x: x * 2, X)
    found = optimised(original)
    assert (found.inputs, found.outputs, found.name) == (original.inputs, original.outputs, original.name)
    assert asked == ["all-of-them,tensor-empty-raise,drop-unsupported-attributes"]
    (result,) = compile_program(found, load_target("cpu")).run(X)
    np.testing.assert_array_equal(result, X * 2)


def test_what_is_no_stablehlo_is_refused(enzyme, lowered):
    enzyme(lambda text: text.replace("stablehlo.multiply", "enzymexla.multiply"))
    with pytest.raises(InputError, match="not a valid StableHLO module"):
        optimised(lowered(lambda x: x * 2, X))


def test_a_pass_that_fails_is_one_line(enzyme, lowered):
    def fail(text):
        raise RuntimeError("a pass\nfailed")

    enzyme(fail)
    with pytest.raises(InputError, match="Enzyme-JAX's passes failed: a pass failed"):
        optimised(lowered(lambda x: x * 2, X))


def test_without_the_package_the_peer_says_so(monkeypatch, lowered):
    monkeypatch.setitem(sys.modules, "enzyme_ad", None)
    with pytest.raises(InputError, match="enzyme-ad cannot be imported"):
        optimised(lowered(lambda x: x * 2, X))
