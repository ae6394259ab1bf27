"""From the jaxpr of a function to the program that runs in its place: lower, rewrite, check, remember."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend import core as extended

import fusionlab.errors
from fusionlab.codegen.targets import load_target
from fusionlab.errors import InputError, NotEquivalentError, NotOptimizedWarning
from fusionlab.hlo.lowering import PLATFORMS, lower_traced
from fusionlab.hlo.program import Program
from fusionlab.optimizing.checking import DRAWN, VARIED, Runners
from fusionlab.optimizing.compile_options import surroundings
from fusionlab.optimizing.decision import Decision, why_nothing_applied
from fusionlab.optimizing.policy import Policy
from fusionlab.optimizing.primitive import OF_A_MESH, why_left_alone, without_mesh
from fusionlab.optimizing.store import OptimizedStore, key_of
from fusionlab.passes.contract import Pass, Result, Setting, faults
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline, run_pipeline
from fusionlab.study import Circumstances, rewrite

_log = logging.getLogger(__name__)

_CALLBACK = re.compile(rb"xla_\w*python_\w*callback")

Options = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Call:
    """What a call tells of the program that it needs: its arrays on the host, and how it is compiled.

    ``arrays`` is None where there are none: under a transformation, or where other processes hold parts of them.
    """

    arrays: tuple[np.ndarray, ...] | None
    options: Options
    alone: bool = True


class Rewriter:
    """Decides for one function, and remembers in memory what it decided; the owner of its primitive."""

    def __init__(self, name: str, policy: Policy, current: Callable[[Any], Call]) -> None:
        self.name = name
        self.policy = policy
        self.decisions: dict[str, Decision] = {}
        self.jaxprs: dict[str, Any] = {}
        self.latest = ""
        self._keys: weakref.WeakKeyDictionary[Any, dict[tuple[str, bool], str]] = weakref.WeakKeyDictionary()
        self._runners: dict[str, Runners] = {}
        self._undecided: dict[str, Decision] = {}
        self._current = current
        # What a pass of the user's own does can change from day to day, and the key does not have its source.
        self._store = OptimizedStore(policy.folder) if policy.folder is not None and policy.known else None
        self._lock = threading.RLock()

    def choose(self, jaxpr: Any, platform: str) -> Program | None:
        """The program in place of ``jaxpr``, None for itself. NotEquivalentError where the policy asks for it."""
        with self._lock, without_mesh():
            before = dict(self.decisions)
            try:
                self._decide(jaxpr, platform, self._current(jaxpr))
            except NotEquivalentError:
                raise
            except Exception as error:  # the user's function still works, and the reason is told
                _log.debug("%s: not optimised", self.name, exc_info=True)
                self._refuse(platform, told(error), failed=True)
            decision = self.decisions[self.latest]
        known = before.get(self.latest)
        if decision.failed and not (known is not None and known.failed):
            self._warn(decision.reason)
        return decision.rewritten

    def refuse(self, reason: str, surprising: bool) -> None:
        """Note that the original runs, and why; with a warning where that is ``surprising``."""
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
        """Whether what was decided for ``jaxpr`` holds at the arrays of the call that is being made.

        True before anything was decided: then the call is lowered and its arrays are looked at there.
        """
        with self._lock, without_mesh():
            keys = self._keys.get(jaxpr, {})
            key = next((keys[place] for place in sorted(keys, key=lambda place: not place[1])), "")
            decision = self.decisions.get(key)
            if decision is None or decision.rewritten is None:
                return True
            try:
                checked = self._checked(key, decision, self._current(jaxpr))
            except NotEquivalentError:
                raise
            except Exception as error:  # the same as in choose
                _log.debug("%s: not checked", self.name, exc_info=True)
                checked = replace(decision, rewritten=None, reason=told(error), failed=True)
            self._undecided.pop(key, None)  # every call is checked anyway
            self.decisions[key] = replace(checked, rewritten=decision.rewritten)
        if checked.failed:
            self._warn(checked.reason)
        return checked.rewritten is not None

    @property
    def undecided(self) -> bool:
        """Whether some call had no finite output to compare, so that its program has to be checked again."""
        return bool(self._undecided)

    def decided_now(self, jaxpr: Any) -> bool:
        """Check what an earlier call of ``jaxpr`` left undecided at the arrays of this call; whether its rewritten
        program is to be used from now on."""
        with self._lock, without_mesh():
            keys = [key for key in self._keys.get(jaxpr, {}).values() if key in self._undecided]
            for key in keys:
                try:
                    self.decisions[key] = self._checked(key, self._undecided.pop(key), self._current(jaxpr))
                except NotEquivalentError:
                    raise
                except Exception as error:  # the same as in choose
                    _log.debug("%s: not checked", self.name, exc_info=True)
                    self._refuse("-", told(error), failed=True)
            return any(self.decisions[key].rewritten is not None for key in keys)

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
        how = call.alone, sorted(call.options.items()), surroundings(platform)
        key = key_of(original, self.policy.pipeline, str(how))
        found = self.decisions.get(key) or (self._store.load(key, original) if self._store else None)
        decision = replace(found or self._rewritten(original), alone=call.alone)
        self.jaxprs[key], self.latest, keys[platform, call.alone] = jaxpr, key, key
        on_less = decision.compared_on == DRAWN and call.arrays is not None
        unchecked = decision.verdict is None or on_less or self.policy.check == "always"
        if decision.rewritten is not None and self.policy.check != "never" and unchecked:
            decision = self._checked(key, decision, call)
        self.decisions[key] = decision
        news = found is None or decision.verdict is not found.verdict
        if self._store is not None and news and _worth_keeping(decision):
            self._store.store(key, decision)

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
        """``program``, the same in another precision, rewritten by the same choices; None where they do not apply."""
        resolved = parse_pipeline(resolved_pipeline(decision.events)) if self.policy.known else self.policy.passes
        result = run_pipeline(program, resolved, Setting(platform=program.platform))
        return result.program if result.applied else None

    def _checked(self, key: str, decision: Decision, call: Call) -> Decision:
        """``decision`` with a verdict; without its rewritten program where that is not shown equal."""
        assert decision.original is not None
        assert decision.rewritten is not None
        started = time.perf_counter()
        if key not in self._runners:
            again = functools.partial(self._again, decision)
            self._runners[key] = Runners(decision.original, decision.rewritten, call.options, again)
        varied = decision.compared_on != VARIED
        verdict = self._runners[key].verdict(call.arrays, varied=varied)
        if verdict.undecided:
            self._undecided[key] = decision
        elif self.policy.check != "always":
            del self._runners[key]
        on = DRAWN if call.arrays is None else VARIED
        seconds = time.perf_counter() - started
        decision = replace(decision, verdict=verdict, compared_on=on, check_s=seconds, reason="", failed=False)
        if verdict.passed:
            return decision
        found = f"the rewritten program is {verdict.verdict} on {on}: {verdict.worst or verdict.reason}"
        if verdict.verdict == "different" and self.policy.on_difference == "raise":
            raise NotEquivalentError(f"{self.name}: {found}")
        return replace(decision, rewritten=None, reason=found, failed=True)


def _users_level() -> int:
    """How many frames above the caller the user's own line is: the first outside fusionlab, JAX and what these use."""
    between = tuple(f"{Path(file).parent}{os.sep}" for file in (jax.__file__, fusionlab.errors.__file__))
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*between, contextlib.__file__)):
        level, frame = level + 1, frame.f_back
    return level


def told(error: Exception) -> str:
    """An error in one line."""
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
    """The pipeline's result and the seconds it took. XLA compiles candidates only where a memory budget asks for it."""
    if any(getattr(pass_, "memory_budget", 0) for pass_ in passes):
        return rewrite(original, passes, Circumstances(load_target("gpu" if original.platform == "cuda" else "cpu")))
    started = time.perf_counter()
    result = run_pipeline(original, passes, Setting(platform=original.platform))
    return result, time.perf_counter() - started


def _worth_keeping(decision: Decision) -> bool:
    """What was shown equal, what was not asked to be, and that nothing applies; a difference and a pass that failed are
    looked at again."""
    if faults(decision.events):
        return False
    return decision.verdict.passed if decision.verdict is not None else True
