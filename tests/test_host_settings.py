"""JAX, NumPy, the garbage collector and the threads of BLAS while passes plan."""

import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fusionlab.host_settings import OWN_SETTINGS, one_blas_thread, own_settings, young_only


@pytest.fixture(autouse=True)
def _thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_old_objects_are_left_alone_and_the_users_thresholds_restored():
    gc.set_threshold(500, 7, 9)
    with young_only():
        assert gc.get_threshold()[2] >= 10**6
        with young_only():
            pass
        assert gc.get_threshold()[2] >= 10**6
    assert gc.get_threshold() == (500, 7, 9)


def test_a_collector_that_is_turned_off_stays_so():
    gc.set_threshold(0)
    with young_only():
        assert gc.get_threshold()[0] == 0


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_and_the_users_number_afterwards():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with one_blas_thread():
            assert blas_threads() == {1}
            with one_blas_thread():
                pass
            assert blas_threads() == {1}
        assert blas_threads() == before == {2}


def test_jax_has_our_settings_in_this_thread_and_the_users_afterwards():
    elsewhere = []
    with jax.numpy_rank_promotion("raise"), np.errstate(divide="raise"):
        with own_settings():
            assert (jnp.ones(3) + jnp.ones((2, 3))).shape == (2, 3)
            assert np.geterr()["divide"] == "warn"
            thread = threading.Thread(target=lambda: elsewhere.append(jax.config.jax_debug_nans))
            jax.config.update("jax_debug_nans", True)
            thread.start()
            thread.join()
            assert (elsewhere, jax.config.jax_debug_nans) == ([True], False)
        jax.config.update("jax_debug_nans", False)
        with pytest.raises(ValueError, match="rank_promotion"):
            jnp.ones(3) + jnp.ones((2, 3))
        assert np.geterr()["divide"] == "raise"


@pytest.mark.versions
def test_our_settings_are_contexts_of_this_jax():
    assert [name for name in OWN_SETTINGS if not hasattr(jax, name)] == []
