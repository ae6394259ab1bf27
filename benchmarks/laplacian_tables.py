"""The Markdown tables of the comparison of Laplacians."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from laplacian_bars import MIB, bars
from rows import Row

Systems = Mapping[tuple[str, str], Mapping[str, Row]]
"""(model, molecule) to the rows of its sides."""


def by_system(rows: Mapping[str, Row]) -> Systems:
    """Rows by name ("model molecule side") as systems of sides, in the order of their first row."""
    systems: dict[tuple[str, str], dict[str, Row]] = {}
    for name, row in rows.items():
        model, molecule, side = name.split()
        systems.setdefault((model, molecule), {})[side] = row
    return systems


def tables(systems: Systems, versions: str) -> str:
    """The document: circumstances, then every table under a line that says what it holds."""
    parts = [
        ("Dynamic launches", _launches(systems)),
        ("Temp memory, MiB", _memory(systems)),
        ("Work: GFLOP and GiB accessed (models), copies and memsets", _work(systems)),
        ("The pass: seconds without XLA's compiles, what it chose, and the check at 16 walkers", _pass(systems)),
        ("The bars", _bars(systems)),
    ]
    first = next((row for sides in systems.values() for row in sides.values() if "walkers" in row), {})
    circumstances = _CIRCUMSTANCES.format(
        walkers=shown(first.get("walkers"), 0), target=first.get("target", "-"), versions=versions
    )
    return circumstances + "".join(f"\n## {title}\n\n{table}\n" for title, table in parts)


_CIRCUMSTANCES = """\
# fuse-jvp-replay: figures

