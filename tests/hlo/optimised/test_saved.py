"""HLO files in the forms that XLA prints: in full, in short; and what is no optimised HLO."""

from pathlib import Path

import pytest

from fusionlab.errors import InputError, NotStudied
from fusionlab.hlo.optimised.saved import HloFile, content_as_saved
from fusionlab.hlo.program import Program
from fusionlab.hlo.sandbox import client

try:
    from jaxlib import _hlo as HLO
except ImportError:  # before JAX 0.10.2
    from jaxlib import _jax as HLO

HERE = Path(__file__)
SHORT = HERE.with_name("short_print.hlo").read_text()
"""A loop of seven trips, compiled for the CPU: no sigils, no signatures."""


def read(text, name="a.hlo"):
    return content_as_saved(text.encode(), Path(name))


def test_xlas_short_print_is_read_as_its_full_print():
    found = read(SHORT)
    assert isinstance(found, HloFile)
    loop = next(one for one in found.module.entry.instructions if one.opcode == "while")
    assert (loop.known_trip_count, found.platform) == (7, "cpu")
    fused = found.module.computations["fused_computation"]
    assert fused.by_name["tanh.2"].operands == ("dot_general.2",)
    assert "%tanh.2 = " in found.text
    assert read(found.text).module == found.module  # which is not asked of XLA again


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("tanh(dot_general.2)", "tanh(nothing)", "column 33: not HLO text: instruction does not exist: nothing"),
        ("calls=fused_computation,", "calls=another,", "not HLO text: computation does not exist: another"),
        ("f32[64]{0} reduce", "f32[64{0} reduce", "line 15, column "),
    ],
)  # fmt: skip
def test_a_fault_in_a_short_print_is_told_with_its_place(old, new, cause):
    with pytest.raises(InputError, match=r"^a.hlo: line \d+, column \d+: not HLO text: ") as caught:
        read(SHORT.replace(old, new, 1))
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_short_print_on_which_xla_crashes_is_a_message(monkeypatch):
    """XLA's reader runs in a process of its own."""

    def crashed(self, content, kind):
        raise client.Unreadable("not a valid HLO module: XLA's reader ends with SIGABRT")

    monkeypatch.setattr(client._Reader, "ask", crashed)
    with pytest.raises(InputError, match=r"a\.hlo: not a valid HLO module: XLA's reader ends with SIGABRT"):
        read(SHORT)


@pytest.mark.parametrize("text", [SHORT, HERE.with_name("grammar.hlo").read_text()], ids=["short", "full"])
def test_hlo_after_fusion_and_before_scheduling_has_no_launches(text):
    with pytest.raises(InputError, match=r"before scheduling: its ops are not launches; give what XLA ends with"):
        read(text.replace("is_scheduled=true, ", ""))


UNOPTIMISED = """HloModule before

FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY main {
  x = f32[4,3]{1,0} parameter(0)
  w = f32[3,2]{1,0} parameter(1)
  dot = f32[4,2]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot" stack_frame_id=1}
  ROOT tanh = f32[4,2]{1,0} tanh(dot), metadata={op_name="jit(f)/tanh" stack_frame_id=1}
}
"""  # noqa: E501  # as XLA prints it


def protobuf(text):
    return HLO.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def around(message):
    """``message`` as the first field of another."""
    size, written = len(message), b"\n"
    while size > 0x7F:
        written, size = written + bytes([0x80 | size & 0x7F]), size >> 7
    return written + bytes([size]) + message


BEFORE = {
    "text": lambda: UNOPTIMISED.encode(),
    "text after a byte order mark": lambda: b"\xef\xbb\xbf" + UNOPTIMISED.encode(),
    "module": lambda: protobuf(UNOPTIMISED),
    "HloProto": lambda: around(protobuf(UNOPTIMISED)),
    "snapshot": lambda: around(around(protobuf(UNOPTIMISED))),
}


