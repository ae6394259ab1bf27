"""The device that optimised HLO text was compiled for, as far as the text says."""

import json
from pathlib import Path

import jax.numpy as jnp
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target, target_of_clock
from fusionlab.hlo.optimised.device import clock_ghz_of_estimates, platform_of
from fusionlab.hlo.optimised.parser import parse_optimized

COST = [{"end_to_end_cycles": 10.927499741315842, "exec_time_us": 0.00775}]
GPU = json.dumps({"operation_queue_id": "0", "reification_cost": COST})
TEXT = Path(__file__).with_name("one_op.hlo").read_text()
FUSION = "f32[4]{0} fusion(%a), kind=kLoop, calls=%fused"


def of(op):
    return parse_optimized(TEXT.replace("= OP", f"= {op}"))


@pytest.mark.parametrize(
    ("op", "platform"),
    [
        (f"{FUSION}, backend_config={GPU}", "cuda"),
        (FUSION, "cpu"),
        ('f32[4]{0} custom-call(%a), custom_call_target="__cublas$triangularSolve"', "cuda"),
        ('f32[4]{0} custom-call(%a), custom_call_target="lapack_sgetrf_ffi"', "cpu"),
        ("f32[4]{0} tanh(%a)", ""),
        (FUSION.replace("kLoop", "kInput"), "cuda"),
        (FUSION.replace("fusion(", "fusion-start(").replace("kLoop", "kInput"), "cuda"),
    ],
)
def test_the_platform(op, platform):
    assert platform_of(of(op)) == platform


def test_a_text_without_configurations_shows_its_platform_by_names_and_header():
    module = of(FUSION)
    [fusion] = [one for one in module.entry.instructions if one.is_fusion]
    named = TEXT.replace("= OP", f"= {FUSION}").replace(f"%{fusion.name}", "%loop_tanh_fusion.3")
    assert platform_of(parse_optimized(named)) == "cuda"
    marked = TEXT.replace("= OP", f"= {FUSION}").replace(
        "is_scheduled=true", 'is_scheduled=true, frontend_attributes={fingerprint_before_lhs="ab"}'
    )
    assert platform_of(parse_optimized(marked)) == "cuda"


def test_the_clock_of_xlas_estimates():
    assert clock_ghz_of_estimates(of(f"{FUSION}, backend_config={GPU}")) == pytest.approx(1.41, rel=1e-6)
    assert clock_ghz_of_estimates(of(FUSION)) is None
    for odd in ("5", "[7]", '[{"end_to_end_cycles": "many", "exec_time_us": 2}]', '[{"exec_time_us": 0}]'):
        assert clock_ghz_of_estimates(of(f'{FUSION}, backend_config={{"reification_cost": {odd}}}')) is None
    assert target_of_clock(1.41) == "a100"
    assert target_of_clock(1.0) is None
    assert load_target("a100").has_clock(1.4101)
    assert not load_target("h200").has_clock(1.41)
    assert not load_target("cpu").has_clock(1.41)


def test_what_xla_writes_for_the_cpu(lowered):
    made = compile_program(lowered(lambda x: jnp.tanh(x) * 2, jnp.ones(300)), load_target("cpu"))
    assert platform_of(made.module) == "cpu"
