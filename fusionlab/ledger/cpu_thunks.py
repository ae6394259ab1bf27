"""XLA's thunk list of a CPU program, from the bytes of its executable: XLA prints it for GPUs alone.

The bytes are a message of JAX's runtime with its length before it, then XLA's ``ExecutableAndOptionsProto``, whose
field 1 is a ``CompilationResultProto``, whose field 6 is the list (``xla/backends/cpu/runtime/thunk.proto``). Each
thunk has its kind as text, the name of its HLO instruction, and, in a container, its parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusionlab.ledger.thunks import Section, Thunk

_EXECUTABLE, _THUNK_LIST = 1, 6
_THUNKS, _KIND, _INFO, _NAME = 1, 1, 2, 1
_CALL, _CONDITIONAL, _WHILE = 3, 4, 10
_CONTAINERS = {"call": "kSequential", "conditional": "kConditional", "while": "kWhile"}
"""XLA's kinds of thunks with parts, and the same in its lists for GPUs."""

_Field = tuple[int, int | bytes]


def parse_cpu_thunks(serialized: bytes) -> tuple[Thunk, ...]:
    """The tree of thunks in an executable for the CPU; ValueError where its bytes are in another form."""
    length, at = _varint(serialized, 0)
    result = _message(serialized[at + length :], _EXECUTABLE)
    return _sequence(_message(result, _THUNK_LIST))


def _sequence(content: bytes) -> tuple[Thunk, ...]:
    return tuple(_thunk(one) for one in _messages(content, _THUNKS))


def _thunk(content: bytes) -> Thunk:
    kind = _text(content, _KIND)
    if not kind:
        raise ValueError("a thunk without a kind")
    return Thunk(-1, _CONTAINERS.get(kind, kind), _text(_message(content, _INFO), _NAME), kind, _sections(content))


def _sections(content: bytes) -> tuple[Section, ...]:
    """The parts of a container: what a call runs, branches, a loop's condition and body."""
    found: list[Section] = []
    for number, part in _fields(content):
        if isinstance(part, int) or number not in (_CALL, _CONDITIONAL, _WHILE):
            continue
        names = {_CALL: {1: ""}, _WHILE: {1: "condition", 2: "body"}, _CONDITIONAL: {1: "branch_"}}[number]
        for which, inside in _fields(part):
            if which in names and isinstance(inside, bytes):
                label = names[which] + (str(len(found)) if number == _CONDITIONAL else "")
                found.append(Section(label, _sequence(inside)))
    return tuple(found)


def _text(content: bytes, field: int) -> str:
    return next((one.decode() for one in _messages(content, field)), "")


def _message(content: bytes, field: int) -> bytes:
    """The embedded message; ValueError where there is none."""
    found = next(_messages(content, field), None)
    if found is None:
        raise ValueError(f"no field {field} in a message of XLA's executable")
    return found


def _messages(content: bytes, field: int) -> Iterator[bytes]:
    return (value for number, value in _fields(content) if number == field and isinstance(value, bytes))


def _fields(content: bytes) -> Iterator[_Field]:
    """The fields of a message in Protocol Buffers' wire format; ValueError where it is none."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield number, value
            continue
        if kind not in (1, 2, 5) or number == 0:
            raise ValueError("bytes that are no message")
        length, at = _varint(content, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        if at + length > len(content):
            raise ValueError("a message that ends too early")
        yield number, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The integer at ``at``, and where the next value begins."""
    value = shift = 0
    while at < len(content) and shift < 70:
        value |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not content[at - 1] & 0x80:
            return value, at
    raise ValueError("an integer that does not end")
