"""The parser of optimised HLO text, on a small module with everything that the grammar distinguishes."""

from pathlib import Path

import pytest

from fusionlab.hlo.optimised.parser import (
    HloSyntaxError,
    Shape,
    parse_json,
    parse_metadata,
    parse_optimized,
    parse_shape,
    split_attributes,
)
from fusionlab.hlo.optimised.validation import why_hlo_refused

pytestmark = pytest.mark.versions

TEXT = Path(__file__).with_name("grammar.hlo").read_text().partition("\n")[2]  # the first line tells what it is


@pytest.fixture(scope="module")
def module():
    return parse_optimized(TEXT)


def test_computations_in_the_order_of_the_text(module):
    assert module.name == "jit_f"
    assert list(module.computations) == ["fused_tanh", "body", "condition", "main"]
    assert module.entry.name == "main"
    assert module.computations["condition"].closing == '}, execution_thread="main"'


def test_an_instruction_comes_apart(module):
    loop = module.entry.root
    assert (loop.name, loop.opcode, loop.is_root) == ("while.1", "while", True)
    assert loop.operands == ("init",)
    assert loop.called == ("condition", "body")
    assert loop.known_trip_count == 30
    assert loop.shape == Shape("tuple", elements=(Shape("f32", (4, 8), "1,0"), Shape("s32")))


def test_a_fusion_and_a_custom_call(module):
    body = module.computations["body"]
    fusion, call = body.by_name["loop_tanh_fusion"], body.by_name["lt"]
    assert (fusion.fusion_kind, fusion.called, fusion.known_trip_count) == ("kLoop", ("fused_tanh",), None)
    assert (call.custom_call_target, call.fusion_kind) == ("__cublas$lt$matmul", "")
    assert call.operands == ("x", "n")
    assert call.backend_config == {"text": 'a, "b" = {c}', "n": [1, 2]}
    assert call.shape.layout == "1,0:S(5)"


def test_root_parameters_and_users(module):
    body = module.computations["body"]
    assert body.root.name == "out"
    assert [parameter.name for parameter in body.parameters] == ["carry"]
    assert [user.name for user in body.users["n"]] == ["lt", "out"]


def test_an_element_of_a_tuple_is_named_by_its_number():
    """As JAX 0.11 prints a fusion around a matrix product: the result of the call and its workspace."""
    module = parse_optimized(
        "HloModule m, is_scheduled=true\n\nENTRY %main (a: f32[2,4]) -> (f32[2,4], s8[16]) {\n"
        "  %a = f32[2,4]{1,0} parameter(0)\n"
        '  %call = (f32[2,4]{1,0}, s8[16]{0}) custom-call(%a), custom_call_target="t"\n'
        "  ROOT %both = (f32[2,4]{1,0}, s8[16]{0}) tuple(%call#0, %call#1)\n}\n"
    )
    first, second = (module.entry.by_name[name] for name in module.entry.root.operands)
    assert (first.opcode, first.operands, first.shape) == ("get-tuple-element", ("call",), Shape("f32", (2, 4), "1,0"))
    assert second.shape.byte_size == 16
    assert why_hlo_refused(module) is None


def test_types_of_operands_may_be_tuples_of_tuples():
    """As JAX 0.4 prints the operands of a call, with their types."""
    nested = "(f32[2], (f32[], (pred[], s32[])), /*index=2*/s32[])"
    module = parse_optimized(
        "HloModule m, is_scheduled=true\n\n"
        f"%f (a: {nested}, b: f32[2]) -> f32[2] {{\n  %a = {nested} parameter(0)\n"
        "  ROOT %b = f32[2]{0} parameter(1)\n}\n\n"
        f"ENTRY %main (t: {nested}, x: f32[2]) -> f32[2] {{\n  %t = {nested} parameter(0)\n"
        "  %x = f32[2]{0} parameter(1)\n"
        f"  ROOT %call = f32[2]{{0}} call({nested} %t, f32[2]{{0}} %x), to_apply=%f\n}}\n"
    )
    assert module.entry.root.operands == ("t", "x")
    assert module.entry.root.called == ("f",)


