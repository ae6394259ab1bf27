"""Check two program files in a process of its own, under a time and a memory limit.

    python -m fusionlab.equivalence.isolated ORIGINAL REWRITTEN COUNTEREXAMPLE ORACLES [SAMPLES]

prints the verdict as JSON, and writes the inputs of the worst walker of a difference to COUNTEREXAMPLE. ORACLES is 0 or
1. SAMPLES is a list in JSON of inputs to be used in place of random ones, each with the file that its arrays are in.
``check_files`` is the caller's side: whatever happens to that process, it gives a verdict.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.verdict import Verdict
from fusionlab.hlo.program import Program
from fusionlab.own_process import ProcessFailed, limit_memory, run_module

if TYPE_CHECKING:
    from fusionlab.equivalence.samples import Sample

TIME_LIMIT_S = 300.0


def check_files(
    original: Program,
    rewritten: Program,
    *,
    samples: Iterable[Sample] | None = None,
    oracles: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
) -> Verdict:
    """Compare two programs at their own shapes; ``not-checked`` with the reason when a limit is exceeded.

    ``samples`` stand in for random ones; ``oracles`` as in ``check_programs``.

    The memory limit is three quarters of the machine's memory, so that a check cannot take the machine down.
    """
    with tempfile.TemporaryDirectory(prefix="fusionlab-check-") as directory:
        paths = []
        for label, program in (("original", original), ("rewritten", rewritten)):
            paths.append(Path(directory) / f"{label}.mlirbc")
            paths[-1].write_bytes(program.bytecode)
        found = Path(directory) / "counterexample.npz"
        arguments = [*map(str, paths), str(found), str(int(oracles))]
        if samples is not None:
            arguments.append(str(_save(samples, Path(directory))))
        try:
            printed = run_module("fusionlab.equivalence.isolated", arguments, time_limit_s)
        except ProcessFailed as error:
            if error.exit_code is None:
                return Verdict("not-checked", reason=f"the check did not finish within {time_limit_s:g} s")
            return Verdict("not-checked", reason=f"the check failed (exit {error.exit_code}): {str(error)[:200]}")
        counterexample = Counterexample.load(found) if found.exists() else None
    verdict = Verdict.from_json(json.loads(printed.splitlines()[-1]))
    return replace(verdict, counterexample=counterexample)


def _save(samples: Iterable[Sample], folder: Path) -> Path:
    listed = []
    for number, sample in enumerate(samples):
        file = folder / f"sample-{number}.npz"
        Counterexample(sample.label, sample.arrays, 0, (), math.nan, math.nan, math.nan).save(file)
        facts = {"typical": sample.typical, "kinds": sample.kinds, "spread_factor": sample.spread_factor}
        listed.append({"file": str(file), **facts})
    (folder / "samples.json").write_text(json.dumps(listed))
    return folder / "samples.json"


def _load(listed: Path) -> list[Sample]:
    from fusionlab.equivalence.samples import sample_of

    found = []
    for facts in json.loads(listed.read_text()):
        arrays = Counterexample.load(Path(facts.pop("file")))
        found.append(replace(sample_of(arrays), **{**facts, "kinds": tuple(facts["kinds"])}))
    return found


def main(arguments: list[str]) -> None:
    """Read the two programs named by ``arguments``, check, print the verdict and write the worst walker's inputs."""
    limit_memory()
    from fusionlab import quiet_start

    quiet_start.load_jax()
    from fusionlab.equivalence.check import check_programs

    original, rewritten = (Program.from_own_file(path) for path in arguments[:2])
    try:
        samples = _load(Path(arguments[4])) if len(arguments) > 4 else None
        verdict = check_programs(original, rewritten, samples, oracles=arguments[3] == "1")
        if verdict.counterexample is not None:
            verdict.counterexample.save(Path(arguments[2]))
    except Exception as error:  # the caller shows one line, whatever went wrong
        sys.exit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
    print(json.dumps(verdict.to_json()))


if __name__ == "__main__":
    main(sys.argv[1:])
