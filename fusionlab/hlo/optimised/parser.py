"""XLA's optimised HLO text -> frozen records, and back. The grammar is in hlo.lark (lark, LALR).

The grammar splits a text into instructions. Their shapes (arrays with layouts, tuples, tokens) and attributes
(``, name=value`` lists, values stay text) are parsed on demand.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lark

from fusionlab.hlo.frames import is_of_user

_CALLEES = ("calls", "to_apply", "condition", "body", "branch_computations", "called_computations",
            "true_computation", "false_computation", "select", "scatter")  # fmt: skip


class HloSyntaxError(ValueError):
    """Text that is no HLO module. ``line`` and ``column`` count from 1; ``expected`` are the grammar's terminals."""

    def __init__(self, line: int, column: int, expected: tuple[str, ...]) -> None:
        super().__init__(f"line {line}, column {column}: not HLO text: expected {' or '.join(expected) or 'the end'}")
        self.line, self.column, self.expected = line, column, expected


_BITS = {
    "pred": 8, "token": 0, "opaque": 0, "tuple": 0,
    "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f4e2m1fn": 4, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """An array (``elements`` empty) or a tuple (``dtype`` is ``tuple``) of HLO.

    ``dtype`` is HLO's spelling (``f32``, ``pred``, ``s32``), ``layout`` the text between the braces, minor to major,
    e.g. ``1,0`` or ``1,0:S(5)`` ("" when the text has none).
    """

    dtype: str
    dims: tuple[int, ...] = ()
    layout: str = ""
    elements: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """True if it is a tuple, of any number of elements."""
        return self.dtype == "tuple"

    @property
    def size(self) -> int:
        """Number of array elements (0 for a tuple)."""
        return 0 if self.is_tuple else math.prod(self.dims)

    @property
    def byte_size(self) -> int:
        """Bytes of data, of all elements of a tuple; tokens have none. ValueError for an unknown element type."""
        if self.is_tuple:
            return sum(element.byte_size for element in self.elements)
        return -(-self.size * element_bits(self.dtype) // 8)

    def __str__(self) -> str:
        if self.is_tuple:
            return f"({', '.join(map(str, self.elements))})"
        return f"{self.dtype}[{','.join(map(str, self.dims))}]" + (f"{{{self.layout}}}" if self.layout else "")


def element_bits(dtype: str) -> int:
    """Bits of one element; ValueError when the type is not known."""
    if dtype in _BITS:
        return _BITS[dtype]
    if re.fullmatch(r"f8e\w+", dtype):
        return 8
    raise ValueError(f"unknown HLO element type {dtype!r}")


@dataclass(frozen=True)
class Instruction:
    """One instruction: names without ``%``; shape, operands and attributes are parsed on demand."""

    name: str
    shape_text: str
    opcode: str
    operand_text: str
    attribute_text: str = ""
    is_root: bool = False

    @cached_property
    def shape(self) -> Shape:
        """Shape of the result, with layouts."""
        return parse_shape(self.shape_text)

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the operand instructions, in order."""
        return parse_names(self.operand_text)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Attribute name to the raw text of its value."""
        return split_attributes(self.attribute_text)

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        """Fields of ``metadata={...}``: ``op_name`` and, depending on the version, the source location."""
        return parse_metadata(self.attributes.get("metadata", ""))

    @property
    def op_name(self) -> str:
        """JAX's scopes and primitive, e.g. ``jit(f)/while/body/tanh``; "" when there are none."""
        return self.metadata.get("op_name", "")

    @cached_property
    def backend_config(self) -> Mapping[str, Any]:
        """``backend_config={...}`` as JSON; empty when it is absent or not JSON."""
        return parse_json(self.attributes.get("backend_config", ""))

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that it calls, in the order of the text."""
        return tuple(name for key in _CALLEES if key in self.attributes for name in parse_names(self.attributes[key]))

    @property
    def known_trip_count(self) -> int | None:
        """Trips of a ``while``; None when XLA does not know them. ValueError for what is no number of trips."""
        count = self.backend_config.get("known_trip_count")
        if not isinstance(count, dict) or "n" not in count:
            return None
        if re.fullmatch(r"\d{1,18}", str(count["n"]), re.ASCII) is None:
            raise ValueError(f"a known_trip_count of {str(count['n'])[:40]!r}")
        return int(count["n"])

    @property
    def custom_call_target(self) -> str:
        """The target of a ``custom-call`` without its quotes; "" for other opcodes."""
        return self.attributes.get("custom_call_target", "").strip('"')

    @property
    def fusion_kind(self) -> str:
        """``kLoop``, ``kInput``, ``kCustom``, ...; "" for other opcodes."""
        return self.attributes.get("kind", "") if self.is_fusion else ""

    @property
    def is_fusion(self) -> bool:
        """True for a fusion, also for one that XLA (from JAX 0.11 on) starts and awaits: ``fusion-start``."""
        return self.opcode in ("fusion", "fusion-start")

    def __str__(self) -> str:
        root = "ROOT " if self.is_root else ""
        return f"{root}%{self.name} = {self.shape_text} {self.opcode}{self.operand_text}{self.attribute_text}"


@dataclass(frozen=True)
class Computation:
    """A computation: its instructions in the order of the text, which is the schedule in a scheduled module."""

    name: str
    instructions: tuple[Instruction, ...]
    signature: str = ""
    is_entry: bool = False
    closing: str = "}"

    @cached_property
    def by_name(self) -> Mapping[str, Instruction]:
        """Instruction name to instruction; also the elements of tuples that operands name (``%call#0``, from JAX 0.11
        on)."""
        found = {instruction.name: instruction for instruction in self.instructions}
        numbered = [one for one in self.instructions if "#" in one.operand_text]
        for name in [name for one in numbered for name in one.operands if "#" in name]:
            whole, _, index = name.rpartition("#")
            elements = found[whole].shape.elements if whole in found else ()
            if index.isdigit() and int(index) < len(elements):
                text = str(elements[int(index)])
                found[name] = Instruction(name, text, "get-tuple-element", f"(%{whole})", f", index={index}")
        return found

    @cached_property
    def root(self) -> Instruction:
        """The instruction marked ROOT (the last one, when none is)."""
        return next((one for one in self.instructions if one.is_root), self.instructions[-1])

    @cached_property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters by their number."""
        found = [one for one in self.instructions if one.opcode == "parameter"]
        return tuple(sorted(found, key=lambda one: int(one.operand_text.strip("()"))))

    @cached_property
    def users(self) -> Mapping[str, tuple[Instruction, ...]]:
        """Instruction name to the instructions of this computation that have it as an operand."""
        users: dict[str, list[Instruction]] = {one.name: [] for one in self.instructions}
        for one in self.instructions:
            for operand in dict.fromkeys(one.operands):
                users.setdefault(operand, []).append(one)
        return {name: tuple(found) for name, found in users.items()}

    def __str__(self) -> str:
        head = ("ENTRY " if self.is_entry else "") + f"%{self.name}" + (f" {self.signature}" if self.signature else "")
        return "\n".join([head + " {", *(f"  {one}" for one in self.instructions), self.closing])


@dataclass(frozen=True)
class HloModule:
    """A module: ``header`` is its first line after the name; ``tables`` are source locations as rows of text."""

    name: str
    header: str
    tables: Mapping[str, tuple[str, ...]]
    computations: Mapping[str, Computation]

    @cached_property
    def entry(self) -> Computation:
        """The computation marked ENTRY (the last one, when none is)."""
        every = list(self.computations.values())
        return next((one for one in every if one.is_entry), every[-1])

    def find(self, computation: str, name: str) -> tuple[Computation, Instruction] | None:
        """The instruction ``name`` of a computation, after that computation; None where there is none."""
        where = self.computations.get(computation)
        one = where.by_name.get(name) if where else None
        return None if where is None or one is None else (where, one)

    @property
    def is_scheduled(self) -> bool:
        """True if XLA has optimised and scheduled it: what it then runs, it runs op by op."""
        return "is_scheduled=true" in self.header

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, str]]:
        return {title: dict(row.split(" ", 1) for row in rows) for title, rows in self.tables.items()}

    def source_of(self, instruction: Instruction) -> tuple[str, int] | None:
        """File and line of the innermost user frame that made the instruction; None when XLA kept none."""
        return next(iter(self.callers_of(instruction)), None)

    def callers_of(self, instruction: Instruction) -> Iterator[tuple[str, int]]:
        """File and line of the user frames that made the instruction, innermost first; one where XLA has no more."""
        return (place for place in self._frames_of(instruction) if is_of_user(place[0]))

    def _frames_of(self, instruction: Instruction) -> Iterator[tuple[str, int]]:
        metadata = instruction.metadata
        if "source_file" in metadata:
            yield metadata["source_file"], int(metadata.get("source_line", "0"))
            return
        at, seen = metadata.get("stack_frame_id", ""), set[str]()
        while at and at not in seen:
            seen.add(at)
            frame = parse_metadata(self._rows.get("StackFrames", {}).get(at, ""))
            location = parse_metadata(self._rows.get("FileLocations", {}).get(frame.get("file_location_id", ""), ""))
            if file := self._rows.get("FileNames", {}).get(location.get("file_name_id", "")):
                yield file.strip('"'), int(location.get("line", "0"))
            parent = frame.get("parent_frame_id", "")
            at = str(int(parent) - self._parents_from) if parent.isdecimal() else ""

    @cached_property
    def _parents_from(self) -> int:
        """1 where the ids of parents are printed one too high, as in JAX 0.10: the first frame has no parent."""
        return int(parse_metadata(self._rows.get("StackFrames", {}).get("1", "")).get("parent_frame_id") == "1")

    def __str__(self) -> str:
        tables = ["\n".join([title, *rows]) for title, rows in self.tables.items()]
        return (
            "\n\n".join([f"HloModule {self.name}{self.header}", *tables, *map(str, self.computations.values())]) + "\n"
        )


