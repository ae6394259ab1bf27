"""Attributes of an HLO instruction: ``, name=value`` lists, split on demand; values stay text."""

from __future__ import annotations

import json
import re
from typing import Any

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
