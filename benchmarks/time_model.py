"""The kernels of recorded programs: what their code does, joined to their times on an H100. The model of time is fitted
to this table and tested on it (``benchmarks/time_model_fit.py``).

    python benchmarks/time_model.py [--models a,b] [--variants x,y] [--out studies/time-model.json] [--again]

Programs are compiled for an absent H100 as they were for the records in ``studies/h100`` (JAX 0.11.2: equal temp bytes
show that it is the same program), each in a process of its own, and written when finished. ``ptxas`` is needed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

from rows import Row, add_options, fill_record, measure_apart  # noqa: E402  # after load_jax

from fusionlab.codegen.cache import default_cache  # noqa: E402
from fusionlab.codegen.compile import Compiled, versions  # noqa: E402
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.device_code.kernel_rows import KernelRow, kernel_table  # noqa: E402
from fusionlab.hlo.optimised.products import product_of  # noqa: E402
from fusionlab.hlo.program import Program  # noqa: E402
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows  # noqa: E402
from fusionlab.measure.comparison import kernels_of, latest  # noqa: E402
from fusionlab.measure.device_time import MeasuredKernel  # noqa: E402
from fusionlab.measure.peers import PEERS  # noqa: E402
from fusionlab.measure.records import read_records  # noqa: E402
from fusionlab.passes.pipeline import parse_pipeline  # noqa: E402
from fusionlab.study import Circumstances, compiled, lower, rewrite  # noqa: E402
from fusionlab.workloads.catalogue import build  # noqa: E402

MODELS = ("ferminet", "psiformer", "paulinet", "orbformer")
PIPELINES = {
    "fused": "fuse-jvp-replay",
    "fuse-jvp-replay,layout": "fuse-jvp-replay,layout",
    "fuse-jvp-replay,dot-chain-kernels": "fuse-jvp-replay,dot-chain-kernels",
}
"""Variants that a pipeline makes of the replay; the others are peers."""
VARIANTS = ("fused", "fuse-jvp-replay,dot-chain-kernels", "fuse-jvp-replay,layout", "folx-sparse", "folx", "replay")
RECORDS = Path("studies/h100")


def program_of(model: str, variant: str, given: Circumstances) -> Program:
    """The program that was timed: CH4, 1,024 walkers, float32."""
    workload = build(model, "CH4", "local-energy", 1024, laplacian="replay")
    if variant in PIPELINES:
        return rewrite(lower(workload, given), parse_pipeline(PIPELINES[variant]), given)[0].program
    return PEERS[variant].program(workload, given.target.kind)


def recorded(model: str, variant: str) -> Mapping[str, Any] | None:
    """The newest record of that variant; None where there is none."""
    records = latest(read_records([RECORDS]))[0]
    titled = [one for one in records if one["workload"]["title"].startswith(f"{model}-CH4-local-energy")]
    found = [each for one in titled for each in one["variants"] if each["name"] == variant]
    return found[0] if found else None


def measured(model: str, variant: str) -> Iterator[Row]:
    """The row of one program: its figures and its launch sites."""
    given = Circumstances(load_target("h100"), cache=default_cache())
    found = recorded(model, variant)
    if found is None:
        yield {"failed": "not recorded"}
        return
    made = compiled(program_of(model, variant, given), given, ptx=True)
    kernels = kernels_of(found)
    runs = found["device_time"]["sum_us"]
    yield {
        "temp_bytes": made.memory.temp_bytes,
        "recorded_temp_bytes": found["temp_bytes"],
        "measured_us": sum(runs) / len(runs) if runs else None,
        "wall_us": found["mean_us"],
        "sites": joined(sites_of(made), kernels),
    }


@dataclass(frozen=True)
class Site:
    """One launch site of the ledger, and the figures that the table has of it."""

    launch: LaunchRow
    figures: Mapping[str, Any]


def sites_of(made: Compiled) -> list[Site]:
    """Every launch site that runs: kernels with the facts of their code, products with their extents."""
    table = kernel_table(made)
    coded = {(row.name, row.launch.loop): row for row in table.rows}
    found = []
    for launch in launch_rows(made):
        if not launch.dynamic_launches:
            continue
        row = coded.get((launch.name, launch.loop))
        found.append(Site(launch, kernel_figures(row) if row else library_figures(made, launch)))
    return found


def kernel_figures(row: KernelRow) -> dict[str, Any]:
    """The facts of one run of a kernel; instructions are executed by threads."""
    return {
        "needed": row.needed_bytes,
        "written": row.result_bytes,
        "warp_sectors": sum(one.warp_sectors for one in row.operands),
        "requests": row.loads.requests + row.stores.requests,
        "sectors": row.loads.sectors + row.stores.sectors,
        "executed": sum(row.executed.values()),
        "block": row.threads_per_block,
        "blocks": row.grid[0] * row.grid[1] * row.grid[2],
        "registers": row.resources.registers if row.resources else None,
        "occupancy": row.occupancy.share if row.occupancy else None,
        "complete": row.complete,
    }


def library_figures(made: Compiled, launch: LaunchRow) -> dict[str, Any]:
    """What a call of a library is: the extents of a product."""
    homes = [one for one in made.module.computations.values() if launch.name in one.by_name]
    call = homes[0].by_name[launch.name] if homes else None
    product = product_of(made.module, homes[0], call) if call else None
    return {"call": call.custom_call_target if call else "", "product": None if product is None else vars(product)}


def joined(sites: Sequence[Site], kernels: Iterable[MeasuredKernel]) -> list[dict[str, Any]]:
    """The sites with measured microseconds of all their runs (None where a record merges them with others).

    XLA numbers equal kernels in another order now and then: a site is found by name and bytes, else by stem and bytes.
    """
    left = [one for one in kernels if not one.name.endswith(" others")]
    found: dict[int, MeasuredKernel] = {}
    for name_of in (lambda name: name, _stem):
        for at, site in enumerate(sites):
            launch = site.launch
            same = (one for one in left if name_of(one.name) == name_of(launch.name) and _moves_the_same(one, launch))
            if at not in found and (one := next(same, None)) is not None:
                found[at] = one
                left.remove(one)
    print(f"not found: {[(one.name, round(one.measured_us)) for one in left]}", file=sys.stderr)
    return [
        {
            "name": site.launch.name,
            "family": site.launch.family,
            "launches": site.launch.dynamic_launches,
            "flops": site.launch.flops,
            "tf32": site.launch.tf32_flops,
            "bytes": site.launch.bytes,
            "xla_us": site.launch.model_us,
            "us": found[at].measured_us if at in found else None,
            **site.figures,
        }
        for at, site in enumerate(sites)
    ]


def _stem(name: str) -> str:
    return re.sub(r"[.\d]+$", "", name)


def _moves_the_same(one: MeasuredKernel, launch: LaunchRow) -> bool:
    return abs(one.bytes - launch.bytes) <= 0.01 * launch.bytes


def main() -> None:
    """Compile what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--variants", help="Names as in the records, separated by semicolons.")
    parser.add_argument("--out", type=Path, default=Path("studies/time-model.json"))
    add_options(parser)
    given = parser.parse_args()
    if given.one:
        for row in measured(*given.one.split(" ", 1)):
            print(json.dumps(row), flush=True)
        return
    variants = given.variants.split(";") if given.variants else VARIANTS
    names = [f"{model} {variant}" for variant in variants for model in given.models.split(",")]
    fill_record(
        given.out,
        versions(),
        names,
        lambda name: measure_apart(__file__, name, [], given.limit_s),
        lambda _, row: not given.again and "failed" not in row,
    )


if __name__ == "__main__":
    main()