def parse_optimized(text: str) -> HloModule:
    """Parse HLO text as XLA prints it after optimisation. HloSyntaxError has the position of what is not that.

    A byte order mark and lines of ``//`` comments are skipped; the record does not keep them.
    """
    text = text.removeprefix("\ufeff")
    try:
        module: HloModule = _parser().parse(text)
    except lark.exceptions.UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    return module


@functools.cache
def _parser() -> lark.Lark:
    grammar = (Path(__file__).parent / "hlo.lark").read_text("utf-8")
    return lark.Lark(grammar, start="module", parser="lalr", lexer="contextual", transformer=_Records())


@lark.v_args(inline=True)
class _Records(lark.Transformer):  # type: ignore[misc]  # lark is untyped here
    def module(self, header: str, *parts: Any) -> HloModule:
        match = re.match(r"HloModule ([^\s,]+)(.*)", header)
        assert match is not None  # the terminal guarantees it
        return HloModule(
            name=match[1],
            header=match[2],
            tables=dict(part for part in parts if isinstance(part, tuple)),
            computations={part.name: part for part in parts if isinstance(part, Computation)},
        )

    def table(self, title: str, *rows: str) -> tuple[str, tuple[str, ...]]:
        return str(title), tuple(map(str, rows))

    def computation(self, *parts: Any) -> Computation:
        tokens = {part.type: str(part) for part in parts if isinstance(part, lark.Token)}
        return Computation(
            name=tokens["NAME"][1:],
            instructions=tuple(part for part in parts if isinstance(part, Instruction)),
            signature=tokens.get("SIGNATURE", ""),
            is_entry="ENTRY" in tokens,
            closing=tokens["CLOSE"].rstrip(),
        )

    def instruction(self, *tokens: Any) -> Instruction:
        is_root = tokens[0].type == "ROOT"
        name, shape, opcode, operands, *attributes = tokens[1:] if is_root else tokens
        attribute_text = str(attributes[0]).rstrip() if attributes else ""
        return Instruction(str(name)[1:], str(shape), str(opcode), str(operands), attribute_text, is_root)


