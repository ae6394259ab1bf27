"""The exact check attacked by pairs of expressions; ``make fuzz`` runs 100,000, whose record is committed."""

import json
from pathlib import Path

import pytest

from fusionlab.equivalence.exact.identity import compare_functions
from tests.fuzzing import pairs
from tests.fuzzing.edits import EDITS
from tests.fuzzing.identities import IDENTITIES

RECORD = Path(__file__).parents[2] / "studies" / "fuzzing.json"


@pytest.fixture(scope="module")
def comparison():
    return pairs.Comparison(points=3)


def test_equal_expressions_are_identical_and_edited_ones_are_not(comparison):
    found = pairs.run(seed=5, first=0, count=160, comparison=comparison)
    classes = dict(found["classes"])
    same = classes.pop("edited: identical, and equal in float64")
    unclaimed = classes.pop("unclaimed: identical", 0) + classes.pop("unclaimed: not identical", 0)
    assert set(classes) == {"equal: identical", "edited: not identical"}, found["looked_into"]
    assert sum(classes.values()) == 160 - same - unclaimed
    assert same < 16 and unclaimed == 8


def test_a_pair_among_others_has_the_verdict_that_it_has_alone():
    several = [pairs.made(0, number) for number in (4, 5, 7)]
    functions = pairs.lowered(several)
    for at, differs in enumerate(pairs.Comparison().differing(*functions)):
        said = compare_functions(*(pairs.with_outputs(function, [at]) for function in functions)).result
        assert said == ("not-identical" if differs else "identical")
        assert differs == bool(several[at].edit)


def test_the_record_has_no_false_identical_that_is_not_told():
    record = json.loads(RECORD.read_text())["pairs"]
    assert record["pairs"] >= 100_000
    assert set(record["edits"]) == set(EDITS)
    classes = record["classes"]
    unseen = sum(count for name, count in classes.items() if name.startswith("equal: not"))
    assert unseen <= 0.01 * (unseen + classes["equal: identical"])
    assert {name.rpartition(":")[0] for name in record["identities"]} >= set(IDENTITIES)
