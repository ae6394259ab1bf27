"""The kernels of a compiled program with what their code does: one row per launch site that has PTX.

Counts are executed ones, of a sample of the warps (``warps``), scaled to the grid; they are of one run. Needed bytes
are those of the operands that the launch needs, each read once, by the ledger's rules (``ledger.traffic``).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fusionlab.codegen.compile import Compiled
from fusionlab.device_code.assembler import Resources, resources_of
from fusionlab.device_code.kernel_time import KernelDemand, Terms, kernel_us, terms_of
from fusionlab.device_code.occupancy import Occupancy, occupancy
from fusionlab.device_code.ptx import UNITS, PtxKernel, parse_ptx
from fusionlab.device_code.requests import Requests
from fusionlab.device_code.warps import Access, Grid, WarpTrace, trace
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.ledger import LaunchSite, Reading
from fusionlab.ledger.thunks import parse_thunks
from fusionlab.ledger.time.model import CODE
from fusionlab.ledger.traffic import reads_of

_Kernel = TypeVar("_Kernel")
_NUMBER = re.compile(r"_\d+$")
_PLACED = re.compile(r"(\S+) grid: \[(\d+), (\d+), (\d+)\].*?shared_memory: (\d+)")


@dataclass(frozen=True)
class OperandReads:
    """The reads of one operand of a launch (``index`` among its operands): bytes that warps ask for, those that are
    needed, sectors moved and the least possible, ``warp_sectors`` those that a warp loads from, each once, and the most
    frequent stride of its loads in bytes (None: not known)."""

    index: int
    name: str
    read_bytes: int
    needed_bytes: int
    sectors: int
    least_sectors: int
    warp_sectors: int
    stride_bytes: int | None

    @property
    def surplus_sectors(self) -> int:
        """Sectors that were moved for nothing."""
        return self.sectors - self.least_sectors


@dataclass(frozen=True)
class AtomicUse:
    """Atomics of one kind: ``operation`` (``add``, ``cas``), ``type`` (``f32``), ``scope`` (``cta``, ``gpu``, ``sys``),
    ``space``, and whether the old value is returned; ``executed`` by threads, a loop until success once."""

    operation: str
    type: str
    scope: str
    space: str
    returns: bool
    executed: int


@dataclass(frozen=True)
class KernelRow:
    """One launch site with the facts of its kernel.

    ``name`` is the HLO instruction, ``kernel`` the PTX entry. The time of ``launch`` is that by the code, of ``terms``
    (None: XLA's, for a target without rates). ``result_bytes`` are those of its results, each written once.
    ``loads_by_bytes`` and ``stores_by_bytes`` are executed accesses of global memory per thread, by their width in
    bytes. ``read_bytes`` are those that warps ask for: threads of a warp with one address count once.
    ``special_functions`` and ``tensor_instructions`` are executed by threads (tensor instructions by warps);
    ``executed`` are instructions by threads and the unit that executes them (``ptx.UNITS``). ``shared`` are the
    requests to shared memory. ``data_branches`` depend on data and count as not taken; ``complete`` is False for a
    lower bound.
    """

    launch: LaunchRow
    result_bytes: int
    terms: Terms | None
    kernel: str
    threads_per_block: int
    grid: Grid
    shared_bytes: int
    resources: Resources | None
    occupancy: Occupancy | None
    loads_by_bytes: Mapping[int, float]
    stores_by_bytes: Mapping[int, float]
    read_bytes: int
    needed_bytes: int
    written_bytes: int
    loads: Requests
    stores: Requests
    shared: Requests
    operands: tuple[OperandReads, ...]
    special_functions: int
    tensor_instructions: int
    instructions_per_thread: float
    executed: Mapping[str, int]
    atomics: tuple[AtomicUse, ...]
    store_stride_bytes: int | None
    data_branches: int
    complete: bool
    code: PtxKernel = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The HLO instruction."""
        return self.launch.name

    @property
    def threads(self) -> int:
        """Threads of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2] * self.threads_per_block

    @property
    def reads_per_needed(self) -> float:
        """Bytes that are read for each that is needed, or, where fewer are needed than written, for each written."""
        least = max(self.needed_bytes, self.written_bytes)
        return self.read_bytes / least if least else 0.0

    @property
    def reads_per_written(self) -> float | None:
        """Bytes that are read for each that is written; None where nothing is written that is known."""
        return self.read_bytes / self.written_bytes if self.written_bytes else None

    @property
    def spill_bytes(self) -> int | None:
        """Bytes of a thread's spill stores and loads; None without an assembler."""
        return self.resources.spill_store_bytes + self.resources.spill_load_bytes if self.resources else None

    def to_json(self) -> dict[str, Any]:
        """The fields by name, ready for ``json.dumps``; origin, launches and time of the launch among them."""
        launch = {
            name: getattr(self.launch, name)
            for name in (
                "name",
                "family",
                "scope",
                "op",
                "transform",
                "source",
                "dynamic_launches",
                "model_us",
                "model_source",
            )
        }
        own = {
            one.name: getattr(self, one.name)
            for one in dataclasses.fields(self)
            if one.name not in ("launch", "resources", "occupancy", "operands", "atomics", "code", "terms")
        }
        counts = {name: dataclasses.asdict(own.pop(name)) for name in ("loads", "stores", "shared")}
        widths = ("loads_by_bytes", "stores_by_bytes")
        return {
            **launch,
            **own,
            **{name: {str(width): count for width, count in own[name].items()} for name in widths},
            "reads_per_needed": self.reads_per_needed,
            "reads_per_written": self.reads_per_written,
            "load_sectors_over_least": self.loads.sectors_over_least,
            "store_sectors_over_least": self.stores.sectors_over_least,
            "bank_conflict_ways": self.shared.conflict_ways,
            **{f"{name}_requests": found for name, found in counts.items()},
            "terms_us": dataclasses.asdict(self.terms) if self.terms else None,
            "resources": dataclasses.asdict(self.resources) if self.resources else None,
            "occupancy": {**dataclasses.asdict(self.occupancy), "tail": self.occupancy.tail}
            if self.occupancy
            else None,
            "operands": [dataclasses.asdict(one) for one in self.operands],
            "atomics": [dataclasses.asdict(one) for one in self.atomics],
        }


@dataclass(frozen=True)
class KernelTable:
    """The kernels of a program; ``without_code`` are launches without PTX: library calls, and XLA's own kernels.
    ``launches`` are all launch sites in XLA's order, those that never run included."""

    rows: tuple[KernelRow, ...]
    without_code: tuple[LaunchRow, ...]
    launches: tuple[LaunchRow, ...]


@dataclass(frozen=True)
class _Placed:
    """A kernel in XLA's thunk list: its name, grid and dynamic shared memory."""

    kernel: str
    grid: Grid
    dynamic_shared_bytes: int


def kernel_table(compiled: Compiled, reading: Reading | None = None) -> KernelTable:
    """Every launch site of ``compiled`` that runs, with the facts of its kernel. Each kernel is looked at once.

    A ``reading`` of ``compiled`` saves another one.
    """
    reading = Reading(compiled) if reading is None else reading
    kernels = {one.name: one for one in parse_ptx(compiled.ptx)}
    resources = resources_of(kernels.values())
    placed, by_id = _placements(compiled)
    traces: dict[str, WarpTrace] = {}
    rows, without, every = list[KernelRow](), list[LaunchRow](), list[LaunchRow]()
    sites = (one for one in reading.launches if not one.is_copy)
    for site, launch in zip(sites, launch_rows(compiled, reading=reading, tiles=True), strict=True):
        found = _placed(site, placed, by_id)
        if found is not None and found.kernel in kernels:
            kernel = kernels[found.kernel]
            if found.kernel not in traces:
                traces[found.kernel] = trace(kernel, found.grid)
            rows.append(_row(compiled, site, launch, found, traces[found.kernel], resources.get(found.kernel)))
            every.append(rows[-1].launch)
            continue
        every.append(launch)
        if site.dynamic:
            without.append(launch)
    return KernelTable(tuple(rows), tuple(without), tuple(every))


def kernels_by_launch(compiled: Compiled, reading: Reading | None = None) -> dict[str, PtxKernel]:
    """The HLO name of each launch site that runs to the PTX of its kernel, which identical fusions share.

    By name where XLA's list has no kernels. Launches without PTX are not in it. A ``reading`` of ``compiled`` saves
    another one.
    """
    kernels = {one.name: one for one in parse_ptx(compiled.ptx)}
    placed, by_id = _placements(compiled)
    found = dict[str, PtxKernel]()
    for site in (Reading(compiled) if reading is None else reading).launches:
        where = _placed(site, placed, by_id)
        kernel = kernels.get(where.kernel) if where is not None else _by_name(site.hlo_name, kernels)
        if site.dynamic and not site.is_copy and kernel is not None:
            found[site.hlo_name] = kernel
    return found


def _placed(site: LaunchSite, placed: Mapping[str, _Placed], by_id: Mapping[int, _Placed]) -> _Placed | None:
    """The kernel of a launch site that runs."""
    return (by_id.get(site.thunk_id) or _by_name(site.hlo_name, placed)) if site.dynamic else None


def _placements(compiled: Compiled) -> tuple[dict[str, _Placed], dict[int, _Placed]]:
    """The kernels of the thunk list by name, and by the id of the thunk where it can be read as a tree."""
    placed = {found.kernel: found for line in compiled.thunk_sequence.splitlines() if (found := _placement(line))}
    try:
        thunks = parse_thunks(compiled.thunk_sequence, compiled.thunk_metadata)
    except ValueError:  # lists of JAX before 0.10; the ledger says so
        return placed, {}
    every = (one for top in thunks for one in top.walk())
    return placed, {one.id: found for one in every if (found := _placement(one.description))}


def _placement(text: str) -> _Placed | None:
    found = _PLACED.search(text)
    return _Placed(found[1], (int(found[2]), int(found[3]), int(found[4])), int(found[5])) if found else None


def _by_name(hlo_name: str, placed: Mapping[str, _Kernel]) -> _Kernel | None:
    """The kernel named after an instruction; several instructions of one fusion share that of one of them."""
    name = re.sub(r"[^\w$]", "_", hlo_name)
    stem = _NUMBER.sub("", name)
    if (found := placed.get(name) or placed.get(stem)) is not None:
        return found
    alike = [one for kernel, one in placed.items() if _NUMBER.sub("", kernel) == stem]
    return alike[0] if len(alike) == 1 else None


def _row(
    compiled: Compiled,
    site: LaunchSite,
    launch: LaunchRow,
    placed: _Placed,
    found: WarpTrace,
    resources: Resources | None,
) -> KernelRow:
    kernel, scale = found.kernel, found.scale
    shared = (resources.shared_bytes if resources else kernel.shared_bytes) + placed.dynamic_shared_bytes
    grid, limits = placed.grid, compiled.target.limits
    blocks, registers = grid[0] * grid[1] * grid[2], resources.registers if resources else None
    loads, stores = found.of("global", "load", "atomic"), found.of("global", "store", "atomic", "reduction")
    operands = _operands(compiled, site, loads, found)
    threads = max(1, blocks * kernel.threads_per_block)
    executed = {unit: round(found.runs([one.unit == unit for one in kernel.instructions])) for unit in UNITS}
    held = occupancy(limits, blocks, kernel.threads_per_block, registers, shared) if limits else None
    requests = round(scale * sum(one.requests.requests for one in (*loads, *stores)))
    demand = KernelDemand.of(
        site.operand_bytes,
        site.result_bytes,
        sum(one.warp_sectors for one in operands),
        requests,
        sum(executed.values()),
        held.share if held else None,
    )
    terms = terms_of(compiled.target, demand)
    return KernelRow(
        launch=launch
        if terms is None
        else replace(launch, model_us=kernel_us(terms) * site.dynamic, model_source=CODE),
        result_bytes=site.result_bytes,
        terms=terms,
        kernel=kernel.name,
        threads_per_block=kernel.threads_per_block,
        grid=grid,
        shared_bytes=shared,
        resources=resources,
        occupancy=held,
        loads_by_bytes=_by_width(found.of("global", "load"), scale / threads),
        stores_by_bytes=_by_width(found.of("global", "store"), scale / threads),
        read_bytes=round(scale * sum(one.requests.distinct_bytes for one in loads)),
        needed_bytes=site.operand_bytes,
        written_bytes=round(scale * sum(one.requests.distinct_bytes for one in stores)),
        loads=_scaled(loads, scale),
        stores=_scaled(stores, scale),
        shared=_scaled(found.of("shared"), scale),
        operands=operands,
        special_functions=round(found.runs([one.is_special for one in kernel.instructions])),
        tensor_instructions=round(found.runs([one.is_tensor for one in kernel.instructions]) / 32),
        instructions_per_thread=found.runs([True] * len(kernel.instructions)) / threads,
        executed=executed,
        atomics=_atomics(found),
        store_stride_bytes=_stride(stores),
        data_branches=found.data_branches,
        complete=found.complete,
        code=kernel,
    )


def _scaled(accesses: Sequence[Access], scale: float) -> Requests:
    total = sum((one.requests for one in accesses), Requests())
    return Requests(*(round(scale * count) for count in dataclasses.astuple(total)))


def _by_width(accesses: Sequence[Access], per: float) -> dict[int, float]:
    counts: Counter[int] = Counter()
    for one in accesses:
        counts[one.instruction.bytes_per_lane] += one.requests.lanes
    return {width: count * per for width, count in sorted(counts.items())}


def _stride(accesses: Sequence[Access]) -> int | None:
    """The stride of the accesses that most sectors are moved for nothing by, else of the first that has one."""
    strided = [one for one in accesses if one.stride_bytes is not None]
    if not strided:
        return None
    return max(strided, key=lambda one: one.requests.sectors - one.requests.least_sectors).stride_bytes


def _operands(
    compiled: Compiled, site: LaunchSite, loads: Sequence[Access], found: WarpTrace
) -> tuple[OperandReads, ...]:
    """The reads by operand: the first parameters of a kernel are the operands of its instruction, in their order."""
    if (place := compiled.module.find(site.computation, site.hlo_name)) is None:
        return ()
    computation, instruction = place
    needed = reads_of(compiled.module, computation, instruction)
    reads = []
    for index, name in enumerate(instruction.operands):
        own = [one for one in loads if one.parameter == index]
        if own:
            total = _scaled(own, found.scale)
            reads.append(
                OperandReads(
                    index=index,
                    name=name,
                    read_bytes=total.distinct_bytes,
                    needed_bytes=needed.get(name, 0),
                    sectors=total.sectors,
                    least_sectors=total.least_sectors,
                    warp_sectors=round(found.scale * found.warp_sectors.get(index, 0)),
                    stride_bytes=_stride(own),
                )
            )
    return tuple(reads)


def _atomics(found: WarpTrace) -> tuple[AtomicUse, ...]:
    counts: Counter[tuple[str, str, str, str, bool]] = Counter()
    for one in found.accesses:
        code = one.instruction
        if code.access in ("atomic", "reduction"):
            key = (code.operation, code.parts[-1], code.scope, one.space, code.access == "atomic")
            counts[key] += one.requests.lanes
    return tuple(AtomicUse(*key, executed=round(found.scale * count)) for key, count in counts.items())
