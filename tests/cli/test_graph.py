"""``graph``: which files a view gives, and what is refused."""

import json

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from jax import lax

from fusionlab.report.pictures import files

TINY = ("--model", "ferminet", "--program", "log-psi", "--molecule", "LiH", "--walkers", 4, "--size", "tiny")


@pytest.fixture
def no_graphviz(monkeypatch):
    monkeypatch.setattr(files.shutil, "which", lambda name: None)


@pytest.fixture
def draw(cli, replay_file):
    """``draw(path, *words)``: the command on a file, with its stages into ``path``."""
    return lambda path, *words: cli("graph", replay_file, "--view", "stages", "--out", path, *words, code=0)


@pytest.mark.parametrize("suffix", ["", ".png", ".pdf", ".svg"])
def test_without_graphviz_there_is_the_dot_file_and_how_to_go_on(suffix, no_graphviz, draw, tmp_path):
    result = draw(tmp_path / "out" / f"p{suffix}")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["p.dot"]
    assert f"dot -T{suffix[1:] or 'svg'}" in result.stderr
    assert str(tmp_path / "out" / "p.dot") in result.stderr
    assert "apt-get install graphviz" in result.stderr


def test_model_explorer_reads_both_graphs_and_node_data(tmp_path, cli):
    result = cli("graph", *TINY, "--view", "stages", "--out", tmp_path / "p.json", "--json", "--quiet", code=0)
    assert result.stderr == ""
    names = {path.rpartition("/")[2] for path in json.loads(result.stdout)["files"]}
    assert names == {"p.json", "p.bytes.json", "p.flops.json", "p.launches.json", "p.time_us.json"}
    collection = json.loads((tmp_path / "p.json").read_text())
    graphs = {one["id"]: {node["id"]: node for node in one["nodes"]} for one in collection["graphs"]}
    assert set(graphs) == {"operations", "launches"}
    for nodes in graphs.values():
        assert all(edge["sourceNodeId"] in nodes for node in nodes.values() for edge in node["incomingEdges"])
    assert any("stage_b/interaction_0" in node["namespace"] for node in graphs["operations"].values())
    for name in ("launches", "time_us"):
        data = json.loads((tmp_path / f"p.{name}.json").read_text())
        assert set(data) == {"launches"}  # of an operation alone nobody knows them
        assert set(data["launches"]["results"]) <= set(graphs["launches"])
        assert all(one["value"] > 0 for one in data["launches"]["results"].values())


def test_graphml_can_be_read_back(draw, tmp_path):
    assert draw(tmp_path / "p.graphml", "--quiet").stderr == ""  # drawing a large file is progress
    read = nx.read_graphml(tmp_path / "p.graphml")
    assert {"sine", "while"} <= {facts["name"].removeprefix("stablehlo.") for _, facts in read.nodes(data=True)}
    assert all(data["bytes"] >= 0 for *_, data in read.edges(data=True))


def test_before_and_after_stand_side_by_side(draw, tmp_path, no_graphviz):
    assert "draw: stages of " in draw(tmp_path / "p.svg", "--pass", "batch-replay").stderr
    text = (tmp_path / "p.dot").read_text()
    assert 'label="before"' in text
    assert 'label="after batch-replay"' in text


def laplacian(x):
    """A sum over directions, one trip each."""
    _, push = jax.linearize(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3)), x)
    return lax.fori_loop(0, 5, lambda k, total: total + push(jnp.eye(5)[k])[k], 0.0)


def test_the_default_view_is_the_replay_where_there_is_one(as_json, lowered, recurrence_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "energy.mlir").write_text(lowered(laplacian, np.ones(5, np.float32)).text)
    assert as_json("graph", "energy.mlir")["view"] == "replay"
    assert as_json("graph", recurrence_file)["view"] == "scopes"
    assert {path.name for path in tmp_path.glob("*.dot")} == {"energy-replay.dot", "recurrence-scopes.dot"}


def test_constants_are_drawn_on_request(draw, tmp_path, no_graphviz):
    draw(tmp_path / "few.dot", "--depth", "1", "--quiet")
    draw(tmp_path / "all.dot", "--depth", "1", "--constants", "--quiet")
    hidden = "constants and broadcasts (--constants draws them)"
    assert hidden in (tmp_path / "few.dot").read_text()
    assert hidden not in (tmp_path / "all.dot").read_text()