def test_sources_by_frame_and_by_metadata(module):
    tanh = module.computations["fused_tanh"].root
    assert tanh.op_name == "jit(f)/while/body/tanh"
    assert module.source_of(tanh) == ("model (1).py", 12)
    assert module.source_of(module.entry.root) == ("other.py", 7)
    assert module.source_of(module.entry.by_name["zero"]) is None


def test_printing_and_reading_again_is_a_fixed_point(module):
    printed = str(module)
    assert parse_optimized(printed) == module
    assert str(parse_optimized(printed)) == printed
    assert [line for line in printed.splitlines() if line] == [line for line in TEXT.splitlines() if line]


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("tanh(%p.0)", "tanh %p.0", 21, "SHAPE"),
        ("ROOT %out = ", "ROOT out = ", 30, "NAME"),
        ("HloModule jit_f", "Module jit_f", 1, "HEADER"),
        ("}\n\n%body", "\n\n%body", 24, "EQUAL"),
    ],
)
def test_an_error_says_where_and_what_was_expected(old, new, line, expected):
    with pytest.raises(HloSyntaxError) as caught:
        parse_optimized(TEXT.replace(old, new))
    assert caught.value.line == line
    assert expected in caught.value.expected
    assert str(caught.value).startswith(f"line {line}, column {caught.value.column}: not HLO text: expected ")


@pytest.mark.parametrize("before", ["\ufeff", "// written by hand\n\n  // twice\n", "\ufeff// both\n"])
def test_a_byte_order_mark_and_comments_are_skipped(before):
    assert str(parse_optimized(before + TEXT)) == str(parse_optimized(TEXT))
    commented = TEXT.replace("ENTRY ", "// the entry\nENTRY ")
    assert str(parse_optimized(commented)) == str(parse_optimized(TEXT))
    with pytest.raises(HloSyntaxError) as caught:
        parse_optimized("// one line\n" + TEXT.replace("tanh(%p.0)", "tanh %p.0"))
    assert caught.value.line == 22


def test_a_text_that_ends_too_early():
    with pytest.raises(HloSyntaxError) as caught:
        parse_optimized(TEXT.rstrip().removesuffix("}"))
    assert caught.value.line >= len(TEXT.splitlines()) - 1
    assert "CLOSE" in caught.value.expected


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("f32[4,8]{1,0}", 128),
        ("pred[3]", 3),
        ("s4[3]{0}", 2),
        ("c128[]", 16),
        ("f8e4m3fn[8]", 8),
        ("(f32[2]{0}, (s32[], /*index=1*/f64[2,2]{0,1:T(2,2)S(1)}), token[])", 44),
        ("()", 0),
        ("f32[<=10,2]{1,0}", 80),
    ],
)
def test_sizes_of_shapes(text, bytes_):
    assert parse_shape(text).byte_size == bytes_


@pytest.mark.parametrize("text", ["", "f32", "f32[a]", "(f32[2]", "f32[2] f32[2]"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(ValueError, match="not a shape"):
        parse_shape(text)


def test_an_unknown_element_type_has_no_size():
    with pytest.raises(ValueError, match="unknown HLO element type 'q7'"):
        _ = parse_shape("q7[2]").byte_size


def test_attributes_split_outside_brackets_and_strings():
    text = r', dims={0,1}, window={size=2x2 pad=0_0}, f={a="x, y={", b=(1, 2)}, flag, s="\"q\", r=1"'
    assert split_attributes(text) == {
        "dims": "{0,1}",
        "window": "{size=2x2 pad=0_0}",
        "f": '{a="x, y={", b=(1, 2)}',
        "flag": "",
        "s": r'"\"q\", r=1"',
    }


@pytest.mark.parametrize("text", [", a={1", ", a=1}", ', a="x'])
def test_unmatched_brackets_are_refused(text):
    with pytest.raises(ValueError, match=r"unmatched|never closed"):
        split_attributes(text)


def test_metadata_and_backend_config_values():
    assert parse_metadata(r'{op_name="f[\'a\']/b c" source_line=3}') == {"op_name": "f['a']/b c", "source_line": "3"}
    assert parse_json('{"a":{"n":"3"}}') == {"a": {"n": "3"}}
    assert parse_json("not json") == parse_json("[1]") == {}
