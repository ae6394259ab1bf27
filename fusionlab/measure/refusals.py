"""What XLA's fusion pass refused: its priority-fusion dump, read as records, and joined to kernels and source.

The dump (``FusionProcessDumpProto`` in text form) lists what the pass did, step by step: ``fusion`` (a producer went
into a consumer), ``producer_ineligible`` (with the reason) and ``update_priority`` (XLA's estimate in microseconds of
producer and consumers unfused and fused; what would get slower is not fused). Of a producer that is still there at the
end, the last step is the refusal.

XLA gives times only where it weighed a fusion. For all refusals alike, what the boundary costs is modelled in XLA's
own terms: one launch (1 us) and the producer's result written and read once over the target's memory bandwidth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fusionlab.codegen.compile import Compiled
from fusionlab.codegen.targets.target import Peaks
from fusionlab.hlo.optimized import Computation, HloModule, Instruction, parse_optimized
from fusionlab.measure.launch_rows import LaunchRow, launch_rows
from fusionlab.measure.model_time import LAUNCH_US
from fusionlab.measure.origins import members
from fusionlab.measure.traffic import data_bytes

SLOWER = "XLA's cost model says that fused is slower"
_STEP = re.compile(r"fusion_steps \{\n  (\w+) \{\n(.*?)\n  \}\n\}", re.DOTALL)
_FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))')
_VIEWS = ("bitcast", "get-tuple-element", "tuple", "reshape")


@dataclass(frozen=True)
class Step:
    """One refusal as the dump has it: ``reason`` is XLA's (or SLOWER); times are per run, None where XLA gave none."""

    producer: str
    reason: str
    us_unfused: float | None = None
    us_fused: float | None = None


@dataclass(frozen=True)
class Refusal:
    """A kernel whose result its readers read from memory, and why.

    ``kernel`` and ``consumers`` are launches (HLO names of the final program); ``boundary_us`` is what the boundary
    costs over all trips (model); ``us_unfused`` and ``us_fused`` are XLA's estimates of one run of producer and
    consumers, where it made them.
    """

    kernel: str
    consumers: tuple[str, ...]
    cause: str
    stage: str
    role: str
    op_name: str
    source: str
    dynamic_launches: int
    result_bytes: int
    boundary_us: float | None
    us_unfused: float | None
    us_fused: float | None


def read_steps(dump: str) -> tuple[Step, ...]:
    """The last decision about every producer that was not fused away, in the order of the dump."""
    last: dict[str, Step] = {}
    for match in _STEP.finditer(dump):
        fields = {name: text or bare for name, text, bare in _FIELD.findall(match[2])}
        producer = fields.get("producer_name", "")
        last.pop(producer, None)
        if match[1] == "producer_ineligible":
            last[producer] = Step(producer, fields.get("reason", "no reason given"))
        elif match[1] == "update_priority":
            unfused, fused = float(fields.get("us_unfused", "nan")), float(fields.get("us_fused", "nan"))
            if fused >= unfused:
                last[producer] = Step(producer, SLOWER, unfused, fused)
    return tuple(last.values())


def refusals(compiled: Compiled, rows: tuple[LaunchRow, ...] | None = None) -> tuple[Refusal, ...]:
    """Every kernel boundary that XLA refused to remove, the costliest first; empty where XLA wrote no dump (the CPU).

    Producers that are no launch of their own in the final program (constants, views, what a later pass merged) are
    left out. ``rows`` saves computing the ledger again.
    """
    if not compiled.priority_fusion or not compiled.fused_hlo:
        return ()
    join = _Join(compiled, launch_rows(compiled) if rows is None else rows)
    found: dict[tuple[str, str], Refusal] = {}
    for step in read_steps(compiled.priority_fusion):
        refusal = join.refusal(step)
        if refusal is not None:
            found.setdefault((refusal.kernel, refusal.cause), refusal)
    return tuple(sorted(found.values(), key=lambda one: -(one.boundary_us or 0.0)))


