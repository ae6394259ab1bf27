"""Targets: the devices that programs are compiled for, attached or not, and the loader of specs.

A spec is the text of a ``stream_executor.GpuTargetConfigProto``, which XLA needs to compile ahead of time for an absent
GPU. Those of this folder are minimal, because XLA rejects unknown fields. A compute capability has a row in each of
``_TF32``, ``_BLOCKS_PER_SM`` and ``_UNIT_RATES``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from fusionlab import jax_setup
from fusionlab.errors import InputError, unknown
from fusionlab.files import read_file

_SPECS = Path(__file__).parent
_TF32 = {"8.0": 512, "8.6": 256, "9.0": 1024}
"""Dense multiply-adds in TF32 per SM and clock by compute capability: NVIDIA's data sheets of A100 (156 TFLOP/s at
1.41 GHz), RTX A5000 (55.5, a quarter of its 222 in sparse FP16; GeForce cards have half) and H100 SXM (495 at 1.83)."""
_BLOCKS_PER_SM = {"7.0": 32, "7.5": 16, "8.0": 32, "8.6": 16, "8.7": 16, "8.9": 24, "9.0": 32, "10.0": 32, "12.0": 32}
"""Resident blocks per SM by compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability". Threads, registers and shared memory per SM, of the same table, are in the specs."""
_UNIT_RATES: dict[str, tuple[int, int]] = {
    "7.0": (32, 26), "7.5": (2, 26), "8.0": (32, 47), "8.6": (2, 36), "8.9": (2, 36), "9.0": (64, 39),
}  # fmt: skip
"""Per SM and clock, by compute capability: FP64 operations (CUDA C++ Programming Guide, "Throughput of Native
Arithmetic Instructions"), and bytes of the L2 (NVIDIA's A100 white paper: 5,120 a clock for 108 SMs, the V100's 2,048
for 80). The H100's L2 is not published, and is taken to have the A100's 5,120 for its 132 SMs; those of 8.6 and 8.9 are
assumed."""
_ISSUED, _REQUESTS = 4, 1
"""Per SM and clock: instructions that the four schedulers issue, and requests of warps to memory: 32 load and store
units (NVIDIA's V100, A100 and H100 white papers)."""
_REQUIRED = (
    "threads_per_block_limit", "threads_per_warp", "threads_per_core_limit", "shared_memory_per_block",
    "shared_memory_per_core", "core_count", "fpus_per_core", "memory_bandwidth", "l2_cache_size", "clock_rate_ghz",
    "device_memory_size", "registers_per_core_limit", "registers_per_block_limit", "cuda_compute_capability.major",
)  # fmt: skip


@dataclass(frozen=True)
class Peaks:
    """Peak figures of a GPU from its spec. FP32 peak = cores x lanes per core x 2 (fused multiply-add) x clock; TF32 is
    the tensor cores', or FP32's where the rate is not known."""

    memory_bytes_per_s: float
    fp32_flops_per_s: float
    tf32_flops_per_s: float
    l2_bytes: int
    memory_bytes: int
    cores: int
    clock_ghz: float


@dataclass(frozen=True)
class Limits:
    """What an SM holds at once: warps, blocks, 32-bit registers and bytes of shared memory; ``sms`` are the SMs."""

    sms: int
    warps: int
    blocks: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True)
class UnitRates:
    """What the units of all SMs do in a second at the spec's clock: instructions of warps that are issued, their
    requests to memory, FP64 operations of threads, bytes of the L2."""

    issued_per_s: float
    requests_per_s: float
    double_per_s: float
    l2_bytes_per_s: float


