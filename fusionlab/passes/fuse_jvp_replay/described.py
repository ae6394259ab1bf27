"""What the event of a rewriting says of the decision."""

from __future__ import annotations

from fusionlab.hlo.cost import Cost, node_cost, program_cost
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.program import Program
from fusionlab.passes.fuse_jvp_replay.decide import Derivation
from fusionlab.passes.fuse_jvp_replay.sites import View


def described(found: Derivation) -> str:
    terms = [term for target in found.targets for term in target.terms]
    rows = [row for term in terms for row in (*term.real, *term.imaginary) if any(row)]
    plain = all(len(set(row)) == 1 for row in rows) and not any(term.of_program for term in terms)
    factor = rows[0][0] if len(rows) == 1 and plain else 1
    scale = "" if factor == 1 else f"{float(factor):g} times "
    of = ", ".join(f"%{output.id} ({output.type})" for output in found.outputs)
    weights = "" if plain else ", with weights of the coordinates"
    if any(target.of_diagonal for target in found.targets):
        weights = ", second derivative by second derivative"
    weights += f", {len(rows)} sums with weights" if len(rows) > 1 and not plain else ""
    rest = ", beside what the loop adds to it" if any(target.offset == "tail" for target in found.targets) else ""
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    return f"{scale}the Laplacian of {of} with respect to %{found.x.id} ({found.x.type}){weights}{rest}{gradient}"


def psi_per_direction(rebuilt: Program, view: View, found: Derivation) -> str:
    """FLOPs of ``rebuilt`` over those of the values that are differentiated, for each direction, in words; nothing
    where the entry has further loops over directions, or costs that are not known."""
    gone = {loop.node for loop in found.loops}
    others = [replay for replay in view.replays if replay.directed and replay.loop.node not in gone]
    if found.flat is not view.flat or others:
        return ""
    needed = live_nodes(found.flat.nodes, found.flat.arguments, found.outputs)
    whole, psi = program_cost(rebuilt), sum(map(node_cost, needed), Cost())
    if not psi.flops or whole.unmodelled or psi.unmodelled:
        return ""
    per_direction = whole.flops / psi.flops / found.coordinates.count
    return f"; the program: {per_direction:.2f} psi per direction in FLOPs"
