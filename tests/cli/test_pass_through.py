"""What is not studied goes through ``apply`` byte by byte, and is named; other commands refuse it."""

import json

import jax
import pytest
from jax import export
from rich.console import Console

from fusionlab.cli.apply import pass_through
from fusionlab.cli.pipelines import passes_of
from fusionlab.cli.sources import load_program
from fusionlab.errors import NotStudied
from tests.cli.test_several_devices import GSPMD
from tests.foreign.test_foreign_programs import DONATED

SINE = "stablehlo.sine %y : tensor<4xf32>"
DYNAMIC_FUNCTION = "func.func private @any(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }"
ARITH = """func.func private @sum(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "in.mlir"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.mlir"


def module(body=SINE, other=""):
    return DONATED.replace("BODY", body).replace("OTHER", other)


def before_returning(lines):
    return module().replace("  return %r#1", f"{lines}  return %r#1")


UNTOUCHED = {
    "unknown": (module('"foo.bar"(%y) : (tensor<4xf32>) -> tensor<4xf32>'), "there is a foo.bar in @main, line 13"),
    "attribute": (
        module().replace("= 1 : i32}", "= #foo.bar<1>}", 1),
        "attribute #foo.bar (mhlo.num_partitions of builtin.module)",
    ),
    "arith": (module(other=ARITH), "there is a arith.addf in @sum, line 20"),
    "dynamic": (module(other=DYNAMIC_FUNCTION), "there is a tensor<?xf32> in @any"),
    "GSPMD": (GSPMD, "there is a custom call @SPMDFullToShardShape in @main"),
    "argument": (
        module().replace("%unused: tensor<7xf32>", "%unused: !stablehlo.token"),
        "argument 2 of @main has type !stablehlo.token",
    ),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_it_comes_out_as_it_went_in(name, cli, path, out):
    content, named = UNTOUCHED[name]
    path.write_text(content)
    pipeline = ("--pipeline", "licm,batch-replay")
    result = cli("apply", path, *pipeline, "--out", out, "--json", "--quiet", code=0)
    assert out.read_bytes() == path.read_bytes()
    document = json.loads(result.stdout)
    assert [event["pass"] for event in document["events"]] == ["licm", "batch-replay"]
    assert all(named in event["declined"] and event["kind"] == "unsupported" for event in document["events"])
    assert all(event["location"] for event in document["events"])
    assert (document["before"], document["after"]) == (None, None)
    assert document["equivalence"]["verdict"] == "equal"
    assert named in result.stderr
    cli("apply", path, *pipeline, "--require-applied", "--quiet", code=1)
    if name == "GSPMD":  # what only reads a program takes it
        return
    refused = cli("replays", path, "--quiet", code=2)
    assert named in refused.stderr


LABELLED = (
    module(f'{SINE[:-15]} {{tt.n = 3 : i32, tt.where = #tt.where<[3], "x"> : i32}} : tensor<4xf32>')
    .replace(
        "%unused: tensor<7xf32>", '%unused: tensor<7xf32> {tt.kind = #tt.kind<input>, mhlo.layout_mode = "default"}'
    )
    .replace("= 1 : i32}", "= 1 : i32, tt.system = #tt.system<1>}", 1)
)


def test_labels_of_an_unknown_dialect_are_left_out_of_what_is_studied(cli, path, out, caplog):
    """``apply`` would lose them, and passes the file through."""
    path.write_text(LABELLED)
    cli("launches", path, "--target", "cpu", "--quiet", code=0)
    assert "in.mlir: attributes of unknown dialects are left out: tt.system, tt.kind, tt.where" in caplog.text
    program = load_program(str(path))
    assert "tt.n = 3" in program.text
    assert "mhlo.layout_mode" in program.text
    assert not any(name in program.text for name in ("tt.kind", "tt.where", "tt.system"))
    with pytest.raises(NotStudied, match=r"there is the attribute #tt\.system"):
        load_program(str(path), whole=True)
    cli("apply", path, "--pass", "batch-replay", "--out", out, "--quiet", code=0)
    assert out.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("tt.where = #tt.where", "mhlo.where = #tt.where", "attribute #tt.where (mhlo.where of stablehlo.sine)"),
        ("%unused: tensor<7xf32>", "%unused: tensor<7xf32, #tt.layout<1>>", "attribute #tt.layout"),
    ],
)
def test_what_may_change_the_meaning_is_not_left_out(written, instead, said, cli, path):
    path.write_text(LABELLED.replace(written, instead))
    assert said in cli("replays", path, "--quiet", code=2).stderr


def test_a_search_is_refused_too(as_json, path):
    path.write_text(module(other=DYNAMIC_FUNCTION))
    assert [event["pass"] for event in as_json("apply", path, "--pipeline", "best")["events"]] == ["best"]


def test_what_was_read_is_what_is_written(path, out):
    """The file may be another one by then, or gone."""
    path.write_text(module(other=DYNAMIC_FUNCTION))
    with pytest.raises(NotStudied) as found:
        load_program(str(path))
    path.unlink()
    _, code = pass_through(found.value, "batch-replay", passes_of(["batch-replay"]), Console(quiet=True), str(out))
    assert code == 0
    assert out.read_text() == module(other=DYNAMIC_FUNCTION)


def test_an_artifact_of_jax_export_comes_out_whole(cli, tmp_path, out):
    path = tmp_path / "saved.bin"
    (rows,) = export.symbolic_shape("rows")
    argument = jax.ShapeDtypeStruct((rows,), "float32")
    path.write_bytes(export.export(jax.jit(lambda x: x * 2), platforms=["cpu"])(argument).serialize())
    cli("apply", path, "--pass", "batch-replay", "--out", out, "--quiet", code=0)
    assert out.read_bytes() == path.read_bytes()


STRINGS = {
    "attribute": module().replace("= 1 : i32}", '= "tensor<?x4xf32>"}', 1),
    "operation": module(f'{SINE[:-15]} {{x.note = "tensor<?xf32> cublas"}} : tensor<4xf32>'),
    "location": module(f'{SINE} loc("tensor<9999999999999999999x?xf32> cuda_kernel")'),
    "symbol": module(other=ARITH.replace("arith.addf", "stablehlo.add").replace("@sum", '@"tensor<?xf32>cusolver_"')),
    "encoding": module(f'{SINE}\n  %z = stablehlo.cosine %y : (tensor<4xf32>) -> tensor<4xf32, "tensor<?xf32>">'),
}


@pytest.mark.parametrize("name", STRINGS)
def test_words_in_a_module_are_not_taken_for_its_types_and_calls(name, path):
    path.write_text(STRINGS[name])
    assert load_program(str(path)).platform == "any"


SHAPES = {
    "tuple": ("tuple<tensor<4xf32>, tensor<?xf32>>", "there is a tuple<tensor<4xf32>, tensor<?xf32>> in @far"),
    "bounded": ("tensor<?xf32, #stablehlo.bounds<4>>", "bounds<4>> in @far"),
    "unranked": ("tensor<*xf32>", "there is a tensor<*xf32> in @far"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_dynamic_shapes_are_found_in_every_type(name, cli, path):
    """Also in the signature of a function without a body."""
    type_, said = SHAPES[name]
    path.write_text(module(other=f"func.func private @far({type_})"))
    refused = cli("replays", path, "--quiet", code=2)
    assert said in refused.stderr


def test_a_dialect_that_cannot_even_be_parsed_is_named(cli, path, out):
    path.write_text(module("foo.bar %y : tensor<4xf32>"))
    result = cli("apply", path, "--pass", "batch-replay", "--out", out, "--quiet", code=2)
    assert "Dialect `foo' not found" in result.stderr
    assert not out.exists()


def test_what_xla_cannot_compile_goes_through_where_no_pass_changes_it(cli, as_json, path, out):
    call = "stablehlo.custom_call @write_it(%y) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>"
    path.write_text(module(call))
    words = ("apply", path, "--pass", "batch-replay", "--target", "cpu", "--out", out)
    document = as_json(*words)
    assert out.read_bytes() == path.read_bytes()
    assert document["before"] is None
    assert "custom call @write_it" in document["events"][0]["declined"]

    out.unlink()
    path.write_text(before_returning(f"  %w = {call}\n"))
    assert "write_it" in cli(*words, "--quiet", code=2).stderr
    assert not out.exists()


def test_a_program_that_feeds_a_host_is_not_run_by_a_check(cli, path):
    """It would run until the limit of time: nobody takes what it gives."""
    outfeed = (
        "  %t = stablehlo.after_all : !stablehlo.token\n"
        '  %u = "stablehlo.outfeed"(%r#1, %t) {outfeed_config = ""} '
        ": (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token\n"
    )
    path.write_text(before_returning(outfeed))
    result = cli("check", path, path, "--quiet", code=1)
    assert "not-checked" in result.stdout
    assert "stablehlo.outfeed waits for another side" in result.stdout
