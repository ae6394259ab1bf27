"""The inputs at which two programs differ, as a file: NumPy arrays and one line of JSON, no pickle."""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fusionlab.errors import InputError
from fusionlab.files import read_file, write_whole

_FACTS = "facts"
_NUMBERS = ("original", "rewritten", "truth")
"""Fields that are written as text: JSON has no infinity and no NaN."""
_NOT_OURS = (
    MemoryError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError
)  # fmt: skip
"""The exceptions of reading a damaged or foreign archive."""
_AS_BITS = {"bfloat16": "uint16"}
"""Element types that NumPy's file format lacks, and the types that store their bits."""


@dataclass(frozen=True)
class Counterexample:
    """All arguments of the programs in order (``arrays``), and the place of the worst difference in their outputs.

    ``label`` is the origin of the inputs, ``original`` and ``rewritten`` are the two values at ``index`` of output
    ``output`` in the programs' own dtype, ``truth`` the one in float64. ``command`` repeats the comparison.
    """

    label: str
    arrays: tuple[np.ndarray, ...]
    output: int
    index: tuple[int, ...]
    original: float
    rewritten: float
    truth: float
    command: str = ""

    @staticmethod
    def of(*, label: Any, arrays: Any, index: Any, output: Any, command: Any = "", **numbers: Any) -> Counterexample:
        """The record of these fields, which may be as JSON holds them."""
        place, values = tuple(int(i) for i in index), {name: float(numbers[name]) for name in _NUMBERS}
        return Counterexample(str(label), tuple(arrays), int(output), place, command=str(command), **values)

    def save(self, path: Path) -> None:
        """Write it as an ``.npz`` file; InputError when it cannot be written."""
        write_whole(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the ``.npz`` file."""
        facts = {**vars(self), **{name: repr(getattr(self, name)) for name in _NUMBERS}}
        facts |= {"arrays": None, "dtypes": [array.dtype.name for array in self.arrays]}
        stored = {f"argument_{i}": _stored(array) for i, array in enumerate(self.arrays)}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **{_FACTS: np.array(json.dumps(facts))}, **stored)
        return buffer.getvalue()

    @staticmethod
    def load(path: Path) -> Counterexample:
        """Read what ``save`` wrote, or an archive of arrays alone (``numpy.savez``), which are the arguments in order.

        InputError for any other file (nothing in it is ever unpickled).
        """
        try:
            with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as file:
                if _FACTS not in file.files:
                    arrays = tuple(file[name] for name in file.files)
                    return Counterexample(f"inputs of {path.name}", arrays, 0, (), math.nan, math.nan, math.nan)
                facts = json.loads(str(file[_FACTS]))
                facts["arrays"] = [_restored(file[f"argument_{i}"], n) for i, n in enumerate(facts.pop("dtypes"))]
            return Counterexample.of(**facts)
        except _NOT_OURS as error:
            cause = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"{path}: not the inputs of a check: {cause}") from None


def _stored(array: np.ndarray) -> np.ndarray:
    return array.view(_AS_BITS[array.dtype.name]) if array.dtype.name in _AS_BITS else array


def _restored(array: np.ndarray, name: str) -> np.ndarray:
    dtype = np.dtype(jax.numpy.dtype(name))
    return array.view(dtype) if name in _AS_BITS else np.asarray(array, dtype)
