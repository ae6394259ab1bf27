"""A run of ``bench`` names the origin of its memory figure and what its device does not tell."""

import io

import pytest
from rich.console import Console

from fusionlab.report.tables.records import peak_mib, print_run


def test_memory_is_the_allocators_peak_and_else_named_as_buffer_assignment():
    assert peak_mib({"peak_bytes": 3 * 2**20, "assigned_bytes": 2**20}) == "3.0"
    assert peak_mib({"peak_bytes": 0, "assigned_bytes": 2**20}) == "0.0"
    assert peak_mib({"peak_bytes": None, "assigned_bytes": 2**20}) == "1.0 (XLA)"


@pytest.mark.parametrize(
    ("platform", "driver", "said"), [("cuda", None, True), ("cuda", "570.1", False), ("cpu", None, False)]
)
def test_a_gpu_without_nvml_is_said(platform, driver, said):
    variant = {
        "name": "replay", "median_us": 1e3, "ratio_interval": None, "dynamic_launches": 7, "compile_s": 1.0,
        "peak_bytes": None, "assigned_bytes": 2**20, "verdict": "equal",
        "device_time": {"mean_us": None, "ratio_interval": None},
    }  # fmt: skip
    record = {
        "workload": {"title": "a model"}, "device": {"name": "a device", "platform": platform, "driver": driver},
        "variants": [variant], "failures": [], "protocol": {"runs": 11, "dropped": 1, "repeats": 10},
        "versions": {"jax": "jax 0.10.2", "python": "3.11.7"}, "commit": None,
    }  # fmt: skip
    stream = io.StringIO()
    print_run(record, Console(file=stream, width=200))
    assert ("NVML does not answer" in stream.getvalue()) == said
