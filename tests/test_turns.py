"""Every test of a family has its turn, the same in every run on a tree."""

from hashlib import sha256
from types import SimpleNamespace

import pytest

from tests import turns
from tests.turns import has_its_turn, is_fast, mark_turns


def digests(count):
    return [sha256(bytes([n])).hexdigest() for n in range(count)]


def part(digest, count=40, family="test_a", parts=4):
    return {rank for rank in range(count) if has_its_turn(family, rank, parts, digest)}


def test_each_state_of_the_sources_has_another_part_and_all_have_their_turn():
    parts = [part(digest) for digest in digests(40)]
    assert set().union(*parts) == set(range(40))
    assert len({frozenset(part) for part in parts}) == 4


@pytest.mark.parametrize("count", [4, 5, 7, 40])
def test_every_family_has_tests_of_its_turn(count):
    """One in n, to one."""
    for digest in digests(40):
        assert count // 4 <= len(part(digest, count)) <= -(-count // 4)


def test_small_families_do_not_all_have_the_same_turn():
    digest = digests(1)[0]
    assert {len(part(digest, 1, f"test_{n}")) for n in range(40)} == {0, 1}


def test_a_family_of_one_part_is_whole():
    assert all(part(digest, 5, parts=1) == set(range(5)) for digest in digests(5))


class Item:
    def __init__(self, nodeid, *marks):
        self.nodeid, self.name, self.tier = nodeid, nodeid.rpartition("::")[2], None
        self.marks = [SimpleNamespace(args=mark) for mark in marks]

    def iter_markers(self, name):
        return self.marks

    def add_marker(self, tier):
        self.tier = tier


@pytest.mark.parametrize("digest", digests(8))
def test_a_family_is_a_function_and_its_fast_tests_do_not_count(digest, monkeypatch):
    monkeypatch.setattr(turns, "digest_of_sources", lambda: digest)
    names = [f"a.py::test_{function}[{n}]" for function in "xy" for n in range(5)]
    items = [Item(name, (4, "2")) for name in names]
    others = [Item("a.py::test_x[all]"), Item("a.py::test_z[0]", (1,))]
    mark_turns([*items, *others], all_turns=False)
    assert [item.tier for item in others] == [None, "slow"]
    for function in "xy":
        family = [item.tier for item in items if f"test_{function}" in item.nodeid]
        assert family[2] is None
        assert sorted(tier for tier in family if tier) == ["full", "full", "full", "slow"]
    mark_turns(items, all_turns=True)
    assert {item.tier for item in items if "[2]" not in item.nodeid} == {"full"}


def test_ids_of_the_fast_tier():
    assert is_fast("test_a[all-by_hand-2]", ["by_hand"])
    assert is_fast("test_a[fori]", ["scan", "fori"])
    assert not is_fast("test_a[by_hand_too]", ["by_hand"])
    assert not is_fast("test_a", ["a"])
    assert not is_fast("test_a[all-x]", [])
