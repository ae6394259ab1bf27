"""Compiled: the record of a compile by XLA for a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fusionlab.codegen.targets import Target
from fusionlab.errors import InputError
from fusionlab.hlo.optimised.parser import HloModule, parse_optimized

if TYPE_CHECKING:
    from fusionlab.codegen.executable import Executable


@dataclass(frozen=True)
class Memory:
    """XLA's buffer assignment, bytes on the device. ``alias_bytes`` are output bytes that reuse an argument's."""

    argument_bytes: int
    output_bytes: int
    temp_bytes: int
    alias_bytes: int


@dataclass(frozen=True)
class Compiled:
    """The result of compiling a program for a target.

    ``optimized_hlo`` is the scheduled module as text; ``thunk_sequence`` and ``thunk_metadata`` are XLA's own list of
    launches ("" on the CPU, where XLA writes none), ``captured_thunks`` the same list after XLA has put runs of thunks
    into CUDA graphs. ``priority_fusion`` are the decisions of the fusion pass, step by step, and ``fused_hlo`` the
    module after it ("" on the CPU). ``options`` are the compile options that were set.
    ``artifacts`` (only with ``dump=True``) maps the ending of each text that XLA dumped to that text. ``compile_s`` is
    the wall time of the compile itself, also when the record is ``from_cache``. ``estimates_are_of_target`` is False
    for foreign text whose estimates of times XLA did not make for ``target``.
    """

    name: str
    target: Target
    optimized_hlo: str
    thunk_sequence: str
    thunk_metadata: str
    memory: Memory
    compile_s: float
    options: Mapping[str, str | int | bool]
    versions: str
    captured_thunks: str = field(default="", repr=False)
    priority_fusion: str = field(default="", repr=False)
    fused_hlo: str = field(default="", repr=False)
    artifacts: Mapping[str, str] = field(default_factory=dict, repr=False)
    from_cache: bool = field(default=False, compare=False)
    executable: Executable | None = field(default=None, compare=False, repr=False)
    estimates_are_of_target: bool = True

    @cached_property
    def module(self) -> HloModule:
        """``optimized_hlo``, parsed."""
        return parse_optimized(self.optimized_hlo)

    def run(self, *arrays: Any) -> list[Any]:
        """Run on NumPy (or JAX) arrays, one per argument; returns NumPy arrays.

        InputError when the target is not attached; ValueError when an argument has another shape or dtype.
        """
        import numpy as np

        if self.executable is None:
            raise InputError(f"target {self.target.name} is not attached: programs compiled for it cannot be run here")
        return [np.asarray(result) for result in self.executable(self.executable.place(arrays))]
