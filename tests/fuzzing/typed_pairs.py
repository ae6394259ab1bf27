"""Pairs of integer, bit, boolean and complex expressions, equal by an identity or different by one edit.

Each expression is a tree of StableHLO ops over vectors of all element types. XLA runs both sides at integers of all
magnitudes; an edited pair that differs there must not be ``identical``. Where it differs only at integers that the
check does not draw, that is a class of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.identity import Identity, compare_functions
from fusionlab.equivalence.exact.values import Uncovered
from fusionlab.equivalence.oracle import xla_runner
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import FunctionView

LENGTH = 16
SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("ui8", "ui16", "ui32", "ui64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("f16", "bf16", "f32")
BOOLEAN, COMPLEX, REAL = "i1", "complex<f32>", "f32"
INPUTS = {f"{name}{at}": name for name in (*INTEGERS, BOOLEAN, COMPLEX, *FLOATS) for at in range(2)}
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


@dataclass(frozen=True, eq=False)
class Term:
    """``op`` of ``operands``, of an element type; ``detail`` is a constant, a direction, or the name of an input."""

    op: str
    type: str
    operands: tuple[Term, ...] = ()
    detail: Any = None

    def __repr__(self) -> str:
        detail = "" if self.detail is None else f"[{self.detail}]"
        return f"{self.op}{detail}:{self.type}({', '.join(map(repr, self.operands))})"

    def walk(self) -> Iterator[Term]:
        """Every term in it, operands first."""
        for operand in self.operands:
            yield from operand.walk()
        yield self


def replaced(term: Term, old: Term, new: Term) -> Term:
    """``term`` with ``new`` in the place of ``old``."""
    if term is old:
        return new
    return replace(term, operands=tuple(replaced(operand, old, new) for operand in term.operands))


def literal(type_: str, value: int) -> Term:
    return Term("constant", type_, (), _wrapped(type_, value))


def _wrapped(type_: str, value: int) -> int:
    bits, low = 8 * NUMPY[type_].itemsize, 0 if type_.startswith("u") else 2 ** (8 * NUMPY[type_].itemsize - 1)
    return (value + low) % 2**bits - low


def bits_of(type_: str) -> int:
    return 8 * NUMPY[type_].itemsize


class Generator:
    """Random terms of a type; all choices are from ``random``."""

    def __init__(self, choices: random.Random) -> None:
        self.random = choices

    def term(self, type_: str, depth: int) -> Term:
        if depth <= 0:
            return Term("input", type_, (), f"{type_}{self.random.randrange(2)}")
        if type_ in INTEGERS:
            return self._integer(type_, depth - 1)
        if type_ == BOOLEAN:
            return self._boolean(depth - 1)
        return self._complex(depth - 1) if type_ == COMPLEX else self._float(type_, depth - 1)

    def _two(self, op: str, type_: str, depth: int) -> Term:
        return Term(op, type_, (self.term(type_, depth), self.term(type_, depth)))

    def constant(self, type_: str) -> Term:
        big = self.random.choice((0, 1, -1, 2**7 - 1, 2**7, 2**15, 2**31 - 1, -(2**31)))
        value = self.random.choice((1, 2, 3, 5, 7, 15, 100, -1, -3, -8, big))
        return literal(type_, value)

    def _integer(self, type_: str, depth: int) -> Term:
        kind = self.random.random()
        if kind < 0.3:
            op = self.random.choice(("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"))
            return self._two(op, type_, depth)
        if kind < 0.45:
            op = self.random.choice(("add", "multiply", "and", "or", "xor", "maximum", "minimum"))
            return Term(op, type_, (self.term(type_, depth), self.constant(type_)))
        if kind < 0.58:
            op = self.random.choice(("shift_left", "shift_right_logical", "shift_right_arithmetic"))
            by = self.random.choice((1, 2, 3, bits_of(type_) - 1, bits_of(type_) // 2))
            return Term(op, type_, (self.term(type_, depth), literal(type_, by)))
        if kind < 0.68:
            by = Term("or", type_, (self.term(type_, depth), literal(type_, 1)))  # never zero
            return Term(self.random.choice(("divide", "remainder")), type_, (self.term(type_, depth), by))
        if kind < 0.76:
            # XLA folds count_leading_zeros of negative constants otherwise than it runs it.
            ops = ("not", "popcnt", "negate", *(("abs", "sign") if type_ in SIGNED else ("count_leading_zeros",)))
            return Term(self.random.choice(ops), type_, (self.term(type_, depth),))
        if kind < 0.82:
            low, high = sorted(self.random.sample((0, 1, 3, 10, 50, 100, 120), 2))
            bounds = literal(type_, low - (5 if type_ in SIGNED else 0)), literal(type_, high)
            return Term("clamp", type_, (bounds[0], self.term(type_, depth), bounds[1]))
        if kind < 0.9:
            other = self.random.choice([one for one in (*INTEGERS, BOOLEAN) if one != type_])
            return Term("convert", type_, (self.term(other, depth),))
        if kind < 0.93:
            exponent = literal(type_, self.random.choice((0, 2, 3)))
            return Term("power", type_, (self.term(type_, depth), exponent))
        return Term("select", type_, (self.term(BOOLEAN, depth), self.term(type_, depth), self.term(type_, depth)))

    def _boolean(self, depth: int) -> Term:
        kind = self.random.random()
        if kind < 0.55:
            type_ = self.random.choice((*INTEGERS, BOOLEAN))
            return replace(
                self._two("compare", BOOLEAN, 0), detail=self._direction(), operands=self._pair(type_, depth)
            )
        if kind < 0.7:
            type_ = self.random.choice((*INTEGERS, COMPLEX, REAL))
            return Term("convert", BOOLEAN, (self.term(type_, depth),))
        if kind < 0.75:
            return Term("compare", BOOLEAN, self._pair(COMPLEX, depth), self.random.choice(("EQ", "NE")))
        if kind < 0.8:
            return Term("not", BOOLEAN, (self.term(BOOLEAN, depth),))
        return self._two(self.random.choice(("and", "or", "xor", "maximum", "minimum", "multiply")), BOOLEAN, depth)

    def _direction(self) -> str:
        return self.random.choice(DIRECTIONS)

    def _pair(self, type_: str, depth: int) -> tuple[Term, Term]:
        first = self.term(type_, depth)
        return first, self.constant(type_) if type_ in INTEGERS and self.random.random() < 0.5 else self.term(
            type_, depth
        )

    def _complex(self, depth: int) -> Term:
        kind = self.random.random()
        if kind < 0.5:
            return self._two(self.random.choice(("add", "subtract", "multiply")), COMPLEX, depth)
        if kind < 0.75:
            return Term("complex", COMPLEX, (self.term(REAL, depth), self.term(REAL, depth)))
        return Term(self.random.choice(("negate", "exponential", "sine")), COMPLEX, (self.term(COMPLEX, depth),))

    def _float(self, type_: str, depth: int) -> Term:
        kind = self.random.random()
        if kind < 0.4:
            return self._two(self.random.choice(("add", "subtract", "multiply", "maximum", "minimum")), type_, depth)
        if kind < 0.7:
            return Term("convert", type_, (self.term(self.random.choice((*INTEGERS[:2], "ui8", BOOLEAN)), depth),))
        if kind < 0.85 and type_ == REAL:
            return Term(self.random.choice(("real", "imag")), REAL, (self.term(COMPLEX, depth),))
        return Term("select", type_, (self.term(BOOLEAN, depth), self.term(type_, depth), self.term(type_, depth)))


# Edits: what stands in the place of a term instead, and changes the function.

_GROUPS = (
    ("add", "subtract"), ("multiply", "add"), ("maximum", "minimum"), ("and", "or", "xor"), ("divide", "remainder"),
    ("shift_right_logical", "shift_right_arithmetic", "shift_left"), ("real", "imag"), ("exponential", "sine"),
    ("popcnt", "count_leading_zeros"), ("negate", "not"),
)  # fmt: skip


def _other_op(term: Term, choices: random.Random) -> Term | None:
    others = [op for group in _GROUPS if term.op in group for op in group if op != term.op]
    if term.type in SIGNED:
        others = [op for op in others if op != "count_leading_zeros"]
    if term.type == BOOLEAN:
        others = [op for op in others if op in ("maximum", "minimum", "and", "or", "xor", "not")]
    if term.type not in (*INTEGERS, BOOLEAN):
        others = [op for op in others if op not in ("and", "or", "xor", "not", "divide", "remainder")]
    return replace(term, op=choices.choice(others)) if others else None


def _off_by_one(term: Term, choices: random.Random) -> Term | None:
    if term.op != "constant":
        return None
    return literal(term.type, term.detail + choices.choice((-1, 1)))


def _other_direction(term: Term, choices: random.Random) -> Term | None:
    if term.op != "compare":
        return None
    known = DIRECTIONS[:2] if term.operands[0].type == COMPLEX else DIRECTIONS
    return replace(term, detail=choices.choice([one for one in known if one != term.detail]))


def _other_sign(term: Term, _: random.Random) -> Term | None:
    """The same op of integers of the other signedness, converted there and back."""
    signed = (
        "count_leading_zeros",
        "abs",
        "sign",
        "shift_left",
        "add",
        "subtract",
        "multiply",
        "and",
        "or",
        "xor",
        "not",
        "negate",
    )
    given = term.operands[-1].type if term.operands else ""
    if given not in INTEGERS or term.op in (*signed, "convert", "select"):
        return None
    other = given[1:] if given in UNSIGNED else f"u{given}"
    operands = tuple(Term("convert", other, (operand,)) for operand in term.operands)
    made = replace(term, operands=operands, type=other if term.type in INTEGERS else term.type)
    return Term("convert", term.type, (made,)) if term.type in INTEGERS else made


def _through_fewer_bits(term: Term, choices: random.Random) -> Term | None:
    """An integer converted to a narrower type and back, or with the other sign to a wider one."""
    if term.op != "convert" or term.operands[0].type not in INTEGERS or term.type not in INTEGERS:
        return None
    other = choices.choice([one for one in INTEGERS if one not in (term.type, term.operands[0].type)])
    return Term("convert", term.type, (Term("convert", other, term.operands),))


def _exchanged(term: Term, _: random.Random) -> Term | None:
    if term.op not in ("subtract", "divide", "remainder", "compare", "complex", "select"):
        return None
    return replace(term, operands=(*term.operands[:-2], *term.operands[:-3:-1]))


def _other_input(term: Term, _: random.Random) -> Term | None:
    return replace(term, detail=f"{term.type}{1 - int(term.detail[-1])}") if term.op == "input" else None


Rewrite = Callable[[Term, random.Random], Term | None]
EDITS: dict[str, Rewrite] = {
    "constant off by one": _off_by_one, "similar op": _other_op, "direction": _other_direction,
    "signedness": _other_sign, "fewer bits": _through_fewer_bits, "operands exchanged": _exchanged,
    "variable": _other_input,
}  # fmt: skip


# Identities of integers and bits.


def _commuted(term: Term, _: random.Random) -> Term | None:
    if term.op not in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"):
        return None
    return replace(term, operands=term.operands[::-1])


def _of_negated(term: Term, _: random.Random) -> Term | None:
    """x - y = x + -y."""
    if term.op != "subtract":
        return None
    first, second = term.operands
    return Term("add", term.type, (first, Term("negate", term.type, (second,))))


def _de_morgan(term: Term, _: random.Random) -> Term | None:
    if term.op not in ("and", "or"):
        return None
    parts = tuple(Term("not", term.type, (operand,)) for operand in term.operands)
    return Term("not", term.type, (Term("or" if term.op == "and" else "and", term.type, parts),))


def _shift_as_product(term: Term, _: random.Random) -> Term | None:
    if term.op != "shift_left" or term.operands[1].op != "constant":
        return None
    return Term("multiply", term.type, (term.operands[0], literal(term.type, 2 ** term.operands[1].detail)))


def _as_selection(term: Term, _: random.Random) -> Term | None:
    """max(x, y) = select(x > y, x, y)."""
    if term.op not in ("maximum", "minimum") or term.type not in INTEGERS:
        return None
    return Term(
        "select",
        term.type,
        (Term("compare", BOOLEAN, term.operands, "GT" if term.op == "maximum" else "LT"), *term.operands),
    )


def _negated_comparison(term: Term, _: random.Random) -> Term | None:
    if term.op != "compare" or term.operands[0].type not in (*INTEGERS, BOOLEAN):
        return None
    other = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}[term.detail]
    return Term("not", BOOLEAN, (replace(term, detail=other),))


def _xor_as_difference(term: Term, _: random.Random) -> Term | None:
    """x ^ y = (x | y) - (x & y)."""
    if term.op != "xor" or term.type not in INTEGERS:
        return None
    return Term("subtract", term.type, tuple(Term(op, term.type, term.operands) for op in ("or", "and")))


IDENTITIES: dict[str, Rewrite] = {
    "commuted": _commuted, "sum with a negative": _of_negated, "De Morgan": _de_morgan,
    "shift as product": _shift_as_product, "extreme as selection": _as_selection,
    "negated comparison": _negated_comparison, "xor as difference": _xor_as_difference,
}  # fmt: skip


def rewritten(term: Term, choices: random.Random, rules: dict[str, Rewrite]) -> tuple[Term, str]:
    """``term`` with one of ``rules`` at one place, and its name; "" where none fits."""
    found = [(at, name) for at in term.walk() for name in rules]
    choices.shuffle(found)
    for at, name in found:
        if (new := rules[name](at, choices)) is not None:
            return replaced(term, at, new), name
    return term, ""


@dataclass(frozen=True)
class Pair:
    """Two terms of one type: ``edit`` made one of the other, or else ``identity`` did."""

    number: int
    first: Term
    second: Term
    identity: str
    edit: str


def made(seed: int, number: int) -> Pair:
    """The pair ``number`` of ``seed``: three of four are edited."""
    choices = random.Random(f"typed {seed}/{number}")
    while True:
        type_ = choices.choice((*INTEGERS, BOOLEAN, BOOLEAN, COMPLEX, REAL, *FLOATS))
        first = Generator(choices).term(type_, choices.choice((1, 2, 2, 3)))
        second, name = rewritten(first, choices, EDITS if number % 4 else IDENTITIES)
        if name:
            return Pair(number, first, second, "" if number % 4 else name, name if number % 4 else "")


def program_of(terms: Sequence[Term]) -> Program:
    """The program whose outputs are ``terms`` of vectors of ``LENGTH`` elements."""
    lines: list[str] = []

    def name_of(term: Term) -> str:
        if term.op == "input":
            return f"%{_plain(term.detail)}"
        operands = [name_of(operand) for operand in term.operands]
        name, types = f"%v{len(lines)}", [_tensor(operand.type) for operand in term.operands]
        if term.op == "constant":
            lines.append(f"{name} = stablehlo.constant dense<{term.detail}> : {_tensor(term.type)}")
            return name
        detail = f"{{comparison_direction = #stablehlo<comparison_direction {term.detail}>}}" if term.detail else ""
        called = f'"stablehlo.{term.op}"({", ".join(operands)}) {detail}'
        lines.append(f"{name} = {called} : ({', '.join(types)}) -> {_tensor(term.type)}")
        return name

    names, types = [name_of(term) for term in terms], ", ".join(_tensor(term.type) for term in terms)
    arguments = ", ".join(f"%{_plain(name)}: {_tensor(type_)}" for name, type_ in INPUTS.items())
    body = "\n".join(lines)
    text = f"func.func public @main({arguments}) -> ({types}) {{\n{body}\nreturn {', '.join(names)} : {types}\n}}"
    return Program.of_foreign_bytes(text.encode(), Path("pairs.mlir"))


def _plain(name: str) -> str:
    return name.replace("<", "_").replace(">", "_")


def _tensor(type_: str) -> str:
    return f"tensor<{LENGTH}x{type_}>"


def samples(view: FunctionView, seed: int) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Inputs that the check draws for integers, and inputs of all magnitudes, each with the name of its kind."""
    random = np.random.default_rng(seed)
    evaluator = Evaluator(PrimeField(primes(1)[0], range(100, 112)))
    drawn = evaluator.drawn_arguments(view)
    for draw in range(12):
        yield (
            "drawn",
            [_input(type_, held.array[draw], random) for type_, held in zip(INPUTS.values(), drawn, strict=True)],
        )
    for _ in range(6):
        yield "beyond", [_input(type_, None, random) for type_ in INPUTS.values()]


