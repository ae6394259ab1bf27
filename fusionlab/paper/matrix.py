"""The matrix of the characterisation (Section III-A): ansatz x molecule x GPU x {training, inference}."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.errors import InputError, unknown

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")
MOLECULES = ("LiH", "CH4", "C2H6", "C4H4")
TARGETS = ("a5000", "a100", "h200")
INFERENCE, TRAINING = "inference-step", "train-step"
PROGRAMS = (INFERENCE, TRAINING)

_MOLECULES_FIRST_WANTED = ("CH4", "LiH", "C4H4", "C2H6")
"""CH4 has the kernel tables, LiH and C4H4 the scaling."""


@dataclass(frozen=True)
class Circumstances:
    """What all cells of one record have in common: walkers, size of the ansätze, dtype."""

    walkers: int = 1024
    size: str = "full"
    dtype: str = "float32"

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {"walkers": self.walkers, "size": self.size, "dtype": self.dtype}


@dataclass(frozen=True, order=True)
class Cell:
    """One program of one ansatz on one molecule, compiled for one GPU."""

    model: str
    molecule: str
    program: str
    target: str

    def __str__(self) -> str:
        return f"{self.model} {self.molecule} {self.program} {self.target}"

    @staticmethod
    def parse(name: str) -> Cell:
        """The inverse of ``str``; InputError for anything else."""
        words = name.split()
        if len(words) != 4:
            raise InputError(f"{name!r}: not MODEL MOLECULE PROGRAM TARGET")
        return Cell(*words)


EVERY = tuple(Cell(*words) for words in itertools.product(MODELS, MOLECULES, PROGRAMS, TARGETS))
"""The 96 cells of the characterisation."""


def select(models: str | None, molecules: str | None, programs: str | None, targets: str | None) -> list[Cell]:
    """The cells that the comma lists name (None: all), in the order in which they are wanted.

    InputError for a name that is in no table; programs may be any that can be built.
    """
    from workloads.catalogue import ANSATZE
    from workloads.catalogue import PROGRAMS as BUILT

    chosen_models = _named("model", models, MODELS, ANSATZE)
    chosen_molecules = _named("molecule", molecules, MOLECULES, MOLECULES)
    chosen_programs = _named("program", programs, PROGRAMS, BUILT)
    chosen_targets = _named("target", targets, TARGETS, TARGETS)
    order = sorted(chosen_molecules, key=_MOLECULES_FIRST_WANTED.index)
    return [
        Cell(model, molecule, program, target)
        for molecule, program, target, model in itertools.product(order, chosen_programs, chosen_targets, chosen_models)
    ]


def _named(kind: str, given: str | None, default: Sequence[str], known: Sequence[str] | dict[str, str]) -> list[str]:
    if given is None:
        return list(default)
    names = list(dict.fromkeys(word.strip() for word in given.split(",") if word.strip()))
    if not names:
        raise InputError(f"no {kind} is named")
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)
    return names
