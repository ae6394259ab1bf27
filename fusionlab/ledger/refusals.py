"""The kernel boundaries that XLA refused to remove, and why: its fusion dump joined to kernels, scopes and source.

XLA has times only where it weighed a fusion. For all refusals alike, the cost of the boundary is modelled in XLA's own
terms: one launch (1 us) and the producer's result written and read once over the target's memory bandwidth. Of an
update in place, that is the update. Of the CPU there is no bandwidth: its boundaries have bytes alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, parse_optimized
from fusionlab.ledger.dataflow import VIEWS, behind_views, instructions, members, readers
from fusionlab.ledger.fusion_steps import FusionStep, read_labels, read_steps
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.origins import Origins
from fusionlab.ledger.time.model import LAUNCH_US, ceilings_of
from fusionlab.ledger.traffic import data_bytes, reads_of, traffic_of


@dataclass(frozen=True)
class FusionRefusal:
    """A result that its readers read from memory, and the reason.

    ``producer`` is its name when XLA decided, ``kernel`` the launch of the final program that it is part of (several
    producers may share one), ``consumers`` the launches that read it, without ``kernel`` itself: ``merged_readers`` of
    its readers ended up in the same kernel. Stage, role, op_name, source, scope, op and transform are the producer's
    own, else its kernel's.
    ``result_bytes`` is what one run writes and ``read_bytes`` what is read of it: a part where it updates in place, or
    where its readers take slices (``ledger.traffic``).
    ``boundary_us`` is the cost of the boundary over all trips (model; the launch is shared by the producers of one
    kernel); ``us_unfused`` and ``us_fused`` are XLA's estimates of one run of producer and consumers, if any.
    """

    producer: str
    kernel: str
    consumers: tuple[str, ...]
    cause: str
    stage: str
    role: str
    op_name: str
    source: str
    dynamic_launches: int
    result_bytes: int
    read_bytes: int
    boundary_us: float | None
    us_unfused: float | None
    us_fused: float | None
    merged_readers: int = 0
    scope: str = ""
    op: str = ""
    transform: str = ""


@dataclass(frozen=True)
class Coverage:
    """The outcome of the ``producers`` that XLA refused to fuse and that remained after its fusion pass.

    ``joined`` are refusals with a launch; ``results`` are results of the program or of a loop, which nothing could be
    fused into; ``merged`` are in one kernel with all their readers, so no boundary is left; ``idle`` are in code that
    never runs; ``not_joined`` were not found in the final program. ``launches`` are the launch sites that run,
    ``launches_refused`` those of them that have at least one refusal.
    """

    producers: int
    joined: int
    merged: int
    idle: int
    not_joined: int
    launches: int
    launches_refused: int
    results: int = 0


@dataclass(frozen=True)
class Refusals:
    """The refusals, the costliest boundary first, and their coverage of XLA's record."""

    found: tuple[FusionRefusal, ...]
    coverage: Coverage


def refusals(compiled: Compiled, rows: tuple[LaunchRow, ...] | None = None) -> Refusals | None:
    """Every kernel boundary that XLA refused to remove; None if XLA wrote no dump (for the CPU, unless asked for it).

    ``rows``, if passed, saves recomputing the ledger.
    """
    on_cpu = compiled.target.kind == "cpu"
    if not compiled.fused_hlo or not (compiled.priority_fusion or on_cpu):
        return None
    by_name = {row.name: row for row in (launch_rows(compiled) if rows is None else rows)}
    names = KernelNames(parse_optimized(compiled.fused_hlo), compiled.module, frozenset(by_name))
    # A producer that is in no module was fused into another one, which has a decision of its own.
    decided = read_labels(compiled.fusion_labels) if on_cpu else read_steps(compiled.priority_fusion)
    steps = [step for step in decided if step.producer in names.places and (not on_cpu or _is_boundary(step, names))]
    outcomes = [_refusal(step, names, by_name) for step in steps]
    found = [one for one in outcomes if isinstance(one, FusionRefusal)]
    became = Counter(one for one in outcomes if isinstance(one, str))
    producers = Counter(one.kernel for one in found)
    found = [_with_cost(one, compiled, producers) for one in found]
    runs = {row.name for row in by_name.values() if row.dynamic_launches}
    coverage = Coverage(
        producers=len(outcomes),
        joined=len(found),
        merged=became["merged"],
        idle=became["idle"],
        not_joined=became["not_joined"],
        launches=len(runs),
        launches_refused=len(runs & {one.kernel for one in found}),
        results=became["results"],
    )
    return Refusals(tuple(sorted(found, key=_costliest_first)), coverage)


