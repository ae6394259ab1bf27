"""Copies before a sort, from the buffer assignment: of operands that are not where the result is."""

import dataclasses

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.optimised.buffers import allocated_bytes, places_of
from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.ledger import count_launches
from fusionlab.ledger.sort_copies import sort_copies

HLO = """HloModule m, is_scheduled=true

%less (a: s32[], b: s32[], c: s32[], d: s32[]) -> pred[] {
  %a = s32[] parameter(0)
  %b = s32[] parameter(1)
  %c = s32[] parameter(2)
  %d = s32[] parameter(3)
  ROOT %lt = pred[] compare(%a, %b), direction=LT
}

ENTRY %main (x: s32[8], y: s32[8]) -> (s32[8], s32[8]) {
  %x = s32[8]{0} parameter(0)
  %y = s32[8]{0} parameter(1)
  %negated = s32[8]{0} negate(%y)
  ROOT %sort.1 = (s32[8]{0}, s32[8]{0}) sort(%x, %negated), dimensions={0}, to_apply=%less
}
"""
ASSIGNMENT = """BufferAssignment:
allocation 0: size 32, parameter 0, shape |s32[8]| at ShapeIndex {}:
 value: <1 x @0> (size=32,offset=0): s32[8]{0}
allocation 1: size 32, parameter 1, shape |s32[8]| at ShapeIndex {}:
 value: <2 y @0> (size=32,offset=0): s32[8]{0}
allocation 2: size 32, output shape is |(s32[8], s32[8])|, maybe-live-out:
 value: <5 sort.1{0} @0> (size=32,offset=0): s32[8]{0}
allocation 3: size 32, output shape is |(s32[8], s32[8])|, maybe-live-out:
 value: <3 negated @0> (size=32,offset=0): s32[8]{0}
 value: <6 sort.1{1} @0> (size=32,offset=0): s32[8]{0}
allocation 4: size 64, preallocated-temp:
 value: <4 other @0> (size=64,offset=0): s32[16]{0}

Total bytes used: 160 (160B)

Used values:
<1 x @0>
"""
FUSED = HLO.replace(
    """ENTRY %main""",
    """%sorted (p0: s32[8], p1: s32[2,4]) -> (s32[8], s32[8], s32[8]) {
  %p0 = s32[8]{0} parameter(0)
  %p1 = s32[2,4]{1,0} parameter(1)
  %flat = s32[8]{0} bitcast(%p1)
  %negated = s32[8]{0} negate(%p0)
  ROOT %inner = (s32[8]{0}, s32[8]{0}, s32[8]{0}) sort(%p0, %flat, %negated), dimensions={0}, to_apply=%less
}

ENTRY %main""",
).replace(
    """  ROOT %sort.1 = (s32[8]{0}, s32[8]{0}) sort(%x, %negated), dimensions={0}, to_apply=%less""",
    """  %square = s32[2,4]{1,0} bitcast(%negated)
  ROOT %sort.1 = (s32[8]{0}, s32[8]{0}, s32[8]{0}) fusion(%x, %square), kind=kCustom, calls=%sorted""",
)
"""The sort as XLA of JAX 0.9 has it: the root of a fusion with its producers inside."""
COMPILED = Compiled(
    "m", load_target("a100"), HLO, "", "", Memory(64, 64, 0, 0), 0.1, {}, "", buffer_assignment=ASSIGNMENT
)


def test_an_operand_that_lives_on_is_copied_and_one_in_its_place_is_not():
    assert sort_copies(parse_optimized(HLO), ASSIGNMENT) == {"sort.1": 1}


def test_a_sort_that_is_the_root_of_a_fusion_copies_its_operands_too():
    """Of three operands one lives on, one is in its place, and one is computed by the kernel."""
    assert sort_copies(parse_optimized(FUSED), ASSIGNMENT) == {"sort.1": 1}
    elsewhere = ASSIGNMENT.replace("<3 negated @0>", "<3 other.1 @0>")
    assert sort_copies(parse_optimized(FUSED), elsewhere) == {"sort.1": 2}
    counts = count_launches(dataclasses.replace(COMPILED, optimized_hlo=FUSED))
    assert (counts.dynamic_launches, counts.dynamic_copies) == (2, 1)


def test_without_an_assignment_none_is_known():
    assert sort_copies(parse_optimized(HLO), "") == {}


def test_the_ledger_counts_them_beside_the_sort():
    counts = count_launches(COMPILED)
    assert (counts.dynamic_launches, counts.dynamic_copies) == (2, 1)
    assert count_launches(dataclasses.replace(COMPILED, buffer_assignment="")).dynamic_copies == 0


def test_places_and_totals_are_read_though_a_text_follows():
    assert places_of(ASSIGNMENT)["sort.1{1}"] == places_of(ASSIGNMENT)["negated{}"] == (3, 0)
    assert allocated_bytes(ASSIGNMENT) == {"argument": 64, "output": 64, "temp": 64}
