"""From the jaxpr of a function to the program that replaces it: lower, rewrite, check, remember."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import numpy as np
from jax.extend import core as extended

import fusionlab.errors
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.few_walkers import CHECKED_WALKERS, resized
from fusionlab.equivalence.isolated import compare_files
from fusionlab.equivalence.oracle import key_of_arrays
from fusionlab.errors import (
    DeadlockWarning,
    FallbackWarning,
    InputError,
    NotEquivalentError,
    NotOptimizedError,
    NotOptimizedWarning,
    one_line,
    unknown,
)
from fusionlab.hlo import ops
from fusionlab.hlo.lowering import PLATFORMS, lower_traced
from fusionlab.hlo.program import Program, program_view, without_view
from fusionlab.hlo.view import twins_of
from fusionlab.host_settings import own_settings
from fusionlab.optimizing.checking import DRAWN, VARIED, Runners
from fusionlab.optimizing.decision import Decision, key_of, surroundings
from fusionlab.optimizing.primitive import why_left_alone, without_mesh
from fusionlab.optimizing.references import Begun
from fusionlab.passes.catalogue import FORWARD_LAPLACIANS, is_own
from fusionlab.passes.interface import Applied, Pass, Result, Setting, faults, told_fallbacks
from fusionlab.passes.pipeline import (
    parse_pipeline,
    print_pipeline,
    resolved_pipeline,
    run_pipeline,
    why_nothing_applied,
)
from fusionlab.passes.refusals import Ground, Refusal, without_form_advice
from fusionlab.store import Store
from fusionlab.study import CandidateCosts, Circumstances, at_few_walkers, rewrite

Check = Literal["once", "always", "never"]
OnDifference = Literal["original", "raise"]

EXACT_S = 60.0
"""The default time limit of a program's exact check, seconds."""
_MOST_CHECKS = 4
"""The number of calls with different arguments at which a program with inconclusive arguments is checked."""
_CALLBACK = re.compile(rb"xla_\w*python_\w*callback")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Policy:
    """The options of ``optimize``; InputError for an unknown one, with the nearest.

    ``check`` is how often original and rewritten are compared; ``on_difference`` the action on a difference: run the
    original with a warning, or ``NotEquivalentError``. ``folder`` is the cache on disk (None: no cache). ``exact_s`` is
    the time limit of a program's exact check; 0 skips it. ``check_walkers`` is the number of walkers that are compared,
    None for all; the check ``always`` compares all. ``require_applied``: NotOptimizedError where the original would
    run. ``is_laplacian``: ``fusionlab.laplacian`` made the function.
    """

    passes: tuple[Pass, ...]
    check: Check = "once"
    on_difference: OnDifference = "original"
    folder: Path | None = None
    exact_s: float = EXACT_S
    check_walkers: int | None = CHECKED_WALKERS
    require_applied: bool = False
    is_laplacian: bool = False

    def __post_init__(self) -> None:
        if self.check not in get_args(Check):
            raise unknown("check", str(self.check), get_args(Check))
        if self.on_difference not in get_args(OnDifference):
            raise unknown("on_difference", str(self.on_difference), get_args(OnDifference))
        if not isinstance(self.exact_s, int | float) or not 0 <= self.exact_s < math.inf:
            raise InputError(f"exact_s is a number of seconds, 0 for no exact check, and not {self.exact_s!r}")
        if self.check_walkers is not None and not (isinstance(self.check_walkers, int) and self.check_walkers > 0):
            raise InputError(f"check_walkers is an integer from 1 on, or None for all, and not {self.check_walkers!r}")
        if not isinstance(self.require_applied, bool):
            raise InputError(f"require_applied is True or False, and not {self.require_applied!r}")

    @property
    def pipeline(self) -> str:
        """The pipeline as text."""
        return print_pipeline(self.passes)

    @property
    def known(self) -> bool:
        """True if all passes are in the catalogue, so that their choices can be written and read as text."""
        return all(map(is_own, self.passes))


@dataclass(frozen=True)
class Call:
    """The information of a call: its arrays on the host, and its compile options.

    ``arrays`` is None where there are none: under a transformation, or where other processes hold parts of them.
    """

    arrays: tuple[np.ndarray, ...] | None
    options: Mapping[str, str | int | bool]
    alone: bool = True


@dataclass
class _Comparison:
    """A program that is to be checked again, its rewritten program in ``decision``: by the policy ``always``, and where
    the arguments of the keys ``seen`` were inconclusive."""

    decision: Decision
    runners: Runners
    seen: set[bytes] = field(default_factory=set)


