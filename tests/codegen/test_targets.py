"""Target specs: names, figures, and errors that name the file and the cause."""

import pytest

from fusionlab.codegen.targets import (
    _BLOCKS_PER_SM,
    _TF32,
    _UNIT_RATES,
    load_target,
    target_names,
    target_of_clock,
    target_of_device,
)
from fusionlab.errors import InputError


def test_names():
    assert target_names() == ("a100", "a5000", "h100", "h200", "cpu", "gpu")


@pytest.mark.parametrize(
    ("name", "sm", "memory_bytes_per_s", "fp32_teraflops", "tf32_teraflops"),
    [
        ("a100", "8.0", 1.555e12, 19.5, 155.9),
        ("a5000", "8.6", 768e9, 27.8, 55.5),
        ("h100", "9.0", 3.35e12, 66.9, 494.7 * 1.98 / 1.83),
        ("h200", "9.0", 4.8e12, 66.9, 494.7 * 1.98 / 1.83),
    ],
)
def test_specs_agree_with_the_data_sheets(name, sm, memory_bytes_per_s, fp32_teraflops, tf32_teraflops):
    target = load_target(name)
    assert (target.name, target.kind, target.attached, target.sm) == (name, "cuda", False, sm)
    assert target.peaks.memory_bytes_per_s == memory_bytes_per_s
    assert target.peaks.fp32_flops_per_s / 1e12 == pytest.approx(fp32_teraflops, abs=0.05)
    assert target.peaks.tf32_flops_per_s / 1e12 == pytest.approx(tf32_teraflops, abs=0.1)


@pytest.mark.parametrize("table", [_TF32, _BLOCKS_PER_SM, _UNIT_RATES], ids=["TF32", "blocks", "rates"])
def test_every_spec_s_compute_capability_is_in_each_table(table):
    """Without a row TF32 has FP32's peak, 16 blocks fit an SM, and kernels have no time by their code."""
    specs = [load_target(name) for name in target_names() if name not in ("cpu", "gpu")]
    assert {target.name: target.sm for target in specs if target.sm not in table} == {}


def test_cpu_is_attached_and_has_no_spec():
    target = load_target("cpu")
    assert (target.kind, target.attached, target.spec, target.peaks) == ("cpu", True, "", None)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(InputError, match=r"unknown target 'a1000'; did you mean: a100"):
        load_target("a1000")


def test_a_custom_spec_is_named_after_its_file(tmp_path):
    path = tmp_path / "mine.txtpb"
    path.write_text(load_target("a100").spec.replace("core_count: 108", "core_count: 54"))
    assert (load_target(str(path)).name, load_target(str(path)).peaks.cores) == ("mine", 54)


@pytest.mark.parametrize(
    ("edit", "cause"),
    [
        (lambda spec: spec.replace("core_count: 108", ""), "missing core_count"),
        (lambda spec: spec.replace("core_count: 108", "core_count: 0"), "core_count must be positive"),
        (lambda spec: spec.replace("core_count: 108", "core_count: many"), "many"),
        (lambda spec: spec.replace("cuda_compute_capability { major: 8 }", ""), "missing cuda_compute_capability"),
        (lambda spec: spec.replace('platform_name: "CUDA"', "platform_name"), "line 2[0-9]: expected"),
        (lambda spec: spec + "}\n", "with no '{' before it"),
        (lambda spec: spec + "more {\n", "'more {' is never closed"),
        (lambda spec: "", "missing threads_per_block_limit"),
    ],
)
def test_a_broken_spec_names_file_and_cause(tmp_path, edit, cause):
    path = tmp_path / "broken.txtpb"
    path.write_text(edit(load_target("a100").spec))
    with pytest.raises(InputError, match=rf"broken\.txtpb: not a usable GPU spec: .*{cause}"):
        load_target(str(path))


def test_what_is_no_text_file_is_refused(tmp_path):
    path = tmp_path / "mine.txtpb"
    with pytest.raises(InputError, match=r"mine\.txtpb: cannot be read: No such file"):
        load_target(str(path))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        load_target(str(path))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA RTX A5000", "a5000"),
        ("NVIDIA L4", None),
    ],
)
def test_an_attached_gpu_is_one_of_ours_by_its_name(kind, name):
    found = target_of_device(kind)
    assert (found and found.name) == name


def test_a_clock_that_two_have_is_that_of_the_h200():
    assert (target_of_clock(1.98), target_of_clock(1.41), target_of_clock(1.0)) == ("h200", "a100", None)


def test_an_attached_gpu_that_is_known_has_its_specs_peaks(monkeypatch):
    import jax

    class Device:
        device_kind, compute_capability = "NVIDIA H200", "9.0"

    monkeypatch.setattr(jax, "devices", lambda kind: [Device()])
    target = load_target("gpu")
    assert target.attached
    assert target.peaks == load_target("h200").peaks
    assert target.absent == load_target("h200") == load_target("h200").absent
    assert load_target("cpu").absent is None
