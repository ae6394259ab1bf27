"""From the jaxpr of a function to the program that replaces it: lower, rewrite, check, remember."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import core as extended

import fusionlab.errors
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.isolated import compare_files
from fusionlab.errors import InputError, NotEquivalentError, NotOptimizedWarning
from fusionlab.hlo.lowering import PLATFORMS, lower_traced
from fusionlab.hlo.program import Program
from fusionlab.optimizing.checking import DRAWN, VARIED, CallVerdict, Runners
from fusionlab.optimizing.compile_options import surroundings
from fusionlab.optimizing.decision import Decision, OptimizedStore, key_of, why_nothing_applied
from fusionlab.optimizing.policy import Policy
from fusionlab.optimizing.primitive import OF_A_MESH, why_left_alone, without_mesh
from fusionlab.passes.interface import Pass, Result, Setting, faults
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline, run_pipeline
from fusionlab.study import Circumstances, rewrite

_log = logging.getLogger(__name__)

_CALLBACK = re.compile(rb"xla_\w*python_\w*callback")

_MOST_CHECKS = 4
"""The number of calls with different arguments at which a program with inconclusive arguments is checked."""

Options = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Call:
    """The information of a call: its arrays on the host, and its compile options.

    ``arrays`` is None where there are none: under a transformation, or where other processes hold parts of them.
    """

    arrays: tuple[np.ndarray, ...] | None
    options: Options
    alone: bool = True


@dataclass(frozen=True)
class _OpenDecision:
    """A decision to be checked again at arguments of other digests than ``seen``; its program is rewritten."""

    decision: Decision
    seen: frozenset[str]


class Rewriter:
    """Decides for one function, and keeps its decisions in memory; the owner of its primitive."""

    def __init__(self, name: str, policy: Policy, current: Callable[[Any], Call]) -> None:
        self.name = name
        self.policy = policy
        self.decisions: dict[str, Decision] = {}
        self.jaxprs: dict[str, Any] = {}
        self.latest = ""
        self._keys: weakref.WeakKeyDictionary[Any, dict[tuple[str, bool], str]] = weakref.WeakKeyDictionary()
        self._runners: dict[str, Runners] = {}
        self._identities: dict[str, Identity] = {}
        self._open: dict[str, _OpenDecision] = {}
        self._current = current
        # A user's own pass can change at any time, and its source is not in the key.
        self._store = OptimizedStore(policy.folder) if policy.folder is not None and policy.known else None
        self._lock = threading.RLock()

    def choose(self, jaxpr: Any, platform: str) -> Program | None:
        """The program instead of ``jaxpr``, None for itself. NotEquivalentError if the policy demands it."""
        with self._lock, without_mesh():
            before = dict(self.decisions)
            try:
                self._decide(jaxpr, platform, self._current(jaxpr))
            except NotEquivalentError:
                raise
            except Exception as error:  # the user's function still works, and the reason is reported
                _log.debug("%s: not optimised", self.name, exc_info=True)
                self._refuse(platform, told(error), failed=True)
            decision = self.decisions[self.latest]
        known = before.get(self.latest)
        if decision.failed and not (known is not None and known.failed):
            self._warn(decision.reason)
        return decision.rewritten

    def refuse(self, reason: str, surprising: bool) -> None:
        """Record that the original runs, and why; warn if that is ``surprising``."""
        self._refuse("-", reason, failed=surprising)
        if surprising:
            self._warn(reason)

    def _refuse(self, platform: str, reason: str, *, failed: bool = False) -> None:
        self.latest = reason
        self.decisions[reason] = Decision(
            self.name, platform, self.policy.pipeline, None, None, reason=reason, failed=failed
        )

    def _warn(self, reason: str) -> None:
        warnings.warn(
            f"fusionlab.optimize: {self.name} runs as it was: {reason}", NotOptimizedWarning, stacklevel=_users_level()
        )

    def may_be_used(self, jaxpr: Any) -> bool:
        """True if the decision for ``jaxpr`` holds at the arrays of the current call.

        Also True before any decision: then the call is lowered, and its arrays are used there.
        """
        with self._lock, without_mesh():
            keys = self._keys.get(jaxpr, {})
            key = next((keys[place] for place in sorted(keys, key=lambda place: not place[1])), "")
            decision = self.decisions.get(key)
            if decision is None or decision.rewritten is None:
                return True
            checked = self._rechecked(key, decision, self._current(jaxpr))
            self._require_equal(checked)
            self._open.pop(key, None)  # every call is checked anyway
            self.decisions[key] = replace(checked, rewritten=decision.rewritten)
        if checked.failed:
            self._warn(checked.reason)
        return checked.rewritten is not None

    @property
    def undecided(self) -> bool:
        """True if some programs have to be checked again, because the arguments so far were inconclusive."""
        return bool(self._open)

    def check_again(self, jaxpr: Any) -> bool:
        """Check open decisions of ``jaxpr`` at the arrays of this call, if these are new; True if another program than
        before is to be used from now on.

        NotEquivalentError if the policy demands it; from then on the original is used.
        """
        changed, news = False, []
        with self._lock, without_mesh():
            for key in [key for key in self._keys.get(jaxpr, {}).values() if key in self._open]:
                call, opened, before = self._current(jaxpr), self._open[key], self.decisions[key]
                if call.arrays is None or _digest(call.arrays) in opened.seen:
                    continue
                checked = self._rechecked(key, opened.decision, call)
                if key in self._open and len(self._open[key].seen) >= _MOST_CHECKS:
                    self._close(key)
                    if checked.failed:
                        again = f"so at {_MOST_CHECKS} calls, and not checked again"
                        checked = replace(checked, reason=f"{checked.reason}; {again}")
                self.decisions[key] = checked
                self._keep(key, checked)
                changed |= (checked.rewritten is None) != (before.rewritten is None)
                news += [checked] if checked.failed and checked.reason != before.reason else []
        for checked in news:
            self._require_equal(checked)
            self._warn(checked.reason)
        return changed

    def _rechecked(self, key: str, decision: Decision, call: Call) -> Decision:
        """``_checked``, where an exception is no verdict: then the original runs, and the reason is reported."""
        try:
            return self._checked(key, decision, call)
        except Exception as error:  # the same as in choose
            _log.debug("%s: not checked", self.name, exc_info=True)
            self._close(key)
            return replace(decision, rewritten=None, reason=told(error), failed=True)

    def _require_equal(self, decision: Decision) -> None:
        """NotEquivalentError if ``decision`` found a difference and the policy makes it an error."""
        verdict = decision.verdict
        if verdict is not None and verdict.verdict == "different" and self.policy.on_difference == "raise":
            raise NotEquivalentError(f"{self.name}: {decision.reason}")

    def _keep(self, key: str, decision: Decision) -> None:
        if self._store is not None and _worth_keeping(decision):
            self._store.store(key, decision)

    def _close(self, key: str) -> None:
        """Stop checking ``key``."""
        self._open.pop(key, None)
        self._runners.pop(key, None)

    def _decide(self, jaxpr: Any, platform: str, call: Call) -> None:
        if jaxpr is None:
            self._refuse(platform, OF_A_MESH)
            return
        why, surprising = why_left_alone(jaxpr)  # batching can bring a callback into it
        if why:
            self._refuse(platform, why, failed=surprising)
            return
        if platform not in PLATFORMS:
            self._refuse(platform, f"platform {platform}: only {' and '.join(PLATFORMS)} are rewritten")
            return
        keys = self._keys.setdefault(jaxpr, {})
        if (key := keys.get((platform, call.alone), "")) in self.decisions:
            self.latest = key
            return
        original = lower_jaxpr(jaxpr, platform, self.name)
        how = call.alone, sorted(call.options.items()), surroundings(platform), self.policy.exact_s
        key = key_of(original, self.policy.pipeline, str(how))
        found = self.decisions.get(key) or (self._store.load(key, original) if self._store else None)
        decision = replace(found or self._rewritten(original), alone=call.alone)
        self.jaxprs[key], self.latest, keys[platform, call.alone] = jaxpr, key, key
        on_less = decision.compared_on == DRAWN and call.arrays is not None
        unchecked = decision.verdict is None or on_less or self.policy.check == "always"
        if decision.rewritten is not None and self.policy.check != "never" and unchecked:
            decision = self._checked(key, decision, call)
            self._require_equal(decision)
        self.decisions[key] = decision
        if found is None or decision.verdict is not found.verdict:
            self._keep(key, decision)

    def _rewritten(self, original: Program) -> Decision:
        _log.info("%s: rewriting %d ops by %s", self.name, original.ops, self.policy.pipeline)
        result, seconds = apply_passes(original, self.policy.passes)
        applied = result.program if result.applied else None
        if applied is not None and (applied.inputs, applied.outputs) != (original.inputs, original.outputs):
            raise InputError("the passes changed the types of the program's arguments or results")
        reason = "" if result.applied else why_nothing_applied(result.events, original)
        failed = bool(faults(result.events)) and applied is None
        return Decision(
            name=self.name,
            platform=original.platform,
            pipeline=self.policy.pipeline,
            original=original,
            rewritten=applied,
            events=result.events,
            reason=reason,
            rewrite_s=seconds,
            failed=failed,
        )

    def _again(self, decision: Decision, program: Program) -> Program | None:
        """``program``, the same in another precision, rewritten by the same choices; None if they do not apply."""
        resolved = parse_pipeline(resolved_pipeline(decision.events)) if self.policy.known else self.policy.passes
        result = run_pipeline(program, resolved, Setting(platform=program.platform))
        return result.program if result.applied else None

    def _compared(self, key: str, decision: Decision, call: Call) -> CallVerdict:
        """The comparison on the arguments of ``call``, with the exact verdict, which is computed once per program in a
        parallel process."""
        assert decision.original is not None
        assert decision.rewritten is not None
        runners, varied = self._runners[key], decision.compared_on != VARIED
        if decision.verdict is not None and decision.verdict.exact is not None:
            self._identities.setdefault(key, decision.verdict.exact)
        if key in self._identities or not self.policy.exact_s:
            compared = runners.compared(call.arrays, varied=varied)
        else:
            with ThreadPoolExecutor(1) as beside:
                exact = beside.submit(compare_files, decision.original, decision.rewritten, self.policy.exact_s)
                compared = runners.compared(call.arrays, varied=varied)
            self._identities[key] = exact.result()
        return replace(compared, verdict=replace(compared.verdict, exact=self._identities.get(key)))

    def _checked(self, key: str, decision: Decision, call: Call) -> Decision:
        """``decision`` with a verdict; without its rewritten program if not shown equal."""
        assert decision.original is not None
        assert decision.rewritten is not None
        started = time.perf_counter()
        if key not in self._runners:
            again = functools.partial(self._again, decision)
            self._runners[key] = Runners(decision.original, decision.rewritten, call.options, again)
        compared = self._compared(key, decision, call)
        verdict = compared.verdict
        on = VARIED if decision.compared_on == VARIED and call.arrays is not None else compared.on
        always = self.policy.check == "always"
        if call.arrays is not None and (verdict.undecided or (compared.provisional and verdict.passed and not always)):
            seen = self._open[key].seen if key in self._open else frozenset()
            self._open[key] = _OpenDecision(decision, seen | {_digest(call.arrays)})
        else:
            self._open.pop(key, None)
            if not always:
                del self._runners[key]
        decision = replace(
            decision,
            verdict=verdict,
            compared_on=on,
            provisional=compared.provisional,
            check_s=time.perf_counter() - started,
            reason="",
            failed=False,
        )
        if verdict.passed:
            return decision
        found = f"the rewritten program is {verdict.verdict} on {on}: {verdict.worst or verdict.reason}"
        return replace(decision, rewritten=None, reason=found, failed=True)


def _digest(arrays: Sequence[np.ndarray]) -> str:
    """SHA-256 of the elements of ``arrays``, hexadecimal."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _users_level() -> int:
    """The number of frames up to the user's line: the first outside fusionlab, JAX and their dependencies."""
    between = tuple(f"{Path(file).parent}{os.sep}" for file in (jax.__file__, fusionlab.errors.__file__))
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*between, contextlib.__file__)):
        level, frame = level + 1, frame.f_back
    return level


