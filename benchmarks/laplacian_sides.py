"""One side of the comparison of Laplacians: a workload as some Laplacian writes it, or as a pass rewrites it.

The sides of one ansatz on one molecule, all compiled for the same target by the same options:

- ``replay``: the program as the scientist's code lowers it, a loop of 3N Jacobian-vector products;
- ``folx-dense``, ``folx-sparse``: folx's forward Laplacian of the same JAX function, sparsity_threshold 0 and 0.6;
- ``log-psi``: the wavefunction alone, without any Laplacian;
- ``fused``: the replay after fuse-jvp-replay;
- ``kernels``: the same after dot-chain-kernels;
- ``layers``: the same after the rewrites of products, dot-chain-kernels and jet-layer-kernels;
- ``fused-in-replay-memory``: the same with the replay's own temp bytes as the memory budget;
- ``laplacian``: the same local energy with ``fusionlab.laplacian`` as its Laplacian;
- ``planted``: the replay with zero for terms that are not finite, which has no forward Laplacian: what falls back;
- ``fallback``: ``planted`` after fuse-jvp-replay;
- ``pass``: the process seconds of that rewrite;
- ``verdict``: whether what ``fused`` chose computes the same energies, at 16 walkers in float32 and float64.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from pass_time import pass_seconds
from rows import Row, revision_of

import fusionlab
from fusionlab.bytesize import ByteSize
from fusionlab.codegen.cache import default_cache
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.loops import Sum, find_loops
from fusionlab.hlo.program import Program, rewritten
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Applied, Result
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline
from fusionlab.study import Circumstances, check, compiled, lower, measure, rewrite
from fusionlab.workload import Workload
from fusionlab.workloads.catalogue import build
from fusionlab.workloads.programs import laplacians

LAPLACIANS = {"replay": "replay", "folx-dense": "forward", "folx-sparse": "forward-sparse"}
"""The sides that are lowered as they stand, and the Laplacian of the workload that each is."""

SIDES = (
    *LAPLACIANS,
    "log-psi",
    "fused",
    "kernels",
    "layers",
    "fused-in-replay-memory",
    "laplacian",
    "planted",
    "fallback",
    "pass",
    "verdict",
)

CHAINS = "merge-dots{widest=512},swap-dot-operands,dot-chain-kernels"


def after_fusing(model: str, side: str) -> str:
    """The passes of ``side`` after fuse-jvp-replay.

    Behind chains, Orbformer's layers do not pay (docs/jet-layers.md).
    """
    layers = CHAINS if model == "orbformer" else f"{CHAINS},jet-layer-kernels"
    return {"kernels": ",dot-chain-kernels", "layers": f",{layers}"}.get(side, "")


_COUNTING = ("workloads", "fusionlab/measure", "fusionlab/hlo/cost.py")
_REWRITING = (*_COUNTING, "fusionlab/hlo", "fusionlab/passes", "fusionlab/codegen")


@dataclass(frozen=True)
class Case:
    """What is compared: ``walkers`` and ``size`` as in ``fusionlab.workloads.catalogue.build``, ``target`` by name."""

    model: str
    molecule: str
    target: str = "a100"
    walkers: int = 1024
    size: str = "full"

    def workload(self, side: str) -> Workload:
        """The workload that ``side`` starts from."""
        program = "log-psi" if side == "log-psi" else "local-energy"
        laplacian = None if side == "log-psi" else LAPLACIANS.get(side, "replay")
        if side == "laplacian":  # what is lowered is rewritten already, as inside any traced function
            laplacian = "fusionlab.laplacian"
            laplacians.LAPLACIANS[laplacian] = functools.partial(fusionlab.laplacian, check="never", cache=False)
        return build(self.model, self.molecule, program, self.walkers, laplacian=laplacian, size=self.size)


def measure_side(case: Case, side: str, resolved: str = "") -> Iterator[Row]:
    """What is known of the row, more each time. ``resolved`` is the pipeline that ``fused`` chose, for ``verdict``."""
    given = Circumstances(load_target(case.target), cache=default_cache())
    workload = case.workload(side)
    started = time.perf_counter()
    program = lower(workload, given)
    if side in ("planted", "fallback"):
        program = with_planted_refusal(program)
    row: Row = {"revision": revision(side), "lower_s": round(time.perf_counter() - started, 2)}
    row |= {"stablehlo_ops": program.ops, "flops": program_cost(program).flops, "directions": 3 * workload.electrons}
    yield row
    if side in (*LAPLACIANS, "log-psi", "laplacian", "planted"):
        yield {**row, **measure(workload, program, given).to_json()}
        return
    if side == "pass":
        yield {**row, **pass_seconds(program)}
        return
    if side == "verdict":
        result, _ = rewrite(program, parse_pipeline(resolved), given)
        yield {**row, "pipeline": resolved, **check(workload, program, result, given).to_json()}
        return
    budget = ""
    if side == "fused-in-replay-memory":
        budget = f"{{memory_budget={ByteSize(compiled(program, given).memory.temp_bytes)}}}"
    pipeline = f"fuse-jvp-replay{budget}{after_fusing(case.model, side)}"
    result, seconds = timed_rewrite(program, pipeline, given)
    row |= {**seconds, "pipeline": resolved_pipeline(result.events), "events": event_words(result)}
    row |= {"ops_before": row.pop("stablehlo_ops"), "flops": program_cost(result.program).flops}
    yield row
    yield {**row, **measure(workload, result.program, given).to_json()}


def with_planted_refusal(program: Program) -> Program:
    """``program`` with zero where what a trip of its longest loop adds to a sum is not finite: no forward Laplacian."""
    module = program.parse()
    loops = [loop for loop in find_loops(view_of(module)) if loop.indices(Sum) and loop.trips]
    loop = max(loops, key=lambda loop: loop.trips or 0)
    role = loop.roles[loop.indices(Sum)[0]]
    assert isinstance(role, Sum)
    [(_, term)] = role.terms
    [reader] = [node for node in loop.body.nodes if term in node.operands]
    with module.context, ir.Location.unknown(), ir.InsertionPoint(reader.operation):
        nothing = stablehlo.subtract(term.handle, term.handle)
        chosen = stablehlo.select(stablehlo.is_finite(term.handle), term.handle, nothing)
        reader.operation.operands[reader.operands.index(term)] = chosen
    return rewritten(program, module)


def timed_rewrite(program: Program, pipeline: str, given: Circumstances) -> tuple[Result, Row]:
    """The passes' result and their seconds, without XLA's compiles for the target."""
    result, pass_s = rewrite(program, parse_pipeline(pipeline), given)
    return result, {"pass_s": round(pass_s, 2)}


def event_words(result: Result) -> list[str]:
    """What each pass did, or why it declined."""
    return [
        f"{event.pass_name}: {event.what if isinstance(event, Applied) else 'declined: ' + event.reason}"
        for event in result.events
    ]


def revision(side: str) -> str:
    """Names the sources that decide what ``side`` gives; "" where they are not those of a commit."""
    return revision_of(*(_COUNTING if side in (*LAPLACIANS, "log-psi") else _REWRITING))
