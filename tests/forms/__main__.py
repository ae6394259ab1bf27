"""The whole matrix of forms and networks, or what a record lacks of it; random compositions of their parts.

    python -m tests.forms [--out studies/forms.json] [--markdown studies/forms.md] [--limit-s 3600]
    python -m tests.forms --compositions 2000 [--first 0] [--out studies/compositions.json] [--limit-s 3600]

``--walkers 40`` judges either at so many, which the exact check resizes, into an ``--out`` of its own.
``--again rest`` judges once more what is not forward in the record, ``--again all`` everything. The record of
compositions has the seeds that were judged, their number by result, and in full those that are not forward, or forward
and not shown identical. Ends with exit code 1 if a cell or a composition is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fusionlab import jax_setup

jax_setup.set_environment()
jax_setup.load_jax()

import jax  # noqa: E402  # after load_jax

from tests.forms.compositions import drawn  # noqa: E402
from tests.forms.forms import FORMS  # noqa: E402
from tests.forms.matrix import AXES, CELLS, cell  # noqa: E402
from tests.forms.networks import NETWORKS  # noqa: E402

MARKS = {"forward": "yes", "fallback": "fallback", "refused": "no", "wrong": "WRONG", "not JAX": "-", "": "?"}


def main() -> int:
    """Fill the record, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path, default=Path("studies/forms.md"))
    parser.add_argument("--limit-s", type=float, default=3600.0, help="Seconds after which no further cell is begun.")
    parser.add_argument("--again", choices=("all", "rest"), help="What is there, too: all, or what is not forward.")
    parser.add_argument("--compositions", type=int, metavar="N", help="So many random programs instead of the matrix.")
    parser.add_argument("--first", type=int, default=0, help="The first program's seed.")
    parser.add_argument("--walkers", type=int, help="Walkers of the first axis, where a program has one.")
    given = parser.parse_args()
    if given.walkers is not None and given.out is None:
        parser.error("--walkers needs an --out: the committed records are of few walkers")
    if given.compositions is not None:
        seeds = range(given.first, given.first + given.compositions)
        return compose(
            seeds, given.out or Path("studies/compositions.json"), given.limit_s, given.walkers, again=given.again
        )
    given.out = given.out or Path("studies/forms.json")
    rows: dict[str, dict[str, str]] = {}
    if given.out.exists() and given.again != "all":
        rows = json.loads(given.out.read_text())["cells"]
    if given.again == "rest":
        rows = {name: row for name, row in rows.items() if row["result"] in ("forward", "not JAX")}
    started = time.monotonic()
    for form, network, axes in CELLS:
        name = f"{form} {network} {axes}"
        if name not in rows and time.monotonic() - started < given.limit_s:
            rows[name] = cell(form, network, axes, *([] if given.walkers is None else [given.walkers]))
            jax.clear_caches()
            record = {"jax": jax.__version__, "cells": rows}
            given.out.write_text(json.dumps(record, indent=1) + "\n")
    if given.walkers is None:
        given.markdown.write_text(page(rows))
    print(counts(rows))
    return any(row["result"] == "wrong" for row in rows.values())


def compose(seeds: range, out: Path, limit_s: float, walkers: int | None, *, again: str | None) -> int:
    """Judge the compositions of ``seeds`` that the record ``out`` lacks, in order; 1 if one is wrong, else 0.

    ``again``: first those that were not forward (``rest``), or ``all``."""
    record: dict[str, Any] = {"jax": jax.__version__, "first": seeds.start, "judged": 0, "results": {}, "rows": {}}
    if out.exists() and again != "all":
        record = json.loads(out.read_text())
    if record["first"] != seeds.start:
        raise SystemExit(f"{out} begins with seed {record['first']}: say --first {record['first']}, or another --out")
    started = time.monotonic()
    rest = [int(seed) for seed, row in record["rows"].items() if row["result"] != "not JAX" and again == "rest"]
    for seed in (*rest, *seeds[record["judged"] :]):
        if time.monotonic() - started > limit_s:
            break
        if (earlier := record["rows"].pop(str(seed), None)) is not None:
            record["judged"] -= 1
            record["results"][kind_of(earlier)] -= 1
        composition = drawn(seed)
        row = composition.judged(walkers)
        jax.clear_caches()
        kind = kind_of(row)
        record["judged"] += 1
        record["results"][kind] = record["results"].get(kind, 0) + 1
        if kind != "forward, identical":
            record["rows"][str(seed)] = {"program": composition.name, **row}
        out.write_text(json.dumps(record, indent=1) + "\n")
    found = sorted(record["results"].items(), key=lambda item: -item[1])
    print(f"{record['judged']} compositions: " + "; ".join(f"{n} {kind}" for kind, n in found if n))
    return int(any(row["result"] == "wrong" for row in record["rows"].values()))


def kind_of(row: dict[str, str]) -> str:
    """The result of a row, with its exact verdict if it has one."""
    return f"{row['result']}, {row['exact'].split(':')[0]}" if "exact" in row else row["result"]


def counts(rows: dict[str, dict[str, str]]) -> str:
    """The cells by result, in one line."""
    found = Counter(row["result"] for row in rows.values())
    return f"{len(rows)} of {len(CELLS)} cells: " + ", ".join(f"{n} {result}" for result, n in found.most_common())


def page(rows: dict[str, dict[str, str]]) -> str:
    """The matrix in Markdown: a line per form, and the reasons of those that are not forward."""
    lines = [
        "# Forms of a Laplacian, networks, and what `fuse-jvp-replay` does with them",
        "",
        "Printed by `python -m tests.forms`. In each cell: one vmapped axis, two, none. *yes*: rewritten to a forward",
        "Laplacian, identical by the exact check where that covers the program, and within 1e-6 of `jax.hessian` in",
        "float64; *fallback*: rewritten in another way; *no*: refused; *-*: JAX cannot trace it; *?*: not run.",
        "",
        counts(rows) + ".",
        "",
        f"| form | {' | '.join(NETWORKS)} |",
        "|---" * (len(NETWORKS) + 1) + "|",
    ]
    for form in FORMS:
        cells = [
            ", ".join(MARKS[rows.get(f"{form} {network} {axes}", {"result": ""})["result"]] for axes in AXES)
            for network in NETWORKS
        ]
        lines.append(f"| {form} | {' | '.join(cells)} |")
    reasons: dict[str, list[str]] = {}
    for name, row in rows.items():
        if row["result"] not in ("forward", "not JAX"):
            reasons.setdefault(row["reason"], []).append(name)
    lines += ["", "## Reasons", ""]
    lines += [
        f"- {len(names)} cells ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''}): {reason}"
        for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
