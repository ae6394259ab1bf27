"""DOT text and files."""

import os
import subprocess

import pytest

from fusionlab.errors import InputError
from fusionlab.report.pictures import files
from fusionlab.report.pictures.dot import bytes_text, flops_text, quoted, text
from fusionlab.report.pictures.files import write_graph

DOT = "digraph g { a -> b; }"


def test_without_graphviz_only_the_dot_file_and_a_hint(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    written = write_graph(DOT, tmp_path / "out" / "replay")
    assert written.paths == (tmp_path / "out" / "replay.dot",)
    assert written.paths[0].read_text() == DOT
    assert "apt-get install graphviz" in written.hint
    assert "dot -Tsvg" in written.hint
    assert str(written.paths[0]) in written.hint


def test_with_graphviz_a_picture_too(tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("graphviz.Source.pipe", lambda self, format: f"<{format}/>".encode())
    written = write_graph(DOT, tmp_path / "replay.svg")
    assert written.paths == (tmp_path / "replay.dot", tmp_path / "replay.svg")
    assert written.hint == ""
    assert (tmp_path / "replay.svg").read_text() == "<svg/>"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "replay.dot").write_text("old")
    monkeypatch.setattr(os, "replace", _fail)
    with pytest.raises(InputError, match=r"replay\.dot: cannot be written: .*disk full"):
        write_graph(DOT, tmp_path / "replay.dot")
    assert os.listdir(tmp_path) == ["replay.dot"]
    assert (tmp_path / "replay.dot").read_text() == "old"


@pytest.mark.parametrize("out", [".", "/", "..", "there", "there.svg", "there.dot"])
def test_a_directory_is_no_place_for_a_picture(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("graphviz.Source.pipe", lambda self, format: f"<{format}/>".encode())
    for name in ("there", "there.svg", "there.dot"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="is a directory; give") as caught:
        write_graph(DOT, out)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["there", "there.dot", "there.svg"]


def test_no_dot_file_next_to_a_directory_in_the_svg_files_place(tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("graphviz.Source.pipe", lambda self, format: f"<{format}/>".encode())
    (tmp_path / "replay.svg").mkdir()
    with pytest.raises(InputError, match=r"replay\.svg: is a directory"):
        write_graph(DOT, tmp_path / "replay.dot")
    assert os.listdir(tmp_path) == ["replay.svg"]


def test_a_graph_that_cannot_be_rendered_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("graphviz.Source.pipe", _fail)
    with pytest.raises(OSError, match="disk full"):
        write_graph(DOT, tmp_path / "replay.dot")
    assert os.listdir(tmp_path) == []


def test_what_graphviz_says_about_a_bad_graph_is_kept(tmp_path):
    if files.shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    with pytest.raises(subprocess.CalledProcessError, match="syntax error"):
        write_graph("digraph {", tmp_path / "bad")


def _fail(*arguments, **named):
    raise OSError("disk full")


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
