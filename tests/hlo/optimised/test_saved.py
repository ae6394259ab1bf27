"""HLO files in the forms that XLA prints: in full, in short; and what is no optimised HLO."""

from pathlib import Path

import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.optimised.saved import HloFile, content_as_saved
from fusionlab.hlo.sandbox import client

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
def test_hlo_before_optimisation_has_no_launches(text):
    with pytest.raises(InputError, match=r"HLO before XLA's optimisation: its ops are not launches; give the text of"):
        read(text.replace("is_scheduled=true, ", ""))


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
