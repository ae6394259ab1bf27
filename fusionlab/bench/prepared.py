"""What a measurement needs of a source, made without the device: on another machine, and before it is rented.

    source -> variants (lower, rewrite, check), float64 truth, inputs -> archive        any machine, for an absent GPU
    archive -> compile, run, check, time -> record                                       the device

An archive is a ZIP file: ``prepared.json``, ``inputs.npz``, and one StableHLO module for each program.
"""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fusionlab.bench.variants import Failure, Variant, attempt
from fusionlab.codegen.compile import versions
from fusionlab.codegen.raising import Raising, raise_program
from fusionlab.equivalence.samples import Sample, signature_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import InputError
from fusionlab.files import read_file, write_whole
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.study import Circumstances, lower, measure
from fusionlab.workload import Workload

FORMAT = "fusionlab-prepared-1"
_WORKLOAD = ("title", "name", "molecule", "electrons", "program", "laplacian", "walkers", "dtype", "variant")
_WITHOUT_SAMPLING = ("log-psi", "local-energy")
_VARIANT = ("name", "what", "pipeline", "lower_s", "rewrite_s")


@dataclass(frozen=True)
class Preparation:
    """The variants of a source, the reference first, and what they are measured with.

    ``truth`` is the source's own function in float64 (None where it cannot be lowered, or only verdicts are asked
    for), ``sample`` the arguments of all runs, ``workload`` and ``log_psi`` are fields of the record. ``versions`` are
    those that it was prepared with; ``samples_walkers``: the program samples.
    """

    workload: dict[str, Any]
    pipeline: str
    platform: str
    variants: Sequence[Variant]
    failures: Sequence[Failure]
    check_walkers: int | None
    samples_walkers: bool
    sample: Sample
    truth: Program | None = None
    log_psi: dict[str, float] | None = None
    versions: str = dataclasses.field(default_factory=versions)

    def require_reference(self) -> None:
        """InputError unless the first variant was made: everything is compared with it."""
        if not self.variants:
            reasons = "; ".join(f"{one.name}, {one.step}: {one.reason}" for one in self.failures[-1:])
            raise InputError(f"the source cannot be measured as it stands ({reasons})")

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
            "programs": {name: [one.name, one.provenance] for name, one in programs.items()},
        }
        inputs, archive = io.BytesIO(), io.BytesIO()
        np.savez(inputs, *self.sample.arrays)
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("prepared.json", json.dumps(document, indent=1))
            file.writestr("inputs.npz", inputs.getvalue())
            for name, program in programs.items():
                file.writestr(f"{name}.mlirbc", program.bytecode)
        write_whole(path, archive.getvalue())

    @staticmethod
    def load(path: Path) -> Preparation:
        """The archive ``path``; InputError where it is none. Its verdicts are taken as they stand."""
        content = read_file(path)
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                document = json.loads(file.read("prepared.json"))
                if document["format"] != FORMAT:
                    raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")
                with np.load(io.BytesIO(file.read("inputs.npz")), allow_pickle=False) as stored:
                    arrays = tuple(stored[f"arr_{at}"] for at in range(len(stored.files)))
                programs = {
                    name: Program.of_foreign_bytes(
                        file.read(f"{name}.mlirbc"), path, name=title, platform=document["platform"]
                    )
                    for name, (title, _) in document["programs"].items()
                }
                variants = [
                    Variant(
                        **{name: one[name] for name in _VARIANT},
                        program=programs[f"variant-{at}"],
                        verdict=Verdict.from_json(one["verdict"]),
                    )
                    for at, one in enumerate(document["variants"])
                ]
                return Preparation(
                    **{name: document[name] for name in _FIELDS},
                    variants=variants,
                    failures=[Failure(**one) for one in document["failures"]],
                    sample=Sample(document["inputs"], arrays),
                    truth=programs.get("truth"),
                )
        except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: no archive of `fusionlab bench --prepare`: {error}") from None


_FIELDS = ("workload", "pipeline", "platform", "check_walkers", "samples_walkers", "log_psi", "versions")


def is_prepared(path: str | None) -> bool:
    """True if the file ``path`` is a ZIP archive."""
    return path is not None and zipfile.is_zipfile(path)


def prepared(
    source: Workload | Program,
    variants: Sequence[Variant],
    failures: list[Failure],
    passes: Sequence[Any],
    given: Circumstances,
    seed: int,
    *,
    verdicts_only: bool,
) -> Preparation:
    """The ``variants`` of ``source`` with what they are measured with, unless only verdicts are asked for."""
    found = Preparation(
        workload=_workload(source),
        pipeline=print_pipeline(passes) if passes else "",
        platform=given.target.kind,
        variants=variants,
        failures=failures,
        check_walkers=given.check_walkers,
        samples_walkers=isinstance(source, Workload) and source.program not in _WITHOUT_SAMPLING,
        sample=sample_for(source, seed),
    )
    found.require_reference()
    if verdicts_only:
        return found
    reference = variants[0]
    given.progress("lower: the reference in float64")
    truth = attempt(
        reference.name,
        "truth in float64",
        lambda: truth_of(source, reference.program, found.sample, given.target.kind),
        failures,
    )
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
    with jax.enable_x64(True), lowering.tracing_for(platform):
        arguments = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in widened(sample.arrays)]
        traced = jax.jit(raise_program(program, Raising(widen=True)), keep_unused=True).trace(*arguments)
        module = lowering.lower_traced(traced, platform, source_lines=1)
        return Program.from_module(module, name=program.name, provenance=program.provenance, platform=platform)


def widened(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays with floating-point ones in float64."""

    def wide(array: np.ndarray) -> np.ndarray:
        if np.issubdtype(array.dtype, np.complexfloating):
            return array.astype(np.complex128)
        return array.astype(np.float64) if jax.numpy.issubdtype(array.dtype, np.floating) else array

    return list(map(wide, arrays))


def _log_psi(source: Workload | Program, given: Circumstances, failures: list[Failure]) -> dict[str, float] | None:
    """FLOPs and bytes accessed (models) of log|psi| alone, and the directions of the Laplacian; None for a program
    that is no local energy."""
    if isinstance(source, Program) or source.program != "local-energy":
        return None
    alone = source.rebuild(program="log-psi", laplacian=None)
    ahead = dataclasses.replace(given, target=given.target.absent or given.target)
    found = attempt("log-psi", "compile", lambda: measure(alone, lower(alone, ahead), ahead), failures)
    if found is None or found.flops is None:
        return None
    return {"directions": 3 * source.electrons, "flops": found.flops, "bytes_accessed": found.bytes_accessed}


def _workload(source: Workload | Program) -> dict[str, Any]:
    if isinstance(source, Program):
        return {"title": source.name, "name": source.name, "file": source.provenance, "digest": source.digest}
    return {name: getattr(source, name) for name in _WORKLOAD}
