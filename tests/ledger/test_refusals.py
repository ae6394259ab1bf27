"""XLA's fusion dump as records, and joined to the kernels of the final program."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.fusion_steps import SLOWER, FusionStep, read_labels, read_steps
from fusionlab.ledger.refusals import Coverage, boundary_bytes, refusals
from tests.ledger.by_hand import compiled_of, text_of
from tests.optional_packages import needs_the_cuda_plugin


def step(kind, **fields):
    """One step of the dump in text form."""
    lines = "".join(f"    {name}: {json.dumps(value)}\n" for name, value in fields.items())
    return f"fusion_steps {{\n  {kind} {{\n{lines}  }}\n}}\n"


DUMP = text_of("fusion_steps.textproto")


@pytest.fixture(scope="module")
def compiled():
    at_fusion = text_of("fused_step.hlo")
    final = at_fusion.replace("%big", "%loop_tanh_fusion").replace("%last", "%loop_tanh_fusion.1")
    return compiled_of(final, priority_fusion=DUMP, fused_hlo=at_fusion)


def test_the_last_step_of_a_producer_that_is_still_there_counts():
    assert read_steps(DUMP) == (
        FusionStep("big", SLOWER, 4.25, 9.0),
        FusionStep("dot", "the producer is not fusible"),
        FusionStep("gone", "not fusing because there are only bitcast users"),
    )


def test_refusals_are_found_again_in_the_final_program(compiled):
    given = refusals(compiled)
    found = {one.kernel: one for one in given.found}
    assert set(found) == {"loop_tanh_fusion", "dot"}  # "gone" is in no module any more
    coverage = given.coverage
    assert (coverage.producers, coverage.joined, coverage.not_joined, coverage.merged) == (2, 2, 0, 0)
    assert (coverage.launches, coverage.launches_refused) == (3, 2)
    slower = found["loop_tanh_fusion"]
    assert slower.consumers == ("loop_tanh_fusion.1",)
    assert (slower.us_unfused, slower.us_fused, slower.stage) == (4.25, 9.0, "B")
    assert slower.op_name == "jit(f)/stage_e/jvp(jvp(stage_b))/tanh"
    assert found["dot"].cause == "the producer is not fusible: library call __cublas$lt$matmul"
    assert found["dot"].result_bytes == 4096  # without cuBLAS's scratch
    bandwidth = compiled.target.peaks.memory_bytes_per_s
    assert slower.boundary_us == pytest.approx(1 + 1e6 * 2 * 4096 / bandwidth)


LABELS = """\
Not fusing |tanh| into |mul| as expensive producer would be duplicated ; multi-output fusion not supported by this pass
Not fusing |dot| into |tanh| as Producer is not loop-fusible. ; multi-output fusion not supported by this pass
About to fuse |add| into |mul| inside InstructionFusion with may_duplicate=1
Fused |add| into |add_mul_fusion| inside InstructionFusion with may_duplicate=1
Not fusing |other| into |add_mul_fusion| as Code duplication too high ; no
About to fuse |cos| into |tanh| inside InstructionFusion with may_duplicate=1
Fused |cos| into |cos_tanh_fusion| inside InstructionFusion with may_duplicate=1
Not fusing |dot| into |add_mul_fusion| as Producer is not loop-fusible. ; no
About to fuse |other| into |add_mul_fusion| inside InstructionFusion with may_duplicate=1
Fused |other| into |add_mul_fusion| inside InstructionFusion with may_duplicate=1
Unnamed state"""


def test_pairs_of_the_cpu_follow_renamed_fusions_and_have_one_refusal_per_reason():
    assert set(read_labels(LABELS)) == {
        FusionStep("cos_tanh_fusion", "expensive producer would be duplicated", consumers=("add_mul_fusion",)),
        FusionStep("dot", "Producer is not loop-fusible", consumers=("cos_tanh_fusion", "add_mul_fusion")),
    }
    assert read_labels("") == ()


def on_the_cpu(lowered, function, *arguments):
    return refusals(compile_program(lowered(function, *arguments), load_target("cpu"), fusions=True))


def test_refusals_of_the_cpu_are_of_kernels_and_have_xlas_reasons(lowered):
    def function(x):
        h, _ = jax.lax.scan(lambda h, t: (jnp.tanh(h @ x + t), None), x[0], x)
        return jnp.exp(h) @ x, jnp.cumsum(h), jnp.sort(h) * 2

    given = on_the_cpu(lowered, function, jnp.ones((64, 64)))
    found = {(one.op, one.cause): one for one in given.found}
    assert all(one.source.startswith("test_refusals.py") and one.boundary_us is None for one in given.found)
    assert found["sort", "Producer is not loop-fusible: sort"].result_bytes == 256
    inside = [one for one in given.found if one.dynamic_launches == 64]
    assert inside
    assert all(one.result_bytes == 256 and one.consumers for one in inside)
    assert not any("tuple" in reader or "constant" in reader for one in given.found for reader in one.consumers)
    assert given.coverage.joined == len(given.found)
    assert [boundary_bytes(one) for one in given.found] == sorted(map(boundary_bytes, given.found), reverse=True)


def test_a_program_of_one_kernel_has_no_refusal_and_an_unasked_record_is_none(lowered):
    assert on_the_cpu(lowered, lambda x: jnp.tanh(x) * 2 + 1, jnp.ones(300)).found == ()
    assert refusals(compile_program(lowered(jnp.tanh, jnp.ones(300)), load_target("cpu"))) is None


@pytest.mark.parametrize("reason", ["No users to fuse", "the consumer is not fusible"])
def test_a_result_is_no_refusal(reason):
    """XLA lists the kernel that makes the program's result among those that it could not fuse."""
    dump = step("producer_ineligible", producer_name="two", reason=reason)
    dump += step("producer_ineligible", producer_name="one", reason="too many operands")
    text = text_of("before_merging.hlo")
    given = refusals(compiled_of(text, priority_fusion=dump, fused_hlo=text))
    assert [one.producer for one in given.found] == ["one"]
    assert (given.coverage.results, given.coverage.joined, given.coverage.launches_refused) == (1, 1, 1)


