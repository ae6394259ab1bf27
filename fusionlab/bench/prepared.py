"""What a measurement needs of a source, made without the device: on another machine, and before it is rented.

    source -> variants (lower, rewrite, check), float64 truth, inputs -> archive        any machine, for an absent GPU
    archive -> compile, run, check, time -> record                                       the device

An archive is a ZIP file: ``prepared.json``, ``inputs.npz``, one StableHLO module for each program, and in ``compiled/``
what was compiled ahead of time (``bench.compilation``): a JSON record and XLA's executable for each compile.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fusionlab.bench.variants import FUSED, Failure, Variant, attempt, last_of, make_variants
from fusionlab.codegen.cache import RECORD_FORMAT, RECORDED_TEXTS
from fusionlab.codegen.compile import Memory
from fusionlab.codegen.executable import numpy_dtype
from fusionlab.codegen.raising import Raising, raise_program
from fusionlab.codegen.raising.devices import RaisingOfAllDevices
from fusionlab.codegen.targets import Target
from fusionlab.equivalence.oracle import converted
from fusionlab.equivalence.samples import Sample, signature_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.equivalence.verdict_store import VerdictStore
from fusionlab.errors import InputError
from fusionlab.files import MOST_BYTES, read_file, write_whole
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.measure.environment import software
from fusionlab.measure.peers import Peer
from fusionlab.passes.interface import Pass
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.study import Circumstances, lower, measure
from fusionlab.workload import Workload

FORMAT = "fusionlab-prepared-1"
TRUTH = "truth in float64"
_WORKLOAD = ("title", "name", "molecule", "electrons", "program", "laplacian", "walkers", "dtype", "variant")
_WITHOUT_SAMPLING = ("log-psi", "local-energy")
_VARIANT = {"name": str, "what": str, "pipeline": str, "lower_s": float, "rewrite_s": float}
_FIELDS = {
    "workload": dict, "pipeline": str, "platform": str, "check_walkers": int | None, "samples_walkers": bool,
    "seed": int, "log_psi": dict | None, "prepared_with": dict,
}  # fmt: skip
_COMPILED = {
    **dict.fromkeys(RECORDED_TEXTS, str),
    "format": int,
    "memory": dict,
    "compile_s": float,
    "options": dict,
    "artifacts": dict,
}
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, RecursionError, LookupError,
    AttributeError, TypeError, ValueError, OSError, MemoryError,
)  # fmt: skip
"""What the readers of ZIP, NumPy and JSON raise for bytes that they cannot read."""


@dataclass(frozen=True)
class AheadOfTime:
    """A compile ahead of time: its record without the executable (``codegen.cache``), and the executable."""

    record: dict[str, Any]
    serialized: bytes


@dataclass(frozen=True)
class Preparation:
    """The variants of a source, the reference first, and what they are measured with.

    ``truth`` is the source's own function in float64 (None where it cannot be lowered, or only verdicts are asked
    for), ``sample`` the arguments of all runs, drawn from ``seed``; ``workload`` and ``log_psi`` are fields of the
    record. ``prepared_with`` are versions, flags and commit; ``samples_walkers``: the program samples. ``executables``
    are what was compiled ahead of time, by keys of ``bench.compilation``.
    """

    workload: dict[str, Any]
    pipeline: str
    platform: str
    variants: Sequence[Variant]
    failures: Sequence[Failure]
    check_walkers: int | None
    samples_walkers: bool
    sample: Sample
    seed: int = 1
    truth: Program | None = None
    log_psi: dict[str, float] | None = None
    prepared_with: dict[str, Any] = dataclasses.field(default_factory=software)
    executables: Mapping[str, AheadOfTime] = dataclasses.field(default_factory=dict)

    def require_platform(self, target: Target) -> None:
        """InputError where ``target`` is of another platform than the programs."""
        if self.platform != target.kind:
            raise InputError(f"prepared for {self.platform}, but target {target.name} is {target.kind}")

    def save(self, path: Path) -> None:
        """Write the archive ``path``, whole or not at all; InputError when it cannot be written."""
        programs = {f"variant-{at}": one.program for at, one in enumerate(self.variants)}
        if self.truth is not None:
            programs["truth"] = self.truth
        document = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in _FIELDS},
            "variants": [
                {**{name: getattr(one, name) for name in _VARIANT}, "verdict": one.verdict.to_json()}
                for one in self.variants
            ],
            "failures": [dataclasses.asdict(one) for one in self.failures],
            "inputs": self.sample.label,
            "programs": {name: one.name for name, one in programs.items()},
            "executables": list(self.executables),
        }
        inputs, archive = io.BytesIO(), io.BytesIO()
        np.savez(inputs, *self.sample.arrays)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("prepared.json", json.dumps(document, indent=1))
            file.writestr("inputs.npz", inputs.getvalue())
            for name, program in programs.items():
                file.writestr(f"{name}.mlirbc", program.bytecode)
            for key, one in self.executables.items():
                own = {**one.record, "sha256": hashlib.sha256(one.serialized).hexdigest()}
                file.writestr(f"compiled/{key}.json", json.dumps(own))
                file.writestr(f"compiled/{key}.bin", one.serialized)
        write_whole(path, archive.getvalue())

    @staticmethod
    def load(path: Path) -> Preparation:
        """The archive ``path``; InputError where it is none. Its verdicts are taken as they stand."""
        content = read_file(path)
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                _require_small(file)
                document = json.loads(file.read("prepared.json"))
                inputs = file.read("inputs.npz")
                with zipfile.ZipFile(io.BytesIO(inputs)) as inner:
                    _require_small(inner)
                with np.load(io.BytesIO(inputs), allow_pickle=False) as stored:
                    arrays = tuple(stored[f"arr_{at}"] for at in range(len(stored.files)))
                modules = {name: file.read(f"{name}.mlirbc") for name in document["programs"]}
                executables = {key: _ahead_of_time(file, key) for key in document.get("executables", ())}
            found = dataclasses.replace(_read(document, modules, arrays, path), executables=executables)
        except InputError:
            raise
        except _DAMAGED as error:
            said = " ".join(str(error).split()) or type(error).__name__
            said = f"it lacks {said}" if isinstance(error, KeyError) else said
            raise InputError(f"{path}: no archive of `fusionlab bench --prepare`: {said[:200]}") from None
        return found


def _read(document: Any, modules: dict[str, bytes], arrays: tuple[np.ndarray, ...], path: Path) -> Preparation:
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")
    platform = document["platform"]
    programs = {
        name: Program.of_foreign_bytes(content, path, name=str(document["programs"][name]), platform=platform)
        for name, content in modules.items()
    }
    variants = [
        Variant(
            **_fields(one, _VARIANT),
            program=programs[f"variant-{at}"],
            verdict=Verdict.from_json(one["verdict"]),
        )
        for at, one in enumerate(document["variants"])
    ]
    if not variants or len({one.name for one in variants}) < len(variants):
        raise ValueError("it has no variants, or two of one name")
    for one in variants:
        if not one.verdict.passed:
            raise ValueError(f"{one.name} was not shown equal: {one.verdict.verdict}")
        types = [(array.shape, array.dtype) for array in arrays]
        if types != [(tuple(value.shape), numpy_dtype(value)) for value in one.program.inputs]:
            raise ValueError(f"{one.name} takes other arguments than its inputs")
    found = Preparation(
        **_fields(document, _FIELDS),
        variants=variants,
        failures=[Failure(*(str(one[name]) for name in ("name", "step", "reason"))) for one in document["failures"]],
        sample=Sample(str(document["inputs"]), arrays),
        truth=programs.get("truth"),
    )
    if not all(isinstance(found.workload[name], str) for name in ("title", "name")):
        raise ValueError("its workload has no title and name")
    if not isinstance(found.prepared_with["versions"]["jax"], str):
        raise ValueError("it does not say with which JAX it was prepared")
    return found


def _ahead_of_time(file: zipfile.ZipFile, key: str) -> AheadOfTime:
    document, serialized = json.loads(file.read(f"compiled/{key}.json")), file.read(f"compiled/{key}.bin")
    record = _fields(document, _COMPILED)
    memory = dataclasses.asdict(Memory(**record["memory"]))
    if record["format"] != RECORD_FORMAT or record["compile_s"] < 0:
        raise ValueError(f"the compile {key} has format {record['format']} and {record['compile_s']} s")
    if not all(isinstance(size, int) and size >= 0 for size in memory.values()):
        raise ValueError(f"the compile {key} has a memory of {record['memory']}")
    if not all(isinstance(value, str | int | bool) for value in record["options"].values()):
        raise ValueError(f"the compile {key} has options that are no scalars")
    if document["sha256"] != hashlib.sha256(serialized).hexdigest():
        raise ValueError(f"the executable of the compile {key} is another one")
    return AheadOfTime(record, serialized)


def _require_small(file: zipfile.ZipFile) -> None:
    if sum(member.file_size for member in file.infolist()) > MOST_BYTES:
        raise ValueError(f"its members have more than {MOST_BYTES:,} bytes")


def _fields(document: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    """The fields of ``document``, of their kinds; ValueError for one of another."""
    for name, kind in kinds.items():
        value = document[name]
        fits = isinstance(value, (float, int) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
        if not fits or (kind is float and not math.isfinite(value)):
            raise ValueError(f"its field {name} is {document[name]!r:.40}")
    return {name: document[name] for name in kinds}


def is_prepared(path: str | None) -> bool:
    """True if the file ``path`` is a ZIP archive."""
    return path is not None and zipfile.is_zipfile(path)


def prepare(
    source: Workload | Program,
    pipelines: Mapping[str, Sequence[Pass]],
    peers: Mapping[str, Peer],
    given: Circumstances,
    *,
    store: VerdictStore | None = None,
    seed: int = 1,
    verdicts_only: bool = False,
) -> Preparation:
    """The variants of ``source``, shown equal, with what they are measured with; the target need not be attached.

    ``pipelines`` are by the names of the variants that they make; ``store`` keeps verdicts, and ``verdicts_only`` asks
    for no more than these. InputError: the source itself cannot be lowered."""
    if isinstance(source, Program) and source.devices > 1:
        raise InputError(f"{source.provenance}: a program of {source.devices} devices; only one device is timed")
    variants, failures = make_variants(source, pipelines, peers, given, store)
    passes = pipelines.get(FUSED)
    if not variants:
        raise InputError(f"the source cannot be measured as it stands ({last_of(failures[0].name, failures)})")
    found = Preparation(
        workload=_workload(source),
        pipeline=print_pipeline(passes) if passes else "",
        platform=given.target.kind,
        variants=variants,
        failures=failures,
        check_walkers=given.check_walkers,
        samples_walkers=isinstance(source, Workload) and source.program not in _WITHOUT_SAMPLING,
        sample=sample_for(source, seed),
        seed=seed,
    )
    if verdicts_only:
        return found
    reference, platform = variants[0], given.target.kind
    given.progress("lower: the reference in float64")
    lowered = partial(truth_of, source, reference.program, found.sample, platform)
    truth = attempt(reference.name, TRUTH, lowered, failures)
    return dataclasses.replace(found, truth=truth, log_psi=_log_psi(source, given, failures))


def sample_for(source: Workload | Program, seed: int) -> Sample:
    """The arguments of all runs: the workload's own, or random ones of a file's types."""
    if isinstance(source, Program):
        return next(signature_samples(source))
    with jax.enable_x64(source.dtype == "float64"):
        arrays = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(source.inputs(seed)))
    return Sample(f"seed {seed}, initial parameters", arrays)


def truth_of(source: Workload | Program, program: Program, sample: Sample, platform: str) -> Program:
    """The source's own function (``program``, of a file) in float64, for arguments like ``sample``."""
    if isinstance(source, Workload):
        return lowering.lower(source.rebuild(dtype="float64"), platform)
    raising = (RaisingOfAllDevices if program.has_collectives else Raising)(widen=True)
    with jax.enable_x64(True), lowering.tracing_for(platform):
        wide = [converted(array, "float64") for array in sample.arrays]
        arguments = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in wide]
        traced = jax.jit(raise_program(program, raising), keep_unused=True).trace(*arguments)
        module = lowering.lower_traced(traced, platform, source_lines=1)
        return Program.from_module(module, name=program.name, provenance=program.provenance, platform=platform)


def _log_psi(source: Workload | Program, given: Circumstances, failures: list[Failure]) -> dict[str, float] | None:
    """FLOPs and bytes accessed (models) of log|psi| alone, and the directions of the Laplacian; None for a program
    that is no local energy."""
    if isinstance(source, Program) or source.program != "local-energy":
        return None
    alone, ahead = source.rebuild(program="log-psi", laplacian=None), given.ahead
    found = attempt("log-psi", "compile", lambda: measure(alone, lower(alone, ahead), ahead), failures)
    if found is None or found.flops is None:
        return None
    return {"directions": 3 * source.electrons, "flops": found.flops, "bytes_accessed": found.bytes_accessed}


def _workload(source: Workload | Program) -> dict[str, Any]:
    if isinstance(source, Program):
        return {"title": source.name, "name": source.name, "file": source.provenance, "digest": source.digest}
    return {name: getattr(source, name) for name in _WORKLOAD}
