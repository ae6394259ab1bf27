"""The corpus on disk: a manifest, and per program its StableHLO text and a portable artifact, gzipped.

The manifest is the owner of all figures: types and distributions of the inputs, digests of the reference outputs,
launches by target and version of JAX. A version without an entry was not measured.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fusionlab.corpus.references import InputSpec, OutputDigest
from fusionlab.errors import InputError, unknown
from fusionlab.files import MOST_BYTES, read_file
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.program import Program
from fusionlab.units import counted

SCHEMA = "fusionlab-corpus-manifest-1"
MANIFEST = "manifest.json"
TEXT, ARTIFACT = ".mlir.gz", ".mlirbc.gz"
COUNTS = ("launches", "copies", "temp_bytes")
"""The figures of a compile that are expected to stay."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
_ABSENT_FOLDER = "run it in a checkout, or name the corpus with --corpus"


@dataclass(frozen=True)
class ExpectedCompile:
    """What one version of JAX makes of a program: ``counts`` by COUNTS, or the ``reason`` why it cannot compile it."""

    counts: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """The counts, or the reason."""
        return {"reason": self.reason} if self.reason else dict(self.counts)

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> ExpectedCompile:
        """The inverse; KeyError, ValueError or OverflowError for anything else."""
        if "reason" in found:
            return ExpectedCompile(reason=str(found["reason"]))
        return ExpectedCompile({name: int(found[name]) for name in COUNTS})


Expected = Mapping[str, Mapping[str, ExpectedCompile]]
"""Target, version of JAX, what it makes."""


