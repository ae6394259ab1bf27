"""Front: what a user can ask an optimised function, as its attribute ``fusionlab``."""

from __future__ import annotations

from fusionlab.optimizing.decision import Decision
from fusionlab.optimizing.report import Report, report_of
from fusionlab.optimizing.rewriting import Rewriter


class Front:
    """One decision per program: per signature of the arguments, platform and surrounding transformation."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided, in order; empty before the first call."""
        return tuple(self._rewriter.decisions.values())

    @property
    def reason(self) -> str:
        """Why the original runs, each reason once; "" where every program is rewritten or none was lowered yet."""
        return "; ".join(dict.fromkeys(decision.why_not for decision in self.decisions if decision.why_not))

    @property
    def state(self) -> str:
        """In a word or two: ``not called yet``, ``rewritten``, ``unchanged``, ``rewritten in 1 of 2 programs``."""
        rewritten = sum(decision.rewritten is not None for decision in self.decisions)
        if not self.decisions:
            return "not called yet"
        if rewritten in (0, len(self.decisions)):
            return "rewritten" if rewritten else "unchanged"
        return f"rewritten in {rewritten} of {len(self.decisions)} programs"

    def report(self, target: str | None = None) -> Report:
        """Before and after of every program, on the platform that it was lowered for.

        ``target`` names another one (``a100``, ``h200``, ...; no GPU is needed): the function is lowered and rewritten
        for that. InputError: an unknown target, or one that cannot be compiled for here.
        """
        return report_of(self._rewriter, target)

    def __repr__(self) -> str:
        return f"<{self._rewriter.name}: {self.state}>"
