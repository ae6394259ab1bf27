"""Turns: processes prepare side by side, and have the device one at a time."""

import threading

import pytest

from fusionlab.bench.turns import NO_TURNS, Turns
from fusionlab.errors import InputError

WAIT_S = 0.2


def test_two_prepare_at_once_and_one_that_is_alone_waits_for_both(tmp_path):
    one, other = Turns(tmp_path / "turns"), Turns(tmp_path / "turns")
    alone = threading.Event()

    def use():
        with one.alone():
            alone.set()

    with one.preparing(), other.preparing():
        user = threading.Thread(target=use)
        user.start()
        assert not alone.wait(WAIT_S)
    assert alone.wait(10)
    user.join()


def test_nobody_prepares_beside_one_that_is_alone(tmp_path):
    turns, prepared = Turns(tmp_path / "turns"), threading.Event()

    def prepare():
        with turns.preparing():
            prepared.set()

    with turns.alone():
        other = threading.Thread(target=prepare)
        other.start()
        assert not prepared.wait(WAIT_S)
    assert prepared.wait(10)
    other.join()


def test_without_a_file_there_is_nothing_to_wait_for():
    with NO_TURNS.alone(), NO_TURNS.preparing():
        pass


def test_a_file_that_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(InputError, match=r"--turns \S+: cannot be opened: Is a directory"), Turns(tmp_path).preparing():
        pass
