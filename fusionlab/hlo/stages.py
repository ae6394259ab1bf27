"""The origin of an operation: phase, stage A to E, and role, read from its JAX name stack and from dataflow.

A name stack is a path of nested calls: in ``jit(f)/vmap(stage_e)/while/body/closed_call/jvp(transpose(jvp(stage_b)))``
each part is a scope wrapped in the transformations that were open when it was entered, outermost first. What
JAX 0.10 writes for the programs studied here:

- ``linearize(grad(f))`` marks the value of f and its derivative alike with ``jvp(jvp(s))``, and the reverse pass and
  its derivative alike with ``jvp(transpose(jvp(s)))``. Which of the two an operation is, the name does not say. The
  derivatives are what the replay loop runs, so inside a loop these names mean *tangent* and *tangent-of-cotangent*,
  outside of it *primal* and *cotangent*. The loop is recognised by a ``while`` before the markers; it stays in the
  name when the loop is batched. A ``while`` after the markers is the primal's own (LU pivots on the CPU).
- ``jvp(grad(f))`` inside the loop uses the same names for the values it recomputes in every trip. There only dataflow
  can tell; ``attribute_nodes`` knows it, and a kernel's name alone reads as a tangent.
- ``grad(f)`` alone marks f's value ``jvp(s)`` and the reverse pass ``transpose(jvp(s))``.
- ``jit(slogdet)/jit(solve)/vmap(vmap(jvp(transpose())))``: markers after a library function's ``jit`` belong to its
  own differentiation rule and say nothing of the program.
- A forward Laplacian (folx) re-traces the wavefunction and drops its scopes: all of it but ``slogdet`` is stage E, and
  with differentiation markers outside any loop it reads as primal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fusionlab.hlo.dependence import reached
from fusionlab.hlo.name_stacks import Frame, frames
from fusionlab.hlo.replay import Replay, find_replays
from fusionlab.hlo.view import Node, Region

STAGES = {
    "A": "features",
    "B": "correlation update",
    "C": "orbitals and readout",
    "D": "determinants, log|psi|",
    "E": "derivatives, Laplacian",
}
"""The stages of a wavefunction program (characterisation, Section II)."""
LEGEND = "stages: " + "; ".join(f"{letter} {name}" for letter, name in STAGES.items())
"""The line that stands wherever stages are printed."""

PHASE_SCOPES: dict[str, str] = {
    "mcmc": "mcmc",
    "metropolis": "mcmc",
    "sampling": "mcmc",
    "optimiser": "optimiser",
    "optimizer": "optimiser",
    "potential": "potential",
    "stage_e": "laplacian",
    "laplacian": "laplacian",
}
"""Scope name to phase. The outermost phase wins: sampling inside a training step is sampling."""

MODULE_STAGES: tuple[tuple[str, str], ...] = (
    (r"(edge|node)_factory|electron_embedding|nuclear_embedding", "A"),
    (r"electron_gnn_layer(_\d+)?", "B"),
    (r"Backflow(_\d+)?|_?backflow_op|Jastrow|exponential_envelopes|nuclear_cusp_asymptotic", "C"),
    (r"slogdet|conf_coeff|electronic_cusp_asymptotic", "D"),
)
"""Modules of DeepQMC 1.2.0 (``wf/nn_wave_function``, ``gnn``) that stand for a stage where no stage scope is open;
the assignment follows the characterisation's Section II and our ansätze (electronic cusps enter log|psi| in D)."""

_MARKERS = ("jvp", "transpose")
_OF_LIBRARIES = ("slogdet",)
"""Names of MODULE_STAGES that any program has: on their own they are no sign of stages."""


@dataclass(frozen=True)
class Attribution:
    """``phase`` (a value of PHASE_SCOPES) and ``stage`` (of STAGES), each or '' when unknown; ``role``: primal,
    tangent, cotangent or tangent-of-cotangent."""

    phase: str
    stage: str
    role: str


