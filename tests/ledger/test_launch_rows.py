"""Rows of hand-written optimised HLO: FLOPs, bytes, origin, modelled time, totals, and their points on the roofline."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError
from fusionlab.hlo.optimised.kernel_cost import Work, work_of
from fusionlab.hlo.optimised.parser import parse_optimized
from fusionlab.ledger.launch_rows import Totals, launch_rows, totals
from fusionlab.ledger.ledger import count_launches
from fusionlab.ledger.origins import Origins
from fusionlab.ledger.roofline import family_points, kernel_points, op_family_costs
from fusionlab.ledger.time.model import Ceilings, ceilings_of
from fusionlab.ledger.traffic import Traffic, traffic_of
from fusionlab.ledger.views import label, totals_by
from tests.ledger.by_hand import compiled_of, text_of

TEXT = text_of("kernels_of_all_kinds.hlo")
COST = '{"reification_cost": [{"exec_time_us": 4.5, "compute_time_us": 1, "memory_access_time_us": 4}]}'


@pytest.fixture(scope="module")
def module():
    return parse_optimized(TEXT)


def rows_of(hlo=TEXT, measured=None, **changes):
    """The rows of a program for the A100 by name."""
    compiled = dataclasses.replace(compiled_of(hlo), **changes)
    return {row.name: row for row in launch_rows(compiled, measured)}


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("dot", Work(2 * 8 * 4 * 16, tf32_flops=2 * 8 * 4 * 16)),
        ("kernel", Work(32 + 32 + 32)),
        ("turned", Work(0)),
        ("odd", Work(0, ("custom-call somebodys_library",))),
        ("wave", Work(0, ("convert",))),
    ],
)
def test_flops_by_rule(module, name, work):
    assert work_of(module, module.entry, module.entry.by_name[name]) == work


CONVOLVED = """HloModule conv, is_scheduled=true
ENTRY %main {
  %x = f32[2,3,8,8]{3,2,1,0} parameter(0)
  %w = f32[5,3,3,3]{3,2,1,0} parameter(1)
  %y = f32[2,5,8,8]{3,2,1,0} parameter(2)
  ROOT %conv = (SHAPE, u8[0]{0}) custom-call(OPERANDS), dim_labels=bf01_oi01->bf01EXTRA, custom_call_target=TARGET
}
""".replace("TARGET", '"__cudnn$convKIND"')
TERMS = 2 * 5 * 8 * 8 * 3 * 3 * 3


@pytest.mark.parametrize(
    ("kind", "shape", "operands"),
    [
        ("Forward", "f32[2,5,8,8]{3,2,1,0}", "%x, %w"),
        ("BiasActivationForward", "f32[2,5,8,8]{3,2,1,0}", "%x, %w"),
        ("BackwardInput", "f32[2,3,8,8]{3,2,1,0}", "%y, %w"),
        ("BackwardFilter", "f32[5,3,3,3]{3,2,1,0}", "%x, %y"),
    ],
)
def test_a_convolution_of_cudnn_has_its_taps_as_work(kind, shape, operands):
    text = CONVOLVED.replace("KIND", kind).replace("SHAPE", shape).replace("OPERANDS", operands)
    for extra, tf32 in (("", 2 * TERMS), (", operand_precision={highest,highest}", 0)):
        module = parse_optimized(text.replace("EXTRA", extra))
        found = work_of(module, module.entry, module.entry.by_name["conv"])
        assert found == Work(2 * TERMS, tf32_flops=tf32)


def test_a_convolution_that_xla_compiles_has_the_same_work():
    text = CONVOLVED.replace("(SHAPE, u8[0]{0}) custom-call(OPERANDS)", "f32[2,5,8,8]{3,2,1,0} convolution(%x, %w)")
    module = parse_optimized(text.partition("EXTRA")[0] + ", window={size=3x3 pad=1_1x1_1}\n}\n")
    assert work_of(module, module.entry, module.entry.by_name["conv"]) == Work(2 * TERMS)


SORTED = """HloModule sorted, is_scheduled=true
%less {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = pred[] compare(%a, %b), direction=LT
}
%body {
  %p = f32[8]{0} parameter(0)
  %twice = f32[8]{0} add(%p, %p)
  ROOT %sort = f32[8]{0} sort(%twice), dimensions={0}, to_apply=%less
}
ENTRY %main {
  %x = f32[8]{0} parameter(0)
  ROOT %fusion = f32[8]{0} fusion(%x), kind=kCustom, calls=%body
}
"""


def test_a_fusion_without_a_name_is_of_the_sort_inside():
    assert rows_of(SORTED)["fusion"].family == "sort"


@pytest.mark.parametrize(
    ("name", "operand_bytes", "result_bytes"),
    [
        ("square", 4000, 4000),  # one array, read once
        ("row.1", 40, 40),
        ("fusion.take", 16 + 4 + 16, 16),
        ("fusion.both", 4000, 4040),  # the slice does not help: the other user reads everything
        ("fusion.put", 40 + 4, 40),
        ("fusion.replace", 4000 + 40, 4000),  # updated on the way: all of it is read
        ("fusion.twice", 40, 80),
        ("fusion.computed", 4000 + 40, 4000),  # no parameter is updated
        ("fusion.beside", 4000 + 40, 8000),  # the other result reads what would be overwritten
        ("fusion.with_part", 40 + 40, 40 + 40),
        ("fusion.and_before", 4000 + 40, 8000),  # the other result is what would be overwritten
        ("fusion.pass", 32, 32),
        ("product", 4000, 40000),
    ],
)
def test_bytes_are_whole_operands_and_results_except_for_parts_and_in_place_updates(name, operand_bytes, result_bytes):
    parts = parse_optimized(text_of("traffic.hlo"))
    assert traffic_of(parts, parts.entry, parts.entry.by_name[name]) == Traffic(operand_bytes, result_bytes)


def test_flops_agree_with_xla_on_a_program_without_loops(lowered):
    def function(x, w):
        h = jnp.tanh(x @ w)
        return jnp.exp(-(h**2)).sum(axis=0) * jnp.arange(24.0)

    arrays = (jax.ShapeDtypeStruct((48, 32), jnp.float32), jax.ShapeDtypeStruct((32, 24), jnp.float32))
    made = compile_program(lowered(function, *arrays), load_target("cpu"))
    found = totals(launch_rows(made))
    theirs = jax.jit(function).lower(*arrays).compile().cost_analysis()
    assert found.unmodelled_bytes == 0
    assert found.flops == pytest.approx(theirs["flops"] + theirs["transcendentals"], rel=0.02)


def test_a_fusion_is_attributed_to_most_of_its_work(module):
    origin = Origins(module).of_members(module.entry.by_name["kernel"])
    assert (origin.phase, origin.stage, origin.role, origin.by) == ("laplacian", "B", "tangent", "members")
    assert origin.share == pytest.approx(64 / 96)  # two ops of 32 elements in B, a sum of 32 in C: XLA's label is C's


def test_what_xla_made_belongs_to_its_readers_and_else_to_nobody(module):
    turned, odd = module.entry.by_name["turned"], module.entry.by_name["odd"]
    assert not Origins(module).of_members(turned).is_known
    found = Origins(module).of_readers(module.entry, turned)
    assert (found.stage, found.role, found.by) == ("B", "tangent", "readers")
    assert not Origins(module).of_readers(module.entry, odd).is_known


def test_rows_sum_to_the_ledger_and_know_their_gaps():
    rows = launch_rows(compiled_of(TEXT))
    found, counts = totals(rows), count_launches(compiled_of(TEXT))
    assert found.static_launches == found.dynamic_launches == counts.static_launches == counts.dynamic_launches == 5
    assert found.bytes == counts.bytes_accessed
    assert {row.name for row in rows if row.unmodelled} == {"odd", "wave"}
    assert found.unmodelled_bytes == sum(row.bytes for row in rows if row.name in ("odd", "wave")) > 0
    by = totals_by(rows, ("stage", "family"))
    assert by["B", "gemm"].flops == 1024
    assert by["unattributed", "custom"].dynamic_launches == 1
    for columns in (("stage", "family"), ("kind", "trip_count", "source")):
        assert sum(totals_by(rows, columns).values(), Totals()) == found
    assert set(totals_by(rows, ("trip_count",))) == {("1",)}
    assert {label(row, "in_cuda_graph") for row in rows} == {"unknown"}
    with pytest.raises(InputError, match="stage"):
        totals_by(rows, ("stages",))


@pytest.mark.parametrize(
    ("cost", "us"),
    [
        ('[{"exec_time_us": 4.5}]', 5.5),  # with its launch
        ('[{"exec_time_us": 4.5}, {"exec_time_us": 7.5, "name": "indexing-cost-model"}]', 8.5),  # Triton's decides
        *((text, None) for text in (
            "5", '"x"', '{"a": 1}', "[1, 2]", '[{"exec_time_us": "soon"}]', '[{"exec_time_us": null}]',
            '[{"exec_time_us": NaN}]', '[{"exec_time_us": Infinity}]', '[{"exec_time_us": -2}]',
        )),
    ],
)  # fmt: skip
def test_modelled_time_is_xlas_where_it_has_one(cost, us):
    rows = rows_of(TEXT.replace(COST, f'{{"reification_cost": {cost}}}'))
    kernel, dot = rows["kernel"], rows["dot"]
    assert (kernel.model_us, kernel.model_source) == (us, "xla") if us else kernel.model_source == "roofline"
    assert kernel.model_us >= 1
    bandwidth = load_target("a100").peaks.memory_bytes_per_s
    assert (dot.model_us, dot.model_source) == (pytest.approx(1 + 1e6 * dot.bytes / bandwidth), "roofline")


@pytest.mark.parametrize(
    ("precision", "in_tf32"),
    [
        ('"operand_precision":["DEFAULT","HIGH"],"algorithm":"ALG_UNSET"', True),
        ('"operand_precision":["HIGH","HIGHEST"],"algorithm":"ALG_UNSET"', False),
        ('"operand_precision":["HIGHEST","HIGHEST"],"algorithm":"ALG_DOT_TF32_TF32_F32"', True),
        ('"operand_precision":["DEFAULT","DEFAULT"],"algorithm":"ALG_DOT_TF32_TF32_F32_X3"', False),
    ],
)
def test_a_product_that_may_use_tf32_is_held_against_its_peak(precision, in_tf32):
    config = '"gemm_backend_config": {'
    assert config in TEXT
    rows = rows_of(TEXT.replace(config, f'{config}"precision_config":{{{precision}}},'))
    assert rows["dot"].tf32_flops == (rows["dot"].flops if in_tf32 else 0)
    ceilings = Ceilings(1e6, 1e12, "given", tf32_flops_per_s=4e6)
    point = next(point for point in family_points(tuple(rows.values()), ceilings) if point.name == "gemm")
    assert point.attainable_flops_per_s == pytest.approx(4e6 if in_tf32 else 1e6)


def test_the_environment_turns_tf32_off_on_an_attached_gpu_alone(monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")  # as DeepQMC's adapter leaves it
    absent = load_target("a100")
    peaks, attached = absent.peaks, dataclasses.replace(absent, attached=True)
    assert ceilings_of(absent).tf32_flops_per_s == peaks.tf32_flops_per_s > peaks.fp32_flops_per_s
    assert ceilings_of(attached).tf32_flops_per_s == peaks.fp32_flops_per_s
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE")
    assert ceilings_of(attached).tf32_flops_per_s == peaks.tf32_flops_per_s


def test_estimates_of_another_device_are_not_used():
    rows = rows_of(estimates_are_of_target=False)
    assert rows.pop("odd").model_source == "at-least"  # a library's call whose FLOPs are not known
    assert {row.model_source for row in rows.values()} == {"roofline"}


def test_measured_ceilings_give_every_time_and_are_named():
    rows = rows_of(measured=Ceilings(1e9, 1e9, "measured, as given", measured=True))
    assert {row.model_source for row in rows.values()} == {"measured"}
    assert rows["dot"].model_us == pytest.approx(1 + 1e6 * max(rows["dot"].flops, rows["dot"].bytes) / 1e9)
    assert rows["kernel"].model_us == pytest.approx(1 + 1e6 * rows["kernel"].bytes / 1e9)


def test_no_spec_and_no_estimate_is_no_time():
    rows = launch_rows(compiled_of(TEXT, target="cpu"))
    assert [row.name for row in rows if row.model_us is not None] == ["kernel"]
    found = totals(rows)
    assert (found.unmodelled_us_launches, found.model_us) == (4, 5.5)  # of what is known; the table says what is not
    by = totals_by(rows, ("name",))
    assert {key: group.model_us for key, group in by.items() if group.model_us is not None} == {("kernel",): 5.5}
    assert totals([]).model_us is None
    points = {point.name: point for point in kernel_points(rows, Ceilings(1e12, 1e11, "given"))}
    assert (points["dot"].model_us, points["dot"].model_share, points["dot"].roof_share) == (None, None, None)
    assert family_points(rows, None)[-1].unmodelled_us_launches == 4


def test_points_stand_under_the_roof():
    rows = launch_rows(compiled_of(TEXT))
    ceilings = Ceilings(1e12, 1e11, "as given")
    assert ceilings.ridge_flop_per_byte == 10
    assert (ceilings.least_us(2e6, 1e6), ceilings.least_us(50e6, 1e6)) == (10, 50)
    points = family_points(rows, ceilings)
    assert points[-1].name == "all"
    assert sum(point.model_share for point in points[:-1]) == pytest.approx(1)
    assert {point.bound for point in points if point.name == "gemm"} == {"launch"}  # 1 us of launch, less of work
    assert {point.name for point in kernel_points(rows, None)} == {row.name for row in rows}
    assert {point.roof_share for point in kernel_points(rows, None)} == {None}


def test_op_families_multiply_trips(lowered):
    def function(x):
        return jax.lax.fori_loop(0, 7, lambda _, a: jnp.tanh(a @ a), x)

    costs = op_family_costs(lowered(function, jnp.ones((4, 4), jnp.float32)))
    assert costs["gemm"].flops == 7 * 2 * 4**3
    assert costs["elementwise"].flops == 7 * 16
