"""PTX, NVIDIA's virtual instruction set, as text -> kernels, instructions and operands.

The form is that of the PTX ISA reference ("Syntax", "Directives"): statements end in a semicolon, a label ends in a
colon, ``@%p`` before an instruction is the predicate that guards it. Virtual registers are without number: how many a
kernel takes is decided by ``ptxas`` (``assembler``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)([^{;]*)\{")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"\s*([$%\w]+):(?!:)")
_GUARD = re.compile(r"@(!?)(%?[\w$]+)\s+")
_SHARED = re.compile(r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.\w(\d+)\s+([\w$]+)(?:\[(\d*)\])?")
_GLOBAL = re.compile(
    r"^\s*(?:\.(?:visible|extern|weak)\s+)*\.(?:global|const)\s+[^;={]*?([\w$]+)\s*(?:\[\d*\])?\s*[;={]", re.MULTILINE
)
_TARGET = re.compile(r"^\.target\s+([\w, ]+)", re.MULTILINE)
_MODULE = re.compile(r"^(?=\.version\s)", re.MULTILINE)
_WIDTH = re.compile(r"\.[bfsu](8|16|32|64|128)(?:x2)?$")
_SPACES = ("global", "shared", "local", "const", "param")
_ATOMIC_OPERATIONS = ("add", "cas", "exch", "min", "max", "inc", "dec", "and", "or", "xor")
_SPECIAL = re.compile(r"(tanh|ex2|lg2|rcp|rsqrt|sqrt|sin|cos|div)\.(?:.*\.)?(?:f16|f16x2|bf16|bf16x2|f32|f64)$")
_FLOAT = re.compile(r"b?f(16|32|64)(x2)?")
_FREE = ("mov", "cvta", "ld")
_CONTROL = ("bar", "barrier", "membar", "fence", "call", "mbarrier", "griddepcontrol")
UNITS = ("float", "double", "integer", "convert", "special", "tensor", "memory", "control")
"""Where instructions execute: FP32 and FP64 lanes, integer and logic lanes, conversions and shuffles, special function
units, tensor cores, memory, branches and barriers."""
_TENSOR = re.compile(r"(w?mma\.(sync|mma)|wgmma\.mma|tcgen05\.mma)")


@dataclass(frozen=True)
class PtxInstruction:
    """One instruction: ``opcode`` with its suffixes (``ld.global.nc.v2.b32``), operands as they are written.

    ``guard`` is the predicate register before it ("" for none), ``line`` its line in the kernel's text, from 0 on.
    """

    opcode: str
    operands: tuple[str, ...]
    guard: str = ""
    negated: bool = False
    line: int = 0

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The words of the opcode."""
        return tuple(self.opcode.split("."))

    @property
    def base(self) -> str:
        """The first word of the opcode."""
        return self.parts[0]

    @cached_property
    def access(self) -> str:
        """``load``, ``store``, ``atomic`` (with a result) or ``reduction`` (without one) of memory; "" for others."""
        kinds = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "reduction"}
        if self.opcode.startswith("cp.async.") and self.base == "cp" and self.parts[2] in ("ca", "cg"):
            return "load"
        return "" if self.space in ("param", "const") else kinds.get(self.base, "")

    @cached_property
    def space(self) -> str:
        """The state space of a memory access; ``generic`` where none is written."""
        if self.base == "cp":
            return "global"
        found = [part.partition("::")[0] for part in self.parts]
        return next((part for part in found if part in _SPACES), "generic")

    @cached_property
    def bytes_per_lane(self) -> int:
        """Bytes that a thread reads or writes by this access."""
        if self.base == "cp":
            return int(self.operands[2], 0) if len(self.operands) > 2 else 16
        width = _WIDTH.search(self.opcode)
        vector = next((int(part[1:]) for part in self.parts if part in ("v2", "v4", "v8")), 1)
        return vector * int(width[1]) // 8 * (2 if self.opcode.endswith("x2") else 1) if width else 4

    @property
    def address(self) -> str:
        """The operand with the address of an access, without its brackets; ``%rd1+16``."""
        bracketed = [one for one in self.operands if one.startswith("[")]
        return bracketed[-1][1:-1].strip() if bracketed else ""

    @property
    def operation(self) -> str:
        """Of an atomic: ``add``, ``cas``, ...; "" for others."""
        return next((part for part in self.parts if part in _ATOMIC_OPERATIONS), "")

    @property
    def scope(self) -> str:
        """Of an atomic: the threads that it is atomic among, ``cta``, ``cluster``, ``gpu`` or ``sys``."""
        return next((part for part in self.parts if part in ("cta", "cluster", "gpu", "sys")), "gpu")

    @property
    def is_special(self) -> bool:
        """True for a function of the special function units (transcendental ones, reciprocals, divisions)."""
        return _SPECIAL.match(self.opcode) is not None

    @property
    def is_tensor(self) -> bool:
        """True for a matrix product on tensor cores."""
        return _TENSOR.match(self.opcode) is not None

    @cached_property
    def unit(self) -> str:
        """The unit of an SM that executes it (``UNITS``); "" for one that ``ptxas`` removes: moves of registers, views
        of addresses and parameters."""
        if self.access:
            return "memory"
        if self.is_tensor or self.is_special:
            return "tensor" if self.is_tensor else "special"
        if self.base in _FREE or self.space in ("param", "const"):
            return ""
        if self.is_branch or self.base in _CONTROL:
            return "control"
        if self.base == "cvt" or self.base == "shfl":
            return "convert"
        types = [part for part in self.parts[1:] if _FLOAT.fullmatch(part)]
        return ("double" if "f64" in types else "float") if types else "integer"

    @property
    def is_branch(self) -> bool:
        """True if it may end a basic block."""
        return self.base in ("bra", "ret", "exit", "brx", "trap")