Printed by `python benchmarks/fuse_jvp_replay.py`: local energies of {walkers} walkers, float32, compiled for target
{target} with {versions}. The *replay* is the program as it is lowered (for `psiformer` and `orbformer` with
`--laplacian replay`); *folx* is its forward Laplacian of the same function (dense: sparsity_threshold 0, sparse: 0.6);
*fused* is the replay after fuse-jvp-replay. "-" is not measured.
"""


def _launches(systems: Systems) -> str:
    def line(sides: Mapping[str, Row]) -> list[str]:
        return [
            *(_number(sides, side, "dynamic_launches") for side in ("replay", "folx-dense", "folx-sparse", "log-psi")),
            _number(sides, "fused", "dynamic_launches"),
            _ratio(sides, "fused", "folx-dense", "dynamic_launches"),
            _ratio(sides, "fused", "log-psi", "dynamic_launches"),
            _number(sides, "fused-in-replay-memory", "dynamic_launches"),
            *(_number(sides, side, "dynamic_launches") for side in ("kernels", "layers")),
        ]

    header = "replay|folx dense|folx sparse|log psi|**fused**|/ folx dense|/ log psi"
    header += "|fused in the replay's memory|and kernels|and layers"
    return _table(header, systems, line)


def _memory(systems: Systems) -> str:
    def line(sides: Mapping[str, Row]) -> list[str]:
        shown = ("replay", "folx-dense", "folx-sparse", "fused")
        return [
            *(_number(sides, side, "temp_bytes", 1 / MIB) for side in shown),
            _ratio(sides, "fused", "folx-dense", "temp_bytes"),
            _number(sides, "fused-in-replay-memory", "temp_bytes", 1 / MIB),
            _ratio(sides, "fused", "replay", "temp_bytes"),
            *(_number(sides, side, "temp_bytes", 1 / MIB) for side in ("kernels", "layers")),
            _number(sides, "fallback", "temp_bytes", 1 / MIB),
            _ratio(sides, "fallback", "planted", "temp_bytes"),
        ]

    header = (
        "replay|folx dense|folx sparse|**fused**|/ folx dense|fused in the replay's memory|fused / replay"
        "|and kernels|and layers|fallback|/ its replay"
    )
    return _table(header, systems, line)


def _work(systems: Systems) -> str:
    def line(sides: Mapping[str, Row]) -> list[str]:
        shown = ("replay", "folx-dense", "folx-sparse", "fused")
        return [
            *(_number(sides, side, "flops", 1e-9) for side in shown),
            _ratio(sides, "fused", "folx-sparse", "flops"),
            *(_number(sides, side, "bytes_accessed", 2**-30, 1) for side in (*shown, "kernels", "layers")),
            *(_per_direction(sides, side) for side in ("fused", "kernels", "layers")),
            *(_number(sides, side, "dynamic_copies") for side in ("replay", "folx-dense", "fused", "kernels")),
        ]

    header = (
        "GFLOP: replay|folx dense|folx sparse|**fused**|/ folx sparse|GiB: replay|folx dense|folx sparse|**fused**|"
        "and kernels|and layers|psi per direction: **fused**|and kernels|and layers|copies: replay|folx dense|"
        "**fused**|and kernels"
    )
    return _table(header, systems, line)


def _pass(systems: Systems) -> str:
    def line(sides: Mapping[str, Row]) -> list[str]:
        fused, own = sides.get("fused", {}), sides.get("pass", {})
        ops, seconds = own.get("ops_before"), own.get("pass_process_s")
        return [
            _number(sides, "replay", "stablehlo_ops"),
            shown(seconds, 1),
            shown(None if not ops or seconds is None else 1e3 * seconds / ops, 2),
            _number(sides, "fused", "pass_s", digits=1),
            _number(sides, "fused", "stablehlo_ops"),
            f"`{fused['pipeline']}`" if fused.get("pipeline") else "-",
            str(sides.get("verdict", {}).get("verdict", "-")),
        ]

    header = "StableHLO ops before|process s|process s per 1,000 ops|wall s|ops after|chosen|equivalence"
    return _table(header, systems, line)


def _bars(systems: Systems) -> str:
    names = list(dict.fromkeys(bar.name for key, sides in systems.items() for bar in bars(*key, sides)))
    lines = ["| model | molecule |" + "".join(f" {name} |" for name in names), "|---" * (len(names) + 2) + "|"]
    for (model, molecule), sides in systems.items():
        held = {
            bar.name: {True: "holds", False: "missed", None: "-"}[bar.holds] for bar in bars(model, molecule, sides)
        }
        lines.append(f"| {model} | {molecule} |" + "".join(f" {held.get(name, '')} |" for name in names))
    return "\n".join(lines)


def _table(header: str, systems: Systems, line: Callable[[Mapping[str, Row]], Sequence[str]]) -> str:
    columns = ["model", "molecule", *header.split("|")]
    return markdown_table(columns, [[*key, *line(sides)] for key, sides in systems.items()])


def markdown_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table of text cells."""
    rows = ["| " + " | ".join(line) + " |" for line in (columns, *lines)]
    return "\n".join([rows[0], "|---" * len(columns) + "|", *rows[1:]])


def _number(sides: Mapping[str, Row], side: str, figure: str, times: float = 1.0, digits: int = 0) -> str:
    value = sides.get(side, {}).get(figure)
    return shown(None if value is None else times * value, digits)


def _per_direction(sides: Mapping[str, Row], side: str) -> str:
    """The bytes of ``side`` over those of log|psi|, per direction."""
    psi = sides.get("log-psi", {})
    value, each, directions = (
        sides.get(side, {}).get("bytes_accessed"),
        psi.get("bytes_accessed"),
        psi.get("directions"),
    )
    return shown(value / each / directions if value and each and directions else None, 2)


def _ratio(sides: Mapping[str, Row], side: str, to: str, figure: str) -> str:
    value, other = (sides.get(name, {}).get(figure) for name in (side, to))
    return shown(value / other if value is not None and other else None, 2)


def shown(value: Any, digits: int) -> str:
    """``value`` with thousands apart and so many digits after the point; "-" for None."""
    return "-" if value is None else f"{value:,.{digits}f}"