@dataclass(frozen=True)
class Target:
    """A device to compile for. ``kind`` is ``cuda`` or ``cpu``, the platform that programs must be lowered for.

    ``attached``: programs compiled for it can run here; ``spec`` is the GpuTargetConfigProto text of an absent GPU, and
    of an attached one whose name matches a spec of this folder ("" for the CPU and other GPUs); ``sm`` is the compute
    capability, e.g. ``"8.6"`` ("" when not known).
    """

    name: str
    kind: str
    attached: bool
    spec: str = ""
    sm: str = ""
    source: str = ""

    @cached_property
    def peaks(self) -> Peaks | None:
        """The spec's peak figures; None without a spec."""
        if not self.spec:
            return None
        fields = _parse(self.spec)
        cores = int(fields["core_count"])
        lanes, per_lane = float(fields["fpus_per_core"]), cores * 2 * float(fields["clock_rate_ghz"]) * 1e9
        return Peaks(
            memory_bytes_per_s=float(fields["memory_bandwidth"]),
            fp32_flops_per_s=lanes * per_lane,
            tf32_flops_per_s=_TF32.get(self.sm, lanes) * per_lane,
            l2_bytes=int(fields["l2_cache_size"]),
            memory_bytes=int(fields["device_memory_size"]),
            cores=cores,
            clock_ghz=float(fields["clock_rate_ghz"]),
        )

    @cached_property
    def unit_rates(self) -> UnitRates | None:
        """The rates of its units by the spec and the compute capability; None where either is not known."""
        if self.peaks is None or self.sm not in _UNIT_RATES:
            return None
        clocks = self.peaks.cores * self.peaks.clock_ghz * 1e9
        double, l2 = _UNIT_RATES[self.sm]
        return UnitRates(_ISSUED * clocks, _REQUESTS * clocks, double * clocks, l2 * clocks)

    @cached_property
    def limits(self) -> Limits | None:
        """The limits of its SMs by the spec; None without one. Of an unknown compute capability 16 blocks fit."""
        if not self.spec:
            return None
        fields = _parse(self.spec)
        return Limits(
            sms=int(fields["core_count"]),
            warps=int(fields["threads_per_core_limit"]) // int(fields["threads_per_warp"]),
            blocks=_BLOCKS_PER_SM.get(self.sm, 16),
            registers=int(fields["registers_per_core_limit"]),
            shared_bytes=int(fields["shared_memory_per_core"]),
        )

    @property
    def device_kind(self) -> str:
        """The device's own name, of an absent GPU by its spec (``NVIDIA H100 80GB HBM3``); ``cpu`` for the CPU."""
        if self.attached:
            return self.source or self.name
        return _parse(self.spec).get("device_description_str", self.name)

    @property
    def absent(self) -> Target | None:
        """The target to compile ahead of time for such a device: itself, or that of its spec; None without one."""
        return target_of_device(self.source) if self.attached else self

    def has_clock(self, clock_ghz: float) -> bool:
        """True if its spec has that clock, within a part in a thousand; False without a spec."""
        return self.peaks is not None and abs(clock_ghz / self.peaks.clock_ghz - 1) < 1e-3


def target_names() -> tuple[str, ...]:
    """The names that ``load_target`` knows: the specs of this folder, ``cpu`` and ``gpu``."""
    return (*_spec_names(), "cpu", "gpu")


def _spec_names() -> list[str]:
    return sorted(path.stem for path in _SPECS.glob("*.txtpb"))


def target_of_clock(clock_ghz: float) -> str | None:
    """The name of the last spec of this folder with that clock (of H100 and H200, h200); None when none has it."""
    return next((name for name in reversed(_spec_names()) if load_target(name).has_clock(clock_ghz)), None)


def target_of_device(device_kind: str) -> Target | None:
    """The absent target with the spec of the GPU whose device kind is ``device_kind`` (``NVIDIA H200``), or None."""
    words = re.split(r"[^a-z0-9]+", device_kind.lower())
    name = next((name for name in _spec_names() if name in words), None)
    return load_target(name) if name else None


