"""The attribute ``fusionlab`` of an optimised function: its decisions, and launches, memory and work of its programs
before and after."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import Program
from fusionlab.ledger.footprint import Footprint, footprint
from fusionlab.optimizing.decision import Decision, why_nothing_applied
from fusionlab.optimizing.rewriting import Rewriter, apply_passes, lower_jaxpr
from fusionlab.passes.interface import Applied

_ROWS: tuple[tuple[str, Callable[[Footprint], float | None], str], ...] = (
    ("launches", lambda f: f.dynamic_launches, ",.0f"),
    ("copies", lambda f: f.dynamic_copies, ",.0f"),
    ("temp MiB", lambda f: f.temp_bytes / 2**20, ",.1f"),
    ("GFLOP (model)", lambda f: None if f.flops is None else f.flops / 1e9, ",.2f"),
    ("GiB accessed (model)", lambda f: f.bytes_accessed / 2**30, ",.3f"),
    ("StableHLO ops", lambda f: f.stablehlo_ops, ",.0f"),
)


@dataclass(frozen=True)
class Entry:
    """One program: ``before`` is None where it was not lowered, ``after`` where the original runs."""

    decision: Decision
    before: Footprint | None
    after: Footprint | None

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """(quantity, before, after) as text; ``-`` for unknown."""
        return [(name, _cell(self.before, of, form), _cell(self.after, of, form)) for name, of, form in _ROWS]

    @property
    def lines(self) -> list[str]:
        """The rewriting or the reason for none, and the verdict of the check."""
        decision = self.decision
        said = [f"{event.pass_name}: {event.what}" for event in decision.events if isinstance(event, Applied)]
        said += [f"the original runs: {decision.why_not}"] if decision.why_not else []
        return [*said, f"check: {_verdict(decision)}"]


@dataclass(frozen=True)
class Report:
    """``print`` it, look at it in a notebook, or take ``to_json``."""

    name: str
    pipeline: str
    entries: tuple[Entry, ...]

    def to_json(self) -> dict[str, Any]:
        """Per program: both footprints (null for unknown), the events, the verdict and the reason."""
        programs = [
            {
                "before": entry.before.to_json() if entry.before else None,
                "after": entry.after.to_json() if entry.after else None,
                "events": [event.to_json() for event in entry.decision.events],
                "equivalence": entry.decision.verdict.to_json() if entry.decision.verdict else None,
                "compared_on": entry.decision.compared_on,
                "rewritten": entry.decision.rewritten is not None,
                "reason": entry.decision.why_not,
                "rewrite_s": entry.decision.rewrite_s,
                "check_s": entry.decision.check_s,
                "remembered": entry.decision.remembered,
            }
            for entry in self.entries
        ]
        return {"name": self.name, "pipeline": self.pipeline, "programs": programs}

    def __str__(self) -> str:
        if not self.entries:
            return f"{self.name}: not called yet, so nothing has been lowered"
        return "\n\n".join("\n".join(self._text(entry)) for entry in self.entries)

    def _text(self, entry: Entry) -> list[str]:
        lines = [self._title(entry)]
        if entry.before is not None:
            lines += [f"{'':<22}{'before':>14}{'after':>14}"]
            lines += [f"{name:<22}{before:>14}{after:>14}" for name, before, after in entry.rows]
        return [*lines, *entry.lines]

    def _title(self, entry: Entry) -> str:
        where = entry.before.target if entry.before else entry.decision.platform
        return f"{self.name} by {self.pipeline}, {where}{'' if entry.decision.alone else ', inside another function'}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return "".join(self._html(entry) for entry in self.entries) or f"<p>{html.escape(str(self))}</p>"

    def _html(self, entry: Entry) -> str:
        caption = f"<caption>{html.escape(self._title(entry))}</caption>"
        head = f"<table>{caption}<tr><th></th><th>before</th><th>after</th></tr>"
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in entry.rows]
        table = f"{head}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>" if entry.before else ""
        return table + "".join(f"<p>{html.escape(line)}</p>" for line in entry.lines)


def report_of(rewriter: Rewriter, target: str | None) -> Report:
    """The report on every decision of ``rewriter``; for another target, on its functions lowered and rewritten anew."""
    decisions: Sequence[Decision] = list(rewriter.decisions.values())
    at = load_target(target) if target is not None else None
    if at is not None:
        decisions = [_elsewhere(rewriter, jaxpr, at) for jaxpr in rewriter.jaxprs.values()]
    return Report(rewriter.name, rewriter.policy.pipeline, tuple(_entry(decision, at) for decision in decisions))


def _elsewhere(rewriter: Rewriter, jaxpr: Any, target: Target) -> Decision:
    original = lower_jaxpr(jaxpr, target.kind, rewriter.name)
    result, seconds = apply_passes(original, rewriter.policy.passes)
    return Decision(
        rewriter.name,
        target.kind,
        rewriter.policy.pipeline,
        original,
        result.program if result.applied else None,
        result.events,
        Verdict("not-checked", reason=f"lowered for {target.name} to be counted, not run"),
        reason="" if result.applied else why_nothing_applied(result.events, original),
        rewrite_s=seconds,
    )


def _entry(decision: Decision, target: Target | None) -> Entry:
    if decision.original is None:
        return Entry(decision, None, None)
    at = target or load_target("gpu" if decision.platform == "cuda" else "cpu")
    after = None if decision.rewritten is None else _footprint(decision.rewritten, at)
    return Entry(decision, _footprint(decision.original, at), after)


def _footprint(program: Program, target: Target) -> Footprint:
    compiled = compile_program(program, target, cache=default_cache())
    return footprint(program, compiled, flops=program_cost(program).flops)


def _cell(footprint_: Footprint | None, of: Callable[[Footprint], float | None], form: str) -> str:
    value = None if footprint_ is None else of(footprint_)
    return "-" if value is None else format(value, form)


def _verdict(decision: Decision) -> str:
    verdict = decision.verdict
    if verdict is None:
        return "nothing was compared"
    return f"{verdict.line}, on {decision.compared_on}" if decision.compared_on else verdict.line


class Front:
    """One decision per program: per signature of the arguments, platform and surrounding transformation."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions, in order; empty before the first call."""
        return tuple(self._rewriter.decisions.values())

    @property
    def reason(self) -> str:
        """The reasons why the original runs, each once; "" if every program is rewritten or none was lowered yet."""
        return "; ".join(dict.fromkeys(decision.why_not for decision in self.decisions if decision.why_not))

    @property
    def state(self) -> str:
        """The state: ``not called yet``, ``rewritten``, ``unchanged``, ``rewritten in 1 of 2 programs``."""
        rewritten = sum(decision.rewritten is not None for decision in self.decisions)
        if not self.decisions:
            return "not called yet"
        if rewritten in (0, len(self.decisions)):
            return "rewritten" if rewritten else "unchanged"
        return f"rewritten in {rewritten} of {len(self.decisions)} programs"

    def report(self, target: str | None = None) -> Report:
        """Before and after of every program, on the platform that it was lowered for.

        ``target`` names another one (``a100``, ``h200``, ...; no GPU is needed): the function is lowered and rewritten
        for it. InputError: an unknown target, or one that cannot be compiled for here.
        """
        return report_of(self._rewriter, target)

    def __repr__(self) -> str:
        return f"<{self._rewriter.name}: {self.state}>"
