"""The programs of a corpus compiled and run: launches against those expected, outputs against the references."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.raising import RaiseError
from fusionlab.codegen.targets import Target
from fusionlab.corpus.manifest import COUNTS, Corpus, CorpusProgram, ExpectedCompile
from fusionlab.equivalence.oracle import program_runner, xla_runner
from fusionlab.errors import CompileError
from fusionlab.hlo.program import Program
from fusionlab.versions.compiling import compile_apart
from fusionlab.versions.drift import row_of
from fusionlab.versions.environments import JaxEnvironment, NoEnvironment, environment

Verdict = Literal["equal", "different", "not recorded", "not compiled"]
"""Of a compile or of outputs. ``not recorded``: there is no reference, and the figures are printed alone."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class OutputsFound:
    """The outputs on the CPU: the largest share of a tolerance that an error takes, or the ``reason`` why none were
    computed."""

    verdict: Verdict
    worst: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class CorpusRow:
    """One program of a run: what was ``found`` by that version, what was ``expected`` (None: not measured)."""

    name: str
    found: ExpectedCompile
    expected: ExpectedCompile | None
    outputs: OutputsFound

    @property
    def verdict(self) -> Verdict:
        """The compile's."""
        if self.expected is None:
            return "not compiled" if self.found.reason else "not recorded"
        if self.found.reason:
            return "equal" if self.expected.reason else "not compiled"
        return "equal" if dict(self.found.counts) == dict(self.expected.counts) else "different"

    @property
    def is_wrong(self) -> bool:
        """True if the run has to end with an error."""
        return self.verdict in ("different", "not compiled") or self.outputs.verdict in ("different", "not compiled")

    def to_json(self) -> dict[str, Any]:
        """The row of the document."""
        worst = self.outputs.worst
        return {
            "name": self.name,
            "verdict": self.verdict,
            **{name: self.found.counts.get(name) for name in COUNTS},
            "reason": self.found.reason or None,
            "expected": None if self.expected is None else self.expected.to_json(),
            "outputs": self.outputs.verdict,
            "outputs_reason": self.outputs.reason or None,
            "share_of_tolerance": worst if worst is not None and math.isfinite(worst) else None,
        }


def run(
    corpus: Corpus,
    programs: Iterable[CorpusProgram],
    target: Target,
    version: str,
    *,
    cache: CompileCache | None = None,
    progress: Progress = lambda line: None,
) -> Iterator[CorpusRow]:
    """The rows of ``programs``, one after the other: compiled by JAX ``version`` for ``target``, and run on the CPU by
    the JAX of this process.

    NoEnvironment: that version cannot be had. InputError: a text of the corpus is damaged, which is known before the
    first row, or takes other inputs than the manifest says.
    """
    chosen = tuple(programs)
    for one in chosen:
        corpus.text(one)
    where = environment(version, progress)
    for one in chosen:
        program = corpus.program(one)
        progress(f"compile: {one.name} ({program.ops:,} ops) for {target.name} by JAX {version}")
        found = compiled_counts(program, target, where, cache=cache)
        if one.outputs is not None:
            progress(f"run: {one.name} on the CPU")
        yield CorpusRow(one.name, found, one.expected_of(target.name, version), outputs_of(program, one))


def compiled_counts(
    program: Program, target: Target, where: JaxEnvironment, *, cache: CompileCache | None = None
) -> ExpectedCompile:
    """Launches, copies and temp memory by the JAX of that environment, or the reason why it cannot compile it."""
    try:
        if where.folder is None:
            compiled = compile_program(program, target, cache=cache)
        else:
            compiled = compile_apart(program, target, where, cache=cache)
    except (CompileError, NoEnvironment) as error:
        return ExpectedCompile(reason=str(error))
    figures = row_of(where.version, compiled).figures
    return ExpectedCompile({name: int(figures[name] or 0) for name in COUNTS})


def outputs_of(program: Program, one: CorpusProgram) -> OutputsFound:
    """The outputs of ``program`` on the CPU against the digests of the corpus.

    XLA compiles the text itself, but for a program with library calls of CUDA, which is lowered for the CPU again.
    """
    if one.outputs is None:
        return OutputsFound("not recorded", reason=one.why_no_outputs)
    arrays = [spec.array(number) for number, spec in enumerate(one.inputs)]
    try:
        found = (program_runner if program.platform == "cuda" else xla_runner)(program)(arrays)
    except (CompileError, RaiseError) as error:
        return OutputsFound("not compiled", reason=str(error))
    if len(found) != len(one.outputs):
        return OutputsFound("different", math.inf, f"{len(found)} outputs for {len(one.outputs)}")
    worst = max((digest.share(array) for digest, array in zip(one.outputs, found, strict=True)), default=0.0)
    return OutputsFound("equal" if worst <= 1 else "different", worst)
