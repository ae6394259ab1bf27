"""What a command works on: a model by name, or a file."""

from __future__ import annotations

from dataclasses import dataclass

from fusionlab.codegen.targets import target_of_clock
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.hlo.saved import HloFile, load_saved
from fusionlab.workload import Workload


@dataclass(frozen=True)
class SourceOptions:
    """The options that say what to work on, as given on the command line."""

    file: str | None = None
    model: str | None = None
    molecule: str = "CH4"
    walkers: int = 1024
    program: str = "local-energy"
    laplacian: str | None = None
    dtype: str = "float32"
    size: str = "full"
    charge: int | None = None
    spin: int | None = None


def load_source(options: SourceOptions) -> Workload | Program:
    """The workload or the file's program; InputError unless exactly one of the two is named."""
    if (options.file is None) == (options.model is None):
        raise InputError("name one thing to work on: either --model NAME or a StableHLO FILE")
    if options.file is not None:
        return load_program(options.file)
    from workloads.catalogue import build

    assert options.model is not None
    return build(
        options.model,
        molecule=options.molecule,
        program=options.program,
        walkers=options.walkers,
        dtype=options.dtype,
        laplacian=options.laplacian,
        size=options.size,
        charge=options.charge,
        spin=options.spin,
    )


def load_program(path: str) -> Program:
    """The StableHLO program of a file: text, bytecode, portable artifact or saved ``jax.export``; else InputError."""
    found = load_saved(path)
    if isinstance(found, HloFile):
        raise InputError(f"{path}: this is XLA's optimised HLO; a rewrite and a check need StableHLO")
    return found


def default_target(source: object) -> str:
    """The paper's reference for what may run on a GPU; the CPU for a file that was lowered or compiled for it.

    Optimised HLO text with XLA's estimates in it says which clock they are for, and so which of our targets.
    """
    if isinstance(source, HloFile) and source.estimates_clock_ghz is not None:
        return target_of_clock(source.estimates_clock_ghz) or "a100"
    return "cpu" if isinstance(source, Program | HloFile) and source.platform == "cpu" else "a100"
