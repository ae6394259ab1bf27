"""Levels of collectives, of operations of any kind: here rows of text, ``result = name operand ...``."""

import pytest

from fusionlab.codegen.collective_levels import Traits, levels, worth_and_rest

OF = Traits(
    reads=lambda row: row.split()[3:],
    results=lambda row: row.split()[:1],
    crosses=lambda row: row.split()[2] == "psum",
    names=lambda row: {row.split()[2]},
    worth=frozenset(("dot", "while")),
    loops=frozenset(("while",)),
    sums_first_axis=lambda row: row.split()[2] == "sum",
    is_constant=lambda row: row.split()[2] == "iota",
)


def test_a_level_is_what_lies_between_two_collectives():
    rows = ["a = dot x", "s = psum a", "b = dot y", "c = add b s", "t = psum c", "u = psum x", "d = add t u"]
    assert levels(rows, OF) == [
        (["a = dot x", "b = dot y"], ["s = psum a", "u = psum x"]),
        (["c = add b s"], ["t = psum c"]),
        (["d = add t u"], []),
    ]
    assert levels([], OF) == []


@pytest.mark.parametrize(
    ("rows", "rest"),
    [
        (["a = sin x", "b = dot a", "c = add b x"], []),
        (["a = sin x", "b = dot x"], ["a = sin x"]),
        (["k = iota", "b = dot x k"], ["k = iota"]),
        (["e = while x", "m = sum e", "n = sin m"], ["m = sum e", "n = sin m"]),
        (["e = while x", "m = sum e", "n = dot m"], []),
        (["v = sum x", "e = while v", "r = sin e"], []),
    ],
)
def test_the_part_worth_rewriting_has_what_it_reads_and_no_mean_of_walkers(rows, rest):
    assert worth_and_rest(rows, OF) == ([row for row in rows if row not in rest], rest)
