"""Origins of launches in a program without stages, and the views that group by them."""

import re

import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.launch_rows import Totals, launch_rows, totals
from fusionlab.ledger.views import VIEWS, coverage_words, default_views, is_staged, label, parse_view, place, totals_by
from tests.ledger.by_hand import compiled_of, text_of

TEXT = text_of("origins.hlo")


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for row in launch_rows(compiled_of(TEXT))}


@pytest.mark.parametrize(
    ("name", "scope", "op", "transform", "source", "by"),
    [
        ("kernel", "layer/dense", "tanh", "jvp", "linear.py:280", "members"),  # not the root's: that is a slice
        ("again", "layer/dense", "transpose", "jvp", "linear.py:280", "readers"),  # XLA gave it no name
        ("turned", "layer/dense", "transpose", "jvp", "linear.py:280", "readers"),  # named after an argument
        ("after", "layer/dense", "negate", "jvp", "linear.py:280", "producers"),  # nobody reads it
        ("unnamed", "", "sin.1", "primal", "model.py:10", "members"),  # no path, but a line
        ("next", "scan", "negate", "primal", "model.py:30", "loop"),
    ],
)
def test_every_launch_has_an_origin_and_says_how_it_was_found(rows, name, scope, op, transform, source, by):
    row = rows[name]
    assert (row.scope, row.op, row.transform, row.source, row.attributed_by) == (scope, op, transform, source, by)


def test_a_kernel_keeps_all_scopes_and_lines_the_heaviest_first(rows):
    row = rows["kernel"]
    assert row.scopes == ("layer/dense", "readout")
    assert row.sources == ("linear.py:280", "model.py:30")
    assert row.stage_share == 1.0  # of what computes: the slice only moves data
    assert (row.phase, row.stage, row.role) == ("", "", "")


def test_the_caller_is_the_line_outside_of_installed_packages(rows):
    assert rows["kernel"].caller == "model.py:10"
    module = parse_optimized(TEXT)
    kernel = module.computations["fused"].by_name["t"]
    assert [line for _, line in module.callers_of(kernel)] == [280, 10]
    plain = TEXT.replace("parent_frame_id=1}\n2", "parent_frame_id=0}\n2")
    plain = plain.replace("parent_frame_id=2", "parent_frame_id=1")
    assert [line for _, line in parse_optimized(plain).callers_of(kernel)] == [280, 10]


def test_a_kernel_without_any_name_has_the_opcode_of_its_heaviest_op():
    text = re.sub(r", metadata=\{[^}]*\}", "", TEXT)
    rows = {row.name: row for row in launch_rows(compiled_of(text))}
    assert {name: row.op for name, row in rows.items()} == {
        "kernel": "multiply", "again": "transpose", "turned": "transpose", "after": "negate", "unnamed": "sine",
        "next": "negate",
    }  # fmt: skip
    assert {row.scope + row.source + row.attributed_by for row in rows.values()} == {""}


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        ("reduce(%p, %z), dimensions={1,2,3}, to_apply=%add", "f32[8]{0}"),
        ("dot(%p, %p), lhs_contracting_dims={1,2,3}, rhs_contracting_dims={1,2,3}", "f32[8,8]{1,0}"),
        ("convolution(%p, %k), window={size=3x3}, dim_labels=bf01_oi01->bf01", "f32[8,2,2,2]{3,2,1,0}"),
        ("reduce-window(%p, %z), window={size=8x1x1x1}, to_apply=%add", "f32[1,4,4,4]{3,2,1,0}"),
    ],
)
def test_reductions_and_products_weigh_more_than_their_epilogue(op, shape):
    text = (
        "HloModule m, is_scheduled=true\n\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}\n\n%fused (p: f32[8,4,4,4]) -> f32[] {\n"
        "  %p = f32[8,4,4,4]{3,2,1,0} parameter(0)\n  %z = f32[] constant(0)\n"
        "  %k = f32[2,4,3,3]{3,2,1,0} constant({...})\n"
        f'  %w = {shape} {op}, metadata={{op_name="jit(f)/main/work" source_file="m.py" source_line=3}}\n'
        f'  %q = {shape} sqrt(%w), metadata={{op_name="jit(f)/end/sqrt" source_file="m.py" source_line=4}}\n'
        f'  ROOT %t = {shape} tanh(%q), metadata={{op_name="jit(f)/end/tanh" source_file="m.py" source_line=4}}\n}}\n\n'
        f"ENTRY %main (x: f32[8,4,4,4]) -> {shape} {{\n  %x = f32[8,4,4,4]{{3,2,1,0}} parameter(0)\n"
        f"  ROOT %kernel = {shape} fusion(%x), kind=kInput, calls=%fused\n}}\n"
    )
    (row,) = launch_rows(compiled_of(text))
    assert (row.scope, row.op, row.source, row.scopes) == ("main", "work", "m.py:3", ("main", "end"))


