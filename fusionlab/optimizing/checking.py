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
VARIED = "the given arguments and variants of them"
DRAWN = "drawn arguments"
_VARIANTS = 2
_SPREADS = (0.5, 0.1, 0.02)
"""Standard deviations of the logarithm of what a float is multiplied by; the next is taken where the original is not
finite at the one before."""


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

    def verdict(self, arrays: Sequence[np.ndarray] | None, *, varied: bool = False) -> Verdict:
        """On ``arrays``, one per argument; on numbers drawn from the types where there are none.

        ``varied``: also on variants of ``arrays``, in which every float has another value, and none is 0: what the
        given values hide (a weight of 0, a bias of 0) is not hidden there. Integers and booleans, which may be indices
        and sizes, stay as they are. A variant at which the original is not finite says nothing and is left out.

        ``not-checked`` with the reason where the programs cannot be run or no number is finite.
        """
        try:
            samples = self._samples(arrays, varied)
            found = compare(samples, walkers=None, **self._compiled)
            if found.verdict == "different" and (in_float64 := self._rewritten_in_float64) is not None:
                found = compare(samples, walkers=None, **{**self._compiled, "rewritten_float64": in_float64})
            return found
        except (RaiseError, CompileError, InputError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as e:
            return Verdict("not-checked", reason=_why(e))

    def _samples(self, arrays: Sequence[np.ndarray] | None, varied: bool) -> list[Sample]:
        if arrays is None:
            return list(signature_samples(self.original))
        samples = [Sample(GIVEN, tuple(arrays), typical=False)]
        floats = any(jnp.issubdtype(array.dtype, np.inexact) for array in arrays)
        for seed in range(_VARIANTS if varied and floats else 0):
            for spread in _SPREADS:
                variant = _variant(arrays, seed, spread)
                runs = (self._compiled[which](variant) for which in ("truth", "original"))
                if all(np.isfinite(array).all() for results in runs for array in results):
                    samples.append(Sample(f"variant {seed + 1} of {GIVEN}", variant, typical=False))
                    break
        return samples

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


def _variant(arrays: Sequence[np.ndarray], seed: int, spread: float) -> tuple[np.ndarray, ...]:
    """``arrays`` with every float multiplied by a random positive number; a zero becomes one of their usual size."""
    random = np.random.default_rng(seed)
    return tuple(_varied(np.asarray(array), random, spread) for array in arrays)


def _varied(array: np.ndarray, random: np.random.Generator, spread: float) -> np.ndarray:
    if not jnp.issubdtype(array.dtype, np.inexact):
        return array
    wide = array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
    sizes = np.abs(wide[np.isfinite(wide) & (wide != 0)])
    usual = float(np.median(sizes)) if sizes.size else 1.0
    drawn = np.where(wide == 0, spread * usual * random.standard_normal(wide.shape), wide)
    return np.asarray(drawn * np.exp(spread * random.standard_normal(wide.shape))).astype(array.dtype)


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
