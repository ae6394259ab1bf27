"""Attribution of name stacks and of nodes: phase, stage, role."""

import pytest

from fusionlab.hlo.program import program_view
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.stages import Attribution, Frame, attribute, attribute_nodes, frames

from .conftest import laplacian_program

DEEPQMC = "jit(eloc)/vmap(jvp(jvp(neural_network_wave_function)))"
LOOP = "jit(local_energy)/vmap(stage_e)/while/body/closed_call"

CASES = {
    # the primal pass and the gradient of linearize(grad(f)), outside the loop
    "jit(local_energy)/vmap(stage_e)/jvp(jvp(stage_b))/dot_general": ("laplacian", "B", "primal"),
    "jit(local_energy)/vmap(stage_e)/jvp(transpose(jvp(stage_b)))/mul": ("laplacian", "B", "cotangent"),
    # the same names inside the loop, also once the loop is batched or chunked
    f"{LOOP}/jvp(jvp(stage_a))/sub": ("laplacian", "A", "tangent"),
    f"{LOOP}/jvp(transpose(jvp(stage_c)))/mul": ("laplacian", "C", "tangent-of-cotangent"),
    f"jit(f)/vmap(stage_e)/while/closed_call/{LOOP}/jvp(jvp(stage_b))/mul": ("laplacian", "B", "tangent"),
    # seeds and sums
    f"{LOOP}/dynamic_slice": ("laplacian", "E", "tangent"),
    "jit(local_energy)/vmap(stage_e)/mul": ("laplacian", "E", "primal"),
    # a solve inside slogdet brings markers of its own
    f"{LOOP}/jvp(transpose(jvp(stage_d)))/jit(slogdet)/jit(solve)/vmap(vmap(jvp(transpose())))/neg": (
        "laplacian",
        "D",
        "tangent-of-cotangent",
    ),
    f"{LOOP}/jvp(jvp(stage_d))/jit(slogdet)/jit(solve)/vmap(vmap(transpose()))/neg": ("laplacian", "D", "tangent"),
    # the pivot loop of a CPU's LU is behind the markers: it makes no tangents
    "jit(f)/vmap(stage_e)/jvp(jvp(stage_d))/jit(slogdet)/while/body/closed_call/add": ("laplacian", "D", "primal"),
    "jit(f)/vmap(stage_e)/jit(wrapped)/jit(slogdet)/while/body/add": ("laplacian", "D", "primal"),
    # grad alone
    "jit(f)/jvp(stage_b)/tanh": ("wavefunction", "B", "primal"),
    "jit(f)/transpose(jvp(stage_b))/mul": ("wavefunction", "B", "cotangent"),
    # sampling: loops without differentiation, the outermost phase wins
    "jit(f)/mcmc/while/body/vmap(stage_b)/tanh": ("mcmc", "B", "primal"),
    "jit(f)/mcmc/while/body/closed_call/vmap(transpose(jvp(stage_a)))/mul": ("mcmc", "A", "cotangent"),
    "jit(f)/while/body/transpose(jvp(stage_a))/mul": ("wavefunction", "A", "cotangent"),
    "jit(f)/mcmc/while/body/vmap(stage_e)/jvp(jvp(stage_b))/tanh": ("mcmc", "B", "tangent"),
    "jit(f)/optimiser/mul": ("optimiser", "", "primal"),
    "jit(f)/vmap(potential)/jit(norm)/sqrt": ("potential", "", "primal"),
    # DeepQMC names its modules and has no stage scopes; only the Laplacian differentiates twice
    f"{DEEPQMC}/omni_net/electron_gnn/electron_gnn_layer_1/u/linear_0/dot_general": ("laplacian", "B", "primal"),
    f"{DEEPQMC}/omni_net/electron_gnn/edge_factory/electron_gnn/sub": ("laplacian", "A", "primal"),
    f"{DEEPQMC}/mul": ("laplacian", "", "primal"),
    "jit(eloc)/vmap()/while/body/closed_call/jvp(transpose(jvp(neural_network_wave_function)))/jit(slogdet)/neg": (
        "laplacian",
        "D",
        "tangent-of-cotangent",
    ),
    "jit(g)/jit(eloc)/while/body/jvp(jvp(neural_network_wave_function))/mul": ("laplacian", "", "tangent"),
    "jit(f)/neural_network_wave_function/omni_net/Jastrow/mlp/linear_0/dot_general": ("wavefunction", "C", "primal"),
    # the innermost stage wins
    "jit(f)/stage_b/stage_c/add": ("wavefunction", "C", "primal"),
    # nothing known
    "": ("", "", "primal"),
    "jit(f)/add": ("", "", "primal"),
}


@pytest.mark.parametrize("op_name", CASES)
def test_attribution_of_a_name(op_name):
    assert attribute(op_name) == Attribution(*CASES[op_name])


def test_names_are_read_as_nested_calls():
    assert frames("jit(f)/vmap(a/b)/while/jvp(transpose(jvp()))") == (
        Frame(("jit",), "f"),
        Frame(("vmap",), "a/b"),
        Frame((), "while"),
        Frame(("jvp", "transpose", "jvp"), ""),
    )


def test_the_loop_body_of_a_replay_is_all_tangents(paulinet):
    flat = program_view(paulinet)
    (replay,) = find_replays(flat)
    found = attribute_nodes(flat, [replay])
    body = set(replay.loop.body.operations())
    assert {found[node].role for node in body} == {"tangent", "tangent-of-cotangent"}
    assert {found[node].stage for node in body} == set("ABCDE")
    assert {found[node].phase for node in body} == {"laplacian"}
    outside = [node for node in flat.operations() if node not in body]
    assert {found[node].role for node in outside} - {"tangent"} == {"primal", "cotangent"}
    tangents = {node.name for node in outside if found[node].role == "tangent"}
    assert tangents <= {"stablehlo.while", "stablehlo.compare", "stablehlo.constant"}  # the loop and its condition


def test_dataflow_finds_what_a_jvp_in_the_loop_recomputes():
    flat = program_view(laplacian_program("jvp-in-loop"))
    (replay,) = find_replays(flat)
    found = attribute_nodes(flat, [replay])
    tanh = [node for node in replay.loop.body.operations() if node.name == "stablehlo.tanh"]
    assert tanh
    assert {(found[node].stage, found[node].role) for node in tanh} == {("B", "primal")}
    assert {attribute(node.scope).role for node in tanh} == {"tangent"}  # all that the name alone says
    dots = {found[node].role for node in replay.loop.body.operations() if node.name == "stablehlo.dot_general"}
    assert dots == {"primal", "tangent", "cotangent", "tangent-of-cotangent"}