def test_a_scatter_with_more_index_arithmetic_than_results_is_no_comparison():
    """JAX wraps negative indices: that is as many comparisons as updates, and of one line with the scatter."""

    def named(op):
        return f'metadata={{op_name="jit(f)/main/{op}" source_file="m.py" source_line=3}}'

    text = (
        "HloModule m, is_scheduled=true\n\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}\n\n"
        "%fused (x: f32[8], i: s32[900,1], u: f32[900]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n"
        "  %i = s32[900,1]{1,0} parameter(1)\n  %u = f32[900]{0} parameter(2)\n"
        f"  %l = pred[900,1]{{1,0}} compare(%i, %i), direction=LT, {named('lt')}\n"
        f"  %n = s32[900,1]{{1,0}} select(%l, %i, %i), {named('select_n')}\n"
        f"  %t = f32[900]{{0}} multiply(%u, %u), {named('mul')}\n"
        "  ROOT %w = f32[8]{0} scatter(%x, %n, %t), update_window_dims={}, inserted_window_dims={0}, "
        f"scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=%add, {named('scatter-add')}\n}}\n\n"
        "ENTRY %main (x: f32[8], i: s32[900,1], u: f32[900]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n"
        "  %i = s32[900,1]{1,0} parameter(1)\n  %u = f32[900]{0} parameter(2)\n"
        "  ROOT %kernel = f32[8]{0} fusion(%x, %i, %u), kind=kInput, calls=%fused\n}\n"
    )
    (row,) = launch_rows(compiled_of(text))
    assert (row.op, row.stage_share) == ("scatter-add", 1.0)
    assert row.parts == ("main/scatter-add (m.py:3)", "main/lt (m.py:3)", "main/select_n (m.py:3)", "main/mul (m.py:3)")
    plain = re.sub(r"ROOT %w = .*?, metadata", "ROOT %w = f32[8]{0} slice(%t), slice={[0:8]}, metadata", text)
    assert launch_rows(compiled_of(plain))[0].op == "lt"  # nothing but comparisons and a product of equal weight


def test_a_source_line_in_the_metadata_itself_is_read_too():
    text = TEXT.replace("stack_frame_id=2", 'source_file="/home/me/old.py" source_line=7')
    rows = {row.name: row for row in launch_rows(compiled_of(text))}
    assert (rows["kernel"].source, rows["kernel"].caller) == ("old.py:7", "old.py:7")


def test_views_group_by_any_origin(rows):
    every = tuple(rows.values())
    for views in (("scope",), ("scope:1", "op"), ("source", "transform"), ("batched", "attributed_by"), tuple(VIEWS)):
        assert sum(totals_by(every, views).values(), Totals()) == totals(every)
    assert {key for (key,) in totals_by(every, ("scope:1",))} == {"layer", "scan", "unattributed"}
    assert label(rows["kernel"], "scope:1") == "layer"
    assert place(rows["kernel"], staged=False) == "layer/dense/tanh"
    assert coverage_words(every) == "90.0% of dynamic launches carry a scope, 100.0% a source line"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scopes", "unknown view 'scopes'; did you mean: scope"),
        ("scope:0", "--by scope:0: a depth is a positive number"),
        ("scope:x", "only scope has one"),
        ("source:2", "only scope has one"),
    ],
)
def test_what_is_no_view_is_said(text, message):
    with pytest.raises(InputError, match=message):
        parse_view(text)