def _costliest_first(one: FusionRefusal) -> tuple[float, int, str]:
    return -(one.boundary_us or 0.0), -boundary_bytes(one), one.producer


def boundary_bytes(one: FusionRefusal) -> int:
    """Bytes that are written and read at the boundary over all trips (model)."""
    return one.dynamic_launches * (one.result_bytes + one.read_bytes)


def _is_boundary(step: FusionStep, names: KernelNames) -> bool:
    """True if a pair of XLA:CPU's is one of kernels: no constant, no result of the program, no body of a reduction."""
    computation, producer = names.places[step.producer]
    return producer.opcode != "constant" and computation.name in names.running and bool(_reading(step, names))


def _reading(step: FusionStep, names: KernelNames) -> list[Instruction]:
    """The readers that a refusal is about, through views. A result that is handed on is no reader of a pair."""
    every = names.readers(step.producer)
    if not step.consumers:
        return every
    computation = names.places[step.producer][0]
    decided = [computation.by_name[name] for name in step.consumers if name in computation.by_name]
    behind = {one.name for view in decided if view.opcode in VIEWS for one in readers(computation, view.name)}
    named = behind | {one.name for one in decided}
    return [one for one in every if one.name in named and one.opcode != "tuple"]


def _with_cost(one: FusionRefusal, compiled: Compiled, producers: Mapping[str, int]) -> FusionRefusal:
    ceilings = ceilings_of(compiled.target)
    if ceilings is None:
        return one
    moved_us = ceilings.least_us(0, one.result_bytes + one.read_bytes)
    return replace(one, boundary_us=one.dynamic_launches * (LAUNCH_US / producers[one.kernel] + moved_us))


def _refusal(step: FusionStep, names: KernelNames, rows: Mapping[str, LaunchRow]) -> FusionRefusal | str:
    """The refusal, without its cost; or the reason for none: a field of Coverage."""
    kernel = names.kernel(step.producer)
    row = rows.get(kernel)
    if row is None:
        return "not_joined"
    if row.dynamic_launches == 0:
        return "idle"
    reading = _reading(step, names)
    kernels = [names.kernel(one.name) or f"{one.opcode} {one.name}" for one in reading]
    consumers = tuple(dict.fromkeys(name for name in kernels if name != kernel))
    if reading and not consumers:
        return "merged"
    computation, one = names.places[step.producer]
    cause = _cause(step, one, reading)
    if makes_result(cause):
        return "results"
    written = min(data_bytes(one), traffic_of(names.fused, computation, one).result_bytes)
    own = names.origins.of_members(one)
    origin = own if own.is_known and (own.is_staged or not row.is_staged) else row
    name = read_name(origin.op_name)
    return FusionRefusal(
        producer=step.producer,
        kernel=kernel,
        consumers=consumers,
        cause=cause,
        stage=origin.stage,
        role=origin.role,
        op_name=origin.op_name,
        source=origin.source,
        scope=name.scope,
        op=origin.op,
        transform=name.transform if origin.op_name else "",
        dynamic_launches=row.dynamic_launches,
        result_bytes=written,
        read_bytes=min(written, _read_bytes(names.fused, computation, one, reading)),
        boundary_us=None,
        us_unfused=step.us_unfused,
        us_fused=step.us_fused,
        merged_readers=kernels.count(kernel),
    )


def _read_bytes(
    module: HloModule, computation: Computation, producer: Instruction, reading: Sequence[Instruction]
) -> int:
    """Bytes of the result that its readers read, each part once: not more than there are. What is passed on whole, as
    the result of a loop, is read later."""
    if not reading or any(reader.opcode in _PASSES_ON for reader in reading):
        return data_bytes(producer)
    return sum(
        amount
        for reader in reading
        for name, amount in reads_of(module, computation, reader).items()
        if behind_views(computation, name)[0] == producer.name
    )


