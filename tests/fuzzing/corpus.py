"""What is damaged: small modules of every form that fusionlab reads, made once and kept in a folder.

A kind is a form of file and the command that reads it; its corpus is every file ``FORM-*`` of the folder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.export._export import _module_to_bytecode
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.program import Program
from tests.codegen.raising.raising_cases import CASES
from tests.foreign.test_foreign_programs import BODIES, FORMS, SECOND, module_text
from tests.fuzzing.mutations import mutated_bytes, mutated_text
from tests.hlo.optimised.test_parser import TEXT
from tests.passes import loop_functions

_MOST_BYTES = 24_000
"""Of one file: what is larger takes the time of many that are smaller, and has no form of its own."""

_NOT_PORTABLE = re.compile(r"chlo\.|mhlo\.backend_config")

Damage = Callable[[int, Sequence[bytes]], bytes]


@dataclass(frozen=True)
class Kind:
    """``form`` of the files, how they are damaged, and the command (before the file, after it) that reads them."""

    form: str
    damage: Damage
    command: tuple[str, ...]
    options: tuple[str, ...]


_STUDY = ("replays",), ("--no-rewrites", "--quiet")
KINDS: Mapping[str, Kind] = {
    "stablehlo-text": Kind("text", mutated_text, *_STUDY),
    "optimized-hlo-text": Kind("hlo", mutated_text, ("launches",), ("--quiet",)),
    "bytecode": Kind("bytecode", mutated_bytes, *_STUDY),
    "portable-artifact": Kind("portable", mutated_bytes, *_STUDY),
    "jax-export": Kind("export", mutated_bytes, *_STUDY),
    "rewritten-text": Kind("text", mutated_text, ("replays",), ("--quiet",)),
}


def mutated(kind: str, seed: int, corpora: Mapping[str, Sequence[bytes]]) -> bytes:
    """The damaged file that ``seed`` stands for."""
    return KINDS[kind].damage(seed, corpora[KINDS[kind].form])


def load(folder: Path) -> dict[str, list[bytes]]:
    """The corpora in ``folder`` by form, in the order of their names."""
    forms = dict.fromkeys(kind.form for kind in KINDS.values())
    return {form: [path.read_bytes() for path in sorted(folder.glob(f"{form}-*"))] for form in forms}


def write(folder: Path, every: int = 1) -> None:
    """Make the corpora; of programs and cases only ``every`` so many."""
    frames = jax.config.jax_traceback_in_locations_limit
    jax.config.update("jax_traceback_in_locations_limit", 1)  # a seed is the same damage whoever calls this
    try:
        for number, (form, content) in enumerate(_files(every)):
            if len(content) <= _MOST_BYTES:
                (folder / f"{form}-{number:04}").write_bytes(content)
    finally:
        jax.config.update("jax_traceback_in_locations_limit", frames)


def _files(every: int) -> Iterator[tuple[str, bytes]]:
    programs = [_without_places(_lowered(*case)) for case in _cases()[::every]]
    for program in programs:
        yield "text", str(program.parse()).encode()
        yield "bytecode", program.bytecode
    for program in programs:
        if not _NOT_PORTABLE.search(program.text):
            yield "portable", FORMS["portable artifact"](program)
    for program in programs[::5]:
        yield "text", FORMS["text"](program)
    for path in sorted((Path(__file__).parents[1] / "passes" / "cases").rglob("*.mlir"))[::every]:
        yield "text", path.read_bytes()
    yield "text", module_text(BODIES["infeed"][0], SECOND).encode()
    for function, arguments in _exported():
        exported = jax.export.export(jax.jit(function), platforms=["cpu"])(*arguments)
        module = Program.of_foreign_bytes(exported.mlir_module_serialized, Path("exported"))
        artifact = _module_to_bytecode(_without_places(module).parse())
        yield "export", bytes(dataclasses.replace(exported, mlir_module_serialized=artifact).serialize())
    yield "hlo", TEXT.encode()
    for program in programs[-max(1, len(loop_functions.FUNCTIONS) // every) :: 2]:
        yield "hlo", compile_program(program, load_target("cpu")).optimized_hlo.encode()


def _cases() -> list[tuple[str, Any, Sequence[Any]]]:
    loops = loop_functions.FUNCTIONS.items()
    return [*CASES, *((name, function, (loop_functions.WEIGHTS, loop_functions.X)) for name, function in loops)]


def _lowered(name: str, function: Any, arguments: Sequence[Any]) -> Program:
    traced = jax.jit(lambda *given: function(*given), keep_unused=True).trace(*arguments)
    module = traced.lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    return Program.from_module(module, name=name, provenance="a corpus", platform="cpu")


def _without_places(program: Program) -> Program:
    """``program`` with locations that name no folder, so that a seed is the same damage on every machine."""
    text = re.sub(r'"[^"\n]*\.py"', '"file.py"', program.text)
    with make_ir_context():
        return Program.from_module(ir.Module.parse(text), name=program.name, provenance="a corpus", platform="cpu")


def _exported() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    x = np.ones((2, 3), np.float32)
    yield jnp.sin, (x,)
    yield (lambda tree: {"a": tree["x"] @ tree["x"].T, "b": (tree["y"], None)}), ({"x": x, "y": x[0]},)
    yield loop_functions.FUNCTIONS["replay"], (loop_functions.WEIGHTS, loop_functions.X)
    yield (lambda a: tuple(jnp.linalg.slogdet(a))), (np.eye(3, dtype=np.float32),)
