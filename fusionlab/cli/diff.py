"""``fusionlab diff``: two programs, two targets or two saved ledgers side by side, and why their launches differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.ledger.changes import LedgerDiff
    from fusionlab.ledger.saved import LedgerRecord


@click.command("diff")
@click.argument("before")
@click.argument("after", required=False)
@options.args
@options.targets
@click.option("--changes", default=20, show_default=True, type=click.IntRange(min=0), help="How many changes to list.")
@click.option("--max-more-launches", type=int, metavar="N", help="Exit 1 if AFTER makes over N launches more.")
@click.option("--max-more-temp", metavar="5%|SIZE", help="Exit 1 if temp memory grows by over 5 %, or over 1MiB.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The comparison for a pull request.")
@options.cache
@options.verb
def command(
    before: str,
    after: str | None,
    args: tuple[str, ...],
    changes: int,
    max_more_launches: int | None,
    max_more_temp: str | None,
    as_markdown: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Compare launches, copies and memory of two programs.

    BEFORE and AFTER are programs (StableHLO, a saved jax.export, HLO, FILE.py:FUNCTION) or ledgers that `fusionlab
    launches --json` saved. With two targets each side has its own, and BEFORE alone is compared with itself.
    """
    from fusionlab.facts.diff_facts import DiffFacts
    from fusionlab.ledger.changes import compare_ledgers
    from fusionlab.report.tables.changes import diff_markdown, print_diff

    allowed = _allowed_temp(max_more_temp)
    sides = _sides(before, after, args, where)
    found = compare_ledgers(*sides)
    failures = tuple(_failures(found, max_more_launches, allowed, max_more_temp))
    if as_markdown:
        console.print(diff_markdown(found, changes, failures), soft_wrap=True, markup=False)
    else:
        print_diff(found, changes, console, failures)
    return DiffFacts(found, failures).to_dict(), int(bool(failures))


def _sides(
    before: str, after: str | None, args: Sequence[str], where: dict[str, Any]
) -> tuple[LedgerRecord, LedgerRecord]:
    """The ledgers of both sides: saved, or of the program in a file for its target."""
    from fusionlab.cli.sources import require_no_args
    from fusionlab.files import read_file
    from fusionlab.hlo.python_file import is_python
    from fusionlab.ledger.saved import is_ledger, read_ledger

    targets = [name.strip() for name in (where.get("target") or "").split(",") if name.strip()]
    if len(targets) > 2:
        raise InputError(f"--target {where['target']}: a comparison has two sides; name one target or two")
    if after is None and len(targets) != 2:
        raise InputError(f"name two programs, or two targets for one: fusionlab diff {before} --target a100,h100")
    paths = (before, before if after is None else after)
    if not any(map(is_python, paths)):
        require_no_args(args, before)
    contents = [None if is_python(path) else read_file(Path(path)) for path in paths]
    saved = [
        read_ledger(one, path) if one and is_ledger(one) else None for one, path in zip(contents, paths, strict=True)
    ]
    if not targets:  # a program is compared on the target of the ledger beside it
        targets = [one.target for one in saved if one is not None][:1]
    of = (targets or [None]) * 2 if len(targets) < 2 else targets
    for one, path, target in zip(saved, paths, of, strict=True):
        if one is not None and where["target"] and target != one.target:
            raise InputError(f"{path}: this ledger is of target {one.target}, not {target}")
    first, second = (
        _compiled(content, path, args, {**where, "target": target}) if one is None else one
        for one, content, path, target in zip(saved, contents, paths, of, strict=True)
    )
    return first, second


def _compiled(content: bytes | None, path: str, args: Sequence[str], where: dict[str, Any]) -> LedgerRecord:
    """The ledger of the program in a file; ``content`` is None for Python, which alone has ``args``."""
    from fusionlab.cli.sources import circumstances, load_file, make
    from fusionlab.hlo.optimised.saved import HloFile
    from fusionlab.ledger.saved import ledger_record

    source = load_file(path, args if content is None else (), where["target"], content=content)
    made = make(source, circumstances(source, **where))
    name = source.name if content is None else Path(path).stem
    return replace(ledger_record(made.compiled, memory_known=not isinstance(source, HloFile)), name=name)


def _allowed_temp(text: str | None) -> tuple[float, bool] | None:
    """The growth of temp memory that ``--max-more-temp`` allows: a share and True, or bytes and False."""
    from fusionlab.bytesize import ByteSize

    if text is None:
        return None
    if match := re.fullmatch(r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*%\s*", text, re.ASCII):
        return float(match[1]) / 100, True
    if text.strip() == "0":
        return 0.0, False
    try:
        return float(ByteSize.parse(text)), False
    except InputError:
        raise InputError(f"--max-more-temp {text}: write a percentage or a size, as 5% or 1MiB") from None


def _failures(
    found: LedgerDiff, launches: int | None, temp: tuple[float, bool] | None, as_given: str | None
) -> Sequence[str]:
    """The limits that the comparison exceeds, a sentence each. InputError where a limit cannot be checked."""
    failures = []
    more = found.after.dynamic_launches - found.before.dynamic_launches
    if launches is not None and more > launches:
        failures.append(f"{more:+,} launches; --max-more-launches allows {launches:,}")
    if temp is None:
        return failures
    old, new = found.before.temp_bytes, found.after.temp_bytes
    if old is None or new is None:
        side = found.before if old is None else found.after
        raise InputError(f"--max-more-temp: the temp memory of {side.name} is not known; give StableHLO, not HLO text")
    limit = old * temp[0] if temp[1] else temp[0]
    if new - old > limit:
        grown = f" ({(new - old) / old:+.1%})" if old else ""
        failures.append(f"{new - old:+,} bytes of temp memory{grown}; --max-more-temp allows {as_given}")
    return failures
