"""What fuse-jvp-replay has to reach beside folx's forward Laplacian, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rows import Row

MIB = 2**20

AT_MOST = {
    ("deepqmc:paulinet", "CH4"): (215, 1500),
    ("deepqmc:ferminet", "CH4"): (110, 2200),
    ("deepqmc:psiformer", "CH4"): (285, 2500),
}
"""Dynamic launches and temp MiB at most, where they were set as numbers."""

OF_FOLX = 0.9
"""Launches and temp bytes at most, in those of dense folx, everywhere else."""

PASS_S = {"CH4": 20.0, "C4H4": 60.0}
"""Process seconds of the pass at most, for PauliNet."""

FEWER = 10
"""How many times fewer launches than the replay there are to be within the replay's own temp bytes."""


@dataclass(frozen=True)
class Bar:
    """``figure`` is to be at most ``limit``; either is None where it is not known."""

    name: str
    figure: float | None
    limit: float | None
    stretch: bool = False

    @property
    def holds(self) -> bool | None:
        """None where something is not known."""
        if self.figure is None or self.limit is None:
            return None
        return self.figure <= self.limit


def bars(model: str, molecule: str, sides: Mapping[str, Row]) -> list[Bar]:
    """The bars of one ansatz on one molecule from the rows of its sides."""

    def of(side: str, figure: str, times: float = 1.0) -> float | None:
        value = sides.get(side, {}).get(figure)
        return None if value is None else times * value

    launches, mib = AT_MOST.get((model, molecule), (None, None))
    most_launches = of("folx-dense", "dynamic_launches", OF_FOLX) if launches is None else launches
    most_bytes = of("folx-dense", "temp_bytes", OF_FOLX) if mib is None else mib * MIB
    found = [
        Bar("launches", of("fused", "dynamic_launches"), most_launches),
        Bar("temp", of("fused", "temp_bytes"), most_bytes),
        Bar("FLOPs", of("fused", "flops"), of("folx-sparse", "flops")),
        Bar("copies", of("fused", "dynamic_copies"), of("folx-dense", "dynamic_copies")),
        Bar("launches in the replay's memory", _within(sides), of("replay", "dynamic_launches", 1 / FEWER)),
        Bar("twice log-psi", of("fused", "dynamic_launches"), of("log-psi", "dynamic_launches", 2), stretch=True),
    ]
    if model.endswith("paulinet") and molecule in PASS_S:
        found.append(Bar("pass seconds", of("pass", "pass_process_s"), PASS_S[molecule]))
    return found


def _within(sides: Mapping[str, Row]) -> float | None:
    """The launches of the program within the replay's temp bytes; infinite where no program was within them."""
    bounded, replay = sides.get("fused-in-replay-memory", {}), sides.get("replay", {})
    if bounded.get("temp_bytes") is None or replay.get("temp_bytes") is None:
        return None
    if bounded["temp_bytes"] > replay["temp_bytes"]:
        return float("inf")
    launches: float = bounded["dynamic_launches"]
    return launches
