"""XLA's thunk list as a tree, with the printer's oddities; and the same tree read off scheduled HLO."""

import pytest

from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.thunks import captured_thunks, parse_thunks, scheduled_thunks
from tests.ledger.by_hand import compiled_of, text_of

pytestmark = pytest.mark.versions

SEQUENCE = text_of("oddities.thunks")


def _outline(thunks):
    return [
        (thunk.id, {section.name: _outline(section.thunks) for section in thunk.sections})
        if thunk.sections
        else thunk.id
        for thunk in thunks
    ]


def test_nesting_follows_sections_and_indentation():
    inner = (9, {"condition": [10], "body": [(16, {"": [14, 15]}), (19, {"": [(18, {"": [17]})]})]})
    body = [5, inner, (25, {"branch_0": [20], "branch_1": [24]}), 26]
    assert _outline(parse_thunks(SEQUENCE, "")) == [1, (3, {"condition": [4], "body": body}), 27]


def test_conditionals_of_a_predicate_name_their_branches():
    loop = (7, {"condition": [8], "body": [9, 10, 11]})
    inner = (4, {"false_branch": [2], "true_branch": [3]})
    outer = (13, {"false_branch": [inner, 5], "true_branch": [6, loop, 12]})
    assert _outline(parse_thunks(text_of("predicates.thunks"), "")) == [1, outer]


def test_what_follows_an_empty_branch_stands_on_its_line():
    text = "010: kConditional [x] \n  branch_0:\n    No thunks.  branch_1:\n    003: kFft [x] k\n004: kFft [x] k\n"
    assert _outline(parse_thunks(text, "")) == [(10, {"branch_1": [3]}), 4]


def test_kinds_descriptions_and_names():
    by_id = {thunk.id: thunk for top in parse_thunks(SEQUENCE, text_of("metadata.textproto")) for thunk in top.walk()}
    assert (by_id[3].kind, by_id[3].hlo_name, by_id[3].description) == ("kWhile", "while.13", "")
    assert by_id[15].kind == "kTriangularSolve"
    assert by_id[4].description.startswith("loop_compare_fusion_1 grid: [1, 1, 1]")
    assert len(by_id) == 17
    assert {thunk.hlo_name for thunk in by_id.values()} == {"while.13", ""}  # a name without an id is no thunk's


def test_captured_thunks_pairs_the_lists_in_order(caplog):
    before = "000: kGemm [a] one\n001: kCustomKernel [b] two\n002: kCopy [c] three\n"
    after = "000: kCommandBuffer [x] \n    001: kGemm [y] one\n    002: kCustomKernel [z]  two\n003: kCopy [c] three\n"

    def of(after):
        return captured_thunks(compiled_of("", before, captured_thunks=after))

    assert of(after) == {0: True, 1: True, 2: False}
    assert of("") == {}
    assert not caplog.text
    assert of(after.replace("three", "four")) == {}
    assert "lists differ" in caplog.text
    assert "before capture 002: kCopy three, after it 003: kCopy four" in caplog.text
    assert of(after.replace("003: kCopy [c] three\n", "")) == {}
    assert "3 thunks before capture, 2 after it" in caplog.text


def test_another_format_is_an_error_and_not_an_empty_list():
    with pytest.raises(ValueError, match=r"line 2: expected 'NNN: kKind \[..\]', found 'launch wrapped_tanh'"):
        parse_thunks("001: kCopy [source] kCopy\nlaunch wrapped_tanh\n", "")


def test_scheduled_hlo_gives_the_same_kind_of_tree():
    copied, loop, total = scheduled_thunks(parse_optimized(text_of("scheduled.hlo")), on_gpu=False)
    assert (copied.kind, copied.hlo_name) == ("kCopy", "copied")
    assert (total.kind, total.hlo_name) == ("add", "sum")
    assert [thunk.hlo_name for thunk in loop.walk()] == ["loop", "called", "tanh"]
    assert [section.name for section in loop.sections] == ["condition", "body"]
