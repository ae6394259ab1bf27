"""The command line that makes each table of a study again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

ORIGINAL = "original.mlir"


def rewritten_file(target: str) -> str:
    """The file of a study's folder that holds the program rewritten for ``target``."""
    return f"rewritten-{target}.mlir"


def commands(
    source: str, pipeline: str, targets: Sequence[str], rewritten: Sequence[str], folder: str
) -> list[dict[str, str]]:
    """``{"what", "command"}`` of every table, for the shell.

    ``source`` names the program; ``folder`` holds the program that was rewritten for each of ``rewritten``.
    """
    names = ",".join(targets)
    rows = [("everything", f"fusionlab study {source} --pipeline {shlex.quote(pipeline)} --target {names} -o {folder}")]
    for target in targets:
        apply = f"fusionlab apply {source} --pipeline {shlex.quote(pipeline)} --target {target}"
        rows += [
            (f"totals, events, verdict ({target})", apply),
            (f"what each pass changed ({target})", f"{apply} --diff --diff-lines 0"),
        ]
        sides = [("before", source)]
        if target in rewritten:
            sides.append(("after", shlex.quote(f"{folder}/{rewritten_file(target)}")))
        for side, program in sides:
            on = f"{program} --target {target}"
            rows += [
                (f"launches by stage and family ({target}, {side})", f"fusionlab launches {on} --by stage,family"),
                (f"clusters ({target}, {side})", f"fusionlab clusters {on}"),
                (f"refused fusions ({target}, {side})", f"fusionlab explain {on}"),
                (f"roofline ({target}, {side})", f"fusionlab roofline {on}"),
            ]
    rows += [
        ("equivalence, with histograms", f"fusionlab check {source} --pipeline {shlex.quote(pipeline)}"),
        ("the replay", f"fusionlab replays {source}"),
        ("the replay, drawn", f"fusionlab graph {source} --view replay"),
        ("measured times", f"fusionlab bench {source}"),
    ]
    return [{"what": what, "command": command} for what, command in rows]