def _input(type_: str, drawn: Any, random: np.random.Generator) -> np.ndarray:
    dtype = NUMPY[type_]
    if type_ in (COMPLEX, *FLOATS):  # never tied: ties are the check's own class
        real, imaginary = random.standard_normal((2, LENGTH))
        return (real + 1j * imaginary if type_ == COMPLEX else real).astype(dtype)
    if drawn is not None:
        return np.asarray(drawn)
    if type_ == BOOLEAN:
        return random.integers(0, 2, LENGTH).astype(bool)
    raw = random.integers(0, 256, (LENGTH, dtype.itemsize), np.uint8).view(dtype)[:, 0]
    return np.where(random.random(LENGTH) < 0.3, np.iinfo(dtype).min + (raw & 1), raw).astype(dtype)


def run(
    seed: int,
    first: int,
    count: int,
    differing: Callable[..., list[bool]],
    alone: Callable[..., Identity] = compare_functions,
) -> dict[str, Any]:
    """``count`` pairs of ``seed`` from ``first`` on, judged by the check ``differing`` of all together.

    XLA runs those of which an edited one is identical or an equal one is not. Of an edited one that differs there, the
    check ``alone``, which has more draws, decides.
    """
    some = [made(seed, number) for number in range(first, first + count)]
    said = _said(some, differing)
    asked = [at for at, pair in enumerate(some) if said[at] is not None and said[at] != bool(pair.edit)]
    apart = dict(zip(asked, _apart([some[at] for at in asked], seed), strict=True)) if asked else {}
    classes: Counter[str] = Counter()
    identities: Counter[str] = Counter()
    edits: dict[str, Counter[str]] = {}
    looked: list[dict[str, Any]] = []
    for at, pair in enumerate(some):
        kind = "typed, edited: not identical" if pair.edit else "typed, equal: identical"
        if said[at] is None:
            kind = "typed: not covered"
        elif at in apart:
            kind = _KINDS[bool(pair.edit), apart[at]]
            if pair.edit and apart[at] != "nowhere":
                kind = _judged(alone(*(program_view(program_of([term])) for term in (pair.first, pair.second)))) or kind
            if kind in _KINDS.values() and (apart[at] != "nowhere" or not pair.edit):
                words = {"pair": pair.number, "kind": kind, "first": repr(pair.first), "second": repr(pair.second)}
                looked.append({**words, "edit": pair.edit, "identities": [pair.identity]})
        classes[kind] += 1
        if pair.edit:
            edits.setdefault(f"typed: {pair.edit}", Counter())[kind] += 1
        else:
            identities[f"{pair.identity}: {'not ' if said[at] else ''}identical"] += 1
    return {"classes": classes, "identities": identities, "edits": edits, "looked_into": looked}


