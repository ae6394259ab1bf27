"""The launch ledger: the counting rule on hand-made lists, and on what XLA makes of small programs."""

import jax
import jax.numpy as jnp
import pytest

from fusionlab.codegen.compile import Compiled, Memory, compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.program import Program
from fusionlab.ledger.footprint import Footprint, buffers, footprint, peak_bytes
from fusionlab.ledger.ledger import bytes_accessed, count_launches, launches
from tests.optional_packages import needs_the_cuda_plugin

SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)


def program_of(function, *arguments, platform="cuda"):
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,))
    return Program.from_module(lowered.compiler_ir("stablehlo"), name="tiny", provenance="a test", platform=platform)


def on_a100(function, *arguments, **options):
    return compile_program(program_of(function, *arguments), load_target("a100"), **options)


def by_hand(hlo, sequence, names):
    """A Compiled record of texts; ``names`` maps thunk ids to HLO names."""
    metadata = "".join(
        f'thunk_metadata {{\n  thunk_info {{\n    profile_annotation: "{name}"\n    thunk_id: {id_}\n  }}\n}}\n'
        for id_, name in names.items()
    )
    return Compiled("hand", load_target("a100"), hlo, sequence, metadata, Memory(1, 2, 3, 0), 0.0, {}, "")


LOOPS = """HloModule m, is_scheduled=true

%fused (p: f32[8]) -> f32[8] {{
  %p = f32[8]{{0}} parameter(0)
  ROOT %t = f32[8]{{0}} tanh(%p)
}}

%in_body (ib: f32[8]) -> f32[8] {{
  %ib = f32[8]{{0}} parameter(0)
  ROOT %kernel = f32[8]{{0}} fusion(%ib), kind=kLoop, calls=%fused
}}

%always (c: f32[8]) -> pred[] {{
  %c = f32[8]{{0}} parameter(0)
  ROOT %test = pred[] constant(true)
}}

%outer_body (ob: f32[8]) -> f32[8] {{
  %ob = f32[8]{{0}} parameter(0)
  %inner = f32[8]{{0}} while(%ob), condition=%always, body=%in_body, backend_config={{"known_trip_count":{{"n":"5"}}}}
  ROOT %saved = f32[8]{{0}} copy(%inner)
}}

ENTRY %main (x: f32[8]) -> f32[8] {{
  %x = f32[8]{{0}} parameter(0)
  %first = f32[8]{{0}} fusion(%x), kind=kLoop, calls=%fused
  ROOT %outer = f32[8]{{0}} while(%first), condition=%always, body=%outer_body{outer_config}
}}
"""
LOOPS_SEQUENCE = """\
001: kCustomKernel [source] first
002: kMemset32BitValue [source] zero
003: kWhile [source]
condition:
    004: kCustomKernel [source] test
  body:
    005: kWhile [source]
condition:
        006: kCustomKernel [source] test
      body:
        007: kCustomKernel [source] kernel
        008: kWaitForStreams [source] wait
    009: kCopy [source] saved
"""
LOOPS_NAMES = {1: "first", 3: "outer", 4: "test", 5: "inner", 6: "test", 7: "kernel", 9: "saved"}


def loops(outer_config):
    return by_hand(LOOPS.format(outer_config=outer_config), LOOPS_SEQUENCE, LOOPS_NAMES)


def test_bodies_count_times_trips_and_known_conditions_never():
    counts = count_launches(loops(', backend_config={"known_trip_count":{"n":"7"}}'))
    assert (counts.dynamic_launches, counts.static_launches) == (1 + 7 * 5, 4)
    assert (counts.dynamic_copies, counts.static_copies) == (1 + 7, 2)
    assert (counts.unknown_trip_loops, counts.conditionals) == (0, 0)
    assert counts.launch_source == "xla thunk sequence"


def test_an_unknown_loop_is_one_trip_with_its_condition_and_is_reported():
    counts = count_launches(loops(""))
    assert counts.dynamic_launches == 1 + 1 + 5
    assert counts.dynamic_copies == 1 + 1 + 1  # the memset, the copy, and the verdict that goes to the host
    assert (counts.unknown_trip_loops, counts.static_copies) == (1, 2)


def test_a_thunk_list_of_another_format_falls_back_to_the_schedule_and_says_so(caplog):
    compiled = by_hand(LOOPS.format(outer_config=""), "launch everything\n", {})
    counts = count_launches(compiled)
    assert (counts.launch_source, counts.dynamic_launches) == ("scheduled hlo", 1 + 5)
    assert "expected 'NNN: kKind [..]'" in caplog.text


def test_sites_know_their_loops_and_their_bytes():
    sites = {site.hlo_name: site for site in launches(loops(', backend_config={"known_trip_count":{"n":"7"}}'))}
    kernel = sites["kernel"]
    assert (kernel.trip_count, kernel.static, kernel.dynamic, kernel.is_copy) == (35, 1, 35, False)
    assert (kernel.path, kernel.computation) == (("outer", "inner"), "in_body")
    assert (kernel.operand_bytes, kernel.result_bytes) == (32, 32)
    assert sites["saved"].is_copy
    assert sites["first"].path == ()


