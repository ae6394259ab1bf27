"""XLA's thunk list as a tree, with the printer's oddities; and the same tree read off scheduled HLO."""

import pytest

from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.thunks import captured_thunks, parse_thunks, scheduled_thunks
from tests.ledger.by_hand import compiled_of

SEQUENCE = """\
001: kCopy  [source       | next=003 (2)] kCopy
003: kWhile [prev=002 (1) | sink        ]   
condition:
    004: kCustomKernel [source | sink] loop_compare_fusion_1 grid: [1, 1, 1] threads: [1, 1, 1]  shared_memory: 0 bytes
  body:
    005: kCustomCall   [source       | next=009 (1)] kCustomCall
    009: kWhile        [prev=008 (1) | next=015 (1)]       
condition:
        010: kCustomKernel [source | sink] loop_compare_fusion grid: [1, 1, 1]
      body:
        016: kSequential   [prev=013 (1) | next=019 (1)]           014: kCopy            [source       | next=015 (1)] kCopy
          015: kTriangularSolve [prev=014 (1) | sink        ] (no description)
        019: kSequential   [prev=016 (1) | sink        ]           018: kSequential      [source]    017: kCopy [source] kCopy
    025: kConditional  [prev=007 (1) | next=026 (1)]       
      branch_0:
        020: kFft [source] (no description)
      branch_1:
        024: kCustomKernel [source | sink] wrapped_tanh grid: [32, 1, 1]
    026: kCustomKernel [prev=009 (1) | sink        ] loop_add_fusion_1 grid: [32, 1, 1]
027: kCublasLtMatmul [source | sink] kCublasLtMatmul

"""  # noqa: E501, W291  # as XLA prints it

METADATA = """\
thunk_metadata {
  thunk_info {
    profile_annotation: "command_buffer_1"
  }
  thunk_kind: "kCommandBuffer"
}
thunk_metadata {
  thunk_info {
    profile_annotation: "while.13"
    thunk_id: 3
  }
  thunk_kind: "kWhile"
}
thunk_metadata {
  thunk_info {
    thunk_id: 16
  }
  thunk_kind: "kSequential"
}
"""


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


def test_kinds_descriptions_and_names():
    by_id = {thunk.id: thunk for top in parse_thunks(SEQUENCE, METADATA) for thunk in top.walk()}
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
    module = parse_optimized(
        """HloModule m, is_scheduled=true

%inner (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %tanh = f32[2]{0} tanh(%p)
}

%body (b: f32[2]) -> f32[2] {
  %b = f32[2]{0} parameter(0)
  ROOT %called = f32[2]{0} call(%b), to_apply=%inner
}

%condition (c: f32[2]) -> pred[] {
  %c = f32[2]{0} parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %copied = f32[2]{0} copy(%x)
  %loop = f32[2]{0} while(%copied), condition=%condition, body=%body
  %seen = f32[2]{0} bitcast(%loop)
  ROOT %sum = f32[2]{0} add(%seen, %seen)
}
"""
    )
    copied, loop, total = scheduled_thunks(module)
    assert (copied.kind, copied.hlo_name) == ("kCopy", "copied")
    assert (total.kind, total.hlo_name) == ("add", "sum")
    assert [thunk.hlo_name for thunk in loop.walk()] == ["loop", "called", "tanh"]
    assert [section.name for section in loop.sections] == ["condition", "body"]