def _said(pairs: Sequence[Pair], differing: Callable[..., list[bool]]) -> list[bool | None]:
    """For each pair whether it differs; None where the check does not cover one, which is found by halves."""
    first, second = program_of([pair.first for pair in pairs]), program_of([pair.second for pair in pairs])
    try:
        return [*differing(program_view(first), program_view(second))]
    except Uncovered:
        if len(pairs) == 1:
            return [None]
        half = len(pairs) // 2
        return [*_said(pairs[:half], differing), *_said(pairs[half:], differing)]


_KINDS = {
    (True, "nowhere"): "typed, edited: identical, and equal as XLA runs them",
    (True, "drawn"): "edited: identical",
    (True, "beyond"): "typed, edited: identical, different at integers that are not drawn",
    (False, "nowhere"): "typed, equal: not-identical",
    (False, "drawn"): "equal: not-identical, different in float64",
    (False, "beyond"): "equal: not-identical, different in float64",
}


def _judged(verdict: Identity) -> str:
    """The class of an edited pair by the check of it alone, which has more draws; "" if it is identical there without
    an exception."""
    if verdict.result != "identical":
        return "typed, edited: not identical"
    return "typed, edited: identical, except for integers" if verdict.except_for else ""


def _apart(pairs: Sequence[Pair], seed: int) -> list[str]:
    """For each pair the first kind of inputs at which XLA's results differ, or ``nowhere``."""
    programs = program_of([pair.first for pair in pairs]), program_of([pair.second for pair in pairs])
    runners = [xla_runner(program) for program in programs]
    found = ["nowhere"] * len(pairs)
    for kind, arrays in samples(program_view(programs[0]), seed):
        for at, (x, y) in enumerate(zip(*(runner(arrays) for runner in runners), strict=True)):
            if found[at] == "nowhere" and _differ(x, y):
                found[at] = kind
    return found


def _differ(x: np.ndarray, y: np.ndarray) -> bool:
    """True where an element differs; of floats by more than a few roundings of values that both have."""
    if x.dtype.kind in "biu":
        return bool((x != y).any())
    x, y = (one.astype(np.complex128) for one in (x, y))
    defined = np.isfinite(x) & np.isfinite(y)
    size = np.maximum(np.abs(x), np.abs(y))[defined]
    return bool((np.abs(x[defined] - y[defined]) > 0.1 * size + 1e-3).any())