class Rewriter:
    """Decides for one function, and keeps its decisions in memory; the owner of its primitive."""

    def __init__(self, name: str, policy: Policy, current: Callable[[Any], Call]) -> None:
        self.name = name
        self.policy = policy
        self.decisions: dict[str, Decision] = {}
        self.jaxprs: dict[str, Any] = {}
        # Of every jaxpr, its decisions' keys by platform.
        self._keys: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        self._comparisons: dict[str, _Comparison] = {}
        self._exact: dict[str, Future[Identity]] = {}
        self._interrupted = threading.Event()
        self._postponed: dict[str, tuple[_Comparison, Call]] = {}
        self._current = current
        self._in_parts = False
        self._noticed = False
        # A user's own pass can change at any time, and its source is not in the key.
        self._store = None
        if policy.folder is not None and policy.known:
            self._store = Store(policy.folder, ".json.gz", title=f"the cache of rewritten programs in {policy.folder}")
        self._lock = threading.RLock()

    def choose(self, jaxpr: Any, platform: str) -> Program | None:
        """The program instead of ``jaxpr``, None for itself. NotEquivalentError, NotOptimizedError if the policy
        demands it."""
        with self._lock, without_mesh():
            before = dict(self.decisions)
            try:
                key = self._decide(jaxpr, platform)
            except NotEquivalentError:
                raise
            except Exception as error:  # the user's function still works, and the reason is reported
                _log.debug("%s: not optimised", self.name, exc_info=True)
                refusal = error if isinstance(error, Refusal) else Refusal(Ground.FAULT, one_line(error))
                key = self._refuse(platform, refusal, failed=True)
            decision = self.decisions[key]
        # Outside of what is caught above: warnings can be errors.
        if decision.failed and not (key in before and before[key].failed):
            self._warn(decision.reason)
        elif decision.rewritten is None and not self._in_parts:
            self._notice(decision.reason, decision)
        if decision.rewritten is not None and key not in before:
            self._warn_of_rewriting(decision)
        return decision.rewritten

    def refuse(self, refusal: Refusal, surprising: bool) -> None:
        """Record that the original runs, and why; warn if that is ``surprising``, else once."""
        reason = self._refuse("-", refusal, failed=surprising)
        if surprising:
            self._warn(reason)
        else:
            self._notice(reason)

    def take_parts(self) -> None:
        """The function has collectives: what is said of it is said of all its parts together, by ``say_of_parts``."""
        self._in_parts = True

    def say_of_parts(self) -> None:
        """Say that the original runs, after a call of a function in parts of which none was rewritten."""
        decisions = list(self.decisions.values()) if self._in_parts else []
        if decisions and all(decision.rewritten is None for decision in decisions):
            self._notice("; ".join(dict.fromkeys(decision.why_not for decision in decisions)))

    def _notice(self, reason: str, decision: Decision | None = None) -> None:
        """Say once that nothing was applied; each time, as an error, if the policy demands it.

        No news: a failure, of which a warning or an error was raised, and a Laplacian in which no loop is left.
        """
        said = self._noticed or (decision is not None and (decision.failed or self._is_without_loop(decision)))
        if self.policy.require_applied or not said:
            self._warn(reason)

    def _is_without_loop(self, decision: Decision) -> bool:
        if decision.original is None or not self.policy.is_laplacian:
            return False
        return all(node.name != ops.WHILE.name for node in program_view(without_view(decision.original)).walk())

    def _refuse(self, platform: str, refusal: Refusal, *, failed: bool) -> str:
        """Record that the original runs; the reason, which is the decision's key."""
        event = refusal.of("optimize", "")
        reason = event.told
        self.decisions[reason] = Decision(
            self.name, platform, self.policy.pipeline, None, None, (event,), reason=reason, failed=failed
        )
        return reason

    def _warn(self, reason: str) -> None:
        """Warn that the original runs; NotOptimizedError instead if the policy demands it."""
        if self.policy.require_applied:
            raise NotOptimizedError(f"{self.name} is not rewritten, as require_applied demands: {reason}")
        self._noticed = True
        warnings.warn(
            f"fusionlab.optimize: {self.name} runs as it was: {reason}", NotOptimizedWarning, stacklevel=_users_level()
        )

    def _warn_of_rewriting(self, decision: Decision) -> None:
        """Warn of what could surprise: another rewriting than the preferred one, and possible deadlocks."""
        if fallbacks := told_fallbacks(decision.events):
            warnings.warn(f"fusionlab.optimize: {self.name}: {fallbacks}", FallbackWarning, stacklevel=_users_level())
        assert decision.rewritten is not None
        _warn_of_deadlocks(self.name, decision.rewritten)

    def _decide(self, jaxpr: Any, platform: str) -> str:
        """Decide on ``jaxpr`` unless that is done; the key of the decision.

        The function's own program is lowered under the user's settings, as ``jax.jit`` does it.
        """
        why, surprising = why_left_alone(jaxpr)  # batching can bring a callback into it
        if why is None and platform not in PLATFORMS:
            why = Refusal(Ground.PLATFORM, f"platform {platform}: only {' and '.join(PLATFORMS)} are rewritten")
        if why is not None:
            return self._refuse(platform, why, failed=surprising)
        keys = self._keys.setdefault(jaxpr, {})
        if (key := keys.get(platform, "")) in self.decisions:
            return key
        original = lower_jaxpr(jaxpr, platform, self.name)
        keys[platform] = self._decided(jaxpr, original, platform)
        return keys[platform]

    @own_settings()
    def _decided(self, jaxpr: Any, original: Program, platform: str) -> str:
        """Decide on ``original``, the program of ``jaxpr``; the key of the decision."""
        call = self._current(jaxpr)
        how = (
            call.alone,
            sorted(call.options.items()),
            surroundings(platform),
            self.policy.exact_s,
            self.policy.check_walkers,
        )
        key = key_of(original, self.policy.pipeline, str(how))
        found = self.decisions.get(key) or self._remembered(key, original)
        begun = None if found is not None else self._begun(original, call)
        try:
            decision = replace(found or self.rewritten(original), alone=call.alone)
            self.jaxprs[key] = jaxpr
            on_less = decision.compared_on == DRAWN and call.arrays is not None
            unchecked = decision.verdict is None or on_less or self.policy.check == "always"
            if decision.rewritten is not None and self.policy.check != "never" and unchecked:
                decision = self._checked(key, decision, call, begun)
                self._require_equal(decision)
        finally:
            if begun is not None:
                begun.stop()
        self.decisions[key] = decision
        if found is None or decision.verdict is not found.verdict:
            self._keep(key, decision)
        return key

    def rewritten(self, original: Program) -> Decision:
        """The decision on ``original``, not checked."""
        _log.info("%s: rewriting %d ops by %s", self.name, original.ops, self.policy.pipeline)
        result, seconds = _apply(self.policy.passes, original)
        applied = result.program if result.applied else None
        if applied is not None and (applied.inputs, applied.outputs) != (original.inputs, original.outputs):
            raise InputError("the passes changed the types of the program's arguments or results")
        events = without_form_advice(result.events) if self.policy.is_laplacian else result.events
        return Decision(
            name=self.name,
            platform=original.platform,
            pipeline=self.policy.pipeline,
            original=without_view(original),
            rewritten=None if applied is None else without_view(applied),
            events=events,
            reason="" if applied else why_nothing_applied(events, original),
            rewrite_s=seconds,
            failed=bool(faults(events)) and applied is None,
        )

    def _again(self, decision: Decision, program: Program) -> Program | None:
        """``program``, the same in another precision, rewritten by the same choices; None if they do not apply."""
        result = run_pipeline(program, self._choices(decision), Setting(platform=program.platform))
        return result.program if result.applied else None

    def _choices(self, decision: Decision) -> tuple[Pass, ...]:
        return parse_pipeline(resolved_pipeline(decision.events)) if self.policy.known else self.policy.passes

    def _begun(self, original: Program, call: Call) -> Begun | None:
        """The references of the check that will follow, where they can be evaluated while the passes plan."""
        walkers = self.policy.check_walkers
        if self.policy.check != "once" or walkers is None or call.arrays is None:
            return None
        return Begun.start(original, call.arrays, walkers)

    def _runners(
        self, decision: Decision, options: Mapping[str, str | int | bool], begun: Begun | None = None
    ) -> Runners:
        """What compares the programs of ``decision``: at a few walkers if they are found, as they stand if not.

        Kernels are of one size: programs with them are compared as they stand.
        """
        original, rewritten = decision.original, decision.rewritten
        assert original is not None
        assert rewritten is not None
        few, walkers = None, self.policy.check_walkers
        if walkers is not None and self.policy.check != "always" and not twins_of(rewritten.parse()):
            few, _ = at_few_walkers(original, rewritten, self._choices(decision), decision.events, walkers)
        before, after = (original, rewritten) if few is None else few.programs
        return Runners(
            without_view(before), without_view(after), options, functools.partial(self._again, decision), few, begun
        )

    @property
    def checks_again(self) -> bool:
        """True if programs have to be checked at this call: every one, or some whose arguments were inconclusive."""
        comparisons = list(self._comparisons.values())  # at once: other threads insert
        return self.policy.check == "always" or any(one.seen for one in comparisons)

    def check_again(self, jaxpr: Any, lower_again: Callable[[], None]) -> bool:
        """Check the programs of ``jaxpr`` at the arrays of this call; False if the original has to run for it.

        Programs whose arguments were inconclusive are checked at other ones; where another program than before is to be
        used from now on, ``lower_again`` is called. By the policy ``always`` every rewritten program is checked.
        NotEquivalentError if the policy demands it.
        """
        usable, changed, news = True, False, []
        with self._lock, without_mesh(), own_settings():
            call = self._current(jaxpr)
            for key in self._keys.get(jaxpr, {}).values():
                before, comparison = self.decisions.get(key), self._comparisons.get(key)
                if before is None:
                    continue
                if comparison is not None and comparison.seen:
                    if call.arrays is None or key_of_arrays(call.arrays) in comparison.seen:
                        continue
                    checked = self._decided_later(key, comparison, call)
                    self._keep(key, checked)
                    changed |= (checked.rewritten is None) != (before.rewritten is None)
                    told = checked.reason == before.reason
                elif self.policy.check == "always" and before.rewritten is not None:
                    now = self._rechecked(key, before, call)
                    if key in self._comparisons:
                        self._comparisons[key].seen.clear()  # every call is checked anyway
                    usable, told = usable and now.rewritten is not None, False
                    checked = replace(now, rewritten=before.rewritten)
                else:
                    continue
                self.decisions[key] = checked
                news += [checked] if checked.failed and not told else []
        if changed:
            lower_again()
        for checked in news:
            self._require_equal(checked)
            self._warn(checked.reason)
        return usable

    def _decided_later(self, key: str, comparison: _Comparison, call: Call) -> Decision:
        """The decision at new arguments, the last one after _MOST_CHECKS of them."""
        checked = self._rechecked(key, comparison.decision, call)
        if key in self._comparisons and len(comparison.seen) >= _MOST_CHECKS:
            del self._comparisons[key]
            if checked.failed:
                again = f"so at {_MOST_CHECKS} calls, and not checked again"
                checked = replace(checked, reason=f"{checked.reason}; {again}")
        return checked

    def _rechecked(self, key: str, decision: Decision, call: Call) -> Decision:
        """``_checked``, where an exception is no verdict: then the original runs, and the reason is reported."""
        try:
            return self._checked(key, decision, call)
        except Exception as error:  # the same as in choose
            _log.debug("%s: not checked", self.name, exc_info=True)
            self._comparisons.pop(key, None)
            return replace(decision, rewritten=None, reason=one_line(error), failed=True)

    def _checked(self, key: str, decision: Decision, call: Call, begun: Begun | None = None) -> Decision:
        """``decision`` with a verdict; without its rewritten program if not shown equal.

        The exact verdict is computed once per program, in a parallel process; within a call, ``settle`` waits for it.
        """
        original, rewritten = decision.original, decision.rewritten
        assert original is not None
        assert rewritten is not None
        started = time.perf_counter()
        if key in self._comparisons:
            comparison = self._comparisons[key]
        else:
            comparison = _Comparison(decision, self._runners(decision, call.options, begun))
        exact = decision.verdict.exact if decision.verdict is not None else None
        beside = ThreadPoolExecutor(1)
        limit_s = self.policy.exact_s if exact is None else 0
        identity = beside.submit(compare_files, original, rewritten, limit_s, self._interrupted) if limit_s else None

        def identical() -> bool | None:
            return None if identity is not None and not identity.done() else _spares_variants(identity, exact)

        try:
            varied = decision.compared_on != VARIED
            compared = comparison.runners.compared(call.arrays, varied=varied, identical=identical)
        except KeyboardInterrupt:
            self._abandon()
            raise
        finally:
            beside.shutdown(wait=False)
        postponed = compared.postponed and compared.verdict.passed
        if identity is not None and call.arrays is not None:
            self._exact[key] = identity  # while XLA compiles
            if postponed:
                self._postponed[key] = comparison, call
        elif identity is not None:
            exact = identity.result()
        verdict = replace(compared.verdict, exact=exact)
        comparison.decision = replace(comparison.decision, verdict=verdict)
        on = VARIED if decision.compared_on == VARIED and call.arrays is not None else compared.on
        always = self.policy.check == "always"
        if call.arrays is not None and (verdict.undecided or (compared.provisional and verdict.passed and not always)):
            comparison.seen.add(key_of_arrays(call.arrays))
        else:
            comparison.seen.clear()
        if comparison.seen or always:
            self._comparisons[key] = comparison
        else:
            self._comparisons.pop(key, None)
        why_not = f"the rewritten program is {verdict.verdict} on {on}: {verdict.worst or verdict.reason}"
        compared_now = replace(
            decision,
            rewritten=rewritten if verdict.passed else None,
            verdict=verdict,
            compared_on=on,
            provisional=compared.provisional or postponed,
            check_s=time.perf_counter() - started,
            reason="" if verdict.passed else why_not,
            failed=not verdict.passed,
        )
        return _declined_where_not_identical(compared_now)

    @contextlib.contextmanager
    def settled(self, lower_again: Callable[[], None]) -> Iterator[None]:
        """A context for a call, after which exact verdicts are settled; an interrupt ends what computes them."""
        try:
            try:
                yield
            except KeyboardInterrupt:
                self._abandon()
                raise
            finally:
                self.settle(lower_again)
        except KeyboardInterrupt:
            self._abandon()
            lower_again()
            raise

    def settle(self, lower_again: Callable[[], None]) -> None:
        """Wait for exact verdicts that are being computed, and keep them.

        Where the programs are not identical, the variants of the arguments that were postponed are compared now; if the
        original is to be used from now on, ``lower_again`` is called. NotEquivalentError if the policy demands it.
        """
        if not self._exact:
            return
        failed = []
        with self._lock, without_mesh(), own_settings():
            while self._exact:
                key, identity = next(iter(self._exact.items()))
                exact, decision = identity.result(), self.decisions.get(key)
                del self._exact[key]
                comparison, call = self._postponed.pop(key, (self._comparisons.get(key), None))
                if decision is None or decision.verdict is None:
                    continue
                settled = replace(decision, verdict=replace(decision.verdict, exact=exact))
                settled = _declined_where_not_identical(settled)
                if comparison is not None:
                    known = comparison.decision
                    assert known.verdict is not None
                    comparison.decision = replace(known, verdict=replace(known.verdict, exact=exact))
                if call is not None and comparison is not None and settled.rewritten is not None:
                    if _spares_variants(identity, None):
                        settled = replace(settled, provisional=False)
                    else:
                        self._comparisons[key] = comparison
                        settled = self._rechecked(key, settled, call)
                self.decisions[key] = settled
                self._keep(key, settled)
                failed += [settled] if settled.failed and not decision.failed else []
        if failed:
            lower_again()
        for decision in failed:
            self._require_equal(decision)
            self._warn(decision.reason)

    def _abandon(self) -> None:
        """End what computes exact verdicts; the next call decides again on these programs."""
        self._interrupted.set()
        self._interrupted = threading.Event()
        for key in self._exact:
            self.decisions.pop(key, None)
        self._exact.clear()
        self._postponed.clear()

    def _require_equal(self, decision: Decision) -> None:
        """NotEquivalentError if ``decision`` found a difference and the policy makes it an error."""
        verdict = decision.verdict
        if verdict is not None and verdict.verdict == "different" and self.policy.on_difference == "raise":
            raise NotEquivalentError(f"{self.name}: {decision.reason}")

    def _remembered(self, key: str, original: Program) -> Decision | None:
        """The decision on disk, if there is one that can be read."""
        read = functools.partial(Decision.from_json, original=original)
        return self._store.load(key, read) if self._store is not None else None

    def _keep(self, key: str, decision: Decision) -> None:
        """Store ``decision`` if shown equal, not to be checked, or nothing applied; differences, failed passes and
        provisional verdicts are examined again."""
        equal = decision.verdict is None or decision.verdict.passed
        examined_again = decision.failed or decision.provisional or faults(decision.events)
        if self._store is not None and equal and not examined_again:
            self._store.store(key, decision.to_json())


