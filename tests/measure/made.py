"""Records of measurements, made by hand."""

from fusionlab.measure.comparison import RATES
from fusionlab.measure.device_time import MeasuredKernel, kernel_table
from fusionlab.measure.records import FORMAT


def kernel(name, family, us, stage="B", **changes):
    figures = {"dynamic_launches": 2, "measured_launches": 2.0, "flops": 100, "bytes": 50, "model_us": None} | changes
    return MeasuredKernel(name, "laplacian", stage, "tangent", family, measured_us=us, **figures)


KERNELS = (kernel("a", "gemm", 3.0), kernel("b", "elementwise", 1.0, stage=""))


def variant(name="fused", wall=(5.0, 6.0), device=(2.0, 2.0), kernels=KERNELS, **changes):
    """A measured variant: samples of wall and of device time in microseconds."""
    return {
        "name": name,
        "verdict": "within-bound",
        "samples_us": list(wall),
        "device_time": {"sum_us": list(device)},
        "kernels": kernel_table(kernels),
        **dict.fromkeys(("dynamic_launches", "peak_bytes", *RATES)),
        "assigned_bytes": 4096,
        **changes,
    }


def record(*variants, platform="cpu", model="ferminet", **changes):
    return {
        "format": FORMAT,
        "started_utc": "2026-01-02T03:04:05+00:00",
        "workload": {"title": f"{model}-LiH-local-energy-w4", "name": model},
        "device": {"name": "AMD EPYC 7763 64-Core Processor @ 2 GHz", "platform": platform},
        "versions": {"jax": "jax 1"},
        "commit": "abc",
        "variants": list(variants) or [variant()],
        "failures": [],
        **changes,
    }
