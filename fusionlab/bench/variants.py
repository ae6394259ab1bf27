"""The variants that are timed: the source as it stands, rewritten by a pipeline, and the peers; each made and checked.

A failure removes its variant and does not end the run: it is a ``Failure`` with the step and the reason.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import jax

from fusionlab.equivalence.check import check_workload, compare
from fusionlab.equivalence.oracle import References, xla_runner
from fusionlab.equivalence.samples import workload_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.equivalence.verdict_store import VerdictStore
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.measure.peers import PEERS, Peer
from fusionlab.passes.interface import Pass, Result
from fusionlab.passes.pipeline import print_pipeline, resolved_pipeline
from fusionlab.study import Circumstances, SmallModel, at_walkers, check, lower, rewrite
from fusionlab.workload import Workload

FUSED = "fused"
_MOST_WORDS = 400
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """``step`` is what failed (lower, rewrite, check, compile, run, trace, ...), ``reason`` one line."""

    name: str
    step: str
    reason: str


def attempt(name: str, step: str, do: Callable[[], _Result], failures: list[Failure]) -> _Result | None:
    """The result of ``do``; None, with an entry appended to ``failures``, when it raises."""
    try:
        return do()
    except (InputError, CompileError) as error:
        failures.append(Failure(name, step, _line(str(error))))
    except Exception as error:  # anything else that third-party code raises, a failed allocation included
        _log.info("%s failed in step %s", name, step, exc_info=True)
        failures.append(Failure(name, step, _line(f"{type(error).__name__}: {error}")))
    return None


def last_of(name: str, failures: Sequence[Failure]) -> str:
    """The last failure of the variant ``name``, in words."""
    own = [f"{one.name}, {one.step}: {one.reason}" for one in failures if one.name == name]
    return own[-1] if own else f"{name} is missing"


def _line(text: str) -> str:
    return " ".join(text.split())[:_MOST_WORDS]


@dataclass(frozen=True)
class Variant:
    """One program to time. ``pipeline`` is the resolved pipeline ("" for a program lowered as it stands).

    ``lower_s`` and ``rewrite_s`` are wall seconds without XLA's compiles.
    """

    name: str
    what: str
    program: Program
    verdict: Verdict
    pipeline: str = ""
    lower_s: float = 0.0
    rewrite_s: float = 0.0


@dataclass
class _Maker:
    source: Workload | Program
    given: Circumstances
    store: VerdictStore | None
    failures: list[Failure] = field(default_factory=list)
    references: dict[str, References] = field(default_factory=dict)
    done: dict[tuple[Pass, ...], tuple[Result, float]] = field(default_factory=dict)

    def reference(self, name: str) -> Variant | None:
        started = time.perf_counter()
        program = attempt(name, "lower", lambda: lower(self.source, self.given), self.failures)
        if program is None:
            return None
        verdict = Verdict("equal", reason="the reference itself")
        what = f"laplacian {self.source.laplacian}" if isinstance(self.source, Workload) else "as it stands"
        return Variant(name, what, program, verdict, lower_s=time.perf_counter() - started)

    def rewritten(self, name: str, reference: Variant, passes: Sequence[Pass]) -> Variant | None:
        with on_the_cpu():
            made = attempt(name, "rewrite", lambda: self._rewritten(reference.program, tuple(passes)), self.failures)
        if made is None:
            return None
        result, seconds = made
        if not result.applied:
            reasons = "; ".join(dict.fromkeys(getattr(event, "reason", "") for event in result.events))
            self.failures.append(Failure(name, "rewrite", f"no pass applied: {reasons or 'nothing to do'}"))
            return None
        verdict = self._shown(name, lambda: self._verdict(reference.program, result))
        if verdict is None:
            return None
        pipeline = resolved_pipeline(result.events)
        what = print_pipeline(passes)
        return Variant(name, what, result.program, verdict, pipeline, reference.lower_s, seconds)

    def _rewritten(self, program: Program, passes: tuple[Pass, ...]) -> tuple[Result, float]:
        """``passes`` on ``program``, and their seconds; what another variant begins with is not run again."""
        known = max((first for first in self.done if passes[: len(first)] == first), key=len, default=())
        result, seconds = self.done.get(known, (Result(program, ()), 0.0))
        if rest := passes[len(known) :]:
            made, more = rewrite(result.program, rest, self.given.ahead)
            result, seconds = Result(made.program, (*result.events, *made.events)), seconds + more
        self.done[passes] = result, seconds
        return result, seconds

    def peer(self, name: str, peer: Peer) -> Variant | None:
        source = self.source
        assert isinstance(source, Workload)
        platform = self.given.target.kind
        self.given.progress(f"peer: lowering {name}")
        started = time.perf_counter()
        program = attempt(name, "lower", lambda: peer.program(source, platform), self.failures)
        if program is None:
            return None
        seconds = time.perf_counter() - started
        small = source.rebuild(walkers=self.given.walkers_of(source))

        def pair() -> tuple[Program, Program]:
            at = "cpu" if peer.rewrite else platform
            own, wide = (peer.program(small.rebuild(dtype=dtype), at) for dtype in (small.dtype, "float64"))
            return own, wide

        compare_pair = partial(self._check_peer, small, raised=peer.rewrite is None)
        verdict = self._shown(name, partial(self._judged, small, f"peer {name}", pair, compare_pair))
        if verdict is None:
            return None
        return Variant(name, peer.what, program, verdict, lower_s=seconds)

    def _verdict(self, original: Program, result: Result) -> Verdict:
        if isinstance(self.source, Program):
            return check(self.source, original, result, self.given)
        source, walkers = self.source, self.given.walkers_of(self.source)
        found: list[SmallModel] = []

        def pair() -> tuple[Program, Program] | Verdict:
            made = at_walkers(source, original, result, walkers)
            if isinstance(made, Verdict):
                return made
            found.append(made)
            return made.programs

        what = f"{resolved_pipeline(result.events)} at {[event.location for event in result.applied]}"
        what += f" of {source.walkers} walkers"
        small = source.rebuild(walkers=walkers)
        return self._judged(small, what, pair, lambda _: found[0].verdict(references=partial(self._references, small)))

    def _judged(
        self,
        small: Workload,
        what: str,
        make: Callable[[], tuple[Program, Program] | Verdict],
        check_pair: Callable[[tuple[Program, Program]], Verdict],
    ) -> Verdict:
        """The verdict of ``check_pair`` on the programs that ``make`` returns; cached if reached before."""
        keys: list[str] = []
        platform = self.given.target.kind
        if self.store is not None:
            keys.append(self.store.recipe(small, what, platform))
            if (known := self.store.load(keys[-1])) is not None:
                return known
        with on_the_cpu():
            pair = make()
        if isinstance(pair, Verdict):
            return pair
        if self.store is not None:
            keys.append(self.store.key(lowering.lower(small, platform), pair))
            if (known := self.store.load(keys[-1])) is not None:
                self.store.store(keys[0], known)
                return known
        self.given.progress(f"check: {small.walkers} walkers in {small.dtype} and float64")
        with on_the_cpu():
            verdict = check_pair(pair)
        for key in keys:
            assert self.store is not None
            self.store.store(key, verdict)
        return verdict

    def _check_peer(self, small: Workload, pair: tuple[Program, Program], *, raised: bool) -> Verdict:
        """The verdict on the programs of a peer (own dtype, float64) against the workload. Another compiler's output is
        not ``raised``: XLA runs it on the CPU as it is."""
        references = self._references(small)
        if raised:
            return check_workload(small, *pair, references=references)
        return compare(
            workload_samples(small),
            truth=references.truth,
            original=references.original,
            rewritten=xla_runner(pair[0]),
            rewritten_float64=xla_runner(pair[1], "float64"),
            walkers=small.walkers,
        )

    def _references(self, small: Workload, module: Program | None = None) -> References:
        """Of all variants one set of runners, whose results are computed once: of the workload, or of ``module``."""
        key = "" if module is None else module.digest
        if key not in self.references:
            if module is None:
                self.references[key] = References.of(small, remember=True)
            else:
                self.references[key] = References.of_module(small, module, remember=True)
        return self.references[key]

    def _shown(self, name: str, judge: Callable[[], Verdict]) -> Verdict | None:
        """The verdict that the variant is equal; None, with a failure, when it is not, or cannot be checked."""
        verdict = attempt(name, "check", judge, self.failures)
        if verdict is not None and not verdict.passed:
            self.failures.append(Failure(name, "check", f"{verdict.verdict}: {verdict.worst or verdict.reason}"))
        return verdict if verdict is not None and verdict.passed else None


def make_variants(
    source: Workload | Program,
    pipelines: Mapping[str, Sequence[Pass]],
    peers: Mapping[str, Peer],
    given: Circumstances,
    store: VerdictStore | None = None,
) -> tuple[list[Variant], list[Failure]]:
    """The reference, the rewritten programs (one for each of ``pipelines``) and the peers, in this order, shown equal
    to the first; and the failures.

    The reference has the name of the peer that it is, or ``original``; that peer is not made twice.
    """
    maker = _Maker(source, given, store)
    name = reference_name(source)
    reference = maker.reference(name)
    if reference is None:
        return [], maker.failures
    variants: list[Variant | None] = [reference]
    for rewriting, passes in pipelines.items():
        variants.append(maker.rewritten(rewriting, reference, passes))
    for other, peer in peers.items():
        if other == name:
            continue
        if isinstance(source, Program):
            maker.failures.append(Failure(other, "lower", "a FILE has no other Laplacian"))
        else:
            variants.append(maker.peer(other, peer))
    return [one for one in variants if one is not None], maker.failures


def on_the_cpu() -> Any:
    """Run checks and trials of passes on the CPU, even if a GPU is measured: it stays free, and truth is the same."""
    return jax.default_device(jax.devices("cpu")[0])


def reference_name(source: Workload | Program) -> str:
    """The name of the peer that ``source`` itself is, or ``original``."""
    if isinstance(source, Program):
        return "original"
    same = [name for name, peer in PEERS.items() if peer.laplacian == source.laplacian and peer.rewrite is None]
    return same[0] if same else "original"