def _cause(step: FusionStep, producer: Instruction, reading: Sequence[Instruction]) -> str:
    """XLA's reason; where it calls the consumer or producer not fusible, with the kind of that one."""
    kinds: list[str] = []
    if step.reason in _OF_THE_PRODUCER:
        is_result = all(map(_returns, reading)) if reading else producer.is_root
        kinds = [_RESULT if is_result else _what(producer)]
    elif step.reason in _OF_THE_CONSUMER:
        kinds = sorted({_what(reader) for reader in reading})[:3]
    return f"{step.reason}: {', '.join(kinds)}" if kinds else step.reason


def _what(one: Instruction) -> str:
    if one.opcode == "custom-call":
        return "library call " + one.custom_call_target
    if _returns(one):
        return _RESULT
    return {"tuple": _RESULT, "while": "while loop", "fusion": "kernel"}.get(one.opcode, one.opcode)


def _returns(reader: Instruction) -> bool:
    """True if ``reader`` only hands a value on as the result of its computation."""
    return reader.is_root and reader.opcode in ("tuple", *VIEWS)


_OF_THE_PRODUCER = ("the producer is not fusible", "Producer is not loop-fusible")
_OF_THE_CONSUMER = (
    "the consumer is not fusible",
    "not fusing because there are only bitcast users",
    "Not fusing: not found a fusible case",
)
"""XLA's reasons that are due to the kind of one of the two, for GPUs and for the CPU."""


def makes_result(cause: str) -> bool:
    """True for a kernel that only makes a result of the program, a loop or a branch: no reader is refused."""
    return cause == _NO_USERS or cause.endswith(f": {_RESULT}")


_NO_USERS = "No users to fuse"
"""XLA's reason."""
_RESULT = "result of the loop or program"
_PASSES_ON = ("tuple", "while", "conditional", "call")


def xla_estimates(found: Sequence[FusionRefusal]) -> dict[str, Any]:
    """XLA's own times over all trips, for the refusals that it weighed; ``us_lost`` is the time fusing would save."""
    times = [(one.us_unfused, one.us_fused, one.dynamic_launches) for one in found]
    weighed = [(old * runs, new * runs) for old, new, runs in times if old is not None and new is not None]
    unfused, fused = (sum(each) for each in zip(*weighed, strict=True)) if weighed else (None, None)
    return {
        "refusals_with": len(weighed),
        "refusals_without": len(found) - len(weighed),
        "us_unfused": unfused,
        "us_fused": fused,
        "us_lost": None if unfused is None or fused is None else unfused - fused,
    }


def launches_refused(found: Sequence[FusionRefusal]) -> int:
    """Dynamic launches of the kernels of ``found``, each kernel once."""
    return sum({one.kernel: one.dynamic_launches for one in found}.values())


def by_cause(found: Sequence[FusionRefusal]) -> list[dict[str, Any]]:
    """Refusals by cause. The launches of a kernel with several causes count for its costliest boundary's."""
    causes: dict[str, list[FusionRefusal]] = {}
    counted: dict[str, FusionRefusal] = {}
    for one in found:
        causes.setdefault(one.cause, []).append(one)
        counted.setdefault(one.kernel, one)
    groups = []
    for cause, same in causes.items():
        known = [one.boundary_us for one in same if one.boundary_us is not None]
        groups.append(
            {
                "cause": cause,
                "refusals": len(same),
                "kernels": len({one.kernel for one in same}),
                "dynamic_launches": launches_refused([one for one in same if counted[one.kernel] is one]),
                "boundary_us": sum(known) if known else None,
                "boundary_bytes": sum(map(boundary_bytes, same)),
                "xla": xla_estimates(same),
            }
        )
    return sorted(groups, key=lambda group: (-(group["boundary_us"] or 0.0), -group["boundary_bytes"]))


_NOT_NAMED = ("parameter", "constant")
_Result = tuple[str, str, int]


