"""Footprint: the static costs of one compiled program, the record of ``dump`` and of each side of ``apply``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.hlo.program import Program
from fusionlab.ledger.ledger import count_launches


@dataclass(frozen=True)
class Footprint:
    """Launches, memory and work of one program on one target.

    Launches are XLA's (``launch_source`` says from which of its lists), memory is XLA's buffer assignment;
    ``flops`` (None when not computed) and ``bytes_accessed`` are models, trips multiplied. Loops of unknown trip
    count are taken as one trip and counted in ``unknown_trip_loops``; ``walkers`` is None for a file. Of several
    ``devices``, the figures are those of each one; ``dynamic_collectives`` are among its launches.
    """

    name: str
    target: str
    walkers: int | None
    static_launches: int
    dynamic_launches: int
    dynamic_copies: int
    temp_bytes: int
    argument_bytes: int
    flops: float | None
    bytes_accessed: int
    compile_s: float
    stablehlo_ops: int
    unknown_trip_loops: int = 0
    launch_source: str = ""
    devices: int = 1
    dynamic_collectives: int = 0

    def to_json(self) -> dict[str, Any]:
        """The fields by name, ready for ``json.dumps``."""
        return dataclasses.asdict(self)


def footprint(
    program: Program, compiled: Compiled, flops: float | None = None, walkers: int | None = None
) -> Footprint:
    """The footprint of ``compiled``, which was compiled from ``program``; ``flops`` come from fusionlab's rules."""
    counts = count_launches(compiled)
    return Footprint(
        name=program.name,
        target=compiled.target.name,
        walkers=walkers,
        static_launches=counts.static_launches,
        dynamic_launches=counts.dynamic_launches,
        dynamic_copies=counts.dynamic_copies,
        temp_bytes=compiled.memory.temp_bytes,
        argument_bytes=compiled.memory.argument_bytes,
        flops=flops,
        bytes_accessed=counts.bytes_accessed,
        compile_s=compiled.compile_s,
        stablehlo_ops=program.ops,
        unknown_trip_loops=counts.unknown_trip_loops,
        launch_source=counts.launch_source,
        devices=program.devices,
        dynamic_collectives=counts.dynamic_collectives,
    )


def peak_bytes(memory: Memory) -> int:
    """Bytes that must fit on the device at once: arguments, results that alias none of them, and temporaries."""
    return memory.argument_bytes + memory.output_bytes - memory.alias_bytes + memory.temp_bytes
