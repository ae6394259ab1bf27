"""Check two program files in a process of its own, under a time and a memory limit.

    python -m fusionlab.equivalence.isolated ORIGINAL REWRITTEN COUNTEREXAMPLE ORACLES [INPUTS]

prints the verdict as JSON, and writes the inputs of the worst walker of a difference to COUNTEREXAMPLE. ORACLES is 0 or
1. INPUTS are such inputs, to be used in place of random ones. ``check_files`` is the caller's side: whatever happens to
that process, it gives a verdict.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.own_process import ProcessFailed, limit_memory, run_module

TIME_LIMIT_S = 300.0


def check_files(
    original: Program,
    rewritten: Program,
    *,
    inputs: Counterexample | None = None,
    oracles: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> Verdict:
    """Compare two programs at their own shapes; ``not-checked`` with the reason when a limit is exceeded.

    ``inputs`` stand in for random ones; ``oracles`` as in ``check_programs``.

    The memory limit is three quarters of the machine's memory, so that a check cannot take the machine down.
    """
    with tempfile.TemporaryDirectory(prefix="fusionlab-check-") as directory:
        paths = []
        for label, program in (("original", original), ("rewritten", rewritten)):
            paths.append(Path(directory) / f"{label}.mlirbc")
            paths[-1].write_bytes(program.bytecode)
        found = Path(directory) / "counterexample.npz"
        arguments = [*map(str, paths), str(found), str(int(oracles))]
        if inputs is not None:
            inputs.save(Path(directory) / "inputs.npz")
            arguments.append(str(Path(directory) / "inputs.npz"))
        try:
            printed = run_module("fusionlab.equivalence.isolated", arguments, time_limit_s)
        except ProcessFailed as error:
            if error.exit_code is None:
                return Verdict("not-checked", reason=f"the check did not finish within {time_limit_s:g} s")
            return Verdict("not-checked", reason=f"the check failed (exit {error.exit_code}): {str(error)[:200]}")
        counterexample = Counterexample.load(found) if found.exists() else None
    verdict = Verdict.from_json(json.loads(printed.splitlines()[-1]))
    return replace(verdict, counterexample=counterexample)


def main(arguments: list[str]) -> None:
    """Read the two programs named by ``arguments``, check, print the verdict and write the worst walker's inputs."""
    limit_memory()
    from fusionlab import quiet_start

    quiet_start.load_jax()
    from fusionlab.equivalence.check import check_programs
    from fusionlab.equivalence.samples import sample_of

    original, rewritten = (Program.from_own_file(path) for path in arguments[:2])
    try:
        samples = [sample_of(Counterexample.load(Path(arguments[4])))] if len(arguments) > 4 else None
        verdict = check_programs(original, rewritten, samples, oracles=arguments[3] == "1")
        if verdict.counterexample is not None:
            verdict.counterexample.save(Path(arguments[2]))
    except Exception as error:  # the caller shows one line, whatever went wrong
        sys.exit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
    print(json.dumps(verdict.to_json()))


if __name__ == "__main__":
    main(sys.argv[1:])
