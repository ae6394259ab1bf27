"""Shared by all tests: golden files, small functions as Programs, and running programs on the CPU."""

from __future__ import annotations

import gc
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fusionlab.jax_setup import set_environment
from tests import slowest, turns
from tests.compiled import cache_with_shared_compiles, share_compiled_programs

set_environment()
share_compiled_programs()  # both before JAX reads its environment

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from click.testing import CliRunner, Result  # noqa: E402

from fusionlab.cli import main  # noqa: E402
from fusionlab.codegen.cpu_options import CPU_OPTIONS  # noqa: E402
from fusionlab.codegen.raising import Raising, raise_program  # noqa: E402
from fusionlab.equivalence import interpreter, isolated  # noqa: E402
from fusionlab.equivalence.exact.identity import Identity  # noqa: E402
from fusionlab.hlo.program import Program  # noqa: E402
from fusionlab.optimizing import rewriting  # noqa: E402
from fusionlab.subprocesses import ProcessFailed, call, decode, encode  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write the golden files instead of comparing them.")
    parser.addoption(turns.OPTION, action="store_true", help="Mark all tests that take turns as those of make full.")


FIRST = (
    "docs/test_pages.py", "passes/fuse_jvp_replay/test_identify.py", "test_main_job.py", "workloads/test_laplacians.py",
    "passes/test_tiny_workloads.py", "forms/test_forms.py", "passes/fuse_jvp_replay/test_recognise.py",
    "passes/fuse_jvp_replay/test_guards.py", "passes/fuse_jvp_replay/test_weights.py",
    "passes/fuse_jvp_replay/test_shift_invariance.py", "workloads/test_deepqmc_adapter.py",
    "workloads/test_deepqmc_agreement.py", "codegen/laplacian/test_jets.py", "optimizing/test_rewriting.py",
    "optimizing/test_optimize.py", "hlo/test_batch_axes.py", "cli/test_facts_of_paulinet.py", "passes/test_deepqmc.py",
    "measure/test_session.py", "workloads/test_ansatze.py", "cli/test_bench.py", "cli/test_models.py",
    "codegen/raising/test_raising.py", "codegen/laplacian/test_slogdet.py", "equivalence/exact/test_rules.py",
    "passes/test_numbers.py", "passes/test_interface.py", "passes/fuse_jvp_replay/test_equal_inputs.py",
    "passes/fuse_jvp_replay/test_entry.py", "passes/fuse_jvp_replay/test_choose.py", "workloads/test_train_step.py",
    "browser/test_report.py", "bisection/test_mutations.py", "search/test_best.py", "workloads/test_programs.py",
    "fuzzing/test_programs.py", "test_benchmarks.py",
)  # fmt: skip
"""The files of either tier that take longest: begun first, so that no process is left alone with one at the end."""


@pytest.hookimpl(tryfirst=True)  # before the tests of a tier are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slowest.mark_recorded(items)
    turns.mark_turns(items, config.getoption(turns.OPTION))
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path, len(FIRST)))


def pytest_collection_finish() -> None:
    """Fewer collections: tracing leaves little behind, and to look for it takes a fifteenth of the processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """``golden(path, text)``: ``text`` is what the file says; a missing file is a failure, not a first version."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        assert path.exists(), f"{path.name} is missing; write it with pytest --update-golden and read the diff"
        assert text == path.read_text(), f"{path} differs; if that is meant, run pytest --update-golden"

    return compare


@pytest.fixture
def compile_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a test is left in the user's cache, nor found by another test, but for what XLA compiled."""
    monkeypatch.setenv("FUSIONLAB_CACHE", str(cache_with_shared_compiles(tmp_path_factory.mktemp("own"))))


@pytest.fixture(scope="module")
def module_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """As ``compile_cache``, for all tests of a file together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSIONLAB_CACHE", str(cache_with_shared_compiles(tmp_path_factory.mktemp("own"))))
        yield


_WITHOUT_EXACT = {command: {"no_exact": True} for command in ("apply", "bisect", "check", "study")}


@pytest.fixture
def processes() -> None:
    """The test runs checks in processes of their own, as users do."""


@pytest.fixture(autouse=True)
def exact_checks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and optimised functions are checked exactly, as those of users, but in this process: to start one takes
    seconds."""
    if "processes" not in request.fixturenames:
        monkeypatch.setattr(isolated, "call", _compared_here)


