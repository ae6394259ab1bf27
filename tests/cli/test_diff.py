"""``fusionlab diff``: two spellings of one program, saved ledgers, limits, Markdown, and what is no input."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tests.optional_packages import needs_the_cuda_plugin

pytestmark = needs_the_cuda_plugin


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def layer(x, w):
    with jax.named_scope("layer"):
        return jnp.tanh(x @ w)


def scanned(ws, x):
    return lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0]


def unrolled(ws, x):
    for i in range(ws.shape[0]):
        x = layer(x, ws[i])
    return x


def heavy(x):
    with jax.named_scope("heavy"):
        return jnp.sin(x @ x.T) @ x


def light(x):
    with jax.named_scope("light"):
        return jnp.cos(x) * 2


def with_cond(p, x):
    return lax.cond(p, heavy, light, x)


def with_select(p, x):
    return jnp.where(p, heavy(x), light(x))


def value(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def by_loop(w, x):
    def local(x):
        _, product = jax.linearize(jax.grad(lambda x: value(w, x)), x)
        eye = jnp.eye(x.shape[0], dtype=x.dtype)
        return lax.fori_loop(0, x.shape[0], lambda i, t: t + product(eye[i])[i], jnp.zeros((), x.dtype))

    return jax.vmap(local)(x)


def by_hessian(w, x):
    return jax.vmap(lambda x: jnp.trace(jax.hessian(lambda x: value(w, x))(x)))(x)


def whole(w, x):
    with jax.named_scope("network"):
        return jnp.sum(jnp.tanh(x @ w) @ w.T, 1)


def chunked(w, x):
    return lax.map(lambda c: whole(w, c), x.reshape(4, -1, x.shape[-1])).reshape(-1)


def fused(x):
    with jax.named_scope("inner"):
        y = jnp.sin(x)
    with jax.named_scope("outer"):
        return jnp.exp(y) * 2


def apart(x):
    with jax.named_scope("inner"):
        y = lax.optimization_barrier(jnp.sin(x))
    with jax.named_scope("outer"):
        return jnp.exp(y) * 2


PROGRAMS = {
    "one kernel against two": (fused, apart, (shape(1024, 256),)),
    "scan against unrolled layers": (scanned, unrolled, (shape(8, 64, 64), shape(128, 64))),
    "cond against select": (with_cond, with_select, (shape(dtype=jnp.bool_), shape(128, 64))),
    "loop against Hessian": (by_loop, by_hessian, (shape(6, 32), shape(64, 6))),
    "chunked against whole": (chunked, whole, (shape(64, 64), shape(512, 64))),
}


@pytest.fixture
def pair(tmp_path):
    """``pair(name)``: the paths of two programs, as exported for a GPU."""

    def export(name):
        before, after, arguments = PROGRAMS[name]
        paths = []
        for function in (before, after):
            path = tmp_path / f"{function.__name__}.bin"
            exported = jax.export.export(jax.jit(function), platforms=["cuda"])(*arguments)
            path.write_bytes(exported.serialize())
            paths.append(path)
        return paths

    return export


@pytest.mark.parametrize(
    ("name", "summary", "fewer", "why"),
    [
        ("scan against unrolled layers", "loops: 1 of 8 trips before, none after", True, "in a loop of 8 trips"),
        (
            "cond against select", "conditionals: 1 before, 0 after: both branches now run", False,
            "was in a branch of a conditional, which is not counted; it now always runs",
        ),
        ("loop against Hessian", "loops: 1 of 6 trips before, none after", True, "its loop of 6 trips is gone"),
        ("chunked against whole", "loops: 1 of 4 trips before, none after", True, "its loop of 4 trips is gone"),
    ],
)  # fmt: skip
def test_two_spellings_differ_for_a_reason(name, summary, fewer, why, pair, as_json):
    found = as_json("diff", *pair(name))
    launches = found["totals"]["launches"]
    assert (launches["after"] < launches["before"]) == fewer
    assert summary in found["summary"]
    assert any(why in sentence for one in found["changes"] for sentence in one["why"])
    changed = sum(one["launches"][1] - one["launches"][0] for one in found["changes"] if one["kind"] == "launch")
    assert changed == launches["after"] - launches["before"]
    assert all(one["source"].startswith("test_diff.py:") for one in found["changes"] if one["kind"] == "launch")


def test_an_op_that_left_a_fusion_is_said_with_xlas_reason(pair, as_json):
    paths = pair("one kernel against two")
    (new,) = as_json("diff", *paths)["changes"]
    assert (new["what"], new["label"], new["launches"]) == ("appeared", "inner/sin", [0, 1])
    moved, reason = new["why"]
    assert moved.startswith("its op was in ")
    assert reason.startswith("XLA keeps it apart: ")
    (gone,) = as_json("diff", *reversed(paths))["changes"]
    assert gone["what"] == "went"
    assert gone["why"][0].startswith("its op is now in ")


def test_saved_ledgers_are_compared_as_the_programs_are(pair, as_json, cli, tmp_path):
    before, after = pair("cond against select")
    saved = []
    for path in (before, after):
        document = as_json("launches", path)
        assert document["schema"] == "fusionlab-ledger-1"
        saved.append(tmp_path / f"{path.stem}.json")
        saved[-1].write_text(json.dumps({**document, "name": path.stem}))
    found = as_json("diff", *saved)
    assert found == as_json("diff", before, after)
    assert as_json("diff", saved[0], after)["totals"] == found["totals"]
    assert found["totals"]["temp_bytes"]["before"] > 0
    assert found["totals"]["refusals"]["after"] > 0


def test_limits_end_with_1_and_say_what_exceeds_them(pair, cli):
    paths = pair("cond against select")
    cli("diff", *paths, "--max-more-launches", 1, "--max-more-temp", "5%", code=0)
    result = cli("diff", *paths, "--max-more-launches", 0, "--quiet", code=1)
    assert "failed: +1 launches; --max-more-launches allows 0" in result.stdout
    found = json.loads(cli("diff", *reversed(paths), "--max-more-temp", "0", "--json", "--quiet", code=1).stdout)
    (failure,) = found["failures"]
    assert "bytes of temp memory" in failure


def test_markdown_is_for_a_pull_request(pair, cli):
    text = cli(
        "diff", *pair("scan against unrolled layers"), "--markdown", "--max-more-launches", "-100", code=1
    ).stdout
    first, *lines = text.splitlines()
    assert first.startswith("### scanned -&gt; unrolled on a100: ")
    assert "| launches | " in text
    assert any(line.startswith("- :x: ") and "allows -100" in line for line in lines)
    rows = [line for line in lines if line.startswith("| went")]
    assert rows
    assert all(line.count("|") == 6 for line in rows)


def test_the_same_program_twice_is_said_to_be_the_same(pair, cli):
    path, _ = pair("cond against select")
    result = cli("diff", path, path, "--max-more-launches", 0, "--max-more-temp", "0", "--quiet", code=0)
    assert "with_cond on a100: the same 3 launches, copies and memory" in result.stdout
    assert "the 0 largest" not in result.stdout


def test_a_program_beside_a_ledger_is_compiled_for_its_target(pair, as_json, tmp_path):
    path, _ = pair("cond against select")
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(as_json("launches", path, "--target", "h200")))
    found = as_json("diff", saved, path)
    assert found["same"]
    assert found["after"]["target"] == "h200"


def test_one_program_on_two_targets(pair, as_json):
    path, _ = pair("cond against select")
    found = as_json("diff", path, "--target", "a100,h200")
    assert (found["before"]["target"], found["after"]["target"]) == ("a100", "h200")
    assert "the targets differ: a100 and h200" in found["notes"]


def test_what_cannot_be_compared_is_said(pair, as_json, cli, tmp_path):
    path, other = pair("cond against select")
    saved, text = tmp_path / "saved.json", tmp_path / "text.hlo"
    saved.write_text(json.dumps(as_json("launches", path)))
    cli("dump", path, "--out", tmp_path / "dump", "--quiet", code=0)
    text.write_bytes((tmp_path / "dump" / "optimized-a100.hlo.txt").read_bytes())
    for words, message in (
        ((path,), "name two programs, or two targets for one"),
        ((path, other, "--target", "a100,h100,h200"), "a comparison has two sides; name one target or two"),
        ((saved, other, "--target", "h200"), "this ledger is of target a100, not h200"),
        ((path, tmp_path / "absent.mlir"), "absent.mlir: cannot be read"),
        ((path, other, "--max-more-temp", "lots"), "--max-more-temp lots: write a percentage or a size, as 5% or 1MiB"),
        ((path, text, "--max-more-temp", "5%"), "the temp memory of text is not known; give StableHLO, not HLO text"),
    ):
        result = cli("diff", *words, "--quiet", code=2)
        assert message in result.stderr
        assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    found = as_json("diff", path, text)
    assert found["totals"]["launches"] == {"before": 3, "after": 3}
    assert found["totals"]["temp_bytes"]["after"] is None
