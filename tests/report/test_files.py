"""Files of pictures and graphs: whole or none, figures that can be summed, layers that hold what belongs to them."""

import json
import os
import subprocess

import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.view import view_of
from fusionlab.report.pictures import files
from fusionlab.report.pictures.files import model_explorer, node_data, of_all_trips, write_graph

DOT = "digraph g { a -> b; }"


@pytest.fixture
def graphviz(monkeypatch):
    """Stands in for Graphviz."""
    monkeypatch.setattr(files.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("graphviz.Source.pipe", lambda self, format: f"<{format}/>".encode())


def test_with_graphviz_a_picture_too(tmp_path, graphviz):
    written = write_graph(DOT, tmp_path / "replay.svg")
    assert written.paths == (tmp_path / "replay.dot", tmp_path / "replay.svg")
    assert written.hint == ""
    assert (tmp_path / "replay.svg").read_text() == "<svg/>"


@pytest.mark.parametrize(("place", "error"), [("os.replace", InputError), ("graphviz.Source.pipe", OSError)])
def test_a_file_is_replaced_whole_or_not_at_all(place, error, tmp_path, monkeypatch, graphviz):
    (tmp_path / "replay.dot").write_text("old")
    monkeypatch.setattr(place, _fail)
    with pytest.raises(error, match="disk full"):
        write_graph(DOT, tmp_path / "replay.dot")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"replay.dot": "old"}


@pytest.mark.parametrize("out", [".", "/", "..", "there", "there.svg", "there.dot", "replay.dot"])
def test_a_directory_is_no_place_for_a_picture(out, tmp_path, monkeypatch, graphviz):
    monkeypatch.chdir(tmp_path)
    for name in ("there", "there.svg", "there.dot", "replay.svg"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="is a directory; give") as caught:
        write_graph(DOT, out)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["replay.svg", "there", "there.dot", "there.svg"]


def test_what_graphviz_says_about_a_bad_graph_is_kept(tmp_path):
    if files.shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed")
    with pytest.raises(subprocess.CalledProcessError, match="syntax error"):
        write_graph("digraph {", tmp_path / "bad")


def _fail(*arguments, **named):
    raise OSError("disk full")


@pytest.fixture(scope="module")
def operations(ferminet):
    flat = view_of(ferminet.parse())
    return of_all_trips(graph(flat), flat)


def test_figures_of_operations_sum_to_those_of_the_program(ferminet, operations):
    cost = program_cost(ferminet)
    for name, whole in (("flops", cost.flops), ("bytes", cost.bytes)):
        results = json.loads(node_data({"operations": operations})[name])["operations"]["results"]
        assert sum(one["value"] for one in results.values()) == whole
        loops = {facts["parent"] for _, facts in operations.nodes(data=True)} - {""}
        assert loops
        assert not loops & set(results)


def test_what_a_loop_is_given_stands_in_its_layer(operations):
    (loop,) = {facts["parent"] for _, facts in operations.nodes(data=True)} - {""}
    (found,) = json.loads(model_explorer("m", {"operations": operations}))["graphs"]
    inside = [node["namespace"] for node in found["nodes"] if node["id"].startswith(f"{loop}/")]
    assert inside
    assert all(namespace.startswith(f"laplacian/{loop.replace('/', ' ')}") for namespace in inside)
