"""Rules of evaluation, one per op; most are formulas of their operands' arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fusionlab.equivalence.exact.machine import MACHINE
from fusionlab.equivalence.exact.values import (
    Array,
    Drawn,
    Environment,
    Held,
    Known,
    Uncovered,
    carried,
    dtype_of,
    is_float,
    part,
    same_draws,
)
from fusionlab.hlo.diff.numbering import Bodies
from fusionlab.hlo.view import Node

if TYPE_CHECKING:
    from fusionlab.equivalence.exact.evaluation import Evaluator

Formula = Callable[..., Any]
"""``formula(arithmetic, *arrays)``: the result of an op, a list if it has several; arrays [draws or 1, ...]."""
Rule = Callable[[Node, "Evaluator", Sequence[Held], Environment], list[Held]]


@dataclass(frozen=True)
class ByNode:
    """The rule of an op that has one for some forms and another for others."""

    choose: Callable[[Node], Rule]


@dataclass(frozen=True)
class Computed:
    """The rule of an op that is a formula of its operands' arrays, which ``read`` takes from the node once.

    It is evaluated over the evaluator's arithmetic where the first operand is a float; in the program's own types for
    integers and booleans and, where the op ``folds``, for constants: as constant folding in rewrites does.
    A ``ring`` operation of constants that rounds is evaluated over the arithmetic after all. The result carries the
    parts of the operands ``carrying`` (a range): by the same formula, arguments of logarithms by the method
    ``of_arguments`` if there is one.
    """

    read: Callable[[Node], Formula]
    folds: bool = True
    carrying: tuple[int, int | None] = (0, 0)
    of_arguments: str = ""
    ring: bool = False

    def __call__(
        self, node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment
    ) -> list[Held]:
        formulas = evaluator.prepared.formulas
        if node not in formulas:
            dtypes = [dtype_of(value) for value in node.results]
            formulas[node] = self.read(node), dtypes, is_float(dtype_of(node.operands[0]))
        formula, dtypes, floats = formulas[node]
        if (self.folds or not floats) and all(isinstance(operand, Known) for operand in operands):
            return evaluator.prepared.folded(
                node, evaluator.arithmetic, operands, lambda: self._folded(formula, dtypes, floats, evaluator, operands)
            )
        arithmetic = evaluator.arithmetic if floats else MACHINE
        each = _listed(formula(arithmetic, *[operand.array for operand in operands]))
        parts = self._parts(formula, arithmetic, operands) if any(operand.parts for operand in operands) else {}
        return [Drawn(a if is_float(t) else a.astype(t, copy=False), parts) for a, t in zip(each, dtypes, strict=True)]

    def _folded(
        self, formula: Formula, dtypes: Sequence[Any], floats: bool, evaluator: Evaluator, operands: Sequence[Held]
    ) -> list[Held]:
        """The results of constants."""
        with np.errstate(all="ignore"):
            each = _listed(formula(MACHINE, *(o.constant[None] for o in operands)))  # type: ignore[union-attr]
        found: list[Held] = [evaluator.known(a[0].astype(t, copy=False)) for a, t in zip(each, dtypes, strict=True)]
        if not (self.ring and floats):
            return found
        [exact] = _listed(formula(evaluator.arithmetic, *(operand.array for operand in operands)))
        return found if np.array_equal(found[0].array, exact) else [Drawn(exact)]

    def _parts(self, formula: Formula, arithmetic: Any, operands: Sequence[Held]) -> dict[str, Array]:
        carrying, parts = slice(*self.carrying), dict[str, Array]()
        places = range(len(operands))[carrying]
        for name in carried(operands[carrying]):
            given = (part(o, name) if at in places else o.array for at, o in enumerate(operands))
            own = self.of_arguments if name == "argument" else ""
            parts[name] = getattr(arithmetic, own)(*given) if own else formula(arithmetic, *given)
        return parts


def _listed(found: Any) -> list[Array]:
    return found if isinstance(found, list) else [found]


def _digest_of(arrays: Sequence[Array]) -> Any:
    """The hash of the operands of one draw."""
    digest = hashlib.sha256()
    for one in arrays:
        digest.update(f"{one.dtype} {one.shape}".encode())
        digest.update((one + np.zeros((), one.dtype)).tobytes())  # 0 and -0 are one residue
    return digest


def uninterpreted(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """The results as a random function of the op, its attributes and its whole operands, draw by draw.

    A function that an attribute names counts by what it computes.
    """
    if node.regions:
        raise Uncovered(node.name, node.scope)
    texts = evaluator.prepared.texts
    if node not in texts:
        types = " ".join(str(value.handle.type) for value in (*node.operands, *node.results))
        attributes = {name: str(value) for name, value in node.attributes.items()}
        texts[node] = f"{Bodies(node.module).text(attributes)} {types}"
    text = texts[node]
    arrays = same_draws([operand.array for operand in operands])
    digests = [_digest_of(each) for each in (zip(*arrays, strict=True) if arrays else [()])]
    evaluator.uncovered.update((node.label, each.hexdigest()) for each in digests)
    found: list[Held] = []
    for index, result in enumerate(node.results):
        parts = []
        for draw, digest in enumerate(digests):
            own = digest.copy()
            own.update(f"{node.name} {text} {index}".encode())
            random = np.random.default_rng(list(own.digest()))
            dtype = dtype_of(result)
            if dtype.kind in "iu":  # every bit is random
                parts.append(
                    random.integers(0, 256, (*result.type.shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
                )
            else:
                parts.append(evaluator.drawn(result, evaluator.arithmetic.seeds[draw], random))
        found.append(Drawn(np.stack(parts)))
    return found
