"""What is not studied goes through ``apply`` byte by byte, and is named; other commands refuse it."""

import json

import pytest

from tests.foreign.test_foreign_programs import DONATED

SINE = "stablehlo.sine %y : tensor<4xf32>"
ANY = """func.func private @any(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.sine %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}"""
ARITH = """func.func private @sum(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def module(body=SINE, other=""):
    return DONATED.replace("BODY", body).replace("OTHER", other)


def before_returning(lines):
    return module().replace("  return %r#1", f"{lines}  return %r#1")


UNTOUCHED = {
    "unknown": (module('"foo.bar"(%y) : (tensor<4xf32>) -> tensor<4xf32>'), "there is a foo.bar in @main, line 13"),
    "attribute": (module().replace("= 1 : i32}", "= #foo.bar<1>}", 1), "an attribute or a type of an unknown dialect"),
    "arith": (module(other=ARITH), "there is a arith.addf in @sum, line 20"),
    "dynamic": (module(other=ANY), "there is a tensor<?xf32> in @any"),
    "argument": (
        module().replace("%unused: tensor<7xf32>", "%unused: !stablehlo.token"),
        "argument 2 of @main has type !stablehlo.token",
    ),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_it_comes_out_as_it_went_in(name, cli, tmp_path):
    content, named = UNTOUCHED[name]
    path, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    path.write_text(content)
    pipeline = ("--pipeline", "hoist-loop-invariants,batch-replay")
    result = cli("apply", path, *pipeline, "--out", out, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert out.read_bytes() == path.read_bytes()
    document = json.loads(result.stdout)
    assert [event["pass"] for event in document["events"]] == ["hoist-loop-invariants", "batch-replay"]
    assert all(named in event["declined"] and event["kind"] == "unsupported" for event in document["events"])
    assert all(event["location"] for event in document["events"])
    assert (document["before"], document["after"]) == (None, None)
    assert document["equivalence"]["verdict"] == "equal"
    assert named in result.stderr
    assert cli("apply", path, *pipeline, "--require-applied", "--quiet").exit_code == 1
    refused = cli("replays", path, "--quiet")
    assert refused.exit_code == 2
    assert named in refused.stderr


def test_a_search_is_refused_too(cli, tmp_path):
    path = tmp_path / "in.mlir"
    path.write_text(module(other=ANY))
    result = cli("apply", path, "--pipeline", "best", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert [event["pass"] for event in json.loads(result.stdout)["events"]] == ["best"]


def test_a_dialect_that_cannot_even_be_parsed_is_named(cli, tmp_path):
    path, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    path.write_text(module("foo.bar %y : tensor<4xf32>"))
    result = cli("apply", path, "--pass", "batch-replay", "--out", out, "--quiet")
    assert result.exit_code == 2
    assert "Dialect `foo' not found" in result.stderr
    assert not out.exists()


def test_what_xla_cannot_compile_goes_through_where_no_pass_changes_it(cli, tmp_path):
    path, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    call = "stablehlo.custom_call @write_it(%y) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>"
    path.write_text(module(call))
    result = cli("apply", path, "--pass", "batch-replay", "--target", "cpu", "--out", out, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert out.read_bytes() == path.read_bytes()
    document = json.loads(result.stdout)
    assert document["before"] is None
    assert "custom call @write_it" in document["events"][0]["declined"]

    out.unlink()
    path.write_text(before_returning(f"  %w = {call}\n"))
    beside = cli("apply", path, "--pass", "batch-replay", "--target", "cpu", "--out", out, "--quiet")
    assert beside.exit_code == 2
    assert "write_it" in beside.stderr
    assert not out.exists()


def test_a_program_that_feeds_a_host_is_not_run_by_a_check(cli, tmp_path):
    """It would run until the limit of time: nobody takes what it gives."""
    path = tmp_path / "in.mlir"
    outfeed = (
        "  %t = stablehlo.after_all : !stablehlo.token\n"
        '  %u = "stablehlo.outfeed"(%r#1, %t) {outfeed_config = ""} '
        ": (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token\n"
    )
    path.write_text(before_returning(outfeed))
    result = cli("check", path, path, "--quiet")
    assert result.exit_code == 1
    assert "not-checked" in result.stdout
    assert "stablehlo.outfeed waits for another side" in result.stdout
