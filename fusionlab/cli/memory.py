"""``fusionlab memory``: what holds memory at the peak of a compiled program, which arrays share a slot, and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, make
from fusionlab.errors import InputError
from fusionlab.ledger.memory_views import VIEWS_OF_MEMORY

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.ledger.memory import MemoryRecord


@click.command("memory")
@options.source
@options.target
@click.option("--top", default=10, show_default=True, type=click.IntRange(min=0), help="How much to list; 0: all.")
@click.option("--by", type=click.Choice(VIEWS_OF_MEMORY), help="Also the bytes held at the peak by this.")
@click.option("--max-temp", metavar="SIZE", help="Exit 1 if XLA's temp memory is over SIZE, e.g. 512MiB.")
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    top: int,
    by: str | None,
    max_temp: str | None,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Show what holds memory at the peak, shared slots and copies."""
    from fusionlab.facts.memory_facts import MemoryFacts
    from fusionlab.ledger.memory import memory_record
    from fusionlab.report.tables import note
    from fusionlab.report.tables.memory import print_memory

    most = None if max_temp is None else _size(max_temp)
    loaded, given, _ = load_facts(source, **where)
    made = make(loaded, given, dump=given.target.kind == "cpu")
    if made.program is None:
        raise InputError(
            f"{loaded.name}: optimised HLO text does not say where arrays lie in memory; give the StableHLO "
            "(jax.jit(f).lower(...).as_text()) or a saved jax.export"
        )
    found = MemoryFacts(memory_record(made.compiled), by or "", made.program.devices)
    failed = _failures(found.record, most)
    print_memory(found.record, top, by, console, failed, verbose=verbose)
    for line in found.notes_of_devices:
        note(console, line)
    return {**found.to_dict(), "failures": failed}, int(bool(failed))


def _size(text: str) -> int:
    """The size that ``--max-temp`` names; 0 allows no temp memory."""
    from fusionlab.bytesize import ByteSize

    try:
        return 0 if text.strip() == "0" else ByteSize.parse(text)
    except InputError as error:
        raise InputError(f"--max-temp {text}: {error}") from None


def _failures(found: MemoryRecord, most: int | None) -> list[str]:
    """A sentence if temp memory is over ``most``."""
    from fusionlab.bytesize import size_words

    if most is None or found.temp_bytes <= most:
        return []
    return [f"{size_words(found.temp_bytes)} of temp memory; --max-temp allows {size_words(most)}"]
