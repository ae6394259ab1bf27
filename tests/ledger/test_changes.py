"""What changed between two ledgers, and why, on HLO by hand."""

import dataclasses
import io

import pytest
from rich.console import Console

from fusionlab.ledger.changes import compare_ledgers
from fusionlab.ledger.saved import ledger_record
from fusionlab.report.tables.changes import diff_lines, diff_markdown, print_diff, verdict
from tests.ledger.by_hand import compiled_of


def op(name, opcode, operands, stack, line, shape="f32[64]{0}", more=""):
    place = f'metadata={{op_name="jit(f)/{stack}" source_file="model.py" source_line={line}}}'
    return f"  %{name} = {shape} {opcode}({operands}), {more}{place}\n"


def program(*body, computations="", result="x"):
    return (
        f"HloModule m, is_scheduled=true\n\n{computations}ENTRY %main (x: f32[64]) -> f32[64] {{\n"
        f"  %x = f32[64]{{0}} parameter(0)\n{''.join(body)}  ROOT %out = (f32[64]{{0}}) tuple(%{result})\n}}\n"
    )


def ledger_of(text):
    return ledger_record(compiled_of(text))


def changes(before, after):
    return compare_ledgers(ledger_of(before), ledger_of(after))


TWO = program(op("a", "sine", "%x", "layer_0/sin", 3), op("b", "exponential", "%a", "layer_0/exp", 4), result="b")


def test_equal_programs_are_the_same():
    found = changes(TWO, TWO)
    assert (found.is_same, found.changes, found.matched, found.summary) == (True, (), (2, 2), ())
    assert found.to_json()["same"]


def test_what_one_side_does_not_know_is_no_difference_of_either():
    known = ledger_of(TWO)
    unknown = dataclasses.replace(known, temp_bytes=None, refusals=None)
    for sides in ((known, unknown), (unknown, known)):
        found = compare_ledgers(*sides)
        assert found.is_same
        assert verdict(found) == "hand on a100: the same 2 launches and copies; memory is not known"
    assert verdict(compare_ledgers(known, known)).endswith("the same 2 launches, copies and memory")


@pytest.mark.parametrize(
    ("us", "order", "said"),
    [
        (1.1, "not decidable", "times: not decidable by the model: 10.0% apart, 20% are needed"),
        (1.3, "slower", ""),
        (1.0, "not decidable", ""),
    ],
)
def test_every_form_says_of_times_that_they_are_not_decidable(us, order, said):
    row = dataclasses.replace(ledger_of(TWO).rows[0], model_us=100.0, model_source="xla")
    sides = [dataclasses.replace(ledger_of(TWO), rows=(dataclasses.replace(row, model_us=100 * by),)) for by in (1, us)]
    found, console = compare_ledgers(*sides), Console(file=io.StringIO(), width=200)
    print_diff(found, 3, console)
    for text in (console.file.getvalue(), "\n".join(diff_lines(found, 3)), diff_markdown(found, 3, ())):
        assert (said or "not decidable") in text if said else "not decidable" not in text
    assert found.to_json()["time_order"] == {"order": order, "apart": pytest.approx(us - 1), "needed": 0.2}
    unknown = dataclasses.replace(sides[0], rows=(dataclasses.replace(row, model_us=None),))
    assert compare_ledgers(unknown, sides[1]).to_json()["time_order"] is None


def test_a_small_change_of_time_is_no_zero():
    row = dataclasses.replace(ledger_of(TWO).rows[0], model_us=3.846)
    sides = [
        dataclasses.replace(ledger_of(TWO), rows=(one,)) for one in (row, dataclasses.replace(row, model_us=3.848))
    ]
    assert "| 3.8 us | 3.8 us | +2.0 ns |" in diff_markdown(compare_ledgers(*sides), 0, ())