def _syntax_error(text: str, error: Any) -> HloSyntaxError:
    expected = getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    names = tuple(sorted(name for name in expected if name not in ("WHITESPACE", "COMMENT")))
    line, column = error.line, error.column
    if line is None or line < 1:  # the text ended too early
        lines = text.splitlines() or [""]
        line, column = len(lines), len(lines[-1]) + 1
    return HloSyntaxError(line, column, names)


_COMMENT = re.compile(r"/\*.*?\*/")
_ARRAY = re.compile(r"\s*([a-z]\w*)\[([^\]]*)\](?:\{([^}]*)\})?\s*")


@functools.lru_cache(maxsize=16384)
def parse_shape(text: str) -> Shape:
    """The shape that ``text`` spells, e.g. ``(f32[2,3]{1,0}, /*index=1*/s32[])``; ValueError for other text."""
    stripped = _COMMENT.sub("", text)
    shape, end = _parse(stripped, 0)
    if stripped[end:].strip():
        raise ValueError(f"not a shape: {text!r}")
    return shape


def _parse(text: str, start: int) -> tuple[Shape, int]:
    while start < len(text) and text[start].isspace():
        start += 1
    if text.startswith("(", start):
        return _parse_tuple(text, start + 1)
    match = _ARRAY.match(text, start)
    if match is None:
        raise ValueError(f"not a shape: {text!r}")
    dtype, dims, layout = match.groups()
    try:
        sizes = tuple(int(size.strip().removeprefix("<=")) for size in dims.split(",") if size.strip())
    except ValueError:
        raise ValueError(f"not a shape: {text!r}") from None
    return Shape(dtype, sizes, layout or ""), match.end()


