"""The rules of evaluation: one table per op family, and all of them in ``RULES``."""

from fusionlab.equivalence.exact.rules import contractions, elementwise, moves, regions
from fusionlab.equivalence.exact.rules.rule import ByNode, Rule

RULES: dict[str, Rule | ByNode] = {**elementwise.RULES, **moves.RULES, **contractions.RULES, **regions.RULES}