@dataclass(frozen=True)
class PtxKernel:
    """A kernel: ``labels`` map a label to the index of the instruction after it; ``threads`` are those of a block in
    x, y and z (1, 1, 1 where PTX does not require any); ``shared`` maps shared arrays to their offset, and
    ``shared_bytes`` is what they take together; ``symbols`` are global arrays of its module. ``module`` is the text of
    the module that it stands in."""

    name: str
    parameters: tuple[str, ...]
    threads: tuple[int, int, int]
    shared: Mapping[str, int]
    shared_bytes: int
    instructions: tuple[PtxInstruction, ...]
    labels: Mapping[str, int]
    symbols: tuple[str, ...] = ()
    text: str = field(default="", repr=False)
    module: str = field(default="", repr=False)

    @property
    def threads_per_block(self) -> int:
        """Threads of a block."""
        return math.prod(self.threads)

    @property
    def architecture(self) -> str:
        """The architecture that the module names: ``sm_80``, ``sm_90a``; "" for none."""
        found = _TARGET.search(self.module)
        return found[1].split(",")[0].strip() if found else ""


def parse_ptx(text: str) -> tuple[PtxKernel, ...]:
    """The kernels of one or several PTX modules, in their order."""
    return tuple(kernel for module in _MODULE.split(text) for kernel in _kernels(module))


def _kernels(module: str) -> Iterator[PtxKernel]:
    for entry in _ENTRY.finditer(module):
        end = _closing(module, entry.end())
        yield _kernel(module, entry, module[entry.end() : end], end)


def _kernel(module: str, entry: re.Match[str], body: str, end: int) -> PtxKernel:
    bare = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), body)
    first = module.count("\n", entry.start(), entry.end())
    instructions: list[PtxInstruction] = []
    labels: dict[str, int] = {}
    for statement, line in _statements(bare):
        rest, line = _after_labels(statement, line, labels, len(instructions))
        if rest and not rest.startswith("."):
            instructions.append(_instruction(rest, first + line))
    shared, taken = _shared(module, bare)
    required = re.search(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", entry[3])
    x, y, z = (int(one or 1) for one in required.groups()) if required else (1, 1, 1)
    return PtxKernel(
        name=entry[1],
        parameters=tuple(re.findall(r"([\w$]+)\s*(?:\[\d+\])?\s*(?:,|$)", entry[2].strip())),
        threads=(x, y, z),
        shared=shared,
        shared_bytes=taken,
        instructions=tuple(instructions),
        labels=labels,
        symbols=tuple(dict.fromkeys(_GLOBAL.findall(_COMMENT.sub("", module)))),
        text=module[entry.start() : end + 1],
        module=module,
    )


def _closing(text: str, start: int) -> int:
    """The position of the brace that closes the one before ``start``."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return len(text)


def _statements(body: str) -> Iterator[tuple[str, int]]:
    """Statements without their semicolon, with the line that each begins in."""
    line = 0
    for part in body.split(";"):
        lead = len(part) - len(part.lstrip())
        yield part.strip(), line + part.count("\n", 0, lead)
        line += part.count("\n")


def _after_labels(statement: str, line: int, labels: dict[str, int], at: int) -> tuple[str, int]:
    """The statement behind its labels and the braces of a scope, and its line; labels are noted as at ``at``."""
    while True:
        bare = statement.lstrip("{} \t\n") if not statement.startswith("{%") else statement
        label = _LABEL.match(bare)
        if label:
            labels[label[1]] = at
        rest = bare[label.end() :].lstrip() if label else bare
        line += statement.count("\n", 0, len(statement) - len(rest))
        if rest == statement:
            return rest, line
        statement = rest


def _instruction(statement: str, line: int) -> PtxInstruction:
    guard = _GUARD.match(statement)
    rest = statement[guard.end() :] if guard else statement
    opcode, _, operands = rest.partition(" ") if " " in rest.partition("\t")[0] else rest.partition("\t")
    return PtxInstruction(
        opcode.strip(), split_operands(operands), guard[2] if guard else "", bool(guard and guard[1]), line
    )


def split_operands(text: str) -> tuple[str, ...]:
    """Operands between commas that stand in no bracket."""
    found, depth, start = list[str](), 0, 0
    for at, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return (*found, *([last] if last else []))


def _shared(module: str, body: str) -> tuple[dict[str, int], int]:
    """The offset of each shared array of the kernel, and their bytes; an array without a length comes last."""
    offsets: dict[str, int] = {}
    size = 0
    found = [*_SHARED.finditer(body), *(one for one in _SHARED.finditer(_COMMENT.sub("", module.split(".entry")[0])))]
    for one in sorted(found, key=lambda one: one[4] == ""):
        align, bits, count = int(one[1] or 1), int(one[2]), int(one[4] or (one[4] is None))
        if one[3] not in offsets:
            offsets[one[3]] = size = -(-size // align) * align
            size += count * bits // 8
    return offsets, size
