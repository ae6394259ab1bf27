"""Molecules from XYZ files: a count, a comment line, then ``element x y z`` in angstrom per atom."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

from fusionlab.errors import InputError
from fusionlab.workloads.molecule import BOHR_PER_ANGSTROM, Molecule

_PERIODS = (
    "H He",
    "Li Be B C N O F Ne",
    "Na Mg Al Si P S Cl Ar",
    "K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr",
)
ELEMENTS = tuple(symbol for period in _PERIODS for symbol in period.split())
"""Symbols by atomic number, from 1."""
LEAST_DISTANCE = 0.1
"""Angstrom; nuclei nearer than this are a slip of the pen (the shortest bond, of H2, has 0.74)."""


def read_xyz(path: str | Path, charge: int = 0, spin: int | None = None) -> Molecule:
    """The molecule of an XYZ file; ``spin`` is n_up - n_down, by default 0 or 1, whichever is possible.

    Elements are symbols or atomic numbers up to krypton. InputError names the file, the line and what is wrong.
    """
    path = Path(path)
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; expected XYZ") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not any(line.strip() for line in lines):
        raise InputError(f"{path}: the file is empty; expected XYZ: a count, a comment, then 'element x y z' lines")
    count = _count(path, lines[0])
    rows = lines[2 : 2 + count]
    if len(rows) < count:
        raise InputError(f"{path}: line 1 announces {count} atoms, but only {len(rows)} lines follow the comment")
    if extra := [line for line in lines[2 + count :] if line.strip()]:
        raise InputError(f"{path}: line 1 announces {count} atoms, but more follow: {extra[0].strip()!r}")
    atoms = [_atom(path, number, row) for number, row in enumerate(rows, start=3)]
    charges = tuple(atom[0] for atom in atoms)
    spin = (sum(charges) - charge) % 2 if spin is None else spin
    positions = tuple(atom[1] for atom in atoms)
    _require_apart(path, positions)
    return Molecule(path.stem, charges, positions, charge, spin, source=str(path))


def _count(path: Path, line: str) -> int:
    text = line.strip()
    if not _is_number(text) or int(text) < 1:
        raise InputError(f"{path}: line 1: expected the number of atoms, found {text[:40]!r}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


def _atom(path: Path, number: int, line: str) -> tuple[int, tuple[float, float, float]]:
    words = line.split()
    if len(words) < 4:
        raise InputError(f"{path}: line {number}: expected 'element x y z', found {line.strip()[:40]!r}")
    symbol = words[0].capitalize()
    if _is_number(symbol) and 1 <= int(symbol) <= len(ELEMENTS):
        symbol = ELEMENTS[int(symbol) - 1]
    if symbol not in ELEMENTS:
        raise InputError(
            f"{path}: line {number}: unknown element {words[0][:20]!r}; give a symbol from {ELEMENTS[0]} to "
            f"{ELEMENTS[-1]} or an atomic number from 1 to {len(ELEMENTS)}"
        )
    try:
        x, y, z = (float(word) * BOHR_PER_ANGSTROM for word in words[1:4])
    except ValueError:
        raise InputError(
            f"{path}: line {number}: coordinates must be numbers, found {' '.join(words[1:4])!r}"
        ) from None
    if not all(abs(value) < 1e6 for value in (x, y, z)):
        raise InputError(f"{path}: line {number}: coordinates must be finite and below 1e6 bohr")
    return ELEMENTS.index(symbol) + 1, (x, y, z)


def _require_apart(path: Path, positions: tuple[tuple[float, float, float], ...]) -> None:
    for (first, one), (second, other) in itertools.combinations(enumerate(positions, start=3), 2):
        distance = math.dist(one, other) / BOHR_PER_ANGSTROM
        if distance < LEAST_DISTANCE:
            raise InputError(
                f"{path}: lines {first} and {second} place two nuclei {distance:.3g} angstrom apart; "
                f"they must be at least {LEAST_DISTANCE} angstrom apart"
            )