def load_target(name_or_path: str) -> Target:
    """The target of that name, or the absent GPU that the spec file ``SOMETHING.txtpb`` describes.

    InputError: an unknown name (with the nearest ones), a spec that cannot be read or is broken (with the file and the
    cause), ``gpu`` where no GPU is attached.
    """
    if name_or_path == "cpu":
        return Target("cpu", "cpu", attached=True)
    if name_or_path == "gpu":
        return _attached_gpu()
    if name_or_path.endswith(".txtpb"):
        return _from_spec(Path(name_or_path))
    if name_or_path not in target_names():
        raise unknown("target", name_or_path, target_names())
    return _from_spec(_SPECS / f"{name_or_path}.txtpb")


def with_rates(
    target: Target,
    label: str,
    *,
    bandwidth_gb_s: float | None = None,
    sms: int | None = None,
    clock_ghz: float | None = None,
) -> Target:
    """``target``, named ``label``, with other figures in its spec, in GB/s and GHz: units and peaks scale with SMs and
    clock.

    InputError for a target without a spec.
    """
    if not target.spec:
        raise InputError(f"target {target.name} has no spec, so that no other figures can be put into it")
    given = {
        "memory_bandwidth": None if bandwidth_gb_s is None else round(1e9 * bandwidth_gb_s),
        "core_count": sms,
        "clock_rate_ghz": clock_ghz,
    }
    spec = target.spec
    for name, value in given.items():
        if value is not None:
            spec = re.sub(rf"\b{name}\s*:\s*[-+.\w]+", f"{name}: {value}", spec)
    return replace(target, name=label, spec=spec)


def _from_spec(path: Path) -> Target:
    try:
        spec = read_file(path).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; expected a GpuTargetConfigProto in text form") from None
    try:
        fields = _parse(spec)
        if missing := [field for field in _REQUIRED if field not in fields]:
            raise ValueError(f"missing {', '.join(missing)}")
        for field in _REQUIRED:
            if not float(fields[field]) > 0:
                raise ValueError(f"{field} must be positive, not {fields[field]}")
        sm = f"{int(fields['cuda_compute_capability.major'])}.{int(fields.get('cuda_compute_capability.minor', '0'))}"
    except ValueError as error:
        raise InputError(f"{path}: not a usable GPU spec: {error}") from None
    return Target(path.stem, "cuda", attached=False, spec=spec, sm=sm, source=str(path))


_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<open>[A-Za-z_]\w*)\s*:?\s*\{|(?P<close>\})|'
                    r'(?P<key>[A-Za-z_]\w*)\s*:\s*(?P<value>"[^"\n]*"|[-+.\w]+)[;,]?')  # fmt: skip


def _parse(spec: str) -> dict[str, str]:
    """The scalar fields of a textproto by their path below ``gpu_device_info`` (or by name, above it)."""
    fields: dict[str, str] = {}
    inside: list[str] = []
    position = 0
    while position < len(spec):
        line = spec.count("\n", 0, position) + 1
        token = _TOKEN.match(spec, position)
        if token is None:
            rest = spec[position:].splitlines()[0][:40]
            raise ValueError(f"line {line}: expected 'field: value', 'field {{' or '}}', found {rest!r}")
        if token["open"]:
            inside.append(token["open"])
        elif token["close"]:
            if not inside:
                raise ValueError(f"line {line}: a '}}' with no '{{' before it")
            inside.pop()
        elif token["key"]:
            path = [*inside[1:], token["key"]] if inside[:1] == ["gpu_device_info"] else [*inside, token["key"]]
            fields[".".join(path)] = token["value"].strip('"')
        position = token.end()
    if inside:
        raise ValueError(f"'{inside[-1]} {{' is never closed")
    return fields


def _attached_gpu() -> Target:
    jax_setup.load_jax()
    import jax

    try:
        device = jax.devices("cuda")[0]
    except RuntimeError:
        raise InputError(
            "no GPU is attached that JAX can use; compile for one that is not there instead: "
            + ", ".join(_spec_names())
        ) from None
    kind = str(device.device_kind)
    known = target_of_device(kind)
    sm = str(getattr(device, "compute_capability", ""))
    return Target("gpu", "cuda", attached=True, spec=known.spec if known else "", sm=sm, source=kind)
