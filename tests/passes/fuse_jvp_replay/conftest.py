"""Shared by the tests of identification: programs as small as theirs are compared in all directions by default."""

import pytest

from fusionlab.passes.fuse_jvp_replay import identify


@pytest.fixture
def one_direction(monkeypatch):
    """One direction is evaluated first in programs of any size."""
    monkeypatch.setattr(identify, "FLOPS_OF_ONE_DIRECTION", 0)


@pytest.fixture(params=["all", pytest.param("one", marks=pytest.mark.by_turns(6))])
def directions(request):
    """All directions are compared, or one where it may stand for all."""
    if request.param == "one":
        request.getfixturevalue("one_direction")
