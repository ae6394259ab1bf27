"""The origin of a launch: phase, stage, role and source line, by a vote of all ops fused into it.

XLA leaves one op_name on a fusion, that of its root. Its members keep theirs, so a fusion is attributed to the origin
of most of its work: every computing member votes with the elements of its result (a matrix product, which is a kernel
of its own, is its own vote). Members that only move data vote when none computes. A kernel without a member named by
JAX (introduced by XLA: layout changes, zero fills, concatenated weights) gets the origin of its readers, marked
``readers``; one whose readers are unknown too is unattributed: all fields are empty.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass

from fusionlab.hlo.optimised.kernel_cost import family_of_kernel
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.hlo.stages import Attribution, attribute
from fusionlab.ledger.dataflow import members, readers

_NOT_A_VOTER = ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "iota")
_MOVES_DATA = ("layout", "constant", "control")
_PASSED_ON = ("bitcast", "get-tuple-element", "copy")
_NOT_A_READER = ("tuple", "while", "conditional")


@dataclass(frozen=True)
class Origin:
    """Phase, stage and role as in ``hlo.stages``, each "" when unknown.

    ``share`` is the part of the votes that agree with all three (1.0 when everything fused comes from one place);
    ``op_name`` and ``source`` ("file.py:12") are those of the weightiest member that agrees. ``by`` is ``members`` or,
    for an op that XLA introduced, ``readers``.
    """

    phase: str = ""
    stage: str = ""
    role: str = ""
    share: float = 0.0
    op_name: str = ""
    source: str = ""
    by: str = ""

    @property
    def is_known(self) -> bool:
        """True if any part of the origin is known."""
        return bool(self.phase or self.stage)


def origin_of(module: HloModule, instruction: Instruction) -> Origin:
    """The origin of the kernel launched for ``instruction`` of ``module``."""
    named = [one for one in members(module, instruction) if _is_of_jax(one.op_name)]
    voters = [one for one in named if one.opcode not in _NOT_A_VOTER] or named
    computing = [one for one in voters if family_of_kernel(one.name, one.opcode) not in _MOVES_DATA]
    votes: Counter[Attribution] = Counter()
    weightiest: dict[Attribution, Instruction] = {}
    for one in computing or voters:
        found = attribute(one.op_name)
        votes[found] += _weight(one)
        if found not in weightiest or _weight(one) > _weight(weightiest[found]):
            weightiest[found] = one
    known = Counter({found: weight for found, weight in votes.items() if found.phase or found.stage})
    if not known:
        return Origin()
    winner, weight = known.most_common(1)[0]
    one = weightiest[winner]
    place = module.source_of(one)
    return Origin(
        winner.phase,
        winner.stage,
        winner.role,
        share=weight / votes.total(),
        op_name=one.op_name,
        source=f"{place[0].rpartition('/')[2]}:{place[1]}" if place else "",
        by="members",
    )


def origin_of_readers(module: HloModule, computation: Computation, instruction: Instruction) -> Origin:
    """The origin that most readers of ``instruction`` in its computation have; unknown when none has one."""
    reading = readers(computation, instruction.name, _PASSED_ON)
    found = [origin_of(module, one) for one in reading if one.opcode not in (*_PASSED_ON, *_NOT_A_READER)]
    votes = Counter((one.phase, one.stage, one.role) for one in found if one.is_known)
    if not votes:
        return Origin()
    winner, count = votes.most_common(1)[0]
    like = next(one for one in found if (one.phase, one.stage, one.role) == winner)
    return dataclasses.replace(like, share=count / len(found), by="readers")


def _is_of_jax(op_name: str) -> bool:
    """True if a name is a name stack; arguments are named after themselves (``args[0]['weight']``)."""
    return op_name.startswith("jit(") or "/" in op_name.partition("[")[0]


def _weight(one: Instruction) -> int:
    shape = one.shape
    return max(1, shape.size if not shape.is_tuple else max((part.size for part in shape.elements), default=1))
