"""A diff in a terminal: bounded, nothing dropped without a word, plain where colour is not wanted."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from fusionlab.hlo.diff.records import Hunk, ModuleDiff, Moved, OpLine, Rewired
from fusionlab.report.tables.diff import print_diffs, shown_lines, summary

LOOP = "while %5 (30 trips)"


def line(name, op, *operands, scope="jit(f)/stage_a/op", loop=""):
    return OpLine((name,), op, operands, (), (), ("4xf32",), scope, loop)


def hunk(number, op="add", loop=""):
    old = line(f"%{number}", op, "%1", scope=f"jit(f)/layer_{number}/{op}", loop=loop)
    new = line(f"%{number + 1000}", "multiply", "%1", scope=f"jit(f)/layer_{number}/{op}", loop=loop)
    reader = line("%7", "tanh", f"%{number}", loop=loop)
    return Hunk(f"jit(f)/layer_{number}", loop, (), (old,), (new,), (), (Rewired(reader, (f"%{number + 1000}",)),))


def texts(most_lines, *hunks):
    return [f"{shown.mark} {shown.text}" for shown in shown_lines(ModuleDiff(hunks, 9), most_lines)]


SAME = [hunk(number) for number in (3, 4, 5, 6, 7)]
SHOWN = {
    "what went, what came and who reads it": texts(40, hunk(3)),
    "out of a loop": texts(40, Hunk("jit(f)", LOOP, (), (), (), (Moved(line("%3", "sine", "%1", loop=LOOP), ""),), ())),
    "the same change elsewhere is named and not repeated": texts(40, *SAME),
    "in a loop it is another one": texts(40, hunk(3), hunk(3, loop=LOOP)),
    "the summary": [summary(ModuleDiff((hunk(3),), 9)), summary(ModuleDiff((), 9))],
}


def test_what_is_shown(golden):
    text = "".join("\n".join([f"# {title}", *lines, ""]) for title, lines in SHOWN.items())
    golden(Path(__file__).parent / "diff.txt", text)
    assert len(texts(0, *SAME)) == 20


def test_what_is_cut_is_counted_by_op():
    removed = tuple(line(f"%{k}", "add" if k % 3 else "exponential", "%0") for k in range(300))
    big = Hunk("jit(f)", LOOP, (line("%0", "sine", "%arg0"),), removed, (), (), ())
    shown = texts(20, big)
    assert len(shown) < 30
    assert (shown[0], shown[-1]) == (f"@ in {LOOP}, scope jit(f)", "… 280 more removed: 187 add, 93 exponential")
    assert len(texts(0, big)) == 302


@pytest.mark.parametrize("most_lines", [5, 12, 40])
def test_many_changes_stay_within_the_bound_and_the_rest_is_counted(most_lines):
    shown = texts(most_lines, *(hunk(k, f"op_{k}") for k in range(50)))
    assert len(shown) <= most_lines + 5
    assert shown[-1].endswith("--diff-lines 0 shows all")
    named = sum(text.startswith("- ") for text in shown)
    assert f"{50 - named} ops removed" in shown[-1]


@pytest.mark.parametrize(("no_color", "terminal", "red"), [("", True, True), ("", False, False), ("1", True, False)])
def test_colour_on_a_terminal_alone_and_no_line_is_folded(no_color, terminal, red, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    console = Console(file=io.StringIO(), highlight=False, width=40, force_terminal=terminal)
    print_diffs(["some-pass"], [ModuleDiff((hunk(3),), 9)], console, most_lines=40)
    printed = console.file.getvalue()
    assert ("\x1b[31m" in printed) == red
    assert terminal or "diff some-pass: ops: 1 removed, 1 added, 1 read another value, 9 unchanged\n" in printed