class KernelNames:
    """The map from instructions of the module after XLA's fusion pass to launches of the final program.

    Later passes rename (single ops get wrapped), copy (a copy has another last number) and merge (siblings, or a
    producer and its reader, become one kernel with several results). So an instruction is found by the names of the ops
    fused into it, and then by opcode, op_name and size of its results.

    ``fused`` is the module after fusion, of which ``origins`` are the origins, ``final`` the compiled one, ``launches``
    the names of its launches. ``places`` has every instruction of ``fused`` by name, with its computation; ``running``
    are the computations that run step by step: the entry, bodies, conditions, branches.
    """

    def __init__(self, fused: HloModule, final: HloModule, launches: frozenset[str]) -> None:
        self.fused = fused
        self.origins = Origins(fused)
        self.places = {one.name: (computation, one) for computation, one in instructions(fused)}
        self.running = set(_running(fused, fused.entry.name))
        self._of_member: dict[str, str] = {}
        self._of_stem: dict[str, set[str]] = {}
        self._of_result: dict[_Result, set[str]] = {}
        for _, launch in instructions(final):
            if launch.name in launches:
                for member in (launch, *members(final, launch)):
                    self._of_member[member.name] = launch.name
                    self._of_stem.setdefault(_stem(member.name), set()).add(launch.name)
                for result in _results(final, launch):
                    self._of_result.setdefault(result, set()).add(launch.name)
        self._kernels = self._settled()

    def kernel(self, name: str) -> str:
        """The launch that ``name`` of the module after fusion is part of; "" when unknown."""
        return self._kernels.get(name, "")

    def readers(self, name: str) -> list[Instruction]:
        """The instructions that read ``name``, through views."""
        return readers(self.places[name][0], name)

    def _settled(self) -> dict[str, str]:
        """Each instruction's launch: by name; then by results, ties broken by its neighbours' launches."""
        known, open_ = dict[str, str](), dict[str, set[str]]()
        for name, (_, one) in self.places.items():
            if found := self._by_name(one):
                known[name] = found
            elif candidates := {at for result in _results(self.fused, one) for at in self._of_result.get(result, ())}:
                open_[name] = candidates
        settled = True
        while settled:
            settled = False
            for name, candidates in list(open_.items()):
                if len(candidates) > 1:
                    candidates = candidates & {known.get(beside, "") for beside in self._neighbours(name)}
                if len(candidates) == 1:
                    known[name] = next(iter(candidates))
                    del open_[name]
                    settled = True
        return known

    def _by_name(self, one: Instruction) -> str:
        inside = [member.name for member in members(self.fused, one) if member.opcode not in _NOT_NAMED]
        for found in (*reversed(inside), one.name):
            if found in self._of_member:
                return self._of_member[found]
        for found in (*reversed(inside), one.name):
            if len(kernels := self._of_stem.get(_stem(found), set())) == 1:
                return next(iter(kernels))
        return ""

    def _neighbours(self, name: str) -> Iterator[str]:
        computation, one = self.places[name]
        yield from (reader.name for reader in self.readers(name))
        yield from (behind_views(computation, operand)[0] for operand in one.operands)


def _results(module: HloModule, one: Instruction) -> Iterator[_Result]:
    """Opcode, op_name and number of elements of each result of a fusion, looked at through views, or of a single op."""
    if not one.is_fusion or not one.called:
        if one.op_name and not one.shape.is_tuple:
            yield one.opcode, one.op_name, one.shape.size
        return
    computation = module.computations[one.called[0]]
    root = computation.root
    for name in root.operands if root.opcode == "tuple" else (root.name,):
        found = computation.by_name[behind_views(computation, name)[0]]
        if found.op_name and not found.shape.is_tuple:
            yield found.opcode, found.op_name, found.shape.size


def _running(module: HloModule, name: str) -> Iterator[str]:
    yield name
    for one in module.computations[name].instructions:
        if one.opcode in _PASSES_ON:
            for inside in one.called:
                yield from _running(module, inside)


def _stem(name: str) -> str:
    return re.sub(r"\.\d+$", "", name)