@needs_the_cuda_plugin
def test_the_result_of_a_library_call_is_no_refusal(lowered):
    """Of the program, of a branch, and of a loop: whoever reads it is no kernel that XLA could fuse."""

    def product(x):
        return x @ x

    def branch(x):
        return jax.lax.cond(x[0, 0] > 0, lambda a: jnp.sin(a) @ a, lambda a: a, x)

    def loop(x):
        return jax.lax.fori_loop(0, 5, lambda _, s: jnp.sin(s) @ s, x)

    def read(x):
        return jnp.sin(x @ x)

    def products(function):
        program = lowered(function, jnp.ones((16, 16)), platform="cuda")
        given = refusals(compile_program(program, load_target("a100")))
        return [one for one in given.found if one.op == "dot_general"], given.coverage

    assert products(product) == ([], Coverage(1, 0, 0, 0, 0, launches=1, launches_refused=0, results=1))
    for function in (branch, loop):
        found, coverage = products(function)
        assert (found, coverage.results) == ([], 1)
    [one], _ = products(read)
    assert one.cause == "the producer is not fusible: library call __cublas$lt$matmul"


def test_no_dump_no_refusals():
    assert refusals(compiled_of(text_of("fused_step.hlo"))) is None


def test_a_renamed_producer_keeps_its_refusal_until_xla_decides_again():
    renamed = step("producer_ineligible", producer_name="add", reason="the consumer is not fusible")
    renamed += step("fusion", fusion_name="fusion.7", producer_name="mul", consumer_name="add")
    assert read_steps(renamed) == (FusionStep("fusion.7", "the consumer is not fusible"),)
    again = step("update_priority", producer_name="fusion.7", consumer_names="x", us_fused=3)
    assert read_steps(renamed + again) == (FusionStep("fusion.7", SLOWER, 0.0, 3.0),)  # a zero is left out in text form


def test_refusals_of_kernels_that_were_merged_later_are_all_there():
    dump = "".join(
        step("producer_ineligible", producer_name=name, reason="too many operands") for name in ("one", "two")
    )
    merged = refusals(
        compiled_of(text_of("after_merging.hlo"), priority_fusion=dump, fused_hlo=text_of("before_merging.hlo"))
    )
    one, two = sorted(merged.found, key=lambda found: found.producer)
    assert {one.kernel, two.kernel} == {"loop_sine_fusion"}  # found by their results: all was renamed
    assert (one.stage, two.stage) == ("A", "B")  # their own, not their kernel's
    assert merged.coverage.joined == 2
    assert one.consumers == ("tuple out",)  # a kernel is not its own reader
    assert (one.merged_readers, two.merged_readers) == (1, 0)
    bandwidth = load_target("a100").peaks.memory_bytes_per_s
    boundary_us = one.boundary_us + two.boundary_us  # they share a launch
    assert boundary_us == pytest.approx(1 + 2 * 1e6 * 2 * 4096 / bandwidth)


@pytest.mark.parametrize(
    ("name", "moved_bytes"),
    [("written", 2 * 4096), ("alone", 2 * 4096), ("made", 1000 * 4096 + 4096), ("taken", 2 * 4096)],
)
def test_a_boundary_costs_what_moves(name, moved_bytes):
    """An update in place writes its update, and a slice reads its part: neither is the whole buffer."""
    dump = step("producer_ineligible", producer_name=name, reason="too many operands")
    text = text_of("in_place.hlo")
    [found] = refusals(compiled_of(text, priority_fusion=dump, fused_hlo=text)).found
    assert found.result_bytes + found.read_bytes == moved_bytes
    bandwidth = load_target("a100").peaks.memory_bytes_per_s
    assert found.boundary_us == pytest.approx(1 + 1e6 * moved_bytes / bandwidth)


def test_without_a_spec_a_boundary_has_no_price(compiled):
    attached = dataclasses.replace(compiled.target, spec="")
    found = refusals(dataclasses.replace(compiled, target=attached)).found
    assert found
    assert {one.boundary_us for one in found} == {None}
