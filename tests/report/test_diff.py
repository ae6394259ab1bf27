"""A diff in a terminal: bounded, nothing dropped without a word, plain where colour is not wanted."""

import io

import pytest
from rich.console import Console

from fusionlab.hlo.diff.records import Hunk, ModuleDiff, Moved, OpLine, Rewired
from fusionlab.report.tables.diff import print_diffs, shown_lines, summary


def line(name, op, *operands, scope="jit(f)/stage_a/op", loop=""):
    return OpLine((name,), op, operands, (), (), ("4xf32",), scope, loop)


def hunk(number, op="add", loop=""):
    old = line(f"%{number}", op, "%1", scope=f"jit(f)/layer_{number}/{op}", loop=loop)
    new = line(f"%{number + 1000}", "multiply", "%1", scope=f"jit(f)/layer_{number}/{op}", loop=loop)
    reader = line("%7", "tanh", f"%{number}", loop=loop)
    return Hunk(f"jit(f)/layer_{number}", loop, (), (old,), (new,), (), (Rewired(reader, (f"%{number + 1000}",)),))


def big(count):
    removed = tuple(line(f"%{k}", "add" if k % 3 else "exponential", "%0") for k in range(count))
    return Hunk("jit(f)", "while %5 (30 trips)", (line("%0", "sine", "%arg0"),), removed, (), (), ())


def texts(diff, most_lines):
    return [f"{shown.mark} {shown.text}" for shown in shown_lines(diff, most_lines)]


def test_a_change_shows_what_went_what_came_and_who_reads_it():
    assert texts(ModuleDiff((hunk(3),), 9), 40) == [
        "@ scope jit(f)/layer_3",
        "- %3 = add %1 : 4xf32",
        "+ %1003 = multiply %1 : 4xf32",
        "~ %7 = tanh %3→%1003 : 4xf32",
    ]
    assert summary(ModuleDiff((hunk(3),), 9)) == "ops: 1 removed, 1 added, 1 read another value, 9 unchanged"
    assert summary(ModuleDiff((), 9)) == "nothing changed, 9 ops"


def test_the_same_change_elsewhere_is_named_and_not_repeated():
    diff = ModuleDiff(tuple(map(hunk, (3, 4, 5, 6, 7))), 9)
    shown = texts(diff, 40)
    assert len(shown) == 5
    assert shown[-1] == (
        "… the same 4 more times: scope jit(f)/layer_4; scope jit(f)/layer_5; scope jit(f)/layer_6, and 1 other places"
    )
    assert len(texts(diff, 0)) == 20


def test_a_change_in_a_loop_is_another_one():
    diff = ModuleDiff((hunk(3), hunk(3, loop="while %9 (30 trips)")), 9)
    assert texts(diff, 40).count("- %3 = add %1 : 4xf32") == 2


def test_what_is_cut_is_counted_by_op():
    shown = texts(ModuleDiff((big(300),), 9), 20)
    assert len(shown) < 30
    assert shown[0] == "@ in while %5 (30 trips), scope jit(f)"
    assert shown[-1] == "… 280 more removed: 187 add, 93 exponential"
    assert len(texts(ModuleDiff((big(300),), 9), 0)) == 302


@pytest.mark.parametrize("most_lines", [5, 12, 40])
def test_many_changes_stay_within_the_bound_and_the_rest_is_counted(most_lines):
    diff = ModuleDiff(tuple(hunk(k, f"op_{k}") for k in range(50)), 9)
    shown = texts(diff, most_lines)
    assert len(shown) <= most_lines + 5
    assert shown[-1].endswith("--diff-lines 0 shows all")
    named = sum(text.startswith("- ") for text in shown)
    assert f"{50 - named} ops removed" in shown[-1]


def test_moved_ops_say_where_to():
    moved = Moved(line("%3", "sine", "%1", loop="while %5 (30 trips)"), "")
    diff = ModuleDiff((Hunk("jit(f)/stage_a", "while %5 (30 trips)", (), (), (), (moved,), ()),), 9)
    assert texts(diff, 40)[1] == "> %3 = sine %1 : 4xf32  to outside of the loop"


def printed(**options):
    console = Console(file=io.StringIO(), highlight=False, width=40, **options)
    print_diffs(["some-pass"], [ModuleDiff((hunk(3),), 9)], console, most_lines=40)
    return console.file.getvalue()


def test_colour_on_a_terminal_and_none_without(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[31m" in printed(force_terminal=True)
    assert "\x1b" not in printed()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in printed(force_terminal=True)


def test_lines_are_not_folded_by_a_narrow_terminal():
    assert "diff some-pass: ops: 1 removed, 1 added, 1 read another value, 9 unchanged\n" in printed()