@pytest.fixture
def without_exact_checks(exact_checks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is about the check by floating point: its commands have no other, as by ``--no-exact``, nor have its
    optimised functions, where an exact verdict that comes in time spares variants of the arguments."""
    monkeypatch.setattr(rewriting, "compare_files", lambda *_: Identity("not-covered", 0, 0, 1.0, "a test"))


def _compared_here(function: Callable[..., Any], *arguments: Any, **limits: Any) -> Any:
    return (call_here if function is isolated.compare else call)(function, *arguments, **limits)


class _Flushed:
    """``main``, with stderr flushed at its end: the runner of click 8.1 flushes stdout only."""

    name = main.name

    def main(self, *given: Any, **options: Any) -> Any:
        try:
            return main.main(*given, **options)
        finally:
            sys.stderr.flush()


@pytest.fixture
def cli(compile_cache: None, request: pytest.FixtureRequest) -> Callable[..., Result]:
    """``cli("dump", "--model", ..., code=0)``: click's result (``stdout``, ``stderr``), of that exit code if given.

    Commands leave out the exact check, as by ``--no-exact``, in a test that asks for ``without_exact_checks``.
    """

    # click 8.1 gives stderr apart only when asked; 8.2 always does, and has no such option.
    apart = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}

    defaults = _WITHOUT_EXACT if "without_exact_checks" in request.fixturenames else {}

    def run(*arguments: Any, code: int | None = None) -> Result:
        words = [str(argument) for argument in arguments]
        result = CliRunner(**apart).invoke(_Flushed(), words, default_map=defaults)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert code in (None, result.exit_code), result.stderr
        return result

    return run


@pytest.fixture
def as_json(cli: Callable[..., Result]) -> Callable[..., Any]:
    """``as_json("dump", "--model", ..., code=0)``: what the command prints with ``--json``, of that exit code."""
    return lambda *arguments, code=0: json.loads(cli(*arguments, "--json", "--quiet", code=code).stdout)


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks and interpreters run in this process: to start one takes seconds. Those of short limits are started."""
    for caller in (isolated, interpreter):
        monkeypatch.setattr(caller, "call", call_here)


def call_here(
    function: Callable[..., Any], *arguments: Any, limit_s: float, memory_limited: bool = False, **_: Any
) -> Any:
    """``subprocesses.call`` in this process."""
    if limit_s < 1:
        return call(function, *arguments, limit_s=limit_s, memory_limited=memory_limited)
    try:
        return decode(encode(function(*decode(encode(arguments)))))
    except Exception as error:
        raise ProcessFailed(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}", 1) from error


@pytest.fixture(scope="session")
def lowered() -> Callable[..., Program]:
    """``lowered(function, *arguments, platform="cpu")``: the function as a Program."""

    def lower(function: Callable[..., Any], *arguments: Any, platform: str = "cpu", name: str = "small") -> Program:
        # A function of our own, so that no test depends on what JAX has cached for another lowering of `function`.
        traced = jax.jit(lambda *given: function(*given), keep_unused=True).trace(*arguments)
        module = traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
        return Program.from_module(module, name=name, provenance="a test", platform=platform)

    return lower


@pytest.fixture
def program_of_text(tmp_path: Path) -> Callable[[str], Program]:
    """``program_of_text(text)``: the Program of a module written as StableHLO text."""

    def read(text: str) -> Program:
        path = tmp_path / "module.mlir"
        path.write_text(text)
        return Program.from_file(path)

    return read


@pytest.fixture(scope="session")
def run_raised() -> Callable[..., list[np.ndarray]]:
    """``run_raised(program, arrays, widen=False)``: what the raised program computes on the CPU."""

    def run(program: Program, arrays: Sequence[Any], *, widen: bool = False) -> list[np.ndarray]:
        call = jax.jit(raise_program(program, Raising(widen=widen)), compiler_options=CPU_OPTIONS)
        with jax.enable_x64(True):
            return [np.asarray(result) for result in call(*arrays)]

    return run


@pytest.fixture(scope="session")
def run_directly() -> Callable[..., list[np.ndarray]]:
    """``run_directly(function, *arrays)``: the untouched function under ``jax.jit``; flat results."""

    def run(function: Callable[..., Any], *arrays: Any) -> list[np.ndarray]:
        results = jax.jit(lambda *given: function(*given), compiler_options=CPU_OPTIONS)(*arrays)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]

    return run


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With FUSIONLAB_NO_SKIPS set, as in CI where everything is installed, a test that skips has failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get("FUSIONLAB_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and FUSIONLAB_NO_SKIPS is set: {call.excinfo}"
