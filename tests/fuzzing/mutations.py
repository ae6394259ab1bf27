"""Damage to text and to bytes, reproducible from a seed: one to a few changes, each of a kind that breaks readers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[\w.$-]+|->|.', re.DOTALL)
_NUMBERS = b"""
    0 1 -1 2 7 64 256 65536 2147483647 2147483648 -2147483649 4294967296 9223372036854775807 9223372036854775808
    18446744073709551616 1111111111111111111111111111111111111111 0x7FC00000 1e999 -0.0 nan ? "0x00" "0xZZ"
""".split()
_TYPES = (
    b"f32", b"f64", b"bf16", b"f8E4M3FN", b"i1", b"i32", b"ui8", b"i0", b"i16777216", b"index", b"complex<f32>",
    b"tensor<*xf32>", b"tensor<?xf32>", b"tensor<4xf32>", b"tensor<0xf32>", b"tensor<f32>", b"tuple<>", b"none",
    b"!stablehlo.token", b"!quant.uniform<i8:f32, 1.0>", b"vector<4xf32>", b"memref<4xf32>", b"s32[]", b"pred[]",
    b"f32[4]", b"f32[4,4]{1,0}", b"(f32[4], s32[])", b"token[]",
)  # fmt: skip
_PIECES = (
    b"(", b")", b"[", b"]", b"{", b"}", b"<", b">", b",", b"=", b":", b"->", b"%", b"@", b"#", b'"', b"\\", b"/*",
    b"//", b"\0", b"\n", b"\r", b"\t", b"\xff", b"\xc3\x28", b"\xe2\x80\xae", b"dense<", b"dense_resource<a>", b"loc(",
    b"loc(unknown)", b"array<i64: ", b"#stablehlo.", b"#sdy.", b"^bb0", b"ENTRY ", b"ROOT ", b"HloModule x", b"{-#",
    b"#-}",
)  # fmt: skip


Change = Callable[[random.Random, bytes, Sequence[bytes]], bytes]
"""Of a text; the corpus is for what is taken from others."""


def mutated_text(seed: int, corpus: Sequence[bytes]) -> bytes:
    """A text of ``corpus`` with one to four changes of its tokens, lines or bytes."""
    draw = random.Random(seed)
    text = draw.choice(corpus)
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        text = draw.choice(_TEXT_CHANGES)(draw, text, corpus)
    return text


def mutated_bytes(seed: int, corpus: Sequence[bytes]) -> bytes:
    """A file of ``corpus`` with one to eight damaged bytes or blocks; its first four bytes mostly stay."""
    draw = random.Random(seed)
    content = draw.choice(corpus)
    magic, rest = content[:4], content[4:]
    for _ in range(draw.choice((1, 1, 2, 3, 5, 8))):
        rest = draw.choice(_BYTE_CHANGES)(draw, rest, corpus)
    return (magic if draw.random() < 0.95 else draw.randbytes(4)) + rest


def _token(draw: random.Random, text: bytes) -> re.Match[bytes] | None:
    found = [token for token in _TOKEN.finditer(text) if token[0].strip()]
    return draw.choice(found) if found else None


def _in_place_of(token: re.Match[bytes] | None, new: bytes, text: bytes) -> bytes:
    return text if token is None else text[: token.start()] + new + text[token.end() :]


def _other_token(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    token = _token(draw, text)
    other = _token(draw, text if draw.random() < 0.5 else draw.choice(corpus))
    return _in_place_of(token, other[0] if other else b"", text)


def _dropped_token(draw: random.Random, text: bytes, _: Sequence[bytes]) -> bytes:
    return _in_place_of(_token(draw, text), b"", text)


def _repeated_token(draw: random.Random, text: bytes, _: Sequence[bytes]) -> bytes:
    token = _token(draw, text)
    return text if token is None else _in_place_of(token, token[0] * draw.choice((2, 3, 40, 700, 5000)), text)


def _piece(draw: random.Random, text: bytes, _: Sequence[bytes]) -> bytes:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(_PIECES) * draw.choice((1, 1, 1, 2, 300)) + text[at:]


def _of_kind(pattern: bytes, others: Sequence[bytes]) -> Change:
    def change(draw: random.Random, text: bytes, _: Sequence[bytes]) -> bytes:
        found = list(re.finditer(pattern, text))
        return _in_place_of(draw.choice(found), draw.choice(others), text) if found else text

    return change


def _lines(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    """A line dropped, repeated, moved, or taken from another text."""
    lines = text.split(b"\n")
    at, to = draw.randrange(len(lines)), draw.randrange(len(lines) + 1)
    what = draw.randrange(4)
    line = draw.choice(draw.choice(corpus).split(b"\n")) if what == 3 else lines[at]
    if what in (0, 2):
        del lines[at]
    if what:
        lines.insert(min(to, len(lines)), line)
    return b"\n".join(lines)


def _cut_short(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    return text[: draw.randrange(len(text) + 1)]


def _one_byte(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    if not text:
        return draw.randbytes(1)
    at = draw.randrange(len(text))
    new = draw.choice((text[at] ^ (1 << draw.randrange(8)), draw.randrange(256), 0, 255, (text[at] + 1) % 256))
    return text[:at] + bytes([new]) + text[at + 1 :]


def _inserted(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.randbytes(draw.choice((1, 1, 2, 9, 64))) + text[at:]


def _dropped_bytes(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    at = draw.randrange(len(text) + 1)
    return text[:at] + text[at + draw.choice((1, 1, 2, 8, 100)) :]


def _block_of_another(draw: random.Random, text: bytes, corpus: Sequence[bytes]) -> bytes:
    """Bytes written over with those of another file, or of another place of this one."""
    other = draw.choice((text, draw.choice(corpus)))
    size, at, start = draw.choice((1, 4, 16, 200)), draw.randrange(len(text) + 1), draw.randrange(len(other) + 1)
    return text[:at] + other[start : start + size] + text[at + size :]


_OPERATIONS = b"""
    stablehlo.while stablehlo.sort stablehlo.reduce stablehlo.custom_call stablehlo.return func.call sdy.mesh chlo.top_k
    stablehlo.case stablehlo.composite stablehlo.scatter stablehlo.convolution builtin.module stablehlo.rng
    stablehlo.uniform_quantize stablehlo.after_all stablehlo.dynamic_gather stablehlo.all_reduce stablehlo.add
    stablehlo.sine
""".split()
_TEXT_CHANGES = (
    _other_token, _other_token, _dropped_token, _repeated_token, _piece, _lines, _lines, _cut_short, _one_byte,
    _of_kind(rb"(?<![\w.%@#])-?\d[\d.eE+]*", _NUMBERS),
    _of_kind(rb"(?<=[<x\[,])\d+(?=[x\],>])", _NUMBERS),
    _of_kind(rb"tensor<[^<>]*>|\b(?:f32|f64|i32|i64|i1|ui32|s32|pred)\b", _TYPES),
    _of_kind(rb"\b(?:stablehlo|chlo|sdy|func|mhlo)\.\w+", _OPERATIONS),
    _of_kind(rb"%[\w#]+", b"%0 %1 %2 %3 %arg0 %arg1 %iterArg %cst %c".split()),
    _of_kind(rb"(?<=[ \[=,])\d(?=[\],])", b"0 1 2 3 -1".split()),
)  # fmt: skip
_BYTE_CHANGES = (_one_byte, _one_byte, _one_byte, _inserted, _dropped_bytes, _block_of_another, _cut_short)
