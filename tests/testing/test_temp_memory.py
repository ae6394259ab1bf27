"""``assert_temp_memory``: the limit, and the largest buffers with their lines in the failure."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.testing import assert_temp_memory
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.usefixtures("module_cache")

TARGETS = [
    pytest.param("a100", marks=needs_the_cuda_plugin),
    pytest.param("cpu"),
]
X = jax.ShapeDtypeStruct((1024,), np.float32)
W = jax.ShapeDtypeStruct((1024, 1024), np.float32)


def kept(x, y, w):
    with jax.named_scope("outer"):
        a = x[:, None] * y[None, :]
    return jnp.sum(jnp.tanh(a @ w) @ a)


@pytest.mark.parametrize("target", TARGETS)
def test_a_limit_that_holds_and_one_that_does_not(target):
    made = assert_temp_memory(kept, (X, X, W), at_most="64MiB", target=target)
    assert assert_temp_memory(kept, (X, X, W), at_most=made.temp_bytes, target=target).temp_bytes == made.temp_bytes
    with pytest.raises(AssertionError) as failure:
        assert_temp_memory(kept, (X, X, W), at_most=made.temp_bytes - 1, target=target)
    first, at, *lines = str(failure.value).splitlines()
    assert re.fullmatch(rf"kept on {target}: \d+\.\d MiB of temp memory, at most \d+\.\d MiB allowed", first)
    assert re.fullmatch(r"held at launch \d+ of \d+:", at)
    place = f"outer/mul, test_temp_memory.py:{kept.__code__.co_firstlineno + 2}"
    assert any(re.fullmatch(rf" +4\.0 MiB  \S+ \({re.escape(place)}\)  \| a = x.*", line) for line in lines)


def test_a_size_that_is_none():
    with pytest.raises(InputError, match="'lots' is not a size"):
        assert_temp_memory(kept, (X, X, W), at_most="lots", target="cpu")


def test_no_memory_at_all():
    made = assert_temp_memory(jnp.sin, (X,), at_most=0, target="cpu")
    assert made.memory.peak.buffers == ()