@pytest.mark.parametrize(
    ("changes", "views"),
    [
        ((), ("scope",)),
        ((("jit(f)/jvp(layer)/dense/", "jit(f)/"), ("jit(f)/scan/", "jit(f)/")), ("source",)),
        ((("jit(f)/jvp(layer)/dense/", "jit(f)/"), ("jit(f)/scan/", "jit(f)/"), ("stack_frame_id=", "id=")), ("op",)),
        ((("layer", "stage_b"),), ("phase", "stage", "role")),
        # one line alone says nothing
        (
            (("jit(f)/jvp(layer)/dense/", "jit(f)/"), ("jit(f)/scan/", "jit(f)/"), ("id=2", "id=3"), ("id=1", "id=3")),
            ("op",),
        ),
    ],
)
def test_the_default_view_is_the_first_that_says_something(changes, views):
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new)
    rows = launch_rows(compiled_of(text))
    assert default_views(rows) == views
    assert is_staged(rows) == ("stage" in views)


def test_the_default_depth_is_the_greatest_whose_groups_fit_on_a_screen():
    lines = [
        f'  %a{i} = f32[8]{{0}} sine(%x), metadata={{op_name="jit(f)/layer_{i % 4}/part_{i}/sin"}}' for i in range(40)
    ]
    text = (
        "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n"
        + "\n".join(lines)
        + "\n  ROOT %r = f32[8]{0} negate(%a0)\n}\n"
    )
    rows = launch_rows(compiled_of(text))
    assert default_views(rows) == ("scope:1",)
    assert len(totals_by(rows, ("scope:1",))) == 4


NAMED = """HloModule named, is_scheduled=true
%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
%body {
  %p = f32[8,64]{1,0} parameter(0)
  %zero = f32[] constant(0), metadata={op_name="jit(f)/jit(cumsum)" source_file="model.py" source_line=3}
  ROOT %window = f32[8,64]{1,0} reduce-window(%p, %zero), window={size=1x8 pad=0_0x7_0}, to_apply=%sum
}
ENTRY %main {
  %x = f32[8,64]{1,0} parameter(0)
  %w = f32[64,64]{1,0} parameter(1)
  %loop = f32[8,64]{1,0} fusion(%x), kind=kLoop, calls=%body
  ROOT %call = f32[64,8]{1,0} custom-call(%w, %loop), custom_call_target="TARGET", METADATA
}
"""


def named(op, target):
    metadata = f'metadata={{op_name="jit(f)/vmap()/{op}" source_file="model.py" source_line=4}}'
    text = NAMED.replace("METADATA", metadata).replace("TARGET", target)
    return {row.name: (row.op, row.source) for row in launch_rows(compiled_of(text))}


def test_a_kernel_of_which_jax_named_a_constant_alone_is_called_after_what_it_does():
    assert named("dot_general", "__cublas$gemm")["loop"] == ("reduce_window", "model.py:3")


@pytest.mark.parametrize(
    ("op", "target", "shown"),
    [
        ("transpose", "__cublas$gemm", "dot_general"),  # XLA keeps the name of what it folds into the product
        ("convert_element_type", "__cublas$lt$matmul", "dot_general"),
        ("transpose", "__cudnn$convForward", "conv_general_dilated"),
        ("einsum", "__cublas$gemm", "einsum"),
        ("transpose", "somebodys_library", "transpose"),
    ],
)
def test_a_library_call_is_called_after_what_it_computes(op, target, shown):
    assert named(op, target)["call"] == (shown, "model.py:4")
