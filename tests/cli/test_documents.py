"""docs/json.md against the commands: every field that one prints is on the page, and no other."""

import re
from pathlib import Path

import click
import jax
import pytest

from fusionlab import __version__
from fusionlab.cli import VERBS, main
from tests.optional_packages import needs_the_cuda_plugin

ROOT = Path(__file__).parents[2]


def sections():
    """The fields in the tables of the page, by heading."""
    parts = re.split(r"^## (.*)$", (ROOT / "docs" / "json.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        head: {name for row in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE) for name in re.findall("`(.*?)`", row)}
        for head, text in zip(parts[::2], parts[1::2], strict=True)
    }  # fmt: skip


CONDITIONAL = {
    "apply": {"diff", "search"},
    "bisect": {"application", "applications", "location", "worst_walker", "ops_before", "ops_after"},
    "launches": {"targets", "kernels"},
    "explain": {"kernel", "members", "not_fused_with_readers", "not_fused_with_producers", "notes"},
    "memory": {"by", "held_by"},
    "roofline": {"targets"},
    "clusters": {"link_bytes_per_s", "sync_us"},
    "drift": {"deleted", "incomplete", "left"},
    "kernels": {"what_if"},
}
"""Fields that only some options or endings lead to."""
OPTIONS = """
apply FILE --pass batch-replay --target cpu
check FILE --pass batch-replay --target cpu --no-oracles
bisect FILE --pass batch-replay --target cpu
dump FILE --target cpu
launches FILE --target cpu
memory FILE --target cpu
diff FILE FILE --target cpu
roofline FILE --target cpu
clusters FILE --target cpu
replays FILE --target cpu
graph FILE --target cpu --out graph.dot
study FILE --pass batch-replay --target cpu -o study
compare RECORDS
paper --no-run
"""
WITHOUT_FIELDS = {"passes", "models", "completion", "bench"}


HEAD = sections()["All documents"]


def fields_of(verb, *, nested=False):
    """The fields of a document's own on the page, or the ``nested`` ones, which have a dot."""
    return {name for name in sections()[verb] if ("." in name) == nested}


def test_every_command_is_on_the_page():
    assert set(sections()) - {"All documents"} == set(VERBS) - WITHOUT_FIELDS | {"bench"}


@pytest.mark.parametrize("command", OPTIONS.strip().split("\n"))
def test_the_fields_are_those_of_the_page(command, replay_file, as_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"FILE": replay_file, "RECORDS": ROOT / "studies" / "bench"}
    verb, *words = command.split()
    document = as_json(verb, *(places.get(word, word) for word in words))
    assert set(document) == HEAD | fields_of(verb) - CONDITIONAL.get(verb, set())
    assert document["schema"] == ("fusionlab-ledger-1" if verb == "launches" else f"fusionlab-{verb}-1")
    assert document["fusionlab"] == __version__
    assert "jaxlib" in document["versions"] or verb == "paper"  # of what was measured
    assert document["target"] == ("cpu" if "cpu" in words and verb not in ("diff", "study") else None)


@needs_the_cuda_plugin
def test_the_fields_of_lost_sparsity(pooled_file, as_json):
    """On the page in the rows of ``sparsity`` and ``lost``; the time is that of the target's roofline."""
    document = as_json("apply", pooled_file, "--pass", "sparsify-directions", "--target", "a100", "--unchecked")
    [found] = [event["sparsity"] for event in document["events"]]
    inside = {f"sparsity.{name}" for name in found} | {f"lost.{name}" for name in found["lost"][0]}
    assert fields_of("apply", nested=True) == inside
    assert all(one["model_us"] > 0 for one in found["lost"])


@needs_the_cuda_plugin
def test_the_fields_of_explain(replay_file, as_json):
    document = as_json("explain", replay_file, "--target", "a100")
    assert set(document) == HEAD | sections()["explain"] - CONDITIONAL["explain"]
    kernel = as_json("launches", replay_file, "--target", "a100")["rows"][0]["name"]
    found = as_json("explain", replay_file, "--target", "a100", "--kernel", kernel)
    assert set(found) == HEAD | {"name"} | CONDITIONAL["explain"]


@needs_the_cuda_plugin
def test_the_fields_of_kernels(replay_file, as_json):
    document = as_json("kernels", replay_file, "--target", "a100")
    assert set(document) == HEAD | sections()["kernels"] - CONDITIONAL["kernels"]
    asked = as_json("kernels", replay_file, "--target", "a100", "--what-if", "bandwidth_gb_s=4800")
    assert set(asked) == HEAD | sections()["kernels"]
    assert (document["schema"], document["target"]) == ("fusionlab-kernels-1", "a100")


@needs_the_cuda_plugin
def test_the_fields_of_drift(replay_file, as_json, tmp_path, monkeypatch):
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path))
    document = as_json("drift", replay_file, "--jax", jax.__version__)
    assert set(document) == HEAD | sections()["drift"] - CONDITIONAL["drift"]
    assert (document["schema"], document["target"]) == ("fusionlab-drift-1", "a100")
    assert set(as_json("drift", "--clean")) == HEAD | CONDITIONAL["drift"]


def test_the_fields_of_corpus(as_json, monkeypatch):
    monkeypatch.chdir(ROOT)
    document = as_json("corpus", "list")
    assert set(document) == HEAD | sections()["corpus"]
    assert (document["schema"], document["target"]) == ("fusionlab-corpus-1", None)


def test_the_optional_fields_are_on_the_page():
    for verb, fields in CONDITIONAL.items():
        assert fields <= sections()[verb]


@pytest.mark.parametrize("name", VERBS)
def test_a_help_fits_its_lines(name):
    """At 80 columns the list of commands cuts no sentence, and at 100 no option takes more than two lines."""
    context = click.Context(main, info_name="fusionlab", terminal_width=80, max_content_width=80)
    listed = {line.split()[0]: line for line in main.get_help(context).splitlines() if line.startswith("  ")}
    assert not listed[name].endswith("...")
    command = main.get_command(context, name)
    wide = click.Context(command, info_name=name, parent=context, terminal_width=100, max_content_width=100)
    lines = command.get_help(wide).splitlines()
    assert max(map(len, lines)) <= 100
    assert not re.search(r"\w-$", "\n".join(lines), re.MULTILINE), "a word is broken"
    options = lines[lines.index("Options:") + 1 :]
    for first, second, third in zip(options, options[1:], options[2:], strict=False):
        if first.startswith("  -") and second.startswith("   "):
            assert not third.startswith("   "), first
