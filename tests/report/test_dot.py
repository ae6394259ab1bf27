"""DOT text: figures and escaping."""

import pytest

from fusionlab.report.pictures.dot import bytes_text, flops_text, quoted, text


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0"), (1, "1 B"), (999, "999 B"), (1023, "1.00 KiB"), (12_800, "12.5 KiB"), (880 * 2**20, "880 MiB")],
)
def test_sizes_have_three_digits(size, words):
    assert bytes_text(size) == words


@pytest.mark.parametrize(("flops", "words"), [(0, "0"), (7, "7 FLOP"), (999_600, "1.00 MFLOP"), (11.4e9, "11.4 GFLOP")])
def test_flops_have_three_digits(flops, words):
    assert flops_text(flops) == words


def test_names_cannot_break_the_syntax():
    assert text('<b> & "x"') == "&lt;b&gt; &amp; &quot;x&quot;"
    assert quoted('a "b"\\') == '"a \\"b\\"\\\\"'
