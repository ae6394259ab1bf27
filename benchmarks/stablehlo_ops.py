"""Count the StableHLO ops of every named program and store them for ``fusionlab models``.

    python benchmarks/stablehlo_ops.py [--models a,b]

Writes ``fusionlab/cli/stablehlo_ops.json`` once all is counted (about ten minutes on 2 cores); models that were
not asked for keep what the file says of them, if that was counted under the same JAX. A test compares samples of the
file with programs lowered afresh, and the slow tier compares all of the paper's.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

import jax  # noqa: E402  # after load_jax

import fusionlab.cli  # noqa: E402
from fusionlab.cli.models import TABLE, count_ops, stored_counts  # noqa: E402
from fusionlab.errors import unknown  # noqa: E402
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.workloads.catalogue import ANSATZE  # noqa: E402
from fusionlab.workloads.molecules import MOLECULES  # noqa: E402


def main() -> None:
    """Count, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(ANSATZE))
    path = Path(fusionlab.cli.__file__).with_name(TABLE)
    asked = parser.parse_args().models.split(",")
    for model in asked:
        if model not in ANSATZE:
            raise SystemExit(f"{parser.prog}: {unknown('model', model, ANSATZE)}")
    kept = stored_counts().ops if path.exists() and stored_counts().jax_version == jax.__version__ else {}
    ops = {
        model: {
            molecule: count_ops(model, molecule, progress=lambda line: print(line, file=sys.stderr))
            for molecule in MOLECULES
        }
        if model in asked
        else kept[model]
        for model in ANSATZE
        if model in asked or model in kept
    }
    write_whole(path, json.dumps({"jax": jax.__version__, "ops": ops}, indent=1) + "\n")


if __name__ == "__main__":
    main()
