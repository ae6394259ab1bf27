"""The launch ledger: the counting rule on hand-made lists, and on what XLA makes of small programs."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.footprint import footprint, peak_bytes
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.ledger.ledger import count_launches, launches
from tests.ledger.by_hand import compiled_of, text_of
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.versions

PRODUCTS = {"kCublasLtMatmul", "custom-call"}
"""XLA's thunk, and what the scheduled HLO has where XLA writes no names of thunks (before JAX 0.10)."""
SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)


@pytest.fixture(scope="module")
def on_a100(lowered):
    """``on_a100(function, *arguments)``: the compiled function."""
    return lambda function, *given: compile_program(lowered(function, *given, platform="cuda"), load_target("a100"))


LOOPS_NAMES = {1: "first", 3: "outer", 4: "test", 5: "inner", 6: "test", 7: "kernel", 9: "saved"}


def loops(outer_trips=None):
    """A loop of five trips in another one, whose trips are known if given."""
    count = f', backend_config={{"known_trip_count":{{"n":"{outer_trips}"}}}}' if outer_trips else ""
    hlo = text_of("nested_loops.hlo").replace("body=%outer_body", "body=%outer_body" + count)
    return compiled_of(hlo, text_of("nested_loops.thunks"), LOOPS_NAMES)


def test_bodies_count_times_trips_and_known_conditions_never():
    counts = count_launches(loops(7))
    assert (counts.dynamic_launches, counts.static_launches) == (1 + 7 * 5, 4)
    assert (counts.dynamic_copies, counts.static_copies) == (1 + 7, 2)
    assert (counts.unknown_trip_loops, counts.conditionals) == (0, 0)
    assert counts.launch_source == "xla thunk sequence"
    assert counts.bytes_accessed == 64 + 35 * 64  # copies are left out


def test_an_unknown_loop_is_one_trip_with_its_condition_and_is_reported():
    counts = count_launches(loops())
    assert counts.dynamic_launches == 1 + 1 + 5
    assert counts.dynamic_copies == 1 + 1 + 1  # the memset, the copy, and the verdict that goes to the host
    assert (counts.unknown_trip_loops, counts.static_copies) == (1, 2)


@pytest.mark.parametrize(
    ("thunks", "why"),
    [
        ("launch everything\n", "expected 'NNN: kKind [..]'"),
        (
            "004: kKernel [source | sink] , kernel = k, profile_annotation = k\n",
            "names of kernels alone",
        ),
    ],
)
def test_a_thunk_list_of_another_format_falls_back_to_the_schedule_and_says_so(thunks, why, caplog):
    counts = count_launches(compiled_of(text_of("nested_loops.hlo"), thunks, {}))
    assert (counts.launch_source, counts.dynamic_launches) == ("scheduled hlo", 1 + 5)
    assert why in caplog.text


def test_sites_know_their_loops_and_their_bytes():
    sites = {site.hlo_name: site for site in launches(loops(7))}
    kernel = sites["kernel"]
    assert (kernel.trip_count, kernel.static, kernel.dynamic, kernel.is_copy) == (35, 1, 35, False)
    assert (kernel.path, kernel.computation) == (("outer", "inner"), "in_body")
    assert (kernel.operand_bytes, kernel.result_bytes) == (32, 32)
    assert sites["saved"].is_copy
    assert sites["first"].path == ()


def test_a_conditional_counts_its_longest_branch():
    hlo = "HloModule m\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8]{0} parameter(0)\n}\n"
    compiled = compiled_of(hlo, text_of("conditional.thunks"), {})
    counts = count_launches(compiled)
    assert (counts.dynamic_launches, counts.static_launches, counts.conditionals) == (2, 3, 1)
    sites = launches(compiled)
    assert [(site.dynamic, site.path) for site in sites] == [
        (0, ("thunk 1:branch_0",)), (1, ("thunk 1:branch_1",)), (1, ("thunk 1:branch_1",))
    ]  # fmt: skip


