"""A ledger belongs to who asked for it: nothing of a call is kept for the next."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.testing import ledger
from fusionlab.testing.noted import ledgers_of_test

pytestmark = pytest.mark.versions


def test_a_ledger_is_not_kept_between_calls():
    ledgers_of_test.set(None)  # the plugin, which may be loaded, has those of the running test
    x = jax.ShapeDtypeStruct((8, 8), np.float32)
    first = ledger(jnp.sin, (x,), target="cpu")
    kept = [weakref.ref(each) for each in (first, first.program, first.compiled)]
    assert first.dynamic_launches > 0
    again = ledger(jnp.sin, (x,), target="cpu")
    assert again is not first
    assert again.compiled is not first.compiled
    del first
    gc.collect()
    assert [each() for each in kept] == [None] * 3
