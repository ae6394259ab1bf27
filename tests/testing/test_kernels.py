"""``assert_no_spills`` and ``assert_no_cas_atomics``: what they let pass, and what the failure names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.device_code import assembler
from fusionlab.errors import InputError
from fusionlab.testing import assert_no_cas_atomics, assert_no_spills
from tests.device_code.planted import PLANTED
from tests.optional_packages import needs_ptxas, needs_the_cuda_plugin

pytestmark = [
    pytest.mark.usefixtures("module_cache"),
    pytest.mark.filterwarnings("ignore:.*Triton:DeprecationWarning"),
    needs_the_cuda_plugin,
]

X = jax.ShapeDtypeStruct((4096,), np.float32)


@needs_ptxas
def test_no_spills():
    assert assert_no_spills(jnp.tanh, (X,)).dynamic_launches == 1


@needs_ptxas
@pytest.mark.slow
def test_spills_are_named():
    one = PLANTED["spill"]
    with pytest.raises(AssertionError, match=r"(?s)kernels spill registers.* bytes of spills a thread .*planted"):
        assert_no_spills(one.function, one.arguments)
    assert_no_spills(one.function, one.arguments, at_most=1 << 20)


def test_a_loop_of_compare_and_swap_is_named():
    one = PLANTED["cas"]
    with pytest.raises(AssertionError, match=r"(?s)1 of its kernels have loops of .*at system scope.*scatter-add at"):
        assert_no_cas_atomics(one.function, one.arguments)
    assert_no_cas_atomics(jnp.tanh, (X,))


def test_targets_and_tools_that_are_not_there(monkeypatch):
    with pytest.raises(InputError, match="cpu has no kernels to look at"):
        assert_no_cas_atomics(jnp.tanh, (X,), target="cpu")
    monkeypatch.setattr(assembler, "find_tool", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'fusionlab\[kernels\]'"):
        assert_no_spills(jnp.tanh, (X,))
