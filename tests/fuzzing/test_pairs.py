"""The exact check attacked by pairs of expressions; ``make fuzz`` runs 100,000."""

import pytest

from fusionlab.equivalence.exact.identity import Identity, compare_functions
from tests.fuzzing import pairs, typed_pairs


@pytest.mark.slow
def test_equal_expressions_are_identical_and_edited_ones_are_not():
    found = pairs.run(seed=5, first=0, count=160)
    classes = dict(found["classes"])
    same = classes.pop("edited: identical, and equal in float64")
    unclaimed = classes.pop("unclaimed: identical", 0) + classes.pop("unclaimed: not identical", 0)
    alarms = classes.get("equal: not-identical", 0)
    assert set(classes) - {"equal: not-identical"} == {"equal: identical", "edited: not identical"}, found[
        "looked_into"
    ]
    assert alarms <= 0.02 * classes["equal: identical"], found["looked_into"]  # the campaign's bar is 1 %
    assert sum(classes.values()) == 160 - same - unclaimed
    assert same < 16
    assert unclaimed == 8


def test_a_pair_among_others_has_the_verdict_that_it_has_alone():
    several = [pairs.made(0, number) for number in (4, 5)]
    functions = pairs.lowered(several)
    for at, differs in enumerate(pairs.differing(*functions)):
        said = compare_functions(*(pairs.with_outputs(function, [at]) for function in functions)).result
        assert said == ("not-identical" if differs else "identical")
        assert differs == bool(several[at].edit)


def test_integers_bits_and_complex_numbers_that_differ_as_xla_runs_them_are_not_identical():
    found = typed_pairs.run(seed=3, first=0, count=60, differing=pairs.differing)
    classes = found["classes"]
    assert not {"edited: identical", "typed, equal: not-identical"} & set(classes), found["looked_into"]
    assert not any("float64" in kind for kind in classes), found["looked_into"]
    assert classes["typed, equal: identical"] == 15
    assert classes["typed, edited: not identical"] >= 30
    assert sum(classes.values()) == 60


def test_an_edit_that_the_check_misses_is_found_by_xla():
    none = Identity("identical", 0, 0, 1.0)
    found = typed_pairs.run(3, 0, 40, lambda first, second: [False] * len(first.returns), lambda *_: none)
    assert found["classes"]["edited: identical"] >= 15
    assert all(row["edit"] for row in found["looked_into"])
    alone = typed_pairs.run(3, 0, 40, lambda first, second: [False] * len(first.returns))
    assert not alone["classes"]["edited: identical"]
