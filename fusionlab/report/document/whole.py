"""The whole study document, from the outcomes of the line for each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.diff.hunks import compare_programs
from fusionlab.hlo.program import Program
from fusionlab.report.document.lines import Lines
from fusionlab.report.document.programs import Viewed, diff_document, program_document
from fusionlab.report.document.sides import side_document
from fusionlab.study import Outcome
from fusionlab.workload import Workload

FORMAT = "fusionlab-study-1"


@dataclass(frozen=True)
class Studied:
    """The outcome for one target, and what XLA made of both programs; ``after`` is None where it was not measured."""

    outcome: Outcome
    before: Compiled
    after: Compiled | None


def study_document(source: Workload | Program, studied: Sequence[Studied], beside: Mapping[str, Any]) -> dict[str, Any]:
    """The document; ``beside`` are its parts that do not follow from the outcomes (replays, commands, ...)."""
    writer = _Writer()
    targets = [writer.target(one) for one in studied]
    return {
        "format": FORMAT,
        "study": _what(source, studied[0].outcome),
        "targets": targets,
        "programs": writer.programs,
        "lines": writer.lines.to_json(),
        "source_lines": writer.lines.source_lines() if isinstance(source, Workload) else {},
        **beside,
    }


class _Writer:
    def __init__(self) -> None:
        self.lines = Lines()
        self.programs: dict[str, Any] = {}
        self._keys: dict[str, str] = {}

    def target(self, one: Studied) -> dict[str, Any]:
        """The part of one target; programs that it shares with another target are there once."""
        outcome, target = one.outcome, one.before.target
        assert outcome.before is not None
        chain = [outcome.original, *(step.program for step in outcome.steps)]
        compared = compare_programs(chain)
        first = Viewed(outcome.original, compared.views[0], compared.names)
        last = Viewed(outcome.rewritten, compared.views[-1], compared.names)
        original = self._program("original", target.name, first)
        rewritten = self._program("rewritten", target.name, last) if outcome.applied else original
        return {
            "name": target.name,
            "kind": target.kind,
            "compute_capability": target.sm,
            "attached": target.attached,
            "source": target.source if target.attached else Path(target.source).name,
            "peaks": asdict(target.peaks) if target.peaks else None,
            "original": original,
            "rewritten": rewritten,
            "pipeline": outcome.pipeline,
            "pass_s": outcome.pass_s,
            "events": [event.to_json() for event in outcome.events],
            "equivalence": outcome.equivalence.to_json(),
            "before": side_document(outcome.before, one.before, first.ops_of_scopes),
            "after": self._after(one, last),
            "diffs": [
                diff_document(step.by, diff, self.lines)
                for step, diff in zip(outcome.steps, compared.diffs, strict=True)
            ],
        }

    def _after(self, one: Studied, last: Viewed) -> dict[str, Any] | None:
        if one.outcome.after is None or one.after is None:
            return None
        return side_document(one.outcome.after, one.after, last.ops_of_scopes)

    def _program(self, word: str, target: str, viewed: Viewed) -> str:
        """The key of a program among ``programs``, where it is put unless it is there."""
        digest = viewed.program.digest
        if digest not in self._keys:
            key = word if word == "original" and word not in self.programs else f"{word}-{target}"
            self._keys[digest] = key
            self.programs[key] = program_document(viewed, self.lines)
        return self._keys[digest]


def _what(source: Workload | Program, outcome: Outcome) -> dict[str, Any]:
    """What the program is, in the words of the workload; of a file its name and where it was read."""
    common = {"name": outcome.original.name, "provenance": outcome.original.provenance}
    if isinstance(source, Program):
        return {**common, "workload": None}
    return {
        **common,
        "workload": {
            "model": source.name,
            "molecule": source.molecule,
            "electrons": source.electrons,
            "program": source.program,
            "laplacian": source.laplacian,
            "walkers": source.walkers,
            "dtype": source.dtype,
            "arguments": list(source.argument_names),
        },
    }
