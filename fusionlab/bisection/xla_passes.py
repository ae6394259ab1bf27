"""The XLA pass that makes a program differ: it is compiled for the CPU with one pass after another disabled.

The reference is the same program run op by op, each compiled alone, so that no pass of XLA sees two ops at once; truth
is that in float64. Every trial is a process of its own, because XLA aborts where a pass it needs is disabled.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.raising import Raising, raise_program, require_known_calls
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.check import compare
from fusionlab.equivalence.oracle import Runner
from fusionlab.equivalence.samples import Sample, signature_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.host_settings import own_settings
from fusionlab.subprocesses import ProcessFailed, call

_TIME_LIMIT_S = 300.0
_NOT_PASSES = ("pipeline-start", "pipeline-end")


class TrialError(Exception):
    """XLA could not compile or run the program with those passes disabled; the message is its last line."""


@own_settings()
def judge_xla(program: Program, disabled: Sequence[str] = (), inputs: Sample | None = None) -> Verdict:
    """The verdict on ``program`` compiled by XLA for the CPU without the passes ``disabled``, against it run op by op,
    on ``inputs`` or on drawn ones.

    TrialError when XLA cannot compile it so.
    """
    samples = list(signature_samples(program)) if inputs is None else [inputs]
    return compare(
        samples,
        truth=_op_by_op(program, widen=True),
        original=_op_by_op(program, widen=False),
        rewritten=_run_by_xla(program, disabled, samples),
        rewritten_float64=_op_by_op(program, widen=True),
        walkers=None,
    )


def guilty_passes(
    program: Program, progress: Callable[[str], None] = lambda line: None, inputs: Sample | None = None
) -> list[str]:
    """The XLA passes that changed ``program`` and whose removal, one at a time, makes it correct, on ``inputs`` or on
    drawn ones."""
    guilty = []
    for name in changing_passes(program):
        progress(f"bisect: without XLA's {name}")
        try:
            if judge_xla(program, (name,), inputs).passed:
                guilty.append(name)
        except TrialError:
            continue
    return guilty


def changing_passes(program: Program) -> list[str]:
    """The passes of XLA's CPU pipeline that change ``program``, in order, from XLA's own dump."""
    with tempfile.TemporaryDirectory(prefix="fusionlab-passes-") as folder:
        options: dict[str, str | int | bool] = {
            "xla_dump_to": folder,
            "xla_dump_hlo_as_text": True,
            "xla_dump_hlo_pass_re": ".*",
        }
        compile_program(program, load_target("cpu"), options=options)
        files = sorted(path.name for path in Path(folder).iterdir())
    found = (re.search(r"\.after_([\w.-]+?)(?:\.before_[\w.-]+)?\.txt$", file) for file in files)
    return list(dict.fromkeys(match[1] for match in found if match and match[1] not in _NOT_PASSES))


def _op_by_op(program: Program, *, widen: bool) -> Runner:
    function = raise_program(program, Raising(widen=widen))

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        with jax.enable_x64(True):
            given = [
                array.astype("float64") if widen and array.dtype == np.float32 else jax.numpy.asarray(array)
                for array in arrays
            ]
            return [np.asarray(result) for result in function(*map(jax.numpy.asarray, given))]

    return run


def _run_by_xla(program: Program, disabled: Sequence[str], samples: Sequence[Sample]) -> Runner:
    """A runner that returns the results of one process for ``samples``; to be called in their order."""
    require_known_calls(program)
    arrays = [sample.arrays for sample in samples]
    try:
        results = iter(call(run_by_xla, astuple(program), arrays, ",".join(disabled), limit_s=_TIME_LIMIT_S))
    except ProcessFailed as error:
        raise TrialError(str(error)) from None
    return lambda _: next(results)


def run_by_xla(program: list[Any], samples: list[list[np.ndarray]], disabled: str) -> list[list[np.ndarray]]:
    """The results of ``program``, compiled without the passes ``disabled``, for each of ``samples``."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    compiled = compile_program(Program(*program), load_target("cpu"), options={"xla_disable_hlo_passes": disabled})
    return [list(compiled.run(*arrays)) for arrays in samples]
