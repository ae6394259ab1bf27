"""Compare original and rewritten on the arguments of a call, in two precisions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.equivalence.check import compare
from fusionlab.equivalence.few_walkers import Resized
from fusionlab.equivalence.oracle import Options, Runner, program_runner, remembered, runner_of_roundings
from fusionlab.equivalence.samples import Sample, edges_of, signature_samples
from fusionlab.equivalence.scales import can_be_scaled
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.lowering import lower_traced
from fusionlab.hlo.program import Program, program_view, without_view
from fusionlab.optimizing.references import REFERENCES, Begun, references_of, run_as_it_stands
from fusionlab.optimizing.variants import VARIANTS, Held, attempts, can_vary, held_arguments
from fusionlab.passes.refusals import refused

GIVEN = "the given arguments"
VARIED = "the given arguments and variants of them"
DRAWN = "drawn arguments"


@dataclass(frozen=True)
class CallVerdict:
    """A verdict and its inputs. ``provisional``: other arguments may show what these hide, because some floats could
    not be varied. ``postponed``: variants were not compared, because the exact verdict may spare them."""

    verdict: Verdict
    on: str
    provisional: bool = False
    postponed: bool = False


@dataclass(frozen=True)
class Runners:
    """A pair of programs, compiled on first use and kept: ``compared(arrays)`` compares them.

    Truth is the original raised and computed in float64. The rewritten program is run as in the call: by XLA, with the
    same compile options.
    """

    original: Program
    rewritten: Program
    options: Options
    again: Callable[[Program], Program | None]
    """The same rewriting, for the original in float64."""
    few: Resized | None = None
    """If not None, the programs are these, at a few of the walkers of the arrays."""
    begun: Begun | None = None
    """References that were begun before, used if they are of this original."""

    def compared(
        self,
        arrays: Sequence[np.ndarray] | None,
        *,
        varied: bool = False,
        identical: Callable[[], bool | None] = lambda: False,
    ) -> CallVerdict:
        """On ``arrays``, one per argument; on numbers drawn from the types where there are none.

        ``varied``: also with walkers near one another and far away (``edges_of``), and on variants of ``arrays``, where
        what the given values hide (a weight of 0) is not hidden. There are no variants if the programs are
        ``identical()``, at all arguments, and not yet if that is not known (None). A variant at which the original is
        not finite where it is finite at ``arrays`` is left out for a nearer one.

        ``not-checked`` with the reason where the programs cannot be run or no number is finite.
        """
        on = DRAWN if arrays is None else GIVEN
        if self.few is not None and arrays is not None:
            arrays = self.few.part(list(map(np.asarray, arrays)))
        try:
            ready = self.begun.of(self.original) if self.begun is not None else None
            run = dict(self._compiled)
            run |= {name: remembered(run[name], ready[name] if ready else None) for name in REFERENCES}
            if arrays is None:
                return CallVerdict(self._verdict(signature_samples(self.original), run, scales=True), on)
            given = Sample(GIVEN, tuple(map(np.asarray, arrays)), typical=False)
            if not varied:
                return CallVerdict(self._verdict([given], run), on)
            vary, all_floats = can_vary(given.arrays, self._held)
            variants, known = [], identical()

            def samples() -> Iterator[Sample]:
                yield given
                yield from edges_of(self.original, given.arrays, GIVEN)
                nonlocal known
                for number in range(VARIANTS if any(vary) else 0):
                    known = identical()
                    if known is not False:
                        return
                    for variant in self._variant(given.arrays, vary, number, run):
                        variants.append(variant)
                        yield variant

            verdict = self._verdict(samples(), run, scales=True)
            on = VARIED if variants and all_floats else GIVEN
            open_ = on == GIVEN and (any(vary) or not all_floats)
            return CallVerdict(verdict, on, provisional=open_ and known is False, postponed=open_ and known is None)
        except (RaiseError, CompileError, InputError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as e:
            return CallVerdict(Verdict("not-checked", reason=_why(e)), on)

    def _verdict(self, samples: Iterable[Sample], run: Mapping[str, Any], *, scales: bool = False) -> Verdict:
        seen: list[Sample] = []

        def noted() -> Iterator[Sample]:
            for sample in samples:
                seen.append(sample)
                yield sample

        found = compare(noted(), walkers=None, **run, scales=scales and can_be_scaled(self.original))
        if found.verdict == "different" and (in_float64 := self._rewritten_in_float64) is not None:
            found = compare(seen, walkers=None, **{**run, "rewritten_float64": in_float64})
        return found if self.few is None else replace(found, walkers=self.few.walkers)

    @functools.cached_property
    def _held(self) -> Held:
        return held_arguments(program_view(without_view(self.original)))

    def _variant(
        self, given: Sequence[np.ndarray], vary: Sequence[bool], number: int, run: Mapping[str, Runner]
    ) -> Iterator[Sample]:
        """The variant of this number that is finite where ``given`` is, if there is one."""

        def finite(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            """Per result of the original, where it is finite, in its own precision and in float64."""
            pairs = zip(run["truth"](arrays), run["original"](arrays), strict=True)
            return [np.asarray(np.isfinite(one) & np.isfinite(other)) for one, other in pairs]

        expected = finite(given)
        for variant in attempts(given, vary, number):
            if all(np.all(now | ~before) for now, before in zip(finite(variant), expected, strict=True)):
                yield Sample(f"variant {number + 1} of {GIVEN}", variant, typical=False)
                return

    @functools.cached_property
    def _rewritten_in_float64(self) -> Runner | None:
        """The original, widened and then rewritten.

        Passes fold constants in the program's own precision, and the results stay rounded when widened afterwards. So a
        float64 difference counts when the rewriting of the float64 program has it too.
        """
        rewritten = self.again(widened(self.original))
        return None if rewritten is None else program_runner(rewritten, dtype="float64")

    @functools.cached_property
    def _compiled(self) -> dict[str, Any]:
        return {
            **references_of(self.original),
            "rewritten": run_as_it_stands(self.rewritten, self.options),
            "rewritten_float64": program_runner(self.rewritten, widen=True),
            "rounded": lambda: runner_of_roundings(self.original),
        }


def _why(error: Exception) -> str:
    said = (str(error).splitlines() or [""])[0]
    if isinstance(error, RaiseError):
        known = refused(error).of("check", "").told
        return f"{known}; nothing tells what it computes in float64 (check='never' runs the rewritten program unseen)"
    return said if isinstance(error, CompileError | InputError) else f"{type(error).__name__}: {said}"


def widened(program: Program) -> Program:
    """``program`` in float64, lowered for its platform; including unused values, which passes look for."""
    raising, flat = Raising(widen=True), program_view(program)

    def call(*arrays: Any) -> tuple[Any, ...]:
        environment = dict(zip(flat.arguments, arrays, strict=True))
        raising.run(flat.nodes, environment)
        return tuple(environment[value] for value in flat.returns)

    types = [jax.ShapeDtypeStruct(type_.shape, raising.dtype(type_)) for type_ in program.inputs]
    with jax.enable_x64(True):
        traced = jax.jit(call, keep_unused=True).trace(*types)
        module = lower_traced(traced, "cpu" if program.platform == "any" else program.platform, source_lines=1)
        return Program.from_module(module, name=program.name, provenance=program.provenance, platform=program.platform)