def attribute(op_name: str, *, replayed: bool | None = None) -> Attribution:
    """The attribution of an operation or kernel with name stack ``op_name``.

    ``replayed`` is True if a replay loop pushes a direction through it; None: decide by the name.
    """
    path = frames(op_name)
    at, stage = _stage(path)
    phase = _phase(path)
    markers, looped = _markers(path, at)
    if replayed is None:
        # transpose(jvp(...)) in a loop is a gradient of its own (Langevin sampling); directions are pushed by jvp.
        pushed = len(markers) > 1 and markers[0] == "jvp"
        replayed = looped and (pushed or (not markers and phase == "laplacian"))
    if not phase and (replayed or (len(markers) > 1 and markers[0] == "jvp")):
        phase = "laplacian"  # only the Laplacian differentiates twice
    if not phase and (stage or any("wave_function" in frame.name for frame in path)):
        phase = "wavefunction"
    if not stage and phase == "laplacian" and (_names(path, "stage_e") or (replayed and not markers)):
        stage = "E"
    return Attribution(phase, stage, _role(markers, replayed))


def has_stages(op_names: Iterable[str]) -> bool:
    """True if any of ``op_names`` is inside a scope of a stage, or a module that stands for one."""
    return any(_is_staged(name) for name in op_names)


@functools.lru_cache(maxsize=65536)
def _is_staged(op_name: str) -> bool:
    names = [frame.name for frame in frames(op_name) if frame.name and frame.name not in _OF_LIBRARIES]
    return any(
        re.fullmatch(r"stage_[a-e]", name) or any(re.fullmatch(pattern, name) for pattern, _ in MODULE_STAGES)
        for name in names
    )


def attribute_nodes(region: Region, replays: Iterable[Replay] | None = None) -> dict[Node, Attribution]:
    """The attribution of every node below ``region``; dataflow decides inside the loops of ``replays``.

    By default these are the replays that ``find_replays`` finds in ``region``.
    """
    known: dict[Node, bool] = {}
    for replay in find_replays(region) if replays is None else replays:
        body = replay.loop.body
        # With jvp inside the loop the wavefunction itself is recomputed there: that and what depends on it is no
        # tangent. Index arithmetic and views of residuals are part of the linear program.
        repeated = [value for node in replay.recomputed for value in node.results if replay.repeats_arithmetic]
        primal = reached(body, repeated) - replay.varying
        for node in body.nodes:
            inside = (inner for region in node.regions for inner in region.walk())
            known |= dict.fromkeys((node, *inside), primal.isdisjoint(node.results))
    return {node: attribute(node.scope, replayed=known.get(node)) for node in region.walk()}


def _stage(path: tuple[Frame, ...]) -> tuple[int, str]:
    """Position and letter of the innermost scope of stage A to D, else those of a known module, else (-1, '')."""
    for position in range(len(path) - 1, -1, -1):
        if (match := re.fullmatch(r"stage_([a-d])", path[position].name)) is not None:
            return position, match[1].upper()
    for position in range(len(path) - 1, -1, -1):
        for pattern, stage in MODULE_STAGES:
            if re.fullmatch(pattern, path[position].name):
                return position, stage
    return -1, ""


def _phase(path: tuple[Frame, ...]) -> str:
    return next((PHASE_SCOPES[frame.name] for frame in path if frame.name in PHASE_SCOPES), "")


def _markers(path: tuple[Frame, ...], stage_at: int) -> tuple[list[str], bool]:
    """The differentiation markers that belong to the program, outermost first, and whether a loop encloses them.

    Where there are no markers at all, only a loop outside of library functions counts.
    """
    markers: list[str] = []
    looped = library_loop = False
    for position, frame in enumerate(path):
        if markers and "jit" in frame.markers and position > stage_at:
            break
        if frame.name == "while" and not markers:
            looped = True
            library_loop = any("jit" in outer.markers for outer in path[1:position])
        markers += [marker for marker in frame.markers if marker in _MARKERS]
    return markers, looped and (bool(markers) or not library_loop)


def _role(markers: list[str], replayed: bool) -> str:
    if "transpose" in markers:
        return "tangent-of-cotangent" if replayed else "cotangent"
    return "tangent" if replayed else "primal"


def _names(path: tuple[Frame, ...], name: str) -> bool:
    return any(frame.name == name for frame in path)
