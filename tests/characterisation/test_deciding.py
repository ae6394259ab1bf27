"""The cells that decide a contradiction, and which are measured next."""

from functools import partial

from fusionlab.characterisation.claims import NOT_SHOWN, Claim, Finding, holds
from fusionlab.characterisation.deciding import deciding_sets, next_cells, version_may_explain
from fusionlab.characterisation.matrix import Cell

LIH, CH4, C2H6, C4H4 = (Cell("ferminet", name, "inference-step", "a5000") for name in ("LiH", "CH4", "C2H6", "C4H4"))
ROWS = {LIH: {"n": 1}, CH4: {"n": 3}, C2H6: {"n": 2}, C4H4: {"n": 9}}
SECONDS = {LIH: 1.0, CH4: 2.0, C2H6: 4.0, C4H4: 8.0}.__getitem__


def claim(pairs):
    """The first cell of each pair has at least as much as the second."""

    def statement(figures, first, second):
        more, less = (figures.row(cell)["n"] for cell in (first, second))
        return more >= less, ""

    return Claim("III", "grows", "", lambda figures: holds(("", partial(statement, figures, *pair)) for pair in pairs))


def test_a_pair_that_fails_decides_and_the_cheapest_is_first():
    pairs = [(CH4, LIH), (LIH, C4H4), (LIH, C2H6)]
    assert deciding_sets(claim(pairs), ROWS, SECONDS) == [(C2H6, LIH), tuple(ROWS)]


def test_disjoint_sets_follow_each_other():
    pairs = [(CH4, C4H4), (LIH, C2H6)]
    assert list(map(set, deciding_sets(claim(pairs), ROWS, SECONDS))) == [{LIH, C2H6}, {CH4, C4H4}, set(ROWS)]


def test_what_is_not_contradicted_has_no_cells():
    assert deciding_sets(claim([(C4H4, LIH)]), ROWS, SECONDS) == []


def test_the_next_cells_are_those_of_most_claims_for_their_time():
    several = [[(C4H4,)]] * 5 + [[(CH4,)]]
    assert next_cells(several, [], SECONDS) == (C4H4,)
    assert next_cells(several[4:], [], SECONDS) == (CH4,)


def test_a_set_that_is_measured_gives_way_to_the_next():
    sets = [[(LIH,), (C2H6, CH4)]]
    assert next_cells(sets, [LIH, C2H6], SECONDS) == (CH4,)
    assert next_cells(sets, [LIH, C2H6, CH4], SECONDS) == ()
    assert next_cells([], [], SECONDS) == ()


def test_a_claim_whose_cause_was_not_shown_is_not_the_compiler_s():
    one, found = claim([]), Finding("contradicted", "")
    assert version_may_explain(one, found)
    assert not version_may_explain(one, Finding("not decidable", ""))
    assert not version_may_explain(Claim("III", "x", "", one.judge, f"{NOT_SHOWN}: times"), found)
