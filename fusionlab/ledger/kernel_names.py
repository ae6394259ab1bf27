"""Instructions of the module after XLA's fusion pass, found again as launches of the final program.

Later passes rename (single ops get wrapped), copy (a copy has another last number) and merge (siblings, or a producer
and its reader, become one kernel with several results). So an instruction is looked for by the names of what is fused
into it, and then by what it gives: opcode, op_name and size of its results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fusionlab.hlo.optimized import Computation, HloModule, Instruction
from fusionlab.ledger.origins import members

_VIEWS = ("bitcast", "get-tuple-element", "reshape")
_NOT_NAMED = ("parameter", "constant")
_Result = tuple[str, str, int]


class KernelNames:
    """``fused`` is the module after fusion, ``final`` the compiled one, ``launches`` the names of its launches.

    It keeps ``fused``, and ``places`` has every instruction of ``fused`` by name, with its computation.
    """

    def __init__(self, fused: HloModule, final: HloModule, launches: frozenset[str]) -> None:
        self.fused = fused
        self.places: dict[str, tuple[Computation, Instruction]] = {
            one.name: (computation, one) for computation, one in _all(fused)
        }
        self._of_member: dict[str, str] = {}
        self._of_stem: dict[str, set[str]] = {}
        self._of_result: dict[_Result, set[str]] = {}
        for _, launch in _all(final):
            if launch.name in launches:
                for member in (launch, *members(final, launch)):
                    self._of_member[member.name] = launch.name
                    self._of_stem.setdefault(_stem(member.name), set()).add(launch.name)
                for result in _results(final, launch):
                    self._of_result.setdefault(result, set()).add(launch.name)
        self._kernels = self._settled()

    def kernel(self, name: str) -> str:
        """The launch that ``name`` of the module after fusion became a part of; "" when that cannot be told."""
        return self._kernels.get(name, "")

    def readers(self, name: str) -> list[Instruction]:
        """The instructions that read ``name``, through views; a view that is a result counts itself."""
        computation, one = self.places[name]
        pending, found = list(computation.users[one.name]), dict[str, Instruction]()
        seen = set[str]()
        while pending:
            user = pending.pop(0)
            if user.name in seen:
                continue
            seen.add(user.name)
            if user.opcode in _VIEWS and not user.is_root:
                pending += computation.users[user.name]
            else:
                found[user.name] = user
        return list(found.values())

    def _settled(self) -> dict[str, str]:
        """Each instruction's launch: by name; then by results, where several give the same ones by its neighbours'."""
        known, open_ = dict[str, str](), dict[str, set[str]]()
        for name, (_, one) in self.places.items():
            if found := self._by_name(one):
                known[name] = found
            elif candidates := {at for result in _results(self.fused, one) for at in self._of_result.get(result, ())}:
                open_[name] = candidates
        settled = True
        while settled:
            settled = False
            for name, candidates in list(open_.items()):
                if len(candidates) > 1:
                    candidates = candidates & {known.get(beside, "") for beside in self._neighbours(name)}
                if len(candidates) == 1:
                    known[name] = next(iter(candidates))
                    del open_[name]
                    settled = True
        return known

    def _by_name(self, one: Instruction) -> str:
        inside = [member.name for member in members(self.fused, one) if member.opcode not in _NOT_NAMED]
        for found in (*reversed(inside), one.name):
            if found in self._of_member:
                return self._of_member[found]
        for found in (*reversed(inside), one.name):
            if len(kernels := self._of_stem.get(_stem(found), set())) == 1:
                return next(iter(kernels))
        return ""

    def _neighbours(self, name: str) -> Iterator[str]:
        yield from (reader.name for reader in self.readers(name))
        yield from self._producers(*self.places[name])

    def _producers(self, computation: Computation, one: Instruction) -> Iterator[str]:
        for operand in one.operands:
            while operand in computation.by_name and computation.by_name[operand].opcode in _VIEWS:
                operand = computation.by_name[operand].operands[0]
            yield operand


def _results(module: HloModule, one: Instruction) -> Iterator[_Result]:
    """Opcode, op_name and number of elements of each result of a fusion, looked at through views."""
    if one.opcode != "fusion" or not one.called:
        return
    computation = module.computations[one.called[0]]
    root = computation.root
    for name in root.operands if root.opcode == "tuple" else (root.name,):
        found = computation.by_name[name]
        while found.opcode in _VIEWS and found.operands:
            found = computation.by_name[found.operands[0]]
        if found.op_name and not found.shape.is_tuple:
            yield found.opcode, found.op_name, found.shape.size


def _stem(name: str) -> str:
    return re.sub(r"\.\d+$", "", name)


def _all(module: HloModule) -> Iterator[tuple[Computation, Instruction]]:
    for computation in module.computations.values():
        for one in computation.instructions:
            yield computation, one
