"""The command line that makes each table of a study again."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

ORIGINAL = "original.mlir"


def rewritten_file(target: str) -> str:
    """The file of a study's folder that holds the program rewritten for ``target``."""
    return f"rewritten-{target}.mlir"


def commands(
    source: str, asked: str, checking: str, pipelines: Mapping[str, str], rewritten: Collection[str], folder: str
) -> list[dict[str, str]]:
    """``{"what", "command"}`` of every table, for the shell.

    ``source``, ``asked`` and ``checking`` are options: what program, which passes were asked for, how it is checked.
    ``pipelines`` are the passes that were run, by target; ``folder`` holds the program that was rewritten for each of
    the targets ``rewritten``.
    """
    everything = (
        "fusionlab study",
        source,
        asked,
        checking,
        f"--target {','.join(pipelines)} -o {shlex.quote(folder)}",
    )
    rows: list[tuple[str, tuple[str, ...]]] = [("everything", everything)]
    for target, pipeline in pipelines.items():
        on = f"--target {target}"
        apply = ("fusionlab apply", source, f"--pipeline {shlex.quote(pipeline)}", checking, on)
        rows += [
            (f"totals, events, verdict ({target})", apply),
            (f"what each pass changed ({target})", (*apply, "--diff --diff-lines 0")),
            (f"equivalence, with histograms ({target})", ("fusionlab check", *apply[1:])),
        ]
        sides = [("before", source)]
        if target in rewritten:
            sides.append(("after", shlex.quote(f"{folder}/{rewritten_file(target)}")))
        for side, program in sides:
            of = f"({target}, {side})"
            rows += [
                (f"launches by stage and family {of}", ("fusionlab launches", program, on, "--by stage,family")),
                (f"clusters {of}", ("fusionlab clusters", program, on)),
                (f"refused fusions {of}", ("fusionlab explain", program, on)),
                (f"roofline {of}", ("fusionlab roofline", program, on)),
            ]
    rows += [
        ("the replay", ("fusionlab replays", source)),
        ("the replay, drawn", ("fusionlab graph", source, "--view replay")),
        ("measured times", ("fusionlab bench", source)),
    ]
    return [{"what": what, "command": " ".join(filter(None, parts))} for what, parts in rows]