@pytest.mark.parametrize("form", BEFORE)
def test_hlo_before_optimisation_is_a_program(form, caplog):
    found = content_as_saved(BEFORE[form](), Path("before.pb"))
    assert isinstance(found, Program)
    assert [str(one) for one in (*found.inputs, *found.outputs)] == ["4x3xf32", "3x2xf32", "4x2xf32"]
    assert 'model.py":7:4' in found.text
    assert "jit(f)/tanh" in found.text
    assert caplog.messages == ["before.pb: HLO before XLA's optimisation: read as StableHLO, and compiled"]


def test_optimised_hlo_as_protobuf_is_read_as_its_text():
    for content in (protobuf(SHORT), around(protobuf(SHORT))):
        found = content_as_saved(content, Path("a.pb"))
        assert isinstance(found, HloFile)
        assert [one.opcode for one in found.module.entry.instructions] == [
            one.opcode for one in read(SHORT).module.entry.instructions
        ]


@pytest.mark.parametrize("content", [protobuf(SHORT)[:500], around(protobuf(UNOPTIMISED))[:-9], b"\n\x01a\xff\xff"])
def test_a_damaged_protobuf_is_a_message(content):
    with pytest.raises(InputError, match=r"^a\.pb: not an HLO protobuf: ") as caught:
        content_as_saved(content, Path("a.pb"))
    assert "\n" not in str(caught.value)


def test_a_text_that_begins_with_an_empty_line_is_no_protobuf():
    assert isinstance(read(f"\n\n{SHORT}"), HloFile)
    text = "\n  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    assert isinstance(read(text), Program)


def test_elements_that_are_left_out_are_not_made_up():
    """XLA's reader fills them with numbers of its own."""
    text = UNOPTIMISED.replace("w = f32[3,2]{1,0} parameter(1)", "w = f32[3,2]{1,0} constant({...})")
    with pytest.raises(
        InputError, match=r"a\.hlo: the elements of constant w are left out .* --xla_dump_large_constants"
    ):
        read(text)


def test_what_xla_cannot_convert_is_a_message():
    text = UNOPTIMISED.replace("tanh(dot)", 'custom-call(dot), custom_call_target="x", api_version=API_VERSION_NONE')
    with pytest.raises(InputError, match=r"^a\.hlo: ") as caught:
        read(text)
    assert "\n" not in str(caught.value)


OF_SOME_ROWS = "ROOT some = f32[<=4,2]{1,0} set-dimension-size(dot, n), dimensions={0}"


def test_hlo_that_is_not_studied_is_kept_whole():
    text = UNOPTIMISED.replace("  ROOT tanh = f32[4,2]{1,0} tanh(dot)", f"  n = s32[] constant(2)\n  {OF_SOME_ROWS}")
    with pytest.raises(NotStudied) as caught:
        read(text)
    assert caught.value.content == text.encode()


BRANCHES = """HloModule m, is_scheduled=true

%flip (p: pred[]) -> pred[] {
  %p = pred[] parameter(0)
  ROOT %n = pred[] not(%p)
}

ENTRY %main (q: pred[]) -> pred[] {
  %q = pred[] parameter(0)
  ROOT %c = pred[] conditional(%q, %q, %q), BRANCHES
}
"""


@pytest.mark.parametrize(
    ("branches", "cause"),
    [
        ("true_computation=%flip, false_computation=%flip", ""),
        ("branch_computations={%flip, %flip, %flip}", ""),
        ("true_computation=%flip", "%c of %main is a conditional whose false_computation names no computation"),
        ("branch_computations={%flip, %flop}", "%c of %main calls %flop, which is not there"),
    ],
)
def test_a_conditional_has_all_its_branches(branches, cause):
    text = BRANCHES.replace("BRANCHES", branches)
    if not cause:
        assert isinstance(read(text), HloFile)
        return
    with pytest.raises(InputError, match=cause):
        read(text)
