"""The page about the characterisation: its tables and claims as Markdown, with the circumstances of every figure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from fusionlab.paper.claim import NOT_SHOWN, PAPER_JAX, VERDICTS, Judged
from fusionlab.paper.matrix import Circumstances
from fusionlab.paper.tables import Table

_HEAD = """# The characterisation, over again

The tables and claims of the workload characterisation that this project starts from (PauliNet, FermiNet, Psiformer and
Orbformer on an A5000, an A100 and an H200; CH4 for the kernels), with our figures beside them: {given},
inference (ten transitions and a local energy) and training (the gradient and an optimiser step besides). This page is
written by the command; the figures are in `{record}`, a row per program and GPU.

```
fusionlab paper                              # measure what the record lacks, print tables and claims
fusionlab study --paper                      # the same
fusionlab paper --targets a5000 --molecules CH4 --jobs 4
fusionlab paper --scheduler tcp://HOST:8786  # by the workers of a Dask scheduler (pip install 'fusionlab[dask]')
fusionlab paper --no-run --page studies/paper.md
```

Each program is lowered and compiled in a process of its own, within `--time-limit`; a finished row is written at once,
so an interrupted run goes on where it was, and a failure costs its row. All 96 take hours on one machine. Every Dask
worker needs fusionlab with its extra `targets`; the compile cache is each worker's own.
"""

_DIFFERENCES = f"""## What is not the same on the two sides

- **The compiler.** The characterisation ran JAX {PAPER_JAX}; ours is {{versions}}. Which operations become one
  kernel, and so launches, shares and intensities, is the compiler's choice. JAX {PAPER_JAX} is not compiled here, so
  "differs by compiler version" is a possible cause wherever a claim is contradicted, and was shown for none.
- **The clock.** Theirs is the sum of kernel durations on the device; ours is a model (XLA's own cost model where it
  has one, the target's roofline for library calls, 1 us per launch). {{measured}}
- **The programs.** Theirs are DeepQMC 1.2.0 and oneQMC; ours are this project's own programs after these codes, with
  what `docs/programs.md` lists as different. Orbformer has plain attention here.
- **Memory.** Theirs is what the process had allocated; ours is what XLA's buffer assignment needs for one program.
- **Launches and GPUs.** The GPUs were not there: everything was compiled without a device, so without autotuning.
"""

_VERDICTS = """A share is confirmed within a quarter of the characterisation's figure, or within 2 percentage points
and between half and twice of it; a range when all our figures lie in it, its ends widened by a quarter; an order or a
comparison when it holds. Claims about shares and kernels (II, III-C to III-F and IV) are of inference: on CH4 and the
A5000, except for the trips of Stage E, which are the same on every GPU. *Not testable here* needs what no compiler
says; *not measured yet* has cells that are not in the record. Where cells are lacking but one figure is outside of the
range, the claim is contradicted all the same.
"""


def page(
    record: str,
    given: Circumstances,
    versions: Sequence[str],
    measured: int,
    missing: int,
    tables: Sequence[Table],
    judged: Sequence[Judged],
) -> str:
    """Markdown. ``given`` are the circumstances of all rows, ``versions`` those of the rows, ``measured`` how many
    cells have a measured time, ``missing`` how many of the 96 cells are not in the record."""
    clock = "" if measured else "There is no record of a measured step of these programs on one of these GPUs yet."
    lines = [
        _HEAD.format(record=record, given=_given(given)),
        _wrapped(_DIFFERENCES.format(versions="; ".join(versions) or "unknown", measured=clock)),
        f"{96 - missing} of 96 cells are measured; `-` is a figure that is not there yet.\n" if missing else "",
        "## The claims\n",
        _VERDICTS,
        _counts(judged),
        *(_section(one) for one in (_claims(judged),)),
        "## The tables\n",
        *(_section(table) for table in tables),
    ]
    return "\n".join(line for line in lines if line).rstrip() + "\n"


def markdown(table: Table) -> str:
    """The rows as a Markdown table."""
    head = [_row(table.columns), _row(["---"] * table.words + ["---:"] * (len(table.columns) - table.words))]
    return "\n".join([*head, *map(_row, table.rows)])


def _section(table: Table) -> str:
    title = f"### {table.title}\n\n" if table.title else ""
    return f"{title}{table.note}\n\n{markdown(table)}\n" if table.note else f"{title}{markdown(table)}\n"


def _claims(judged: Sequence[Judged]) -> Table:
    from fusionlab.paper.tables import claims_table

    table = claims_table(judged)
    rows = [
        (*row[:-1], f"**{row[-1]}**" + (f": {_cause(one)}" if one.finding.verdict == "contradicted" else ""))
        for row, one in zip(table.rows, judged, strict=True)
    ]
    return Table("", "", table.columns, tuple(rows), words=5)


def _given(found: Circumstances) -> str:
    size = "" if found.size == "full" else f"{found.size} widths, "
    return f"{size}{found.walkers:,} walkers, {found.dtype}"


def _cause(one: Judged) -> str:
    compiler = "differs by compiler version"
    if one.claim.differs.startswith(NOT_SHOWN):
        return one.claim.differs
    return f"{one.claim.differs}; or {compiler}" if one.claim.differs else f"times are modelled; or {compiler}"


def _counts(judged: Sequence[Judged]) -> str:
    found = Counter(one.finding.verdict for one in judged)
    return f"{len(judged)} claims: " + ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS) + ".\n"


def _wrapped(bullets: str) -> str:
    """The heading, and each bullet in lines of at most 120 characters."""
    head, _, rest = bullets.partition("\n\n")
    items = [" ".join(item.split()) for item in f"\n{rest}".split("\n- ")[1:]]
    return "\n".join([head, "", *(textwrap.fill(f"- {item}", 120, subsequent_indent="  ") for item in items), ""])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
