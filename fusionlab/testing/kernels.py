"""Assertions about the code of a function's kernels, for a target that may be absent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.device_code.assembler import INSTALL
from fusionlab.device_code.findings import Findings
from fusionlab.device_code.kernel_rows import KernelRow, kernel_table
from fusionlab.errors import InputError
from fusionlab.testing.launches import Ledger, ledger


def assert_no_spills(fn: Any, args: Sequence[Any] = (), *, at_most: int = 0, target: str = "a100") -> Ledger:
    """AssertionError where a thread of a kernel of ``fn`` spills more than ``at_most`` bytes of registers to memory.

    Library calls are not looked at. ``fn``, ``args`` and ``target`` are as for ``ledger``, whose result is returned.
    InputError for a target without kernels (the CPU), and without ``ptxas`` (the extra ``kernels``).
    """
    __tracebackhide__ = True
    made = ledger(fn, args, target=target)
    rows = _rows(made)
    if rows and all(row.resources is None for row in rows):
        raise InputError(f"spills are not known without ptxas: {INSTALL}")
    _require_none(made, [row for row in rows if (row.spill_bytes or 0) > at_most], "spill", "spill registers")
    return made


def assert_no_cas_atomics(fn: Any, args: Sequence[Any] = (), *, target: str = "a100") -> Ledger:
    """AssertionError where a kernel of ``fn`` has a loop of compare-and-swap: where threads meet, they go one by one.

    ``fn``, ``args`` and ``target`` are as for ``ledger``, whose result is returned. InputError for a target without
    kernels (the CPU).
    """
    __tracebackhide__ = True
    made = ledger(fn, args, target=target)
    found = [row for row in _rows(made) if any(one.operation == "cas" for one in row.atomics)]
    _require_none(made, found, "cas", "have loops of compare-and-swap")
    return made


def _rows(made: Ledger) -> tuple[KernelRow, ...]:
    target = made.compiled.target
    if target.kind == "cpu":
        raise InputError(f"{target.name} has no kernels to look at; name a GPU target, as a100")
    if made.compiled.ptx:
        return kernel_table(made.compiled).rows
    return kernel_table(compile_program(made.program, target, ptx=True, cache=default_cache())).rows


def _require_none(made: Ledger, rows: Sequence[KernelRow], kind: str, words: str) -> None:
    """AssertionError that names ``rows`` with their finding of that kind, its op and source line."""
    __tracebackhide__ = True
    if not rows:
        return
    findings = Findings(made.compiled.module)
    lines = [
        f"  {row.name}: {one.words}" + (f", from {one.place}" if one.place else "")
        for row in rows
        for one in findings.of(row)
        if one.kind == kind
    ]
    title = f"{made.program.name} on {made.compiled.target.name}"
    raise AssertionError("\n".join([f"{title}: {len(rows)} of its kernels {words}", *lines]))