class _Join:
    """Instructions of the module after fusion, found again in the final module by the names of their members."""

    def __init__(self, compiled: Compiled, rows: tuple[LaunchRow, ...]) -> None:
        self.fused = parse_optimized(compiled.fused_hlo)
        self.final = compiled.module
        self.peaks: Peaks | None = compiled.target.peaks
        self.rows: Mapping[str, LaunchRow] = {row.name: row for row in rows}
        self.kernel_of_member: dict[str, str] = {}
        self.kernels_of_stem: dict[str, set[str]] = {}
        for launch in _all_instructions(self.final):
            if launch.name in self.rows:
                for member in (launch, *members(self.final, launch)):
                    self.kernel_of_member[member.name] = launch.name
                    self.kernels_of_stem.setdefault(_stem(member.name), set()).add(launch.name)
        self.places: dict[str, tuple[Computation, Instruction]] = {
            one.name: (computation, one)
            for computation in self.fused.computations.values()
            for one in computation.instructions
        }

    def kernel(self, name: str) -> str:
        """The launch of the final program that ``name`` of the module after fusion became; "" when there is none."""
        if name not in self.places:
            return ""
        one = self.places[name][1]
        inside = [member.name for member in members(self.fused, one) if member.opcode not in ("parameter", "constant")]
        for found in (*reversed(inside), name):
            if found in self.kernel_of_member:
                return self.kernel_of_member[found]
        # A later pass copied it (wrapped a single op, put siblings into one kernel): the copy has another last number.
        for found in (*reversed(inside), name):
            if len(kernels := self.kernels_of_stem.get(_stem(found), set())) == 1:
                return next(iter(kernels))
        return ""

    def consumers(self, name: str) -> tuple[str, ...]:
        """The launches that read ``name``, through views."""
        computation, one = self.places[name]
        found: list[str] = []
        pending = list(computation.users[one.name])
        seen: set[str] = set()
        while pending:
            user = pending.pop(0)
            if user.name in seen:
                continue
            seen.add(user.name)
            if user.opcode in _VIEWS and not user.is_root:
                pending += computation.users[user.name]
            else:
                found.append(self.kernel(user.name) or f"{user.opcode} {user.name}")
        return tuple(dict.fromkeys(found))

    def refusal(self, step: Step) -> Refusal | None:
        kernel = self.kernel(step.producer)
        row = self.rows.get(kernel)
        if row is None or row.dynamic_launches == 0:
            return None
        one = self.places[step.producer][1]
        written = data_bytes(one)
        boundary = None
        if self.peaks is not None:
            once = LAUNCH_US + 1e6 * 2 * written / self.peaks.memory_bytes_per_s
            boundary = once * row.dynamic_launches
        return Refusal(
            kernel=kernel,
            consumers=self.consumers(step.producer),
            cause=self.cause(step),
            stage=row.stage,
            role=row.role,
            op_name=row.op_name,
            source=row.source,
            dynamic_launches=row.dynamic_launches,
            result_bytes=written,
            boundary_us=boundary,
            us_unfused=step.us_unfused,
            us_fused=step.us_fused,
        )

    def cause(self, step: Step) -> str:
        """XLA's reason; where it blames the consumer or producer for not being fusible, with what that one is."""
        if step.reason == "the producer is not fusible":
            return f"the producer is not fusible: {self._what(self.places[step.producer][1])}"
        if step.reason in ("the consumer is not fusible", "not fusing because there are only bitcast users"):
            computation = self.places[step.producer][0]
            readers = [
                self.places[name][1] if name in self.places else None for name in self._readers(computation, step)
            ]
            kinds = sorted({self._what(reader) for reader in readers if reader is not None})
            return f"{step.reason}: {', '.join(kinds[:3])}" if kinds else step.reason
        return step.reason

    def _readers(self, computation: Computation, step: Step) -> Iterator[str]:
        pending = list(computation.users[step.producer])
        seen: set[str] = set()
        while pending:
            user = pending.pop(0)
            if user.name in seen:
                continue
            seen.add(user.name)
            if user.opcode in ("bitcast", "get-tuple-element") and not user.is_root:
                pending += computation.users[user.name]
            else:
                yield user.name

    def _what(self, one: Instruction) -> str:
        if one.opcode != "custom-call":
            return {"tuple": "result of the loop or program", "while": "while loop", "fusion": "kernel"}.get(
                one.opcode, one.opcode
            )
        return "library call " + one.custom_call_target


def _stem(name: str) -> str:
    return re.sub(r"\.\d+$", "", name)


def _all_instructions(module: HloModule) -> Iterator[Instruction]:
    for computation in module.computations.values():
        yield from computation.instructions
