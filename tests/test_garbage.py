"""The garbage collector while passes plan."""

import gc

import pytest

from fusionlab.garbage import young_only


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
