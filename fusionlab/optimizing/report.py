"""The attribute ``fusionlab`` of an optimised function: its decisions, and launches, memory and work of its programs
before and after."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import Program
from fusionlab.ledger.footprint import Footprint, footprint
from fusionlab.optimizing.decision import Decision
from fusionlab.optimizing.rewriting import Rewriter, lower_jaxpr
from fusionlab.passes.interface import Applied, told_fallbacks
from fusionlab.units import flop_words

_ROWS: tuple[tuple[str, Callable[[Footprint], float | None], Callable[[float], str]], ...] = (
    ("launches", lambda f: f.dynamic_launches, "{:,.0f}".format),
    ("copies", lambda f: f.dynamic_copies, "{:,.0f}".format),
    ("temp memory", lambda f: f.temp_bytes, size_words),
    ("FLOPs (model)", lambda f: f.flops, flop_words),
    ("accessed (model)", lambda f: f.bytes_accessed, size_words),
    ("StableHLO ops", lambda f: f.stablehlo_ops, "{:,.0f}".format),
)


@dataclass(frozen=True)
class Entry:
    """One program: ``before`` is None where it was not lowered, ``after`` where the original runs."""

    decision: Decision
    before: Footprint | None
    after: Footprint | None

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """(quantity, before, after) as text, ``-`` for unknown; none where it was not lowered."""
        if self.before is None:
            return []
        return [(name, _cell(self.before, of, words), _cell(self.after, of, words)) for name, of, words in _ROWS]

    @property
    def title(self) -> str:
        """The function, the pipeline and the target."""
        decision = self.decision
        where = self.before.target if self.before else decision.platform
        return f"{decision.name} by {decision.pipeline}, {where}{'' if decision.alone else ', inside another function'}"

    @property
    def lines(self) -> list[str]:
        """The rewriting or the reason for none, and the verdict of the check."""
        decision, verdict = self.decision, self.decision.verdict
        fallbacks = told_fallbacks(decision.events)
        said = [f"fallback: {fallbacks}"] if fallbacks else []
        applied = [event for event in decision.events if isinstance(event, Applied)]
        said += [f"{event.pass_name}: {event.what}" for event in applied]
        for lost in (event.sparsity for event in applied if event.sparsity is not None):
            first, *others = lost.lines()
            said += [f"sparsity: {first}", *(f"  {line}" for line in others)]
        said += [f"the original runs: {decision.why_not}"] if decision.why_not else []
        compared = "nothing was compared" if verdict is None else "; ".join(verdict.lines)
        return [*said, f"check: {compared}" + (f", on {decision.compared_on}" if decision.compared_on else "")]

    def to_json(self) -> dict[str, Any]:
        """Both footprints (null for unknown), the events, the verdict and the reason."""
        decision = self.decision
        return {
            "before": self.before.to_json() if self.before else None,
            "after": self.after.to_json() if self.after else None,
            "events": [event.to_json() for event in decision.events],
            "equivalence": decision.verdict.to_json() if decision.verdict else None,
            "compared_on": decision.compared_on,
            "rewritten": decision.rewritten is not None,
            "reason": decision.why_not,
            "rewrite_s": decision.rewrite_s,
            "check_s": decision.check_s,
            "remembered": decision.remembered,
        }

    def __str__(self) -> str:
        table = [("", "before", "after"), *self.rows] if self.rows else []
        cells = [f"{name:<22}{before:>14}{after:>14}" for name, before, after in table]
        return "\n".join([self.title, *cells, *self.lines])

    def _repr_html_(self) -> str:
        caption = f"<caption>{html.escape(self.title)}</caption>"
        head = f"<table>{caption}<tr><th></th><th>before</th><th>after</th></tr>"
        cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self.rows]
        table = f"{head}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>" if cells else ""
        return table + "".join(f"<p>{html.escape(line)}</p>" for line in self.lines)


def _cell(footprint_: Footprint | None, of: Callable[[Footprint], float | None], words: Callable[[float], str]) -> str:
    value = None if footprint_ is None else of(footprint_)
    return "-" if value is None else words(value)


@dataclass(frozen=True)
class Report:
    """``print`` it, look at it in a notebook, or take ``to_json``."""

    name: str
    pipeline: str
    entries: tuple[Entry, ...]

    def to_json(self) -> dict[str, Any]:
        """The entries as data."""
        return {
            "name": self.name,
            "pipeline": self.pipeline,
            "programs": [entry.to_json() for entry in self.entries],
        }

    def __str__(self) -> str:
        if not self.entries:
            return f"{self.name}: not called yet, so nothing has been lowered"
        return "\n\n".join(map(str, self.entries))

    def _repr_html_(self) -> str:
        """``str`` for a notebook."""
        return "".join(entry._repr_html_() for entry in self.entries) or f"<p>{html.escape(str(self))}</p>"


class OptimizeReport:
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
        rewriter, decisions, at = self._rewriter, self.decisions, None
        if target is not None:
            at = load_target(target)
            decisions = tuple(_elsewhere(rewriter, jaxpr, at) for jaxpr in rewriter.jaxprs.values())
        return Report(rewriter.name, rewriter.policy.pipeline, tuple(_entry(decision, at) for decision in decisions))

    def __repr__(self) -> str:
        return f"<{self._rewriter.name}: {self.state}>"


def _elsewhere(rewriter: Rewriter, jaxpr: Any, target: Target) -> Decision:
    decision = rewriter.rewritten(lower_jaxpr(jaxpr, target.kind, rewriter.name))
    unchecked = Verdict("not-checked", reason=f"lowered for {target.name} to be counted, not run")
    return replace(decision, verdict=unchecked)


def _entry(decision: Decision, target: Target | None) -> Entry:
    if decision.original is None:
        return Entry(decision, None, None)
    at = target or load_target("gpu" if decision.platform == "cuda" else "cpu")
    after = None if decision.rewritten is None else _footprint(decision.rewritten, at)
    return Entry(decision, _footprint(decision.original, at), after)


def _footprint(program: Program, target: Target) -> Footprint:
    compiled = compile_program(program, target, cache=default_cache())
    return footprint(program, compiled, flops=program_cost(program).flops)
