"""JAX's test for singular matrices, in the derivative of ``jnp.linalg.det`` (n >= 4).

    lu, pivots = LU(matrix)                     u = lu, its last diagonal element set to 1 / (the minor before it)
    d = triangular_solve(u, ones)               singular = any(isnan(d) | isinf(d))
    x = select(singular, 0, x)                  before the two triangular solves with u that x goes through
    y = select(singular, 0, y)                  after them

The derivative is taken for zero where the matrix is singular; the value has no such branch. Where the matrix is regular
nothing is selected, so that the predicate is no part of the function that is differentiated. It is recognised whole: a
test of another system, or one that selects anything but zeros on the way into or out of a triangular solve, is a guard
of the author's own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from fusionlab.hlo import ops
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.view import FunctionView, Node, Value, direction_of

_LINEAR = (
    ops.ADD, ops.CONCATENATE, ops.DOT_GENERAL, ops.GATHER, ops.MULTIPLY, ops.NEGATE, ops.PAD, ops.SCATTER, ops.SUBTRACT,
)  # fmt: skip
_NEAR = 16
"""The most ops between a selection and the triangular solve that it belongs to."""
_TRIANGULAR_SOLVE = "triangular-solve"
_NUMBERS = (*ops.WIDE_FLOATS, *ops.COMPLEX)


def singularity_tests(function: FunctionView) -> set[Node]:
    """The comparisons of ``function`` that make up tests for singular matrices, as JAX writes them."""
    found: set[Node] = set()
    users = _Users(function)
    for node in function.walk():
        if node.op is not ops.OR or (tested := _tested(node)) is None:
            continue
        solve, comparisons = tested
        factors, replaced = _factors(solve)
        if factors is None or not replaced or number_of(solve.operands[1], _NUMBERS) != 1:
            continue
        if all(_is_filter(each, factors, users) for each in users.selections(node.results[0])):
            found.update(comparisons)
    return found


def _tested(either: Node) -> tuple[Node, list[Node]] | None:
    """The triangular solve d of ``isnan(d) | isinf(d)``, in either order, and the comparisons."""
    for first, second in (either.operands, either.operands[::-1]):
        is_nan, infinite = first.producer, _is_infinite(second)
        if is_nan is None or infinite is None or is_nan.op is not ops.COMPARE:
            continue
        x, comparisons = infinite
        solve = _moved(x).producer
        is_tested = is_nan.operands == (x, x) and direction_of(is_nan) == "NE"
        if is_tested and solve is not None and solve.family == _TRIANGULAR_SOLVE:
            return solve, [is_nan, *comparisons]
    return None


def _is_infinite(predicate: Value) -> tuple[Value, list[Node]] | None:
    """The x of ``isinf(x)``, of complex ones part by part, and the comparisons."""
    node = predicate.producer
    if node is not None and node.op is ops.COMPARE and direction_of(node) == "EQ":
        magnitude = node.operands[0].producer
        if magnitude is not None and magnitude.op is ops.ABS and number_of(node.operands[1]) == math.inf:
            return magnitude.operands[0], [node]
    if node is not None and node.op is ops.OR:
        parts = [found for value in node.operands if (found := _is_infinite(value)) is not None]
        made = [x.producer for x, _ in parts if x.producer is not None]
        if {part.op.mnemonic for part in made} == {"real", "imag"} and made[0].operands == made[1].operands:
            return made[0].operands[0], [each for _, comparisons in parts for each in comparisons]
    return None


def _factors(solve: Node) -> tuple[Node | None, bool]:
    """The LU factorisation that a triangular system is of, or None, and whether elements of the factors were replaced
    (by an update or a selection; LAPACK's are replaced by NaN where it says that it failed)."""
    node, replaced = _moved(solve.operands[0]).producer, False
    while node is not None and node.op in (ops.SCATTER, ops.DYNAMIC_UPDATE_SLICE, ops.SELECT):
        branches = node.operands[1:] if node.op is ops.SELECT else node.operands[:1]
        nodes = [_moved(value).producer for value in branches]
        replaced, node = True, next((each for each in nodes if each is not None and _keeps(each)), None)
    return (node, replaced) if node is not None and node.call_target in ops.LU_TARGETS else (None, replaced)


def _keeps(node: Node) -> bool:
    """True for LU factors, and for an array with some elements replaced."""
    return node.op in (ops.SCATTER, ops.DYNAMIC_UPDATE_SLICE, ops.SELECT) or node.call_target in ops.LU_TARGETS


def _is_filter(selection: Node | None, factors: Node, users: _Users) -> bool:
    """True for a selection of zeros in place of what comes out of a triangular solve with ``factors``, or goes into
    one."""
    if selection is None or number_of(selection.operands[1], _NUMBERS) != 0:
        return False
    return _comes_from_a_solve(selection.operands[2], factors) or users.goes_into_a_solve(selection.results[0], factors)


def _moved(value: Value) -> Value:
    """What ``value`` was made of by moves alone."""
    while (node := value.producer) is not None and node.op.strided:
        value = node.operands[0]
    return value


def _is_with(solve: Node, factors: Node) -> bool:
    return solve.family == _TRIANGULAR_SOLVE and _factors(solve)[0] is factors


def _comes_from_a_solve(value: Value, factors: Node) -> bool:
    pending, seen = [value], set[Value]()
    while pending and len(seen) < _NEAR:
        node = pending.pop(0).producer
        if node is None or node.results[0] in seen:
            continue
        seen.add(node.results[0])
        if _is_with(node, factors):
            return True
        if node.op.strided or node.op in _LINEAR:
            pending += (value for value in node.operands if value.dtype in ops.INEXACT)  # and not through indices
    return False


class _Users:
    """The uses of the values of a function, in all its regions: the nodes that read them, and what regions return."""

    def __init__(self, function: FunctionView) -> None:
        self._of: dict[Value, list[Node]] = defaultdict(list)
        self._returned = {
            value
            for region in function.regions()
            for at, value in enumerate(region.returns)
            if value not in region.arguments[at : at + 1]  # carried through a loop unchanged
        }
        for node in function.walk():
            for value in dict.fromkeys(node.operands):
                self._of[value].append(node)

    def selections(self, predicate: Value) -> Iterator[Node | None]:
        """The selections by ``predicate``, moved, combined along axes or carried through loops unchanged; None for any
        other use."""
        pending, seen = [predicate], set[Value]()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self._returned:
                yield None
            for node in self._of[value]:
                if node.op is ops.SELECT and node.operands[0] == value:
                    yield node
                elif node.op.strided or node.op is ops.REDUCE:
                    pending += node.results
                elif node.op is ops.WHILE:
                    places = [at for at, operand in enumerate(node.operands) if operand == value]
                    pending += [region.arguments[at] for region in node.regions for at in places]
                    pending += [node.results[at] for at in places]
                    if any(node.regions[1].returns[at] != node.regions[1].arguments[at] for at in places):
                        yield None
                else:
                    yield None

    def goes_into_a_solve(self, value: Value, factors: Node) -> bool:
        """True if a triangular solve with ``factors`` is among the next uses of ``value``, behind sums, products and
        moves."""
        pending, seen = [value], set[Node]()
        while pending and len(seen) < _NEAR:
            for node in self._of[pending.pop(0)]:
                if _is_with(node, factors):
                    return True
                if node not in seen and (node.op.strided or node.op in _LINEAR):
                    seen.add(node)
                    pending += node.results
        return False