def test_equally_frequent_holders_and_causes_are_said_by_name():
    # the order of a set differs from run to run
    three = [f"k{i}" for i in (2, 0, 1)]
    rows = [
        dataclasses.replace(ledger_of(TWO).rows[0], name=name, op="mix", parts=("a/sin", "a/exp")) for name in three
    ]
    gone = dataclasses.replace(rows[0], name="gone", scope="z", source="z.py:1", op="other", family="gemm")
    before = dataclasses.replace(ledger_of(TWO), rows=(gone,))
    (went,) = [
        one
        for one in compare_ledgers(before, dataclasses.replace(before, rows=tuple(rows))).changes
        if one.what == "went"
    ]
    assert went.why == ("its op is now in k0, k1, k2",)


def test_lines_that_moved_and_layers_that_were_numbered_anew_are_no_change():
    assert changes(TWO, TWO.replace("source_line=3", "source_line=30")).is_same
    assert changes(TWO, TWO.replace("layer_0", "layer_7").replace("source_line=4", "source_line=5")).is_same
    assert changes(TWO, TWO.replace("jit(f)", "jit(g)")).is_same


def test_a_scope_that_was_renamed_is_matched_by_its_lines():
    assert changes(TWO, TWO.replace("layer_0", "encoder")).matched == (2, 2)


def test_a_line_that_is_differentiated_in_another_way_is_matched():
    before = program(op("a", "sine", "%x", "jvp(l)/sin", 3), op("b", "sine", "%a", "jvp(l)/sin", 3), result="b")
    after = program(op("a", "sine", "%x", "transpose(jvp(l))/sin", 3), result="a")
    (shrank,) = changes(before, after).changes
    assert (shrank.what, shrank.launches) == ("shrank", (2, 1))
    assert "its transformation is transpose, before jvp" in shrank.why


FUSED = program(
    "  %both = f32[64]{0} fusion(%x), kind=kLoop, calls=%inside\n",
    computations="%inside (p: f32[64]) -> f32[64] {\n  %p = f32[64]{0} parameter(0)\n"
    + op("a", "sine", "%p", "layer_0/sin", 3)
    + op("b", "exponential", "%a", "layer_0/exp", 4).replace("%b", "ROOT %b")
    + "}\n\n",
    result="both",
)


def test_an_op_that_moved_into_another_fusion_is_found_there():
    gone = [one for one in changes(TWO, FUSED).changes if one.what == "went"]
    assert [(one.label, one.launches, one.why) for one in gone] == [
        ("layer_0/exp", (1, 0), ("its op is now in both",)),
    ]
    new = [one for one in changes(FUSED, TWO).changes if one.what == "appeared"]
    assert [(one.label, one.source, one.why) for one in new] == [("layer_0/exp", "model.py:4", ("its op was in both",))]


def test_an_op_that_is_new_is_called_new():
    more = program(op("a", "sine", "%x", "sin", 3), op("c", "cosine", "%a", "head/cos", 9), result="c")
    less = program(op("a", "sine", "%x", "sin", 3), result="a")
    (new,) = changes(less, more).changes
    assert (new.what, new.label, new.more_launches, new.why) == ("appeared", "head/cos", 1, ("its op is new",))
    (gone,) = changes(more, less).changes
    assert (gone.what, gone.more_launches, gone.why) == ("went", -1, ("its op is gone",))


def test_an_op_of_the_same_name_elsewhere_is_not_called_new_or_gone():
    more = program(op("a", "sine", "%x", "sin", 3), op("c", "cosine", "%a", "head/cos", 9), result="c")
    fused = FUSED.replace("layer_0/exp", "encoder/cos").replace("source_line=4", "source_line=40")
    gone = [one for one in changes(more, fused).changes if one.label == "head/cos"]
    assert [one.why for one in gone] == [()]
    idle = changes(more, branched().replace("light", "other").replace("source_line=7", "source_line=70"))
    assert [one.why for one in idle.changes if one.label == "head/cos"] == [()]


def test_an_op_in_a_branch_is_found_where_the_file_was_edited_above():
    both = program(
        op("s1", "sine", "%x", "heavy/sin", 5), op("s2", "sine", "%s1", "heavy/sin", 5),
        op("c1", "cosine", "%x", "light/cos", 8), result="s2",
    )  # fmt: skip
    (new,) = changes(branched(), both).changes
    assert new.why == ("c1 was in a branch of a conditional, which is not counted; it now always runs",)


