"""Every test of a family has its turn, the same in every run on a tree."""

from hashlib import sha256

from tests.turns import has_its_turn, is_fast


def digests(count):
    return [sha256(bytes([n])).hexdigest() for n in range(count)]


def test_each_state_of_the_sources_has_another_part_and_all_have_their_turn():
    names = [f"test_a[{n}]" for n in range(40)]
    parts = [{name for name in names if has_its_turn(name, 4, digest)} for digest in digests(40)]
    assert set().union(*parts) == set(names)
    assert all(set(names) > part for part in parts)
    assert len({frozenset(part) for part in parts}) == 4


def test_a_family_of_one_part_is_whole():
    assert all(has_its_turn("test_a[x]", 1, digest) for digest in digests(5))


def test_ids_of_the_fast_tier():
    assert is_fast("test_a[all-by_hand-2]", ["by_hand"])
    assert is_fast("test_a[fori]", ["scan", "fori"])
    assert not is_fast("test_a[by_hand_too]", ["by_hand"])
    assert not is_fast("test_a", ["a"])
    assert not is_fast("test_a[all-x]", [])
