"""Original against rewritten on the arguments that a function was called with, in two precisions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.executable import numpy_dtype
from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.equivalence.check import compare
from fusionlab.equivalence.oracle import Options, Runner, program_runner
from fusionlab.equivalence.samples import Sample, signature_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.flat import flatten
from fusionlab.hlo.lowering import lower_traced
from fusionlab.hlo.program import Program
from fusionlab.optimizing.primitive import apply_owned

GIVEN = "the given arguments"
DRAWN = "drawn arguments"


@dataclass(frozen=True)
class Runners:
    """A pair of programs, compiled on first use and kept: ``verdict(arrays)`` compares them.

    Truth is the original raised and computed in float64. The rewritten program is run as it will be: by XLA, with the
    compile options of the call.
    """

    original: Program
    rewritten: Program
    options: Options
    again: Callable[[Program], Program | None]
    """The same rewriting, for the original in float64."""

    def verdict(self, arrays: Sequence[np.ndarray] | None) -> Verdict:
        """On ``arrays``, one per argument; on numbers drawn from the types where there are none.

        ``not-checked`` with the reason where the programs cannot be run or no number is finite.
        """
        try:
            found = self._compare(arrays, self._compiled)
            if found.verdict == "different" and (in_float64 := self._rewritten_in_float64) is not None:
                found = self._compare(arrays, {**self._compiled, "rewritten_float64": in_float64})
            return found
        except (RaiseError, CompileError, InputError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as e:
            return Verdict("not-checked", reason=_why(e))

    def _compare(self, arrays: Sequence[np.ndarray] | None, runners: dict[str, Any]) -> Verdict:
        given = signature_samples(self.original) if arrays is None else [Sample(GIVEN, tuple(arrays), typical=False)]
        return compare(given, walkers=None, **runners)

    @functools.cached_property
    def _rewritten_in_float64(self) -> Runner | None:
        """The original, widened and then rewritten.

        Passes compute what follows from constants alone, in the program's own precision: widened afterwards, it is
        still rounded to that. So a float64 difference counts when the rewriting of the float64 program has it too.
        """
        rewritten = self.again(widened(self.original))
        return None if rewritten is None else program_runner(rewritten, dtype="float64")

    @functools.cached_property
    def _compiled(self) -> dict[str, Any]:
        return {
            "truth": program_runner(self.original, widen=True),
            "original": run_as_it_stands(self.original, CPU_OPTIONS),
            "rewritten": run_as_it_stands(self.rewritten, self.options),
            "rewritten_float64": program_runner(self.rewritten, widen=True),
            "raised": program_runner(self.original),
            "narrowed": functools.partial(program_runner, self.original, single=True),
        }


def _why(error: Exception) -> str:
    said = (str(error).splitlines() or [""])[0]
    if isinstance(error, RaiseError):
        return f"{said}: nothing tells what it computes in float64 (check='never' runs the rewritten program unseen)"
    return said if isinstance(error, CompileError | InputError) else f"{type(error).__name__}: {said}"


def widened(program: Program) -> Program:
    """``program`` in float64, lowered for its platform; with the values that no result needs, which passes look for."""
    raising, flat = Raising(widen=True), flatten(program.parse())

    def call(*arrays: Any) -> tuple[Any, ...]:
        environment = dict(zip(flat.arguments, arrays, strict=True))
        raising.run(flat.nodes, environment)
        return tuple(environment[value] for value in flat.returns)

    types = [jax.ShapeDtypeStruct(type_.shape, raising.dtype(type_)) for type_ in program.inputs]
    with jax.enable_x64(True):
        traced = jax.jit(call, keep_unused=True).trace(*types)
        module = lower_traced(traced, "cpu" if program.platform == "any" else program.platform, source_lines=1)
        return Program.from_module(module, name=program.name, provenance=program.provenance, platform=program.platform)


@dataclass(frozen=True)
class _Fixed:
    """The owner of a program that is lowered to itself."""

    program: Program
    name: str = "program"

    def choose(self, jaxpr: Any, platform: str) -> Program:
        return self.program


def run_as_it_stands(program: Program, options: Options) -> Runner:
    """``program`` put into a jitted function as it is, nothing of it raised, on JAX's default device."""
    results = [(type_.shape, numpy_dtype(type_)) for type_ in program.outputs]
    arguments = [jax.ShapeDtypeStruct(type_.shape, numpy_dtype(type_)) for type_ in program.inputs]
    with jax.enable_x64(True):
        types = jax.make_jaxpr(lambda *_: [jnp.zeros(shape, dtype) for shape, dtype in results])(*arguments)
    owner = _Fixed(program)
    compiled = jax.jit(lambda *arrays: apply_owned(owner, types, types, arrays), compiler_options=dict(options))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        with jax.enable_x64(True):
            return [np.asarray(result) for result in compiled(*arrays)]

    return run
