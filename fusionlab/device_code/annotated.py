"""The code of one kernel with the executed memory requests beside it."""

from __future__ import annotations

from fusionlab.device_code.kernel_rows import KernelRow
from fusionlab.device_code.ptx import PtxInstruction
from fusionlab.device_code.requests import Requests
from fusionlab.device_code.warps import Access, trace

_COLUMN = 60


def annotated_ptx(row: KernelRow) -> str:
    """The PTX of a kernel; behind each access of memory its array, executions per thread, sectors and stride."""
    found = trace(row.code, row.grid)
    names = {operand.index: f"%{operand.name}" for operand in row.operands}
    notes: dict[int, list[str]] = {}
    for one in found.accesses:
        per_thread = one.requests.lanes * found.scale / max(1, row.threads)
        notes.setdefault(one.instruction.line, []).append(_of_access(one, per_thread, names.get(one.parameter, "")))
    for code in row.code.instructions:
        if kind := _kind(code):
            notes.setdefault(code.line, []).append(kind)
    lines = [line.expandtabs(4).rstrip() for line in row.code.text.splitlines()]
    for at, said in notes.items():
        lines[at] = f"{lines[at]:<{_COLUMN}} // {'; '.join(said)}"
    return "\n".join(line for line in lines if line)


def _of_access(one: Access, per_thread: float, operand: str) -> str:
    array = operand or (f"parameter {one.parameter}" if one.parameter >= 0 else "")
    stride = "" if one.stride_bytes is None else f"stride {one.stride_bytes} bytes"
    return ", ".join(filter(None, (array, f"{per_thread:.3g} a thread", stride, _of_requests(one.space, one.requests))))


def _of_requests(space: str, found: Requests) -> str:
    if found.unknown == found.requests:
        return "address depends on data"
    if space == "shared":
        return f"{found.conflict_ways:.3g} turns" if found.conflict_ways > 1 else ""
    return f"{found.sectors_over_least:.3g} times the least sectors" if found.sectors_over_least > 1 else ""


def _kind(one: PtxInstruction) -> str:
    return "special function" if one.is_special else "tensor cores" if one.is_tensor else ""
