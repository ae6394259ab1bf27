"""XLA's fusion dump as records, and joined to the kernels of the final program."""

import dataclasses

import pytest

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import load_target
from fusionlab.ledger.refusals import SLOWER, FusionStep, read_steps, refusals

DUMP = """fusion_steps {
  update_priority {
    producer_name: "a"
    consumer_names: "b"
    us_fused: 1.5
    us_unfused: 2.5
  }
}
fusion_steps {
  fusion {
    fusion_name: "b"
    producer_name: "a"
    consumer_name: "b"
  }
}
fusion_steps {
  update_priority {
    producer_name: "big"
    consumer_names: "last"
    consumer_names: "other"
    us_fused: 9
    us_unfused: 4.25
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "dot"
    reason: "the producer is not fusible"
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "gone"
    reason: "not fusing because there are only bitcast users"
  }
}
gpu_device_info {
  threads_per_block_limit: 1024
}
"""

BODY = """
%fc.{n} (p.{n}: f32[1024]) -> f32[1024] {{
  %p.{n} = f32[1024]{{0}} parameter(0)
  ROOT %tanh.{n} = f32[1024]{{0}} tanh(%p.{n}), metadata={{op_name="jit(f)/stage_e/jvp(jvp(stage_b))/tanh"}}
}}
"""
MAIN = """
ENTRY %main (x: f32[1024], w: f32[32,32]) -> f32[1024] {{
  %x = f32[1024]{{0}} parameter(0)
  %w = f32[32,32]{{1,0}} parameter(1)
  %dot = (f32[32,32]{{1,0}}, s8[4096]{{0}}) custom-call(%w, %w), custom_call_target="__cublas$lt$matmul"
  %{big} = f32[1024]{{0}} fusion(%x), kind=kLoop, calls=%fc.1
  %view = f32[1024]{{0}} bitcast(%{big})
  ROOT %{last} = f32[1024]{{0}} fusion(%view), kind=kLoop, calls=%fc.2
}}
"""


def hlo(big, last):
    return "HloModule m, is_scheduled=true\n" + BODY.format(n=1) + BODY.format(n=2) + MAIN.format(big=big, last=last)


@pytest.fixture(scope="module")
def compiled():
    final = hlo("loop_tanh_fusion", "loop_tanh_fusion.1")
    return Compiled(
        "hand", load_target("a100"), final, "", "", Memory(0, 0, 0, 0), 0.0, {}, "",
        priority_fusion=DUMP, fused_hlo=hlo("big", "last"),
    )  # fmt: skip


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


def test_no_dump_no_refusals():
    made = Compiled("hand", load_target("a100"), hlo("a", "b"), "", "", Memory(0, 0, 0, 0), 0.0, {}, "")
    assert refusals(made) is None


RENAMED = """fusion_steps {
  producer_ineligible {
    producer_name: "add"
    reason: "the consumer is not fusible"
  }
}
fusion_steps {
  fusion {
    fusion_name: "fusion.7"
    producer_name: "mul"
    consumer_name: "add"
  }
}
"""
AGAIN = """fusion_steps {
  update_priority {
    producer_name: "fusion.7"
    consumer_names: "x"
    us_fused: 3
  }
}
"""


def test_a_renamed_producer_keeps_its_refusal_until_xla_decides_again():
    assert read_steps(RENAMED) == (FusionStep("fusion.7", "the consumer is not fusible"),)
    assert read_steps(RENAMED + AGAIN) == (FusionStep("fusion.7", SLOWER, 0.0, 3.0),)  # a zero is left out in text form


MERGED_BODIES = """HloModule m, is_scheduled=true

%left (p: f32[1024]) -> f32[1024] {{
  %p = f32[1024]{{0}} parameter(0)
  ROOT %sin{n} = f32[1024]{{0}} sine(%p), metadata={{op_name="jit(f)/stage_e/jvp(jvp(stage_a))/sin"}}
}}

%right (q: f32[1024]) -> f32[1024] {{
  %q = f32[1024]{{0}} parameter(0)
  ROOT %cos{n} = f32[1024]{{0}} cosine(%q), metadata={{op_name="jit(f)/stage_e/jvp(jvp(stage_b))/cos"}}
}}
"""
BEFORE_MERGING = (
    MERGED_BODIES.format(n="")
    + """
ENTRY %main (x: f32[1024]) -> (f32[1024], f32[1024]) {
  %x = f32[1024]{0} parameter(0)
  %one = f32[1024]{0} fusion(%x), kind=kLoop, calls=%left
  %two = f32[1024]{0} fusion(%one), kind=kLoop, calls=%right
  ROOT %out = (f32[1024]{0}, f32[1024]{0}) tuple(%one, %two)
}
"""
)
AFTER_MERGING = """HloModule m, is_scheduled=true

%both (p: f32[1024]) -> (f32[1024], f32[1024]) {
  %p = f32[1024]{0} parameter(0)
  %other = f32[1024]{0} sine(%p), metadata={op_name="jit(f)/stage_e/jvp(jvp(stage_a))/sin"}
  %another = f32[1024]{0} cosine(%other), metadata={op_name="jit(f)/stage_e/jvp(jvp(stage_b))/cos"}
  ROOT %results = (f32[1024]{0}, f32[1024]{0}) tuple(%other, %another)
}

ENTRY %main (x: f32[1024]) -> (f32[1024], f32[1024]) {
  %x = f32[1024]{0} parameter(0)
  ROOT %loop_sine_fusion = (f32[1024]{0}, f32[1024]{0}) fusion(%x), kind=kLoop, calls=%both
}
"""
BOTH_REFUSED = "".join(
    f'fusion_steps {{\n  producer_ineligible {{\n    producer_name: "{name}"\n    reason: "{reason}"\n  }}\n}}\n'
    for name, reason in (("one", "the consumer is not fusible"), ("two", "the consumer is not fusible"))
)


@pytest.fixture(scope="module")
def merged():
    return refusals(
        Compiled(
            "hand", load_target("a100"), AFTER_MERGING, "", "", Memory(0, 0, 0, 0), 0.0, {}, "",
            priority_fusion=BOTH_REFUSED, fused_hlo=BEFORE_MERGING,
        )
    )  # fmt: skip


def test_refusals_of_kernels_that_were_merged_later_are_all_there(merged):
    found = {one.producer: one for one in merged.found}
    assert set(found) == {"one", "two"}
    assert {one.kernel for one in found.values()} == {"loop_sine_fusion"}  # found by what they give: all was renamed
    assert [found[name].stage for name in ("one", "two")] == ["A", "B"]  # their own, not their kernel's
    assert merged.coverage.joined == 2


def test_a_kernel_is_not_its_own_reader(merged):
    found = {one.producer: one for one in merged.found}
    assert found["one"].consumers == ("tuple out",)
    assert (found["one"].merged_readers, found["two"].merged_readers) == (1, 0)


def test_two_boundaries_of_a_kernel_share_its_launch(merged):
    bandwidth = load_target("a100").peaks.memory_bytes_per_s
    assert sum(one.boundary_us for one in merged.found) == pytest.approx(1 + 2 * 1e6 * 2 * 4096 / bandwidth)


def test_without_a_spec_a_boundary_has_no_price(compiled):
    attached = dataclasses.replace(compiled.target, spec="")
    found = refusals(dataclasses.replace(compiled, target=attached)).found
    assert found
    assert {one.boundary_us for one in found} == {None}