def test_bytes_leave_copies_out():
    assert bytes_accessed(loops(', backend_config={"known_trip_count":{"n":"7"}}')) == 64 + 35 * 64


def test_a_conditional_counts_its_longest_branch():
    hlo = "HloModule m\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)\n}\n"
    sequence = """\
001: kConditional [source]
  branch_0:
    002: kCustomKernel [source] a
  branch_1:
    003: kCustomKernel [source] b
    004: kFft [source] c
"""
    compiled = by_hand(hlo, sequence, {})
    counts = count_launches(compiled)
    assert (counts.dynamic_launches, counts.static_launches, counts.conditionals) == (2, 3, 1)
    assert [site.dynamic for site in launches(compiled)] == [0, 1, 1]


@pytest.fixture(scope="module")
def looped():
    def function(x, trips):
        return jax.lax.fori_loop(0, trips, lambda _, a: jnp.tanh(a @ a) * 0.5, x)

    return {trips: on_a100(lambda x, n=trips: function(x, n), SQUARE, dump=trips == 3) for trips in (3, 10)}


@needs_the_cuda_plugin
def test_what_xla_makes_of_a_loop_scales_with_its_trips(looped):
    three, ten = count_launches(looped[3]), count_launches(looped[10])
    per_trip = (ten.dynamic_launches - three.dynamic_launches) / 7
    assert per_trip == int(per_trip) >= 2  # a matrix product and a kernel, at least
    assert three.static_launches == ten.static_launches
    assert three.unknown_trip_loops == 0
    assert {site.kind for site in launches(looped[3])} >= {"kCublasLtMatmul", "kCustomKernel"}


@needs_the_cuda_plugin
def test_every_launch_finds_its_instruction(looped):
    assert all(site.computation for site in launches(looped[3]))


@needs_the_cuda_plugin
def test_library_scratch_is_not_data(looped):
    product = next(site for site in launches(looped[3]) if site.kind == "kCublasLtMatmul")
    assert (product.operand_bytes, product.result_bytes) == (1024, 1024)


@needs_the_cuda_plugin
def test_nested_loops_and_a_loop_without_a_count():
    def function(x):
        nested = jax.lax.fori_loop(0, 4, lambda _, a: jax.lax.fori_loop(0, 6, lambda _, b: jnp.tanh(b @ b), a) + 1, x)
        return jax.lax.while_loop(lambda a: a.sum() > 0, jnp.sort, nested)

    compiled = on_a100(function, SQUARE)
    assert {site.trip_count for site in launches(compiled) if site.kind == "kCublasLtMatmul"} == {24}
    assert count_launches(compiled).unknown_trip_loops == 1


def test_the_cpu_is_counted_from_its_schedule():
    compiled = compile_program(
        program_of(lambda x: jax.lax.fori_loop(0, 3, lambda _, a: jnp.tanh(a @ a), x), SQUARE, platform="cpu"),
        load_target("cpu"),
    )
    counts = count_launches(compiled)
    assert counts.launch_source == "scheduled hlo"
    assert {site.trip_count for site in launches(compiled) if site.kind == "dot"} == {3}
    assert counts.dynamic_launches >= 6


@needs_the_cuda_plugin
def test_footprint_has_the_fields_of_the_contract_and_goes_to_json_and_back(looped):
    program = program_of(lambda x: jnp.tanh(x), SQUARE)
    record = footprint(program, looped[3], flops=12.0, walkers=16)
    assert set(record.to_json()) >= {
        "name", "target", "walkers", "static_launches", "dynamic_launches", "dynamic_copies", "temp_bytes",
        "argument_bytes", "flops", "bytes_accessed", "compile_s", "stablehlo_ops",
    }  # fmt: skip
    assert Footprint.from_json(record.to_json()) == record
    assert Footprint.from_json({**record.to_json(), "later": 1}) == record
    with pytest.raises(KeyError, match="temp_bytes"):
        Footprint.from_json({"name": "x", **{key: 0 for key in record.to_json() if key not in ("name", "temp_bytes")}})
    assert (record.target, record.stablehlo_ops, record.flops, record.walkers) == ("a100", 1, 12.0, 16)
    assert record.temp_bytes == looped[3].memory.temp_bytes > 0


@needs_the_cuda_plugin
def test_buffers_add_up(looped):
    memory, found = looped[3].memory, buffers(looped[3])
    assert peak_bytes(memory) == memory.argument_bytes + memory.output_bytes + memory.temp_bytes
    assert found[0].size_bytes == max(buffer.size_bytes for buffer in found)
    temporary = [buffer for buffer in found if buffer.is_temp]
    assert 0 < max(buffer.offset_bytes + buffer.size_bytes for buffer in temporary) <= memory.temp_bytes
    with pytest.raises(ValueError, match="without dump=True"):
        buffers(looped[10])