def test_products_are_matched_wherever_they_are():
    row = dataclasses.replace(ledger_of(TWO).rows[0], op="dot_general", family="gemm", parts=())
    sides = [
        dataclasses.replace(ledger_of(TWO), rows=(dataclasses.replace(row, **changed),))
        for changed in ({"scope": "a", "source": "a.py:1", "bytes": 100}, {"scope": "b", "source": "b.py:2"})
    ]
    assert compare_ledgers(*sides).matched == (1, 1)


def layers(*numbers):
    names = [f"a{i}" for i in numbers]
    return program(
        *(op(a, "sine", f"%{b}", f"layer_{a[1:]}/sin", 3) for a, b in zip(names, ["x", *names], strict=False)),
        result=names[-1],
    )


def test_a_layer_more_did_not_move_out_of_the_others():
    (new,) = changes(layers(0, 1), layers(0, 1, 2)).changes
    assert (new.label, new.what, new.why) == ("layer_2/sin", "appeared", ("1 more of the op in a0, a1",))
    (gone,) = changes(layers(0, 1, 2), layers(0, 1)).changes
    assert (gone.label, gone.what, gone.why) == ("layer_2/sin", "went", ("1 fewer of the op in a0, a1",))


def looped(trips, inside=1):
    ops = "".join(op(f"s{i}", "sine", f"%s{i - 1}" if i else "%y", "while/body/layer/sin", 3) for i in range(inside))
    count = f'backend_config={{"known_trip_count":{{"n":"{trips}"}}}}, '
    return program(
        "  %zero = s32[] constant(0)\n  %init = (s32[], f32[64]{0}) tuple(%zero, %x)\n",
        op("loop", "while", "%init", "while", 2, "(s32[], f32[64]{0})", f"condition=%cond, body=%body, {count}"),
        "  %z = f32[64]{0} get-tuple-element(%loop), index=1\n",
        computations="%cond (c: (s32[], f32[64])) -> pred[] {\n  %c = (s32[], f32[64]{0}) parameter(0)\n"
        "  ROOT %go = pred[] constant(false)\n}\n\n"
        "%body (s: (s32[], f32[64])) -> (s32[], f32[64]) {\n  %s = (s32[], f32[64]{0}) parameter(0)\n"
        "  %i = s32[] get-tuple-element(%s), index=0\n  %y = f32[64]{0} get-tuple-element(%s), index=1\n"
        f"{ops}  %n = s32[] negate(%i)\n  ROOT %t = (s32[], f32[64]{{0}}) tuple(%n, %s{inside - 1})\n}}\n\n",
        result="z",
    )


def test_a_loop_that_was_unrolled_is_said():
    flat = program(*(op(f"a{i}", "sine", f"%a{i - 1}" if i else "%x", "layer/sin", 3) for i in range(4)), result="a3")
    found = changes(looped(4), flat)
    assert found.summary == (
        "loops: 1 of 4 trips before, none after",
        "unrolled: 1 kernel of 4 runs became 4 kernels of 4",
    )
    (counter,) = found.changes  # its work is the same; the loop's own is gone
    assert (counter.launches, counter.why) == (
        (4, 0), ("it runs in a loop of 4 trips, which the other side does not have",),
    )  # fmt: skip
    (back, *_) = changes(flat, looped(4)).changes
    assert back.what == "appeared"
    once = program(op("a", "sine", "%x", "layer/sin", 3), result="a")
    assert ("its loop of 4 trips is gone: 4 runs before, 1 after",) in [
        one.why for one in changes(looped(4), once).changes
    ]


def test_a_loop_of_more_trips_is_said():
    grew = next(one for one in changes(looped(4), looped(6)).changes if one.label == "layer/sin")
    assert (grew.what, grew.launches, grew.sites) == ("grew", (4, 6), (1, 1))
    assert grew.why == ("its loop has 6 trips, before 4: 4 runs before, 6 after",)


