"""The circumstances that a measurement carries: device, versions, flags, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from fusionlab.codegen.compile import versions
from fusionlab.codegen.targets import Target
from fusionlab.measure.nvml import open_nvml
from fusionlab.store import package_versions

_FLAGS = (
    "XLA_FLAGS", "NVIDIA_TF32_OVERRIDE", "NPROC", "JAX_PLATFORMS", "JAX_DEFAULT_MATMUL_PRECISION", "JAX_ENABLE_X64",
    "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_MEM_FRACTION", "OMP_NUM_THREADS",
)  # fmt: skip
_PACKAGES = ("folx", "deepqmc", "enzyme-ad", "numpy")


def environment(target: Target) -> dict[str, Any]:
    """All that figures depend on besides the program: the fields ``device``, ``versions``, ``flags``, ``commit``."""
    return {"device": device_facts(target), **software()}


def software() -> dict[str, Any]:
    """The fields ``versions``, ``flags``, ``commit``, which determine a compile, with or without a device."""
    return {
        "versions": {"jax": versions(), "python": platform.python_version(), **package_versions(*_PACKAGES)},
        "flags": {name: os.environ[name] for name in _FLAGS if name in os.environ},
        "commit": commit(),
    }


def device_facts(target: Target) -> dict[str, Any]:
    """The device by its own name, with its spec's peaks if it is one of our targets (else None)."""
    nvml = open_nvml() if target.attached and target.kind == "cuda" else None
    spec = target.absent
    return {
        "platform": target.kind,
        "name": _processor() if target.kind == "cpu" else target.source if target.attached else target.name,
        "cores": os.cpu_count() if target.kind == "cpu" else (spec.peaks.cores if spec and spec.peaks else None),
        "compute_capability": target.sm or None,
        "driver": nvml.driver() if nvml else None,
        "spec": spec.name if spec else None,
    }


def commit() -> str | None:
    """The commit of the sources, with a trailing ``+`` when they differ from it; None outside a checkout."""
    root = Path(__file__).parents[2]

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "fusionlab", "workloads")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def allocator_bytes(device: Any) -> tuple[int, int] | None:
    """(bytes in use, most bytes ever in use) of the device's allocator; None where it reports neither (the CPU)."""
    stats = device.memory_stats() or {}
    if "bytes_in_use" not in stats or "peak_bytes_in_use" not in stats:
        return None
    return int(stats["bytes_in_use"]), int(stats["peak_bytes_in_use"])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