def test_conditionals_in_conditionals_are_counted_once_each():
    """A count that looked at both branches twice per level would never end."""
    depth = 60

    def computation(name, root):
        head = f"%{name} (p{name}: pred[]) -> pred[] {{\n  %p{name} = pred[] parameter(0)\n"
        return f"{head}  ROOT %r{name} = pred[] {root.replace('P', f'%p{name}')}\n}}\n\n"

    choice = "conditional(P, P, P), true_computation=%c{}, false_computation=%leaf"
    parts = [computation(name, "not(P)") for name in ("leaf", "c0")]
    parts += [computation(f"c{k}", choice.format(k - 1)) for k in range(1, depth)]
    parts.append("ENTRY " + computation("main", choice.format(depth - 1)))
    counts = count_launches(compiled_of("HloModule m, is_scheduled=true\n\n" + "".join(parts)))
    assert (counts.dynamic_launches, counts.conditionals) == (1, depth)


def test_a_product_fused_with_a_slice_of_its_weights_is_the_librarys_call():
    thunks = "000: kDynamicSliceFusion [source | sink] params=2\n    001: kCublasLtMatmul [source | sink] k\n"
    compiled = compiled_of(text_of("sliced_call.hlo"), thunks, {0: "sliced"})
    (site,) = launches(compiled)
    assert (site.hlo_name, site.computation, site.dynamic) == ("custom-call.3", "dynamic-slice-fusion", 1)
    assert (site.operand_bytes, site.result_bytes) == (4 * (64 * 8 + 8 * 256), 4 * 64 * 256)
    (row,) = launch_rows(compiled)
    assert (row.family, row.flops) == ("gemm", 2 * 64 * 8 * 256)


@pytest.fixture(scope="module")
def looped(on_a100):
    def function(x, trips):
        return jax.lax.fori_loop(0, trips, lambda _, a: jnp.tanh(a @ a) * 0.5, x)

    return {trips: on_a100(lambda x, n=trips: function(x, n), SQUARE) for trips in (3, 10)}


@needs_the_cuda_plugin
def test_what_xla_makes_of_a_loop_scales_with_its_trips(looped):
    three, ten = count_launches(looped[3]), count_launches(looped[10])
    per_trip = (ten.dynamic_launches - three.dynamic_launches) / 7
    assert per_trip == int(per_trip) >= 2  # a matrix product and a kernel, at least
    assert three.static_launches == ten.static_launches
    assert three.unknown_trip_loops == 0
    sites = launches(looped[3])
    kinds = {site.kind for site in sites}
    assert kinds & PRODUCTS
    assert kinds & {"kCustomKernel", "fusion"}
    assert all(site.computation for site in sites)
    product = next(site for site in sites if site.kind in PRODUCTS)
    assert (product.operand_bytes, product.result_bytes) == (1024, 1024)  # without the library's scratch


@needs_the_cuda_plugin
def test_nested_loops_and_a_loop_without_a_count(on_a100):
    def function(x):
        nested = jax.lax.fori_loop(0, 4, lambda _, a: jax.lax.fori_loop(0, 6, lambda _, b: jnp.tanh(b @ b), a) + 1, x)
        return jax.lax.while_loop(lambda a: a.sum() > 0, jnp.sort, nested)

    compiled = on_a100(function, SQUARE)
    assert {site.trip_count for site in launches(compiled) if site.kind in PRODUCTS} == {24}
    assert count_launches(compiled).unknown_trip_loops == 1


def test_the_cpu_is_counted_from_its_schedule_without_an_executable(lowered):
    program = lowered(lambda x: jax.lax.fori_loop(0, 3, lambda _, a: jnp.tanh(a @ a), x), SQUARE)
    compiled = dataclasses.replace(compile_program(program, load_target("cpu")), executable=None)
    counts = count_launches(compiled)
    assert counts.launch_source == "scheduled hlo"
    assert {site.trip_count for site in launches(compiled) if site.kind == "dot"} == {3}
    assert counts.dynamic_launches >= 6


@needs_the_cuda_plugin
def test_footprint_has_the_fields_of_the_contract(looped, lowered):
    record = footprint(lowered(jnp.tanh, SQUARE, platform="cuda"), looped[3], flops=12.0, walkers=16)
    assert set(record.to_json()) >= {
        "name", "target", "walkers", "static_launches", "dynamic_launches", "dynamic_copies", "temp_bytes",
        "argument_bytes", "flops", "bytes_accessed", "compile_s", "stablehlo_ops",
    }  # fmt: skip
    assert (record.target, record.stablehlo_ops, record.flops, record.walkers) == ("a100", 1, 12.0, 16)
    memory = looped[3].memory
    assert record.temp_bytes == memory.temp_bytes > 0
    assert peak_bytes(memory) == memory.argument_bytes + memory.output_bytes + memory.temp_bytes