def test_trips_that_are_not_known_are_said_as_such():
    unknown = looped(4).replace('backend_config={"known_trip_count":{"n":"4"}}, ', "")
    once = program(op("a", "sine", "%x", "layer/sin", 3), result="a")
    found = changes(looped(4), unknown)
    assert found.summary == ("loops: 1 of 4 trips before, 1 of unknown trips after",)
    assert found.changes[0].why == (
        "it runs in a loop of unknown trips, before in a loop of 4 trips: 4 runs before, 1 after",
    )
    said = [why for one in changes(once, unknown).changes for why in one.why]
    assert "it runs in a loop of unknown trips, which the other side does not have" in said
    assert not any(" 1 trips" in why for why in said)


def test_trips_of_nested_loops_are_those_of_all():
    def nested(ledger):
        rows = (dataclasses.replace(row, loop="outer/inner", trip_count=12, dynamic_launches=12) for row in ledger.rows)
        return dataclasses.replace(ledger, rows=tuple(rows))

    once = program(op("a", "sine", "%x", "layer/sin", 3), result="a")
    found = compare_ledgers(nested(ledger_of(once)), ledger_of(once))
    assert found.summary == ("loops: 1 nested of 12 trips in all before, none after",)
    assert found.changes[0].why == ("its nested loops of 12 trips in all are gone: 12 runs before, 1 after",)
    back = compare_ledgers(ledger_of(once), nested(ledger_of(once)))
    assert back.changes[0].why == ("it now runs 12 times in nested loops: 1 run before, 12 after",)


def test_the_same_launches_with_more_bytes_are_a_change():
    (grew,) = changes(
        program(op("a", "sine", "%x", "sin", 3), result="a"),
        program(op("a", "sine", "%x", "sin", 3, "f32[256]{0}"), result="a"),
    ).changes
    assert (grew.what, grew.more_launches) == ("grew", 0)
    assert grew.why == ("the same launches move 1.2 KiB each, before 512 B",)


def branched():
    branch = "%{name} (p{name}: f32[64]) -> f32[64] {{\n  %p{name} = f32[64]{{0}} parameter(0)\n{ops}}}\n\n"
    one = op("s1", "sine", "%pone", "heavy/sin", 5) + op("s2", "sine", "%s1", "heavy/sin", 5).replace("%s2", "ROOT %s2")
    two = op("c1", "cosine", "%ptwo", "light/cos", 7).replace("%c1", "ROOT %c1")
    return program(
        "  %which = s32[] constant(0)\n",
        op("pick", "conditional", "%which, %x, %x", "cond", 2, more="branch_computations={%one, %two}, "),
        computations=branch.format(name="one", ops=one) + branch.format(name="two", ops=two),
        result="pick",
    )


def test_a_conditional_that_became_a_select_is_said():
    both = program(
        op("s1", "sine", "%x", "heavy/sin", 5), op("s2", "sine", "%s1", "heavy/sin", 5),
        op("c1", "cosine", "%x", "light/cos", 7), result="s2",
    )  # fmt: skip
    found = changes(branched(), both)
    assert found.summary == ("conditionals: 1 before, 0 after: both branches now run",)
    (new,) = found.changes
    assert (new.label, new.launches) == ("light/cos", (0, 1))
    assert new.why == ("c1 was in a branch of a conditional, which is not counted; it now always runs",)
    (gone,) = changes(both, branched()).changes
    assert gone.why == ("c1 is now in a branch of a conditional, which is not counted",)


def test_a_conditional_that_is_gone_with_a_branch_is_not_called_a_select():
    for kept in (("heavy/sin", "sine", 5), ("light/cos", "cosine", 7)):
        alone = program(op("s", kept[1], "%x", kept[0], kept[2]), result="s")
        found = changes(branched(), alone)
        runs = ": both branches now run" if kept[1] == "cosine" else ""
        assert found.summary == (f"conditionals: 1 before, 0 after{runs}",)


@pytest.mark.parametrize("scale", [1, 3])
def test_matched_launches_and_changes_sum_to_the_difference(scale):
    for before, after in ((TWO, FUSED), (looped(4, scale), TWO), (branched(), looped(2, scale))):
        found = changes(before, after)
        launches = [one for one in found.changes if one.kind == "launch"]
        assert sum(one.more_launches for one in launches) == (
            found.after.dynamic_launches - found.before.dynamic_launches
        )
