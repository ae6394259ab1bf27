"""Which pass of XLA makes a program differ: it is compiled for the CPU with one pass after another turned off.

The reference is the same program run op by op, each compiled alone, so that no pass of XLA sees two ops at once; truth
is that in float64. Every trial is a process of its own, because XLA ends the process where a pass that it needs is off:

    python -m fusionlab.bisection.xla_passes PROGRAM INPUTS OUTPUTS DISABLED
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.raising import Raising, raise_program, require_known_calls
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.check import compare
from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.oracle import Runner
from fusionlab.equivalence.samples import Sample, signature_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.own_process import ProcessFailed, run_module

_TIME_LIMIT_S = 300.0
_NOT_PASSES = ("pipeline-start", "pipeline-end")


class TrialError(Exception):
    """XLA could not compile or run the program with those passes off; the message is its last line."""


def judge_xla(program: Program, disabled: Sequence[str] = ()) -> Verdict:
    """What XLA makes of ``program`` for the CPU, with the passes ``disabled`` off, beside the program op by op.

    TrialError when XLA cannot compile it so.
    """
    samples = list(signature_samples(program))
    return compare(
        samples,
        truth=_op_by_op(program, widen=True),
        original=_op_by_op(program, widen=False),
        rewritten=_run_by_xla(program, disabled, samples),
        rewritten_float64=_op_by_op(program, widen=True),
        walkers=None,
    )


def guilty_passes(program: Program, progress: Callable[[str], None] = lambda line: None) -> list[str]:
    """The passes of XLA that changed ``program``, without which, one at a time, it computes what it should."""
    guilty = []
    for name in changing_passes(program):
        progress(f"bisect: without XLA's {name}")
        try:
            if judge_xla(program, (name,)).passed:
                guilty.append(name)
        except TrialError:
            continue
    return guilty


def changing_passes(program: Program) -> list[str]:
    """Names of the passes of XLA's CPU pipeline that change ``program``, in order; from XLA's own dump."""
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
    """Gives what one process computed for ``samples``; to be asked in their order."""
    arrays = [array for sample in samples for array in sample.arrays]
    results = iter(_in_a_process(program, arrays, disabled))
    count = len(program.outputs)
    return lambda _: [next(results) for _ in range(count)]


def _in_a_process(program: Program, arrays: Sequence[np.ndarray], disabled: Sequence[str]) -> list[np.ndarray]:
    require_known_calls(program)
    with tempfile.TemporaryDirectory(prefix="fusionlab-trial-") as directory:
        paths = [Path(directory) / name for name in ("program.mlirbc", "inputs.npz", "outputs.npz")]
        paths[0].write_bytes(program.bytecode)
        paths[1].write_bytes(_as_file(arrays))
        try:
            given = [*map(str, paths), ",".join(disabled)]
            run_module("fusionlab.bisection.xla_passes", given, _TIME_LIMIT_S)
        except ProcessFailed as error:
            raise TrialError(str(error)) from None
        return list(Counterexample.load(paths[2]).arrays)


def _as_file(arrays: Sequence[np.ndarray]) -> bytes:
    return Counterexample("", tuple(arrays), 0, (), np.nan, np.nan, np.nan).to_bytes()


def main(arguments: list[str]) -> None:
    """Compile the program named first with the passes named last off, run it at all inputs, write all outputs."""
    from fusionlab import quiet_start

    quiet_start.load_jax()
    program, inputs = Program.from_own_file(arguments[0]), Counterexample.load(Path(arguments[1]))
    compiled = compile_program(program, load_target("cpu"), options={"xla_disable_hlo_passes": arguments[3]})
    count = len(program.inputs)
    given = [inputs.arrays[at : at + count] for at in range(0, len(inputs.arrays), count)] if count else [()]
    Path(arguments[2]).write_bytes(_as_file([result for arrays in given for result in compiled.run(*arrays)]))


if __name__ == "__main__":
    main(sys.argv[1:])
