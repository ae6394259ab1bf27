"""XLA's fusion dump as records, and joined to the kernels of the final program."""

import pytest

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.codegen.targets import load_target
from fusionlab.measure.refusals import SLOWER, Step, read_steps, refusals

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
        Step("big", SLOWER, 4.25, 9.0),
        Step("dot", "the producer is not fusible"),
        Step("gone", "not fusing because there are only bitcast users"),
    )


def test_refusals_are_found_again_in_the_final_program(compiled):
    found = {one.kernel: one for one in refusals(compiled)}
    assert set(found) == {"loop_tanh_fusion", "dot"}  # "gone" is no launch
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
    assert refusals(made) == ()