def _parse_tuple(text: str, start: int) -> tuple[Shape, int]:
    elements: list[Shape] = []
    while True:
        while start < len(text) and text[start] in " ,":
            start += 1
        if start >= len(text):
            raise ValueError(f"not a shape: {text!r}: a parenthesis is never closed")
        if text[start] == ")":
            end = start + 1
            while end < len(text) and text[end].isspace():
                end += 1
            return Shape("tuple", elements=tuple(elements)), end
        element, start = _parse(text, start)
        elements.append(element)


_OPEN, _CLOSE = "({[", ")}]"
_STRUCTURAL = re.compile(r'[(){}\[\],"=]')
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
_METADATA = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s}]+)')


def split_attributes(text: str) -> dict[str, str]:
    """``, dimensions={0}, kind=kLoop`` to ``{"dimensions": "{0}", "kind": "kLoop"}``.

    Commas and equal signs inside brackets or strings do not split. ValueError when brackets do not match.
    """
    attributes: dict[str, str] = {}
    for part in split_top_level(text):
        name, equals, value = part.partition("=")
        attributes[name.strip()] = value.strip() if equals else ""
    return attributes


def split_top_level(text: str) -> list[str]:
    """The non-empty parts of ``text`` between commas that are outside brackets and strings."""
    parts: list[str] = []
    depth = start = position = 0
    while (match := _STRUCTURAL.search(text, position)) is not None:
        character, position = match[0], match.end()
        if character == '"':
            closing = _STRING_END.match(text, position)
            if closing is None:
                raise ValueError(f"a string is never closed in {text[:80]!r}")
            position = closing.end()
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
            if depth < 0:
                raise ValueError(f"unmatched {character!r} in {text[:80]!r}")
        elif character == "," and depth == 0:
            parts.append(text[start : match.start()])
            start = position
    if depth:
        raise ValueError(f"a bracket is never closed in {text[:80]!r}")
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def parse_metadata(text: str) -> dict[str, str]:
    """``{op_name="a/b" source_line=3}`` to ``{"op_name": "a/b", "source_line": "3"}``."""
    return {name: _unquote(value) for name, value in _METADATA.findall(text)}


def parse_names(text: str) -> tuple[str, ...]:
    """The computation names in ``%f`` or ``{%f, %g}``."""
    return tuple(re.findall(r"%([^\s,{}()]+)", text))


def parse_json(text: str) -> dict[str, Any]:
    """A ``backend_config`` that is JSON, else ``{}`` (it may be any text)."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