def told(error: Exception) -> str:
    """The error as one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def lower_jaxpr(jaxpr: Any, platform: str, name: str) -> Program:
    """The jaxpr as a Program for ``platform``; every argument stays one, used or not."""

    def run(*arrays: Any) -> Any:
        return extended.jaxpr_as_fun(jaxpr)(*arrays)

    run.__name__ = run.__qualname__ = name
    arguments = [jax.ShapeDtypeStruct(type_.shape, type_.dtype) for type_ in jaxpr.in_avals]
    module = lower_traced(jax.jit(run, keep_unused=True).trace(*arguments), platform, source_lines=1)
    program = Program.from_module(module, name=name, provenance=f"{name}, JAX {jax.__version__}", platform=platform)
    if called := _CALLBACK.search(program.bytecode):
        raise InputError(f"its program calls back into Python ({called[0].decode()}), and a rewritten module cannot")
    return program


def apply_passes(original: Program, passes: Sequence[Pass]) -> tuple[Result, float]:
    """The pipeline's result and the seconds it took. XLA compiles candidates only for a memory budget."""
    if any(getattr(pass_, "memory_budget", 0) for pass_ in passes):
        return rewrite(original, passes, Circumstances(load_target("gpu" if original.platform == "cuda" else "cpu")))
    started = time.perf_counter()
    result = run_pipeline(original, passes, Setting(platform=original.platform))
    return result, time.perf_counter() - started


def _worth_keeping(decision: Decision) -> bool:
    """True if shown equal, not to be checked, or nothing applied; differences, failed passes and provisional verdicts
    are examined again."""
    if faults(decision.events) or decision.failed or decision.provisional:
        return False
    return decision.verdict.passed if decision.verdict is not None else True
