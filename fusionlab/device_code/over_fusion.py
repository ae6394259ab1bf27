"""Over-fusion: kernels that compute a part of themselves several times, and what they would cost in two kernels.

XLA fuses a sum into the op that reads it; where that op has several elements for each value of the sum (a concatenation
of features, a pair of electrons), each computes the sum again. Alone, the part reads its operands once and writes its
result; what is left reads that instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fusionlab.codegen.targets import Target
from fusionlab.device_code.findings import Findings, Recomputed
from fusionlab.device_code.kernel_rows import KernelRow
from fusionlab.device_code.kernel_time import streaming_us


@dataclass(frozen=True)
class OverFusion:
    """A kernel with ``parts`` that it computes several times: microseconds of all its runs as it is, of the rest and of
    the parts as kernels of their own (model)."""

    row: KernelRow
    parts: tuple[Recomputed, ...]
    us: float
    rest_us: float
    parts_us: float

    @property
    def lost_us(self) -> float:
        """What two kernels would save; negative where fusion pays."""
        return self.us - self.rest_us - self.parts_us

    @property
    def place(self) -> str:
        """The op and the source line of the part that is computed most often."""
        return self.parts[0].place

    def to_json(self) -> dict[str, Any]:
        """The fields, the kernel by name, ready for ``json.dumps``."""
        times = {"us": self.us, "rest_us": self.rest_us, "parts_us": self.parts_us, "lost_us": self.lost_us}
        return {"kernel": self.row.name, **times, "parts": [asdict(one) for one in self.parts]}


def over_fusions(target: Target, rows: Sequence[KernelRow], findings: Findings) -> tuple[OverFusion, ...]:
    """The kernels that would gain by two kernels, those that lose most first."""
    found = (one for row in rows if (one := _over_fusion(target, row, findings.recomputed(row))) is not None)
    return tuple(sorted((one for one in found if one.lost_us > 0), key=lambda one: -one.lost_us))


def _over_fusion(target: Target, row: KernelRow, parts: tuple[Recomputed, ...]) -> OverFusion | None:
    if not parts or row.launch.model_us is None:
        return None
    needed = {one.name: one.needed_bytes for one in row.operands}
    given = sum(needed[name] for name in {name for part in parts for name in part.operands})
    made = sum(part.result_bytes for part in parts)
    own = streaming_us(target, given + made)
    rest = streaming_us(target, row.needed_bytes + made + row.result_bytes)
    if own is None or rest is None:
        return None
    runs = row.launch.dynamic_launches
    return OverFusion(row, parts, row.launch.model_us, rest * runs, own * runs)