@dataclass(frozen=True)
class CorpusProgram:
    """One program: ``digest`` is the SHA-256 of its text, ``outputs`` are None where no reference was computed
    (``why_no_outputs``); ``licence`` also names other projects whose code was traced."""

    name: str
    group: str
    about: str
    licence: str
    ops: int
    digest: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputDigest, ...] | None
    why_no_outputs: str = ""
    expected: Expected = field(default_factory=dict)

    def expected_of(self, target: str, version: str) -> ExpectedCompile | None:
        """What that version is expected to make of it; None if that was not measured."""
        return self.expected.get(target, {}).get(version)

    def to_json(self) -> dict[str, Any]:
        """The entry of the manifest."""
        compiles = {
            target: {version: one.to_json() for version, one in by_version.items()}
            for target, by_version in self.expected.items()
        }
        return {
            "name": self.name,
            "group": self.group,
            "about": self.about,
            "licence": self.licence,
            "stablehlo_ops": self.ops,
            "sha256": self.digest,
            "inputs": [asdict(one) for one in self.inputs],
            "outputs": None if self.outputs is None else [asdict(one) for one in self.outputs],
            "why_no_outputs": self.why_no_outputs,
            "compiles": compiles,
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> CorpusProgram:
        """The inverse; KeyError, TypeError, ValueError or OverflowError for anything else."""
        name = found["name"]
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is no name of a program")
        outputs = found["outputs"]
        return CorpusProgram(
            name=name,
            group=_printable(found["group"]),
            about=_printable(found["about"]),
            licence=_printable(found["licence"]),
            ops=int(found["stablehlo_ops"]),
            digest=str(found["sha256"]),
            inputs=tuple(map(InputSpec.from_json, found["inputs"])),
            outputs=None if outputs is None else tuple(map(OutputDigest.from_json, outputs)),
            why_no_outputs=_printable(found["why_no_outputs"]),
            expected={
                _printable(target): {
                    _printable(version): ExpectedCompile.from_json(one) for version, one in by_version.items()
                }
                for target, by_version in found["compiles"].items()
            },
        )


def _printable(found: Any) -> str:
    """ValueError for another type, for control characters, and for what no terminal encodes."""
    if not isinstance(found, str) or not found.isprintable():
        raise ValueError(f"{found!a:.80} is not printable text")
    return found


@dataclass(frozen=True)
class Corpus:
    """The programs in ``folder``, in the order of the manifest; ``head`` are the manifest's other fields."""

    folder: Path
    head: Mapping[str, Any]
    programs: tuple[CorpusProgram, ...]

    @staticmethod
    def read(folder: Path) -> Corpus:
        """The corpus in ``folder``; InputError names what is wrong with it."""
        path = folder / MANIFEST
        if not path.is_file():
            raise InputError(f"{path}: there is no such file; {_ABSENT_FOLDER}")
        try:
            found = json.loads(read_file(path))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: not JSON: {error}") from None
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise InputError(f"{path}: not the manifest of a corpus (schema {SCHEMA})")
        head = {name: value for name, value in found.items() if name != "programs"}
        for name, value in head.items():
            if not isinstance(value, str):
                raise InputError(f"{path}: field {name} is not text")
        return Corpus(folder, head, tuple(_programs(path, found.get("programs"))))

    def select(self, names: Iterable[str]) -> tuple[CorpusProgram, ...]:
        """The programs of these names, all if there are none; InputError for a name that is not here."""
        known = {one.name: one for one in self.programs}
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if name not in known:
                raise unknown("program", name, known)
        return tuple(known[name] for name in wanted) if wanted else self.programs

    def text(self, program: CorpusProgram) -> bytes:
        """The StableHLO text; InputError where the file is absent, damaged, or not that of the manifest."""
        path, content = self._read(program, TEXT)
        if hashlib.sha256(content).hexdigest() != program.digest:
            raise InputError(f"{path}: not the text of the manifest (its SHA-256 differs)")
        return content

    def artifact(self, program: CorpusProgram) -> bytes:
        """The portable artifact; InputError where the file is absent or damaged."""
        return self._read(program, ARTIFACT)[1]

    def program(self, program: CorpusProgram) -> Program:
        """The text as a Program with the name in the corpus; InputError also where it takes other inputs."""
        path = self.folder / f"{program.name}{TEXT}"
        found = Program.of_foreign_bytes(self.text(program), path, name=program.name)
        takes = [(type_.shape, str(NUMPY.get(type_.dtype, type_.dtype))) for type_ in found.inputs]
        listed = [(spec.shape, spec.dtype) for spec in program.inputs]
        if takes != listed:
            raise InputError(f"{path}: {_difference(takes, listed)}")
        return found

    def _read(self, program: CorpusProgram, suffix: str) -> tuple[Path, bytes]:
        """The path and the content, which an export has as it is."""
        packed_path, plain = (self.folder / f"{program.name}{one}" for one in (suffix, suffix.removesuffix(".gz")))
        if plain.is_file() and not packed_path.exists():
            return plain, read_file(plain)
        return packed_path, _unpacked(packed_path)

    def to_json(self) -> dict[str, Any]:
        """The manifest."""
        return {**self.head, "programs": [one.to_json() for one in self.programs]}


def _programs(path: Path, entries: Any) -> Iterator[CorpusProgram]:
    if not isinstance(entries, list):
        raise InputError(f"{path}: has no list of programs")
    names = set()
    for number, entry in enumerate(entries):
        try:
            found = CorpusProgram.from_json(entry)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InputError(f"{path}: program {number}: lacks a field, or one is of another form: {error!r}") from None
        if found.name in names:
            raise InputError(f"{path}: {found.name} is there twice")
        names.add(found.name)
        yield found


_Typed = tuple[tuple[int, ...], str]
"""Shape and dtype of an argument."""


def _difference(takes: Sequence[_Typed], listed: Sequence[_Typed]) -> str:
    """Where the inputs of a program are others than those of the manifest."""
    if len(takes) != len(listed):
        return f"takes {counted(len(takes), 'argument', 'arguments')}, and the manifest has {len(listed)}"
    number = next(number for number, pair in enumerate(zip(takes, listed, strict=True)) if pair[0] != pair[1])
    (shape, dtype), (listed_shape, listed_dtype) = takes[number], listed[number]
    return f"argument {number} is {dtype} {list(shape)}; the manifest says {listed_dtype} {list(listed_shape)}"


def _unpacked(path: Path) -> bytes:
    content = read_file(path)
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        found = unpacking.decompress(content, MOST_BYTES)
    except zlib.error as error:
        raise InputError(f"{path}: not a gzip file: {error}") from None
    if not unpacking.eof:
        raise InputError(f"{path}: its end is missing, or it is larger than {MOST_BYTES >> 30} GiB")
    return found


def packed(content: bytes) -> bytes:
    """``content`` as a gzip file, the same at any time."""
    return gzip.compress(content, compresslevel=9, mtime=0)