def _declined_where_not_identical(decision: Decision) -> Decision:
    """``decision`` without a forward Laplacian that is not identical to the sum; floats may hide the difference."""
    exact = decision.verdict.exact if decision.verdict is not None else None
    applied = any(isinstance(event, Applied) and event.pass_name in FORWARD_LAPLACIANS for event in decision.events)
    if decision.rewritten is None or exact is None or exact.result != "not-identical" or not applied:
        return decision
    return replace(decision, rewritten=None, reason=f"the forward Laplacian is {exact.line}", failed=True)


def _spares_variants(identity: Future[Identity] | None, known: Identity | None) -> bool:
    """True if the exact verdict, that of ``identity`` or ``known``, covers all arguments."""
    found = known if identity is None else identity.result()
    return found is not None and found.result == "identical" and not (found.at_ties or found.except_for)


def _warn_of_deadlocks(name: str, program: Program) -> None:
    """Warn where ``program`` has two batched LAPACK calls of the CPU and their pool more than one thread
    (docs/decisions/0005)."""
    if program.platform != "cpu" or (os.environ.get("NPROC") or str(os.cpu_count())) == "1":
        return
    calls = [
        node
        for node in program_view(without_view(program)).walk()
        if node.call_target.startswith("lapack_") and math.prod(node.operands[0].type.shape[:-2]) > 1
    ]
    if len(calls) > 1:
        warnings.warn(
            f"fusionlab.optimize: the rewritten {name} has {len(calls)} batched LAPACK calls, and jaxlib's CPU client "
            "can deadlock where two run at once; start Python with NPROC=1 in the environment",
            DeadlockWarning,
            stacklevel=_users_level(),
        )


def _users_level() -> int:
    """The number of frames up to the user's line: the first outside fusionlab, JAX and their dependencies."""
    between = tuple(f"{Path(file).parent}{os.sep}" for file in (jax.__file__, fusionlab.errors.__file__))
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*between, contextlib.__file__)):
        level, frame = level + 1, frame.f_back
    return level


def lower_jaxpr(jaxpr: Any, platform: str, name: str) -> Program:
    """The jaxpr as a Program for ``platform``; every argument stays one, used or not."""

    def run(*arrays: Any) -> Any:
        return extended.jaxpr_as_fun(jaxpr)(*arrays)

    run.__name__ = run.__qualname__ = name
    arguments = [jax.ShapeDtypeStruct(type_.shape, type_.dtype) for type_ in jaxpr.in_avals]
    module = lower_traced(jax.jit(run, keep_unused=True).trace(*arguments), platform, source_lines=1)
    program = Program.from_module(module, name=name, provenance=f"{name}, JAX {jax.__version__}", platform=platform)
    if called := _CALLBACK.search(program.bytecode):
        reason = f"its program calls back into Python ({called[0].decode()}), and a rewritten module cannot"
        raise Refusal(Ground.CALLBACK, reason)
    return program


def _apply(passes: Sequence[Pass], original: Program) -> tuple[Result, float]:
    """The pipeline's result and the seconds it took. XLA compiles candidates only for a memory budget, and, at a few
    walkers, those whose memory without a budget is in doubt; none for a GPU that is not attached."""
    on_gpu = original.platform == "cuda"
    target = functools.partial(load_target, "gpu" if on_gpu else "cpu")
    if any(getattr(pass_, "memory_budget", 0) for pass_ in passes):
        return rewrite(original, passes, Circumstances(target()))
    setting, costs = Setting(platform=original.platform), None
    if not on_gpu or jax.default_backend() == "gpu":
        costs = CandidateCosts(Circumstances(target()))
        memory = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit") if on_gpu else None
        setting = replace(setting, temp_bytes=functools.partial(_temp_bytes, costs), memory_bytes=memory)
    started = time.perf_counter()
    result = run_pipeline(original, passes, setting)
    return result, time.perf_counter() - started - (costs.seconds if costs is not None else 0)


def _temp_bytes(costs: CandidateCosts, candidate: Program) -> int:
    """XLA's temp bytes of ``candidate``, in proportion to those at a few walkers where these are found."""
    few = resized((candidate,), CHECKED_WALKERS)
    if few is None:
        return costs.temp_bytes(candidate)
    whole, part = (math.prod(one.outputs[0].shape) for one in (candidate, few.programs[0]))
    return costs.temp_bytes(few.programs[0]) * whole // part
